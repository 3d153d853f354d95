"""The rows of data blocks in log files, as Arrow tables with the meta columns first."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks.errors import DamagedTable, UnsupportedTable
from hudi_locks.format import META_COLUMNS, add_meta_schema, arrow_schema, reading_parquet
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, decode_blocks, encode_block
from hudi_locks.format.log_deletes import decode_deletes, encode_deletes, encode_deletes_again
from hudi_locks.table.avro_rows import decode_avro, encode_avro
from hudi_locks.table.dictionaries import add_single, find_encoded, find_repetitive, find_single
from hudi_locks.table.meta_columns import RECORD_KEY

__all__ = [
    "LogEntry",
    "encode_deleted",
    "encode_deleted_again",
    "encode_rollback",
    "encode_rows",
    "find_stood_for",
    "find_undone",
    "list_kept",
    "list_later",
    "read_log",
]

_SERIAL_ROWS: Final = 1 << 17
"""Up to so many rows the columns of a block are read one after the other: logs are read side by side."""
_BLOCK: Final = "a block of rows"
_ROLLBACK: Final = "0"
"""Of Hudi's HoodieCommandBlockTypeEnum."""
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
        wrapped: Of a delete: the ordering values as its block has them, each with its type.
        load: Reads the rows with all columns that were asked for, where `rows` has those that decide alone.
    """

    instant: str
    rows: pa.Table
    orderings: tuple[Any, ...] | None = None
    is_partial: bool = False
    wrapped: tuple[Any, ...] = ()
    load: Callable[[], pa.Table] | None = field(default=None, compare=False)

    @property
    def whole(self) -> pa.Table:
        """The rows with all columns.

        Raises:
            DamagedTable: They cannot be read.
        """
        return self.rows if self.load is None else self.load()


def encode_rows(
    rows: pa.Table,
    avro_schema: str,
    *,
    instant: str,
    form: str = "parquet",
    codec: str = "zstd",
    stands_for: Collection[str] = (),
) -> LogBlock:
    """A block with these rows.

    Args:
        rows: Meta columns first; `_hoodie_file_name` holds the file id.
        avro_schema: Avro JSON of all of them.
        instant: Requested time of the write.
        form: "parquet", or "avro", which is ten times slower to write and read here.
        codec: Parquet compression.
        stands_for: Requested times of the writes that a log compaction merged into it.
    """
    header = _make_header(instant, avro_schema, stands_for)
    content = _encode_parquet(rows, avro_schema, codec) if form == "parquet" else encode_avro(rows, avro_schema)
    return LogBlock(_BLOCK_FORMATS[form], header, content)


def encode_deleted(
    keys: pa.ChunkedArray, partition: str, *, instant: str, avro_schema: str, stands_for: Collection[str] = ()
) -> LogBlock:
    """A block that takes out whatever rows of these keys came before it."""
    header = _make_header(instant, avro_schema, stands_for)
    return LogBlock(BlockType.DELETE, header, encode_deletes(keys, partition))


def encode_deleted_again(
    deletes: Sequence[tuple[str, Any]], partition: str, *, instant: str, avro_schema: str, stands_for: Collection[str]
) -> LogBlock:
    """A block with deletes out of other blocks: each takes out rows up to its ordering value, as it did there."""
    header = _make_header(instant, avro_schema, stands_for)
    return LogBlock(BlockType.DELETE, header, encode_deletes_again(deletes, partition))


def _make_header(instant: str, avro_schema: str, stands_for: Collection[str]) -> dict[BlockHeader, str]:
    header = {BlockHeader.INSTANT_TIME: instant, BlockHeader.SCHEMA: avro_schema}
    times = {BlockHeader.COMPACTED_BLOCK_TIMES: ",".join(sorted(stands_for))} if stands_for else {}
    return header | times


def read_log(
    data: bytes | memoryview,
    path: str,
    *,
    columns: Collection[str] | None = None,
    idle: Collection[str] = (),
    takes: Callable[[str], bool] | None = None,
) -> Iterator[LogEntry]:
    """What the blocks of a log file do, in their order.

    Args:
        data: Its bytes.
        path: Where it is, for errors.
        columns: Of Parquet blocks only these; all if None.
        idle: Of these, which decide nothing: Parquet blocks are read without them until rows of theirs are needed, and
            texts that they have as dictionaries stay dictionaries.
        takes: Of a table of version 6: whether the blocks of a write count, but for those that a rollback behind them
            in this log takes back. None where all do.

    Raises:
        DamagedTable: A block cannot be read whole.
        UnsupportedTable: A block is of a kind that is not read here.
    """
    for block in decode_blocks(data, path) if takes is None else list_kept(data, path):
        if takes is None or takes(block.instant):
            yield _interpret(block, path, columns, idle)


def find_undone(data: bytes | memoryview, path: str) -> frozenset[str]:
    """Requested times of the writes whose blocks a rollback took back, by a block of its own; none since version 8.

    It takes back what is before it, also in earlier logs: JVM Hudi may make an instant again under its time.

    Raises:
        DamagedTable: A block cannot be read whole.
    """
    rollbacks = filter(_is_rollback, decode_blocks(data, path))
    return frozenset(block.header.get(BlockHeader.TARGET_INSTANT_TIME, "") for block in rollbacks)


def list_later(undone: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """For each log, in the order in which they are applied, what all later ones take back; see `find_undone`."""
    return [frozenset[str]().union(*undone[place + 1 :]) for place in range(len(undone))]


def list_kept(data: bytes | memoryview, path: str) -> list[LogBlock]:
    """Blocks of a log but for those of rollbacks, and those that one behind them takes back.

    Raises:
        DamagedTable: A block cannot be read whole.
    """
    blocks = list(decode_blocks(data, path))
    taken = {b.header.get(BlockHeader.TARGET_INSTANT_TIME, ""): n for n, b in enumerate(blocks) if _is_rollback(b)}
    return [b for n, b in enumerate(blocks) if not _is_rollback(b) and n > taken.get(b.instant, -1)]


def _is_rollback(block: LogBlock) -> bool:
    return block.kind is BlockType.COMMAND and block.header.get(BlockHeader.COMMAND_TYPE) == _ROLLBACK


def encode_rollback(requested: str) -> bytes:
    """The block that takes out those of the write begun at `requested` (HoodieLogBlock's ROLLBACK_BLOCK)."""
    header = {
        BlockHeader.INSTANT_TIME: requested,
        BlockHeader.TARGET_INSTANT_TIME: requested,
        BlockHeader.COMMAND_TYPE: _ROLLBACK,
    }
    return encode_block(LogBlock(BlockType.COMMAND, header, b""))


def find_stood_for(data: bytes | memoryview, path: str) -> frozenset[str]:
    """Requested times of the writes for which a log file stands, as one that a log compaction made; mostly none.

    Raises:
        DamagedTable: A block cannot be read whole.
    """
    return frozenset[str]().union(*(block.stands_for for block in decode_blocks(data, path)))


def _interpret(block: LogBlock, path: str, columns: Collection[str] | None, idle: Collection[str]) -> LogEntry:
    if not block.instant:
        raise DamagedTable(f"{path} has a block that does not name its instant", path=path)
    if block.kind is BlockType.DELETE:
        found = decode_deletes(block.content, path)
        keys = pa.table({RECORD_KEY: pa.array(found.keys, pa.string())})
        return LogEntry(block.instant, keys, found.orderings, wrapped=found.wrapped)
    if block.kind not in _BLOCK_FORMATS.values():
        message = f"{path} has a block of type {block.kind.name}, which is not read here; compact the file group first"
        raise UnsupportedTable(message, path=path, block=block.kind.name)
    if block.kind is BlockType.AVRO:
        rows = decode_avro(block, path, schema=_arrow_of(_Declared(block.schema, path)))
        return LogEntry(block.instant, rows, is_partial=block.is_partial)
    source = _ParquetRows.open(block, path, columns=columns, idle=idle)
    rows = source.read(source.deciding)
    load = None if len(source.deciding) == len(source.schema) else cache(lambda: source.add_idle(rows))
    return LogEntry(block.instant, rows, is_partial=block.is_partial, load=load)


def _encode_parquet(rows: pa.Table, avro_schema: str, codec: str) -> bytes:
    out = pa.BufferOutputStream()
    compression = None if codec == "uncompressed" else codec
    repetitive = find_repetitive(rows)
    with pq.ParquetWriter(
        out, rows.schema, compression=compression, use_dictionary=repetitive, store_schema=False
    ) as writer:
        writer.add_key_value_metadata({"parquet.avro.schema": avro_schema})
        writer.write_table(rows)
    return bytes(out.getvalue())


@dataclass(frozen=True)
class _ParquetRows:
    """A block of Parquet rows that is open.

    Attributes:
        content: Its bytes.
        file: The same, as Parquet.
        schema: Of the columns that are wanted.
        idle: Of these, which decide nothing.
        path: Of the log file, for errors.
    """

    content: bytes | memoryview
    file: pq.ParquetFile
    schema: pa.Schema
    idle: Collection[str]
    path: str

    @classmethod
    def open(
        cls, block: LogBlock, path: str, *, columns: Collection[str] | None, idle: Collection[str]
    ) -> _ParquetRows:
        declared = _arrow_of(_Declared(block.schema, path))
        schema = pa.schema([field for field in declared if columns is None or field.name in columns])
        with reading_parquet(_BLOCK, path):
            return cls(block.content, pq.ParquetFile(pa.BufferReader(block.content)), schema, idle, path)

    @property
    def deciding(self) -> list[str]:
        return [name for name in self.schema.names if name not in self.idle]

    def read(self, names: list[str]) -> pa.Table:
        """These columns, in the types that are wanted."""
        with reading_parquet(_BLOCK, self.path):
            return _cast(_read_columns(self.file, names), pa.schema(map(self.schema.field, names)))

    def add_idle(self, rows: pa.Table) -> pa.Table:
        """The same rows with the columns that were left out; of these stay dictionaries what the block has as such."""
        names = [name for name in self.schema.names if name not in rows.schema.names]
        with reading_parquet(_BLOCK, self.path):
            single = find_single(self.file.metadata, names)
            needed = [name for name in names if name not in single]
            encoded = find_encoded(self.file.metadata, needed)
            source = pa.BufferReader(self.content)
            file = pq.ParquetFile(source, metadata=self.file.metadata, read_dictionary=encoded)
            found = _read_columns(file, needed)
            wanted = ((found.schema if name in encoded else self.schema).field(name) for name in needed)
            idle = add_single(_cast(found, pa.schema(wanted)), single, names)
        return pa.table({n: (rows if n in rows.schema.names else idle).column(n) for n in self.schema.names})


def _read_columns(file: pq.ParquetFile, names: list[str]) -> pa.Table:
    return file.read(columns=names, use_threads=file.metadata.num_rows > _SERIAL_ROWS).select(names)


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return rows if rows.schema.equals(schema) else rows.cast(schema)


@dataclass(frozen=True)
class _Declared:
    """What a block says of its columns; the path is for errors, and makes no difference."""

    avro_schema: str
    path: str = field(compare=False)


@lru_cache(maxsize=64)
def _arrow_of(declared: _Declared) -> pa.Schema:
    """The columns that a block declares; of a partial one those of the meta columns that it has."""
    whole = add_meta_schema(arrow_schema(declared.avro_schema, declared.path))
    names = {field["name"] for field in json.loads(declared.avro_schema)["fields"]}
    return pa.schema([field for field in whole if field.name in names or field.name not in META_COLUMNS])
