"""The rows of Avro blocks in log files (Hudi's HoodieAvroDataBlock), between Avro's bytes and Arrow."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import fastavro
import pyarrow as pa

from hudi_locks.errors import DamagedTable
from hudi_locks.format.log_block import LogBlock
from hudi_locks.format.records import UNREADABLE

__all__ = ["decode_avro", "encode_avro", "list_avro"]

_FORMAT: Final = 3
_COUNT: Final = struct.Struct(">i")
_KEPT: Final = "decimal"
"""All other logical types stay the numbers and texts that are stored: Python has no times beyond the year 9999."""


def encode_avro(rows: pa.Table, avro_schema: str) -> bytes:
    """The content of a block with these rows."""
    parsed, out = _parse(avro_schema), [_COUNT.pack(_FORMAT), _COUNT.pack(rows.num_rows)]
    for batch in rows.to_batches():
        for row in _list_structs([_list_values(column) for column in batch.columns], batch.schema.names):
            datum = io.BytesIO()
            fastavro.schemaless_writer(datum, parsed, row)
            out += [_COUNT.pack(datum.tell()), datum.getvalue()]
    return b"".join(out)


def decode_avro(block: LogBlock, path: str, *, schema: pa.Schema) -> pa.Table:
    """The rows of a block.

    Args:
        block: An Avro block.
        path: Of its log file, for errors.
        schema: What the block declares.

    Raises:
        DamagedTable: They cannot be read.
    """
    with _reading(path):
        return pa.Table.from_pylist(list(_read(block)), schema)


def list_avro(block: LogBlock, path: str) -> list[Mapping[str, Any]]:
    """The rows of a block as they are stored; raises what `decode_avro` raises."""
    with _reading(path):
        return list(_read(block))


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except (*UNREADABLE, pa.ArrowException) as error:
        raise DamagedTable(f"{path}: a block of Avro rows cannot be read: {error}", path=path) from error


def _read(block: LogBlock) -> Iterator[Mapping[str, Any]]:
    parsed, stream = _parse(block.schema), io.BytesIO(block.content)
    version, count = (_COUNT.unpack(stream.read(_COUNT.size))[0] for _ in range(2))
    if version > _FORMAT:
        raise ValueError(f"it has format version {version}, and up to {_FORMAT} is read")
    for _ in range(count):
        end = _COUNT.unpack(stream.read(_COUNT.size))[0] + stream.tell()
        row: Any = fastavro.schemaless_reader(stream, parsed, None)
        if stream.tell() != end:
            raise ValueError(f"a row ends at {stream.tell()} and not at {end}")
        yield row


@lru_cache(maxsize=64)
def _parse(avro_schema: str) -> Any:
    return fastavro.parse_schema(_drop_logical(json.loads(avro_schema)))


def _drop_logical(avro: Any) -> Any:
    if isinstance(avro, list):
        return [_drop_logical(branch) for branch in avro]
    if not isinstance(avro, dict):
        return avro
    if avro.get("logicalType") == _KEPT:
        return avro
    nested = {key: _drop_logical(avro[key]) for key in ("type", "items", "values", "fields") if key in avro}
    return {key: value for key, value in avro.items() if key not in ("logicalType", "default")} | nested


def _list_values(array: pa.Array) -> list[Any]:
    """The values as fastavro takes them: maps as dicts, and times as numbers."""
    kind = array.type
    if pa.types.is_struct(kind):
        rows = _list_structs([_list_values(child) for child in array.flatten()], [field.name for field in kind])
        return _keep_nulls(array, list(rows) if kind.num_fields else [{}] * len(array))
    if pa.types.is_map(kind):
        pairs = list(zip(array.keys.to_pylist(), _list_values(array.items), strict=True))
        return _keep_nulls(array, [dict(found) for found in _cut(pairs, array)])
    if pa.types.is_list(kind):
        return _keep_nulls(array, _cut(_list_values(array.values), array))
    if pa.types.is_timestamp(kind):
        return list(array.cast(pa.int64()).to_pylist())
    return list((array.cast(pa.int32()) if pa.types.is_date32(kind) else array).to_pylist())


def _list_structs(columns: list[list[Any]], names: list[str]) -> Iterator[dict[str, Any]]:
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _cut(values: list[Any], array: pa.Array) -> list[list[Any]]:
    return [values[begin:end] for begin, end in pairwise(array.offsets.to_pylist())]


def _keep_nulls(array: pa.Array, values: list[Any]) -> list[Any]:
    if not array.null_count:
        return values
    return [value if there else None for value, there in zip(values, array.is_valid().to_pylist(), strict=True)]
