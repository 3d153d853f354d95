"""The Avro schema of the metadata table's records (Hudi's HoodieMetadata.avsc)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["NAMESPACE", "SCHEMA_TEXTS"]

NAMESPACE: Final = "org.apache.hudi.avro.model"
_STRING: Final = {"type": "string", "avro.java.string": "String"}


def _may(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def _must(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind}


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _wrap(name: str, kind: Any) -> dict[str, Any]:
    return _record(name, _must("value", kind))


_WRAPPERS: Final = (
    _wrap("BooleanWrapper", "boolean"),
    _wrap("IntWrapper", "int"),
    _wrap("LongWrapper", "long"),
    _wrap("FloatWrapper", "float"),
    _wrap("DoubleWrapper", "double"),
    _wrap("BytesWrapper", "bytes"),
    _wrap("StringWrapper", _STRING),
    _wrap("DateWrapper", "int"),
    _wrap("DecimalWrapper", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}),
    _wrap("TimeMicrosWrapper", {"type": "long", "logicalType": "time-micros"}),
    _wrap("TimestampMicrosWrapper", "long"),
    _wrap("LocalDateWrapper", "int"),
)
_SINCE_8: Final = "LocalDateWrapper"
_NAMES: Final = tuple(wrapper["name"] for wrapper in _WRAPPERS)
_ARRAY: Final = _record("ArrayWrapper", _may("wrappedValues", {"type": "array", "items": ["null", *_NAMES]}))
_VALUE_TYPE: Final = _record("HoodieValueTypeInfo", _must("typeOrdinal", "int"), _may("additionalInfo", _STRING))
_VERSION_6, _VERSION_8, _VERSION_9 = 6, 8, 9


def _column_stats(version: int) -> dict[str, Any]:
    arrays = [_ARRAY] if version >= _VERSION_9 else []
    wrappers = [one for one in _WRAPPERS if version >= _VERSION_8 or one["name"] != _SINCE_8]
    names = [one["name"] for one in (*wrappers, *arrays)]
    return _record(
        "HoodieMetadataColumnStats",
        _may("fileName", _STRING),
        _may("columnName", _STRING),
        {"name": "minValue", "type": ["null", *wrappers, *arrays], "default": None},
        {"name": "maxValue", "type": ["null", *names], "default": None},
        *(_may(name, "long") for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")),
        _must("isDeleted", "boolean"),
        *([{"name": "isTightBound", "type": "boolean", "default": False}] if version >= _VERSION_8 else []),
        *([_may("valueType", _VALUE_TYPE)] if version >= _VERSION_9 else []),
    )


_FILE_INFO: Final = _record("HoodieMetadataFileInfo", _must("size", "long"), _must("isDeleted", "boolean"))
_BLOOM_FILTER: Final = _record(
    "HoodieMetadataBloomFilter",
    _must("type", _STRING),
    _must("timestamp", _STRING),
    _must("bloomFilter", "bytes"),
    _must("isDeleted", "boolean"),
)
_PLACE: Final = (
    _may("partitionName", _STRING),
    _may("fileIdHighBits", "long"),
    _may("fileIdLowBits", "long"),
    _may("fileIndex", "int"),
    _may("fileId", _STRING),
    _may("instantTime", "long"),
    {"name": "fileIdEncoding", "type": "int", "default": 0},
)
_SECONDARY: Final = _may("SecondaryIndexMetadata", _record("HoodieSecondaryIndexInfo", _must("isDeleted", "boolean")))
_META: Final = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")


def _schema(version: int) -> dict[str, Any]:
    is_old = version < _VERSION_8
    place = _record("HoodieRecordIndexInfo", *_PLACE, *(() if is_old else (_may("position", "long"),)))
    files = {"type": "map", "values": _FILE_INFO, "avro.java.string": "String"}
    fields = (
        *(_may(name, "string") for name in (*_META, "_hoodie_file_name")),
        _must("key", _STRING),
        _must("type", "int"),
        {"name": "filesystemMetadata", "type": ["null", files]},
        _may("BloomFilterMetadata", _BLOOM_FILTER),
        _may("ColumnStatsMetadata", _column_stats(version)),
        _may("recordIndexMetadata", place),
        *(() if is_old else (_SECONDARY,)),
    )
    record = _record("HoodieMetadataRecord", *fields)
    return {"type": "record", "name": record["name"], "namespace": NAMESPACE, "fields": record["fields"]}


SCHEMA_TEXTS: Final[Mapping[int, str]] = {
    version: json.dumps(_schema(version), separators=(",", ":")) for version in (_VERSION_6, _VERSION_8, _VERSION_9)
}
"""The schema of records by table version; JVM Hudi has the same, with a text of explanation at each field."""
