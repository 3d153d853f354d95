"""Log files of one write in one file group: blocks one after the other, and a new file when one is full."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from hudi_locks.errors import StorageError
from hudi_locks.format.column_range import encode_ranges
from hudi_locks.format.log_block import LogBlock, encode_block
from hudi_locks.format.log_deletes import wrap_orderings
from hudi_locks.storage import Output, reporting
from hudi_locks.table.base_file import cut_rows
from hudi_locks.table.log_rows import encode_deleted, encode_deleted_again, encode_rows
from hudi_locks.table.value_ranges import ValueRanges
from hudi_locks.table.virtual_keys import clear_meta_columns

__all__ = ["LogFormat", "LogPart", "LogWriter"]

_FIRST: Final = 1


@dataclass(frozen=True)
class LogFormat:
    """How log files are encoded.

    Attributes:
        avro_schema: Avro JSON of all columns, meta columns included; every block carries it.
        form: "parquet" or "avro".
        codec: Parquet compression: zstd, snappy, gzip, lz4 or uncompressed.
        block_bytes: Rows of one block take no more memory than this, unless it is one row.
        file_bytes: A file that has reached this size gets no further block.
        is_without_meta_columns: Whether rows leave the meta columns empty, since their keys are made of the others.
    """

    avro_schema: str
    form: str = "parquet"
    codec: str = "zstd"
    block_bytes: int = 256 << 20
    file_bytes: int = 1 << 30
    is_without_meta_columns: bool = False


@dataclass(frozen=True)
class LogPart:
    """One file of a write.

    Attributes:
        version: Counts from 1.
        size: Bytes.
        rows: Rows that it brings.
        deletes: Keys that it takes out.
        ranges: Those of its indexed columns, as `encode_ranges` tells them; None without any.
    """

    version: int
    size: int = 0
    rows: int = 0
    deletes: int = 0
    ranges: str | None = None


class LogWriter:
    """Writes the log files of one file group block by block. Runs on executors; raises `StorageError` if it fails.

    Args:
        make_output: Where the file of a version goes.
        form: How blocks are encoded.
        instant: Requested time of the write.
        partition: Partition path, which deletes name.
        stands_for: Requested times of the writes whose logs a log compaction merges into this one; else none.
        indexed: Columns whose ranges are to be known once the files are written.
    """

    def __init__(
        self,
        make_output: Callable[[int], Output],
        form: LogFormat,
        *,
        instant: str,
        partition: str,
        stands_for: Collection[str] = (),
        indexed: Collection[str] = (),
    ) -> None:
        self._indexed = indexed
        self._make_output = make_output
        self._form = form
        self._partition = partition
        self._said: Any = {"instant": instant, "stands_for": stands_for}
        self._parts: list[_OpenPart] = []

    def write(self, rows: pa.Table) -> None:
        """Add stamped rows, meta columns first."""
        form = self._form
        kept = clear_meta_columns(rows) if form.is_without_meta_columns else rows
        for piece in cut_rows(kept, min(form.block_bytes, form.file_bytes)):
            block = encode_rows(piece, form.avro_schema, form=form.form, codec=form.codec, **self._said)
            self._append(block, rows=piece)

    def delete(self, keys: pa.ChunkedArray, orderings: Sequence[pa.ChunkedArray] = ()) -> None:
        """Take out whatever rows of these keys came before this write.

        Args:
            keys: Record keys.
            orderings: For each ordering field the values of the keys: then a row with a greater one stays.

        Raises:
            BadInput: Ordering values of this type cannot stand in a block of deletes.
        """
        if orderings:
            self.delete_again(list(zip(keys.to_pylist(), wrap_orderings(orderings), strict=True)))
            return
        named = pa.table({"key": keys})
        for piece in cut_rows(named, min(self._form.block_bytes, self._form.file_bytes)):
            block = encode_deleted(piece["key"], self._partition, avro_schema=self._form.avro_schema, **self._said)
            self._append(block, deletes=piece.num_rows)

    def delete_again(self, deletes: Sequence[tuple[str, Any]]) -> None:
        """Take out rows as deletes of other logs do, each with its ordering value as `LogEntry.wrapped` has it."""
        if deletes:
            block = encode_deleted_again(deletes, self._partition, avro_schema=self._form.avro_schema, **self._said)
            self._append(block, deletes=len(deletes))

    def close(self) -> tuple[LogPart, ...]:
        """End the last file; the parts in their order, none where nothing was added."""
        for part in self._parts:
            part.close()
        return tuple(part.part for part in self._parts)

    def abandon(self) -> None:
        """Close the handles of files that nobody will use, whatever the store says to that."""
        for part in self._parts:
            with suppress(StorageError):
                part.close()

    def _append(self, block: LogBlock, *, rows: pa.Table | None = None, deletes: int = 0) -> None:
        if not self._parts or self._parts[-1].part.size >= self._form.file_bytes:
            if self._parts:
                self._parts[-1].close()
            version = len(self._parts) + _FIRST
            self._parts.append(_OpenPart(self._make_output(version), version, self._indexed))
        self._parts[-1].append(encode_block(block), rows=rows, deletes=deletes)


class _OpenPart:
    """One log file while it is written."""

    def __init__(self, output: Output, version: int, indexed: Collection[str]) -> None:
        self.part = LogPart(version)
        self._output = output
        self._ranges = ValueRanges(indexed) if indexed else None
        self._sink: pa.NativeFile | None = None

    def append(self, data: bytes, *, rows: pa.Table | None, deletes: int) -> None:
        with reporting("write", self._output.target):
            self._sink = self._sink or self._output.open()
            self._sink.write(data)
        part, count = self.part, 0 if rows is None else rows.num_rows
        self.part = replace(part, size=part.size + len(data), rows=part.rows + count, deletes=part.deletes + deletes)
        if rows is not None and self._ranges is not None:
            self._ranges.add(rows)

    def close(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            with reporting("write", self._output.target):
                sink.close()
        if self._ranges is not None:
            self.part = replace(self.part, ranges=encode_ranges(self._ranges.found()))
