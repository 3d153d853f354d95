"""Base files: Parquet with the meta columns first and the footer that JVM writers look for."""

from __future__ import annotations

import base64
import json
import os
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_locks.errors import DamagedTable, StorageError
from hudi_locks.format import interpreting, reading_parquet
from hudi_locks.table.dictionaries import add_single, find_encoded, find_repetitive, find_single
from hudi_locks.table.meta_columns import RECORD_KEY
from hudi_locks.table.row_cuts import cut_rows

__all__ = ["BaseFileFormat", "BaseFileWriter", "count_row_groups", "read_base_file", "read_counts", "read_first_key"]

_BASE_FILE: Final = "a base file"
_COUNTS: Final = "hudi_locks.counts"
_MIN_KEY: Final = "hoodie_min_record_key"
_MAX_KEY: Final = "hoodie_max_record_key"
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
    """

    avro_schema: str
    codec: str = "zstd"
    row_group_bytes: int = 64 << 20
    page_bytes: int = 1 << 20


class BaseFileWriter:
    """Writes one base file row group by row group. Runs on executors. A store that fails raises `StorageError`.

    The footer carries what the JVM's bloom index reads: key range and a filter that answers "maybe" for every key,
    so that the index looks into the file instead of failing on it, and never takes a key for absent.
    """

    def __init__(self, path: str, schema: pa.Schema, form: BaseFileFormat) -> None:
        self._path = path
        self._form = form
        self._schema = schema
        self._buffer: list[pa.Table] = []
        self._buffered_bytes = 0
        self._min_key: str | None = None
        self._max_key: str | None = None
        self._writer: pq.ParquetWriter | None = None

    def write(self, rows: pa.Table) -> None:
        """Add rows; they may stay in memory until a row group is full."""
        if rows.num_rows == 0:
            return
        self._widen_range(rows.column(RECORD_KEY))
        for piece in cut_rows(rows, self._form.row_group_bytes // _PIECES):
            self._buffer.append(piece)
            self._buffered_bytes += piece.nbytes
            if self._buffered_bytes >= self._form.row_group_bytes:
                self.flush()

    @property
    def buffered_bytes(self) -> int:
        """Memory that rows of the row group to come take."""
        return self._buffered_bytes

    def close(self, counts: Mapping[str, int]) -> None:
        """Write the footer; `counts` can be read back by `read_counts`."""
        self.flush()
        with self._reporting():
            writer = self._writer or self._open(self._schema.empty_table())
            writer.add_key_value_metadata(self._footer() | {_COUNTS: json.dumps(dict(counts))})
            writer.close()

    def abandon(self) -> None:
        """Close the file handle of a file that nobody will use, whatever the store says to that."""
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()

    def flush(self) -> None:
        """Close the row group now, to free memory."""
        if self._buffer:
            rows = pa.concat_tables(self._buffer)
            with self._reporting():
                self._writer = self._writer or self._open(rows)
                self._writer.write_table(rows, row_group_size=rows.num_rows)
        self._buffer, self._buffered_bytes = [], 0

    def _open(self, first: pa.Table) -> pq.ParquetWriter:
        codec = None if self._form.codec == "uncompressed" else self._form.codec
        dictionary = find_repetitive(first)
        return pq.ParquetWriter(
            self._path,
            self._schema,
            compression=codec,
            use_dictionary=dictionary,
            store_schema=False,
            data_page_size=self._form.page_bytes,
            write_page_checksum=True,
        )

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise StorageError(f"cannot write {self._path}: {reason}", path=self._path, errno=error.errno) from error

    def _widen_range(self, keys: pa.ChunkedArray) -> None:
        found = pc.min_max(keys)
        low, high = found["min"].as_py(), found["max"].as_py()
        if not pc.all(pc.string_is_ascii(keys)).as_py():
            # The JVM compares UTF-16 units, we compare bytes: only for ASCII do both mean the same order.
            low, high = _FIRST_CHARACTER, _LAST_CHARACTER
        self._min_key = low if self._min_key is None else min(self._min_key, low)
        self._max_key = high if self._max_key is None else max(self._max_key, high)

    def _footer(self) -> dict[str, str]:
        return {
            "parquet.avro.schema": self._form.avro_schema,
            "writer.model.name": "avro",
            _MIN_KEY: self._min_key or _FIRST_CHARACTER,
            _MAX_KEY: self._max_key or _FIRST_CHARACTER,
            "hoodie_bloom_filter_type_code": "SIMPLE",
            "org.apache.hudi.bloomfilter": _bloom_that_holds_all(),
        }


def _bloom_that_holds_all() -> str:
    """Hudi's InternalBloomFilter of 8 bits, one hash, all set: version -1, count, murmur, size, bits."""
    return base64.b64encode(struct.pack(">iibi", -1, 1, 1, 8) + b"\xff").decode()


def read_base_file(
    path: str,
    *,
    columns: Collection[str] | None = None,
    batch_rows: int = 1 << 17,
    encoded: Collection[str] = (),
    row_groups: Sequence[int] | None = None,
) -> Iterator[pa.Table]:
    """The rows of a base file in bounded pieces, in file order.

    Args:
        path: As Arrow opens it.
        columns: Only these, as far as the file has them; all if None.
        batch_rows: The bound.
        encoded: Of these, texts that the file has as dictionaries stay dictionaries; one that is the same in every row
            becomes one.
        row_groups: Only the rows of these; of all if None.

    Raises:
        DamagedTable: It is no Parquet file; named, since skipping it would lose rows.
        StorageError: The store failed.
    """
    with reading_parquet(_BASE_FILE, path), _open(path) as found:
        names = [name for name in found.schema_arrow.names if columns is None or name in columns]
        single = find_single(found.metadata, encoded)
        needed = [name for name in names if name not in single] or names[:1]  # rows without columns are not counted
        with _open(path, metadata=found.metadata, encoded=encoded) if encoded else found as file:
            batches = file.iter_batches(batch_size=batch_rows, columns=needed, row_groups=row_groups)
            for rows in _gather(batches, batch_rows):
                yield add_single(rows, single, names)


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


def count_row_groups(path: str) -> int:
    """How many row groups a base file has."""
    with reading_parquet(_BASE_FILE, path), _open(path) as file:
        return int(file.metadata.num_row_groups)


def describe_base_file(path: str) -> tuple[int, tuple[str, ...]]:
    """How many rows a base file has, and its columns, by its footer.

    Raises:
        DamagedTable: It is no Parquet file.
        StorageError: The store failed.
    """
    with reading_parquet(_BASE_FILE, path), _open(path) as file:
        return int(file.metadata.num_rows), tuple(file.schema_arrow.names)


def decode_base_file(path: str) -> None:
    """Decode every value of a base file, a row group at a time, and compare the checksums of its pages if it has any.

    Raises:
        DamagedTable: A page cannot be decoded, or its checksum is another.
        StorageError: The store failed.
    """
    with reading_parquet(_BASE_FILE, path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        for group in range(file.num_row_groups):
            file.read_row_group(group)


def read_file_schema(path: str) -> pa.Schema:
    """The columns of a base file with their types, by its footer.

    Raises:
        DamagedTable: It is no Parquet file.
        StorageError: The store failed.
    """
    with reading_parquet(_BASE_FILE, path), _open(path) as file:
        return file.schema_arrow


def read_counts(path: str) -> dict[str, int]:
    """The counts that `BaseFileWriter.close` was given.

    Raises:
        DamagedTable: The footer has none: another program made a file of this name.
    """
    counts = _read_footer(path).get(_COUNTS)
    if counts is None:
        raise DamagedTable(f"{path} has the name of a file of ours and not its footer; who made it?", path=path)
    with interpreting("counts in its footer", path):
        return {name: int(count) for name, count in json.loads(counts).items()}


def read_first_key(path: str) -> str | None:
    """The record key of the first row; None for a file without rows. The footer's range may be wider than the keys."""
    with reading_parquet(_BASE_FILE, path), _open(path) as file:
        for batch in file.iter_batches(batch_size=1, columns=[RECORD_KEY]):
            return str(batch.column(0)[0].as_py())
        return None


def _read_footer(path: str) -> dict[str, str]:
    with reading_parquet(_BASE_FILE, path), _open(path) as file:
        found: dict[bytes, bytes] = file.metadata.metadata or {}
        return {key.decode(): value.decode() for key, value in found.items() if key != b"ARROW:schema"}


def _open(path: str, *, metadata: pq.FileMetaData | None = None, encoded: Collection[str] = ()) -> pq.ParquetFile:
    kept = find_encoded(metadata, encoded) if metadata is not None else None
    return pq.ParquetFile(path, metadata=metadata, read_dictionary=kept)
