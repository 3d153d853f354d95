"""Records of the metadata table: what they say, as bytes and merged (Hudi's HoodieMetadataPayload).

A record is a bare Avro datum. Its key stands beside it in the HFile, and not in it.
"""

from __future__ import annotations

import enum
import io
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import fastavro

from hudi_locks.errors import DamagedTable
from hudi_locks.format.metadata_schema import NAMESPACE, SCHEMA_TEXTS
from hudi_locks.format.records import UNREADABLE

__all__ = [
    "Bound",
    "ColumnStatistics",
    "FileEntry",
    "MetadataRecord",
    "RecordKind",
    "decode_metadata_record",
    "encode_metadata_record",
    "merge_metadata_records",
    "order_value",
]


class RecordKind(enum.IntEnum):
    """What a record tells of."""

    PARTITIONS = 1
    FILES = 2
    COLUMN_STATS = 3
    BLOOM_FILTER = 4
    RECORD_INDEX = 5
    PARTITION_STATS = 6
    SECONDARY_INDEX = 7


class FileEntry(NamedTuple):
    """A file of a partition.

    Attributes:
        size: Bytes; 0 for one that was deleted, and for a partition.
        is_deleted: Whether the record takes it out.
    """

    size: int
    is_deleted: bool = False


class Bound(NamedTuple):
    """The least or the greatest value of a column.

    Attributes:
        wrapper: Record in which it is wrapped, such as `IntWrapper`; a date is an int in a `DateWrapper`.
        value: As Avro has it.
    """

    wrapper: str
    value: Any


@dataclass(frozen=True)
class ColumnStatistics:
    """What is known of the values of a column in a file, or in a partition.

    Attributes:
        name: Of the file; of a partition its path.
        column: Its name; of a nested one with dots.
        low: No value is less; None where no value is known.
        high: No value is greater.
        values: How many there are, nulls among them.
        nulls: How many of them are null.
        size: Bytes on disk.
        plain_size: The same before they were packed.
        is_deleted: Whether nothing is known any more.
        is_tight: Of a partition: whether it tells all of its files, so that what was known before does not count.
        value_type: In version 9 what the values are, as a number of Hudi's ValueType, with more of it as text.
    """

    name: str
    column: str
    low: Bound | None
    high: Bound | None
    values: int = 0
    nulls: int = 0
    size: int = 0
    plain_size: int = 0
    is_deleted: bool = False
    is_tight: bool = False
    value_type: tuple[int, str | None] | None = None


@dataclass(frozen=True)
class MetadataRecord:
    """One record.

    Attributes:
        kind: What it tells of.
        files: Of FILES by name, of PARTITIONS by path.
        statistics: Of COLUMN_STATS and PARTITION_STATS.
        other: The fields of any other kind, as Avro has them.
    """

    kind: RecordKind
    files: Mapping[str, FileEntry] = field(default_factory=dict)
    statistics: ColumnStatistics | None = None
    other: Mapping[str, Any] | None = None


_DECIMAL: Final = 10
"""What version 9 calls the type of decimals."""
_NUMBERS: Final = {"IntWrapper": 1, "LongWrapper": 2, "FloatWrapper": 3, "DoubleWrapper": 4}
"""Wrappers whose values can be compared with each other's, from the narrowest on: a column may have been widened."""
_OTHERS: Final = {
    RecordKind.BLOOM_FILTER: "BloomFilterMetadata",
    RecordKind.RECORD_INDEX: "recordIndexMetadata",
    RecordKind.SECONDARY_INDEX: "SecondaryIndexMetadata",
}


@lru_cache(maxsize=16)
def _parse(text: str) -> Any:
    return fastavro.parse_schema(json.loads(text))


def decode_metadata_record(value: bytes, schema: str, path: str) -> MetadataRecord:
    """Read a record.

    Args:
        value: Its bytes.
        schema: By which they were written, as the file that holds them says it.
        path: That file, for errors.

    Raises:
        DamagedTable: They are no record, or of a kind that is not known here; it names `path`.
    """
    try:
        names: Any = {"return_record_name": True, "return_record_name_override": True}  # where a union has many records
        found: Any = fastavro.schemaless_reader(io.BytesIO(value), _parse(schema), None, **names)
        return _interpret(found)
    except UNREADABLE as error:
        message = f"{path} holds a record of the metadata table that cannot be read ({type(error).__name__}: {error})"
        raise DamagedTable(message, path=path) from error


def _interpret(found: Mapping[str, Any]) -> MetadataRecord:
    kind = RecordKind(found["type"])
    if kind in _OTHERS:
        return MetadataRecord(kind, other=found[_OTHERS[kind]])
    if kind in (RecordKind.PARTITIONS, RecordKind.FILES):
        entries = (found["filesystemMetadata"] or {}).items()
        return MetadataRecord(kind, {name: FileEntry(info["size"], info["isDeleted"]) for name, info in entries})
    return MetadataRecord(kind, statistics=_read_statistics(found["ColumnStatsMetadata"]))


def _read_statistics(found: Mapping[str, Any]) -> ColumnStatistics:
    told = found.get("valueType")
    return ColumnStatistics(
        found["fileName"] or "",
        found["columnName"] or "",
        _read_bound(found["minValue"]),
        _read_bound(found["maxValue"]),
        values=found["valueCount"] or 0,
        nulls=found["nullCount"] or 0,
        size=found["totalSize"] or 0,
        plain_size=found["totalUncompressedSize"] or 0,
        is_deleted=found["isDeleted"],
        is_tight=found.get("isTightBound", False),
        value_type=(told["typeOrdinal"], told["additionalInfo"]) if told else None,
    )


def _read_bound(found: tuple[str, Mapping[str, Any]] | None) -> Bound | None:
    if found is None:
        return None
    name, record = found
    return Bound(name.rpartition(".")[2], record["wrappedValues" if name.endswith("ArrayWrapper") else "value"])


def encode_metadata_record(record: MetadataRecord, version: int) -> bytes:
    """The bytes of a record as tables of `version` have it. Files come in the order of their names.

    Raises:
        ValueError: It has statistics without a column, or a bound that has no place in that version.
    """
    fields: dict[str, Any] = {"key": "", "type": int(record.kind), "filesystemMetadata": None}
    if record.kind in _OTHERS:
        fields[_OTHERS[record.kind]] = record.other
    elif record.statistics is not None:
        fields["ColumnStatsMetadata"] = _write_statistics(record.statistics)
    else:
        entries = sorted(record.files.items())
        fields["filesystemMetadata"] = {name: {"size": e.size, "isDeleted": e.is_deleted} for name, e in entries}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _parse(SCHEMA_TEXTS[version]), fields)
    return out.getvalue()


def _write_statistics(found: ColumnStatistics) -> dict[str, Any]:
    told = found.value_type
    return {
        "fileName": found.name,
        "columnName": found.column,
        "minValue": _write_bound(found.low),
        "maxValue": _write_bound(found.high),
        "valueCount": found.values,
        "nullCount": found.nulls,
        "totalSize": found.size,
        "totalUncompressedSize": found.plain_size,
        "isDeleted": found.is_deleted,
        "isTightBound": found.is_tight,
        "valueType": None if told is None else {"typeOrdinal": told[0], "additionalInfo": told[1]},
    }


def _write_bound(bound: Bound | None) -> tuple[str, dict[str, Any]] | None:
    if bound is None:
        return None
    field_name = "wrappedValues" if bound.wrapper == "ArrayWrapper" else "value"
    return f"{NAMESPACE}.{bound.wrapper}", {field_name: bound.value}


def merge_metadata_records(older: MetadataRecord | None, newer: MetadataRecord) -> MetadataRecord:
    """What two records of one key tell together, where the newer one came later.

    Names of files are added, and a deletion takes one out; of two sizes the greater counts, since a file grows.
    Statistics replace each other, but for those of a partition that are not tight: they tell of some files more, so
    that both together must not be too narrow. Where values cannot be compared nothing is known any more.
    """
    if older is None or older.kind is not newer.kind:
        return newer
    if newer.kind in (RecordKind.PARTITIONS, RecordKind.FILES):
        return replace(newer, files=_merge_files(older.files, newer.files))
    if newer.kind is RecordKind.PARTITION_STATS and newer.statistics is not None and older.statistics is not None:
        return replace(newer, statistics=_merge_statistics(older.statistics, newer.statistics))
    return newer


def _merge_files(older: Mapping[str, FileEntry], newer: Mapping[str, FileEntry]) -> dict[str, FileEntry]:
    merged = dict(older)
    for name, entry in newer.items():
        before = merged.get(name)
        if entry.is_deleted and before is not None and not before.is_deleted:
            del merged[name]
        else:
            merged[name] = FileEntry(max(entry.size, before.size if before else 0), entry.is_deleted)
    return merged


def _merge_statistics(older: ColumnStatistics, newer: ColumnStatistics) -> ColumnStatistics:
    if newer.is_tight or newer.is_deleted or older.is_deleted:
        return newer
    kinds = {bound.wrapper for bound in (older.low, older.high, newer.low, newer.high) if bound is not None}
    if len(kinds) > 1 and not kinds <= _NUMBERS.keys():
        return replace(newer, low=None, high=None, is_deleted=True)
    told = newer.value_type if newer.low is not None else older.value_type
    order = partial(_order_bound, is_decimal=told is not None and told[0] == _DECIMAL)
    return replace(
        newer,
        low=_choose(older.low, newer.low, partial(min, key=order)),
        high=_choose(older.high, newer.high, partial(max, key=order)),
        values=older.values + newer.values,
        nulls=older.nulls + newer.nulls,
        size=older.size + newer.size,
        plain_size=older.plain_size + newer.plain_size,
        value_type=told,
    )


def _order_bound(bound: Bound, *, is_decimal: bool) -> Any:
    """Bytes of a decimal are those of a whole number with a sign."""
    is_packed = is_decimal and isinstance(bound.value, bytes)
    return order_value(int.from_bytes(bound.value, "big", signed=True) if is_packed else bound.value)


def order_value(value: Any) -> Any:
    """By which Java and Spark compare values of a column: what is no number is greater than every number."""
    is_none = isinstance(value, float) and math.isnan(value)
    return (is_none, 0.0 if is_none else value)


def _choose(older: Bound | None, newer: Bound | None, choose: Callable[[Bound, Bound], Bound]) -> Bound | None:
    if older is None or newer is None:
        return older or newer
    wider = max(older.wrapper, newer.wrapper, key=lambda wrapper: _NUMBERS.get(wrapper, 0))
    return Bound(wider, choose(older, newer).value)
