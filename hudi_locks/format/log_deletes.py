"""The content of delete blocks in log files: which keys go, and up to which ordering value."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.errors import DamagedTable
from hudi_locks.format.avro import UNREADABLE

__all__ = ["Deletes", "decode_deletes", "encode_deletes", "encode_deletes_again"]

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
