"""The content of delete blocks in log files: which keys go, and up to which ordering value."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.errors import BadInput, DamagedTable
from hudi_locks.format.records import UNREADABLE

__all__ = ["Deletes", "decode_deletes", "encode_deletes", "encode_deletes_again", "wrap_orderings"]

_FORMAT: Final = 3
_HEAD: Final = struct.Struct(">ii")
_NAMESPACE: Final = "org.apache.hudi.avro.model"
_INT: Final = f"{_NAMESPACE}.IntWrapper"
_PRESENT: Final = b"\x02"
_DELETES_ALL: Final = b"\x04\x00"
"""The ordering value 0 as an int: its place in the union, and the value."""
_END: Final = b"\x00"
_SEVEN_BITS: Final = 0x7F
_MORE: Final = 0x80
_DIGITS: Final = 15
_ARRAY_NAME: Final = f"{_NAMESPACE}.ArrayWrapper"


def _wrap(name: str, kind: Any) -> Any:
    return {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}


_WRAPPERS: Final = (
    _wrap("BooleanWrapper", "boolean"),
    _wrap("IntWrapper", "int"),
    _wrap("LongWrapper", "long"),
    _wrap("FloatWrapper", "float"),
    _wrap("DoubleWrapper", "double"),
    _wrap("BytesWrapper", "bytes"),
    _wrap("StringWrapper", {"type": "string", "avro.java.string": "String"}),
    _wrap("DateWrapper", "int"),
    _wrap("DecimalWrapper", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}),
    _wrap("TimeMicrosWrapper", {"type": "long", "logicalType": "time-micros"}),
    _wrap("TimestampMicrosWrapper", "long"),
)
_LOCAL_DATE: Final = _wrap("LocalDateWrapper", "int")
_NAMES: Final = tuple(wrapper["name"] for wrapper in _WRAPPERS)
_ARRAY: Final = {
    "type": "record",
    "name": "ArrayWrapper",
    "fields": [{"name": "wrappedValues", "type": ["null", {"type": "array", "items": ["null", *_NAMES, _LOCAL_DATE]}]}],
}
_RECORD: Final = {
    "type": "record",
    "name": "HoodieDeleteRecord",
    "fields": [
        {"name": "recordKey", "type": ["null", {"type": "string", "avro.java.string": "String"}], "default": None},
        {"name": "partitionPath", "type": ["null", {"type": "string", "avro.java.string": "String"}], "default": None},
        {"name": "orderingVal", "type": ["null", *_WRAPPERS, _ARRAY], "default": None},
    ],
}
_LIST: Final[Any] = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieDeleteRecordList",
        "namespace": _NAMESPACE,
        "fields": [{"name": "deleteRecordList", "type": {"type": "array", "items": _RECORD}}],
    }
)


def _is_small_decimal(kind: pa.DataType) -> bool:
    """Whether values have a place in the form, which has 15 digits before and after the point."""
    return bool(pa.types.is_decimal(kind)) and max(kind.scale, kind.precision - kind.scale) <= _DIGITS


_WRAPPED: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (pa.types.is_boolean, "BooleanWrapper"),
    (pa.types.is_int64, "LongWrapper"),
    (pa.types.is_integer, "IntWrapper"),
    (pa.types.is_float32, "FloatWrapper"),
    (pa.types.is_float64, "DoubleWrapper"),
    (pa.types.is_string, "StringWrapper"),
    (pa.types.is_binary, "BytesWrapper"),
    (pa.types.is_date32, "DateWrapper"),
    (pa.types.is_timestamp, "TimestampMicrosWrapper"),
    (_is_small_decimal, "DecimalWrapper"),
)


@dataclass(frozen=True)
class Deletes:
    """What a delete block holds.

    Attributes:
        keys: Record keys, in their order.
        orderings: For each the value that a row must not exceed to go, a tuple where there are several ordering
            fields; None where every row goes that came before.
        wrapped: The same values as the block has them, each with its type.
    """

    keys: tuple[str, ...]
    orderings: tuple[Any, ...]
    wrapped: tuple[Any, ...] = ()


def encode_deletes(keys: pa.Array | pa.ChunkedArray, partition: str) -> bytes:
    """The content of a block that takes out whatever rows of these keys came before it.

    But for its key every record is the same, so that all of them are made a column at a time.

    Args:
        keys: Record keys, text without nulls.
        partition: Partition path of all of them.
    """
    chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    encoded = pa.concat_arrays([pa.array([], pa.large_binary()), *(chunk.cast(pa.large_binary()) for chunk in chunks)])
    lengths = pc.binary_length(encoded)
    known = pc.unique(lengths)
    heads = pa.array([_PRESENT + _encode_int(length) for length in known.to_pylist()], pa.large_binary())
    head = heads.take(pc.index_in(lengths, value_set=known))
    path = partition.encode()
    tail = pa.scalar(_PRESENT + _encode_int(len(path)) + path + _DELETES_ALL, pa.large_binary())
    records = pc.binary_join_element_wise(head, encoded, tail, pa.scalar(b"", pa.large_binary()))
    data = (_encode_int(len(records)) + _join(records) if len(records) else b"") + _END
    return _HEAD.pack(_FORMAT, len(data)) + data


def encode_deletes_again(deletes: Iterable[tuple[str, Any]], partition: str) -> bytes:
    """The content of a block with deletes out of other blocks, of which each keeps its ordering value and its type.

    Args:
        deletes: Record keys, each with what `Deletes.wrapped` says.
        partition: Partition path of all of them.
    """
    records = [{"recordKey": key, "partitionPath": partition, "orderingVal": value} for key, value in deletes]
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _LIST, {"deleteRecordList": records})
    return _HEAD.pack(_FORMAT, out.tell()) + out.getvalue()


def wrap_orderings(columns: Sequence[pa.ChunkedArray]) -> list[Any]:
    """Ordering values of rows that are deletes, each with its type, as `Deletes.wrapped` has them.

    Args:
        columns: One for each ordering field, at least one.

    Raises:
        BadInput: Values of this type cannot stand in a block of deletes.
    """
    wrapped = [_wrap_column(column) for column in columns]
    if len(wrapped) == 1:
        return wrapped[0]
    return [(_ARRAY_NAME, {"wrappedValues": list(values)}) for values in zip(*wrapped, strict=True)]


def _wrap_column(column: pa.ChunkedArray) -> list[Any]:
    kind = next((name for is_kind, name in _WRAPPED if is_kind(column.type)), None)
    if kind is None:
        message = f"an ordering column of type {column.type} cannot stand in a log beside a delete; delete by key"
        raise BadInput(message, type=str(column.type))
    plain = column.cast(pa.int64()) if kind == "TimestampMicrosWrapper" else column
    plain = plain.cast(pa.int32()) if kind in ("DateWrapper", "IntWrapper") else plain
    return [None if value is None else (f"{_NAMESPACE}.{kind}", {"value": value}) for value in plain.to_pylist()]


def decode_deletes(content: bytes | memoryview, path: str) -> Deletes:
    """What a delete block holds.

    Raises:
        DamagedTable: It cannot be read; it names `path`.
    """
    try:
        version, size = _HEAD.unpack_from(content)
        if version != _FORMAT:
            raise ValueError(f"it has format version {version}, and {_FORMAT} is read")
        stream = io.BytesIO(content[_HEAD.size : _HEAD.size + size])
        found: Any = fastavro.schemaless_reader(stream, _LIST, None, return_record_name=True)
        records: list[Mapping[str, Any]] = found["deleteRecordList"]
        keys = tuple(str(record["recordKey"]) for record in records)
        wrapped = tuple(record["orderingVal"] for record in records)
        return Deletes(keys, tuple(map(_unwrap, wrapped)), wrapped)
    except UNREADABLE as error:
        raise DamagedTable(f"{path}: a block of deletes cannot be read: {error}", path=path) from error


def _unwrap(value: Any) -> Any:
    """The ordering value; 0 as an int is Hudi's way to ask for none."""
    if value is None:
        return None
    name, record = value
    if name == _ARRAY_NAME:
        return tuple(_unwrap(one) for one in record["wrappedValues"] or ())
    return None if name == _INT and record["value"] == 0 else record["value"]


def _encode_int(value: int) -> bytes:
    """Avro's zigzag form of an int or long."""
    rest, out = value << 1, bytearray()
    while rest > _SEVEN_BITS:
        out.append(rest & _SEVEN_BITS | _MORE)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _join(records: pa.LargeBinaryArray) -> bytes:
    """The bytes of all records, one behind the other, as they lie in memory."""
    _, offsets, values = records.buffers()
    ends = np.frombuffer(offsets, np.int64)[records.offset : records.offset + len(records) + 1]
    return bytes(memoryview(values)[ends[0] : ends[-1]])
