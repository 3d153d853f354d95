"""Base files: Parquet with the meta columns first and the footer that JVM writers look for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_locks.errors import DamagedTable
from hudi_locks.format import reading_parquet
from hudi_locks.format.column_range import encode_ranges
from hudi_locks.format.instant import METADATA_BOOTSTRAP
from hudi_locks.format.key_filter import EVERY_KEY, KEY_FILTER_TYPE, FilterSize, KeyFilter
from hudi_locks.storage import Output, Storage, reporting
from hudi_locks.table.bootstrap import (
    describe_source,
    is_skeleton,
    lies_in_source,
    read_source_schema,
    read_with_source,
)
from hudi_locks.table.dictionaries import add_single, find_encoded, find_repetitive, find_single
from hudi_locks.table.meta_columns import RECORD_KEY
from hudi_locks.table.value_ranges import ValueRanges
from hudi_locks.table.virtual_keys import VirtualKeys, clear_meta_columns

__all__ = [
    "FILTER",
    "FILTER_TYPE",
    "BaseFileFormat",
    "BaseFileWriter",
    "count_row_groups",
    "count_rows",
    "cut_rows",
    "describe_base_file",
    "open_base_file",
    "read_base_file",
    "refuse_other_count",
]

_BASE_FILE: Final = "a base file"
_MIN_KEY: Final = "hoodie_min_record_key"
_MAX_KEY: Final = "hoodie_max_record_key"
FILTER_TYPE: Final = "hoodie_bloom_filter_type_code"
FILTER: Final = "org.apache.hudi.bloomfilter"
_FIRST_CHARACTER: Final = ""
_LAST_CHARACTER: Final = "\uffff"
_PIECES: Final = 8
"""Rows come to a row group in pieces of at most this share of it, so that none is much larger than asked for."""


@dataclass(frozen=True)
class BaseFileFormat:
    """How base files are encoded.

    Attributes:
        avro_schema: Avro JSON of all columns, meta columns included; readers on the JVM take it from the footer.
        codec: Parquet compression: zstd, snappy, gzip, lz4 or uncompressed.
        row_group_bytes: A row group is closed when the rows in memory exceed this, which bounds the writer's memory.
        page_bytes: Size of a Parquet page, about.
        key_filter: Size of the bloom filter of its keys; None for one that holds every key.
        virtual_keys: Makes the keys of rows whose files leave the meta columns empty; None where files have them.
    """

    avro_schema: str
    codec: str = "zstd"
    row_group_bytes: int = 64 << 20
    page_bytes: int = 1 << 20
    key_filter: FilterSize | None = None
    virtual_keys: VirtualKeys | None = None


class BaseFileWriter:
    """Writes one base file row group by row group. Runs on executors. A store that fails raises `StorageError`.

    The footer carries what bloom indexes read: the range of its keys and a filter of them. Where the format asks for
    none, that filter answers "maybe" for every key, so that an index looks into the file instead of failing on it.
    A filter never takes a key for absent that is there. A file without meta columns has neither.

    Args:
        output: Where to; opened when the first row group is full.
        schema: Of the rows, meta columns included.
        form: How they are encoded.
        indexed: Columns whose ranges are to be known once the file is written.

    Attributes:
        key_filter: That filter as its footer has it, once it is closed; None for one that holds every key.
    """

    def __init__(
        self, output: Output, schema: pa.Schema, form: BaseFileFormat, *, indexed: Collection[str] = ()
    ) -> None:
        self._output = output
        self._form = form
        self._schema = schema
        self._buffer: list[pa.Table] = []
        self._buffered_bytes = 0
        self._min_key: str | None = None
        self._max_key: str | None = None
        self._keys: list[pa.Array] = []
        self._sink: pa.NativeFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._ranges = ValueRanges(indexed) if indexed else None
        self._footers: list[pq.FileMetaData] = []
        self.key_filter: str | None = None

    def write(self, rows: pa.Table) -> None:
        """Add rows; they may stay in memory until a row group is full."""
        if rows.num_rows == 0:
            return
        if self._form.virtual_keys is None:
            self._take_keys(rows.column(RECORD_KEY))
        else:
            rows = clear_meta_columns(rows)
        if self._ranges is not None:
            self._ranges.add(rows)
        for piece in cut_rows(rows, self._form.row_group_bytes // _PIECES):
            self._buffer.append(piece)
            self._buffered_bytes += piece.nbytes
            if self._buffered_bytes >= self._form.row_group_bytes:
                self.flush()

    @property
    def buffered_bytes(self) -> int:
        """Memory that rows of the row group to come take."""
        return self._buffered_bytes

    def close(self) -> int:
        """Write the footer; the size of the file, in bytes."""
        self.flush()
        with reporting("write", self._output.target):
            writer = self._writer or self._open(self._schema.empty_table())
            writer.add_key_value_metadata(self._footer())
            return self._end()

    def ranges(self) -> str | None:
        """The ranges of its indexed columns, as `encode_ranges` tells them, once it is closed; None without any."""
        return None if self._ranges is None else encode_ranges(self._ranges.found(*self._footers))

    def abandon(self) -> None:
        """Close the file handle of a file that nobody will use, whatever the store says to that."""
        with suppress(OSError, RuntimeError):  # the latter for a footer that was not written
            self._end()

    def _end(self) -> int:
        """Arrow's writer leaves a handle open that it did not open itself."""
        writer, sink = self._writer, self._sink
        self._writer = self._sink = None
        with sink or nullcontext():
            if writer is not None:
                writer.close()
            return sink.tell() if sink is not None else 0

    def flush(self) -> None:
        """Close the row group now, to free memory."""
        if self._buffer:
            rows = pa.concat_tables(self._buffer)
            with reporting("write", self._output.target):
                writer = self._writer or self._open(rows)
                writer.write_table(rows, row_group_size=rows.num_rows)
        self._buffer, self._buffered_bytes = [], 0

    def _open(self, first: pa.Table) -> pq.ParquetWriter:
        codec = None if self._form.codec == "uncompressed" else self._form.codec
        self._sink = self._output.open()
        self._writer = pq.ParquetWriter(
            self._sink,
            self._schema,
            compression=codec,
            use_dictionary=find_repetitive(first),
            store_schema=False,
            data_page_size=self._form.page_bytes,
            write_page_checksum=True,
            metadata_collector=self._footers,
        )
        return self._writer

    def _take_keys(self, keys: pa.ChunkedArray) -> None:
        if self._form.key_filter is not None:
            self._keys += [pa.concat_arrays([chunk]) for chunk in keys.chunks]  # else every column stays in memory
        found = pc.min_max(keys)
        low, high = found["min"].as_py(), found["max"].as_py()
        if not pc.all(pc.string_is_ascii(keys)).as_py():
            # The JVM compares UTF-16 units, we compare bytes: only for ASCII do both mean the same order.
            low, high = _FIRST_CHARACTER, _LAST_CHARACTER
        self._min_key = low if self._min_key is None else min(self._min_key, low)
        self._max_key = high if self._max_key is None else max(self._max_key, high)

    def _footer(self) -> dict[str, str]:
        told = {"parquet.avro.schema": self._form.avro_schema, "writer.model.name": "avro"}
        if self._form.virtual_keys is not None:
            return told
        return {
            **told,
            _MIN_KEY: self._min_key or _FIRST_CHARACTER,
            _MAX_KEY: self._max_key or _FIRST_CHARACTER,
            FILTER_TYPE: KEY_FILTER_TYPE,
            FILTER: self._filter_keys() or EVERY_KEY,
        }

    def _filter_keys(self) -> str | None:
        if self._form.key_filter is not None:
            keys = pa.chunked_array(self._keys, pa.string())
            self.key_filter = KeyFilter.of(keys, self._form.key_filter).encode()
        return self.key_filter


def read_base_file(
    storage: Storage,
    path: str,
    *,
    columns: Collection[str] | None = None,
    batch_rows: int = 1 << 17,
    encoded: Collection[str] = (),
    row_groups: Sequence[int] | None = None,
) -> Iterator[pa.Table]:
    """The rows of a base file in bounded pieces, in file order; of a skeleton with the columns of its source.

    Args:
        storage: Of the table.
        path: Of the file.
        columns: Only these, as far as the file has them; all if None.
        batch_rows: The bound.
        encoded: Of these, texts that the file has as dictionaries stay dictionaries; one that is the same in every row
            becomes one.
        row_groups: Only the rows of these; of all if None, as where columns of a source are read.

    Raises:
        DamagedTable: It, or its source, is gone, no Parquet file, or has another number of rows than its footer says;
            named, since skipping it would lose rows.
        StorageError: The store failed.
    """
    if METADATA_BOOTSTRAP in path and lies_in_source(path, columns):
        yield from read_with_source(storage, path, columns=columns, batch_rows=batch_rows)
        return
    with open_base_file(storage, path) as (source, found):
        names = [name for name in found.schema_arrow.names if columns is None or name in columns]
        single = find_single(found.metadata, encoded)
        needed = [name for name in names if name not in single] or names[:1]  # rows without columns are not counted
        file = _keep_encoded(source, found, encoded) if encoded else found
        batches = file.iter_batches(batch_size=batch_rows, columns=needed, row_groups=row_groups)
        count = 0
        for rows in _gather(batches, batch_rows):
            complete = add_single(rows, single, names)
            count += complete.num_rows
            yield complete
        refuse_other_count(found.metadata, path, count, row_groups)


def refuse_other_count(
    metadata: pq.FileMetaData, path: str, rows: int, row_groups: Sequence[int] | None = None
) -> None:
    """Refuse other rows than some row groups have, or all: nobody would miss the others, Arrow gives what there is.

    Raises:
        DamagedTable: There are more or less.
    """
    expected = metadata.num_rows if row_groups is None else count_rows(metadata, row_groups)
    if rows != expected:
        message = (
            f"{path} has {rows} rows, and its footer says {expected}; bring it back from a copy, or restore the table"
        )
        raise DamagedTable(message, path=path, rows=rows, rows_expected=expected)


def count_rows(metadata: pq.FileMetaData, row_groups: Iterable[int]) -> int:
    """Rows of some row groups, by the footer."""
    return sum(metadata.row_group(group).num_rows for group in row_groups)


def _keep_encoded(source: pa.NativeFile, file: pq.ParquetFile, names: Collection[str]) -> pq.ParquetFile:
    """The same file, read with these columns as dictionaries where it has them so."""
    return pq.ParquetFile(source, metadata=file.metadata, read_dictionary=find_encoded(file.metadata, names))


def _gather(batches: Iterable[pa.RecordBatch], most_rows: int) -> Iterator[pa.Table]:
    """A batch with dictionaries ends where its row group does."""
    gathered: list[pa.RecordBatch] = []
    for batch in batches:
        if gathered and sum(map(len, gathered)) + len(batch) > most_rows:
            yield pa.Table.from_batches(gathered)
            gathered = []
        gathered.append(batch)
    if gathered:
        yield pa.Table.from_batches(gathered)


def count_row_groups(storage: Storage, path: str) -> int:
    """How many row groups a base file has; raises what `read_base_file` raises."""
    with open_base_file(storage, path) as (_, file):
        return int(file.metadata.num_row_groups)


def describe_base_file(storage: Storage, path: str, *, decodes: bool = False) -> tuple[int, tuple[str, ...]]:
    """How many rows a base file has, and its columns, by its footer.

    Args:
        storage: Of the table.
        path: Of the file.
        decodes: Whether to decode every value too, a row group at a time, and compare the checksums of its pages if it
            has any.

    Raises:
        DamagedTable: It is no Parquet file, it has another number of rows than its footer says, a page of it cannot be
            decoded, or its checksum is another.
        NoSuchFile: It is gone.
        StorageError: The store failed.
    """
    with storage.open_input(path) as source, reading_parquet(_BASE_FILE, path):
        file = pq.ParquetFile(source, page_checksum_verification=decodes)
        for group in range(file.num_row_groups if decodes else 0):
            file.read_row_group(group)
        rows = count_rows(file.metadata, range(file.num_row_groups))
        refuse_other_count(file.metadata, path, rows)
        names = tuple(file.schema_arrow.names)
    if is_skeleton(path):
        names += describe_source(storage, path, rows=rows, decodes=decodes)
    return rows, names


def read_file_schema(storage: Storage, path: str) -> pa.Schema:
    """The columns of a base file with their types, by its footer; raises what `read_base_file` raises."""
    with open_base_file(storage, path) as (_, file):
        found = file.schema_arrow
    return pa.schema([*found, *read_source_schema(storage, path)]) if is_skeleton(path) else found


def _read_footer(storage: Storage, path: str) -> dict[str, str]:
    with open_base_file(storage, path) as (_, file):
        found: dict[bytes, bytes] = file.metadata.metadata or {}
        return {key.decode(): value.decode() for key, value in found.items() if key != b"ARROW:schema"}


@contextmanager
def open_base_file(storage: Storage, path: str) -> Iterator[tuple[pa.NativeFile, pq.ParquetFile]]:
    """The open file, and its footer; raises what `read_base_file` raises."""
    with reading_parquet(_BASE_FILE, path), storage.open_input(path) as source:
        yield source, pq.ParquetFile(source)


def cut_rows(rows: pa.Table, most_bytes: int) -> Iterator[pa.Table]:
    """The rows in pieces of about so many bytes in memory, of one row at least. Nothing is copied."""
    per_piece = max(1, rows.num_rows * most_bytes // max(1, rows.nbytes))
    for start in range(0, rows.num_rows, per_piece):
        yield rows.slice(start, per_piece)
