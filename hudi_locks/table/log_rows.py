"""The rows of data blocks in log files, as Arrow tables with the meta columns first."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks.errors import DamagedTable, UnsupportedTable
from hudi_locks.format import META_COLUMNS, arrow_schema
from hudi_locks.format.avro import UNREADABLE
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, decode_blocks
from hudi_locks.format.log_deletes import decode_deletes, encode_deletes
from hudi_locks.table.meta_columns import RECORD_KEY, add_meta_schema

__all__ = ["LogEntry", "encode_deleted", "encode_rows", "read_log"]

_AVRO_FORMAT: Final = 3
_COUNT: Final = struct.Struct(">i")
_BLOCK_FORMATS: Final = {"parquet": BlockType.PARQUET, "avro": BlockType.AVRO}


@dataclass(frozen=True)
class LogEntry:
    """What one block of a log does to its file group.

    Attributes:
        instant: Requested time of its write.
        rows: Rows that it brings, meta columns included; of a delete the keys alone.
        orderings: Of a delete: for each key the ordering value that a row must not exceed to go, None where every row
            goes; of rows None.
        is_partial: Whether columns that `rows` lacks stay as they are.
    """

    instant: str
    rows: pa.Table
    orderings: tuple[Any, ...] | None = None
    is_partial: bool = False


def encode_rows(
    rows: pa.Table, avro_schema: str, *, instant: str, form: str = "parquet", codec: str = "zstd"
) -> LogBlock:
    """A block with these rows.

    Args:
        rows: Meta columns first; `_hoodie_file_name` holds the file id.
        avro_schema: Avro JSON of all of them.
        instant: Requested time of the write.
        form: "parquet", or "avro", which is ten times slower to write and read here.
        codec: Parquet compression.
    """
    header = {BlockHeader.INSTANT_TIME: instant, BlockHeader.SCHEMA: avro_schema}
    content = _encode_parquet(rows, avro_schema, codec) if form == "parquet" else _encode_avro(rows, avro_schema)
    return LogBlock(_BLOCK_FORMATS[form], header, content)


def encode_deleted(keys: pa.ChunkedArray, partition: str, *, instant: str, avro_schema: str) -> LogBlock:
    """A block that takes out whatever rows of these keys came before it."""
    header = {BlockHeader.INSTANT_TIME: instant, BlockHeader.SCHEMA: avro_schema}
    return LogBlock(BlockType.DELETE, header, encode_deletes(keys, partition))


def read_log(data: bytes | memoryview, path: str, *, columns: Collection[str] | None = None) -> Iterator[LogEntry]:
    """What the blocks of a log file do, in their order; of Parquet blocks with these columns only, unless it is None.

    Raises:
        DamagedTable: A block cannot be read whole.
        UnsupportedTable: A block is of a kind that is not read here.
    """
    for block in decode_blocks(data, path):
        yield _interpret(block, path, columns)


def _interpret(block: LogBlock, path: str, columns: Collection[str] | None) -> LogEntry:
    if not block.instant:
        raise DamagedTable(f"{path} has a block that does not name its instant", path=path)
    if block.kind is BlockType.DELETE:
        found = decode_deletes(block.content, path)
        return LogEntry(block.instant, pa.table({RECORD_KEY: pa.array(found.keys, pa.string())}), found.orderings)
    if block.kind not in _BLOCK_FORMATS.values():
        message = f"{path} has a block of type {block.kind.name}, which is not read here; compact the file group first"
        raise UnsupportedTable(message, path=path, block=block.kind.name)
    is_parquet = block.kind is BlockType.PARQUET
    rows = _decode_parquet(block, path, columns) if is_parquet else _decode_avro(block, path)
    return LogEntry(block.instant, rows, is_partial=block.is_partial)


def _encode_parquet(rows: pa.Table, avro_schema: str, codec: str) -> bytes:
    out = pa.BufferOutputStream()
    compression = None if codec == "uncompressed" else codec
    with pq.ParquetWriter(out, rows.schema, compression=compression, store_schema=False) as writer:
        writer.add_key_value_metadata({"parquet.avro.schema": avro_schema})
        writer.write_table(rows)
    return bytes(out.getvalue())


def _decode_parquet(block: LogBlock, path: str, columns: Collection[str] | None) -> pa.Table:
    declared = _arrow_of(block.schema, path)
    schema = pa.schema([field for field in declared if columns is None or field.name in columns])
    try:
        found = pq.ParquetFile(pa.BufferReader(block.content)).read(columns=schema.names)
        return found.select(schema.names).cast(schema)
    except (pa.ArrowException, KeyError, OSError) as error:
        raise DamagedTable(f"{path}: a block of Parquet rows cannot be read: {error}", path=path) from error


def _encode_avro(rows: pa.Table, avro_schema: str) -> bytes:
    parsed, out = _parse(avro_schema), [_COUNT.pack(_AVRO_FORMAT), _COUNT.pack(rows.num_rows)]
    for batch in rows.to_batches():
        for row in batch.to_pylist():
            datum = io.BytesIO()
            fastavro.schemaless_writer(datum, parsed, row)
            out += [_COUNT.pack(datum.tell()), datum.getvalue()]
    return b"".join(out)


def _decode_avro(block: LogBlock, path: str) -> pa.Table:
    try:
        return pa.Table.from_pylist(list(_read_avro(block)), _arrow_of(block.schema, path))
    except (*UNREADABLE, pa.ArrowException) as error:
        raise DamagedTable(f"{path}: a block of Avro rows cannot be read: {error}", path=path) from error


def _read_avro(block: LogBlock) -> Iterator[Mapping[str, Any]]:
    parsed, stream = _parse(block.schema), io.BytesIO(block.content)
    version, count = (_COUNT.unpack(stream.read(_COUNT.size))[0] for _ in range(2))
    if version > _AVRO_FORMAT:
        raise ValueError(f"it has format version {version}, and up to {_AVRO_FORMAT} is read")
    for _ in range(count):
        end = _COUNT.unpack(stream.read(_COUNT.size))[0] + stream.tell()
        row: Any = fastavro.schemaless_reader(stream, parsed, None)
        if stream.tell() != end:
            raise ValueError(f"a row ends at {stream.tell()} and not at {end}")
        yield row


@lru_cache(maxsize=64)
def _parse(avro_schema: str) -> Any:
    return fastavro.parse_schema(json.loads(avro_schema))


def _arrow_of(avro_schema: str, path: str) -> pa.Schema:
    """The columns that a block declares; of a partial one those of the meta columns that it has."""
    whole = add_meta_schema(arrow_schema(avro_schema, path))
    declared = {field["name"] for field in json.loads(avro_schema)["fields"]}
    return pa.schema([field for field in whole if field.name in declared or field.name not in META_COLUMNS])
