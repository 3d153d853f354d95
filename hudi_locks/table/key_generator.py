"""Key generators: how a table makes record keys and partition paths of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hudi_locks.config import table_keys

__all__ = [
    "COMPLEX",
    "CUSTOM",
    "FIELD_PREFIXED",
    "KEY_GENERATORS",
    "NON_PARTITION",
    "PREFIXED_SINCE",
    "SIMPLE",
    "TIMESTAMP",
    "VALUE_ONLY",
    "find_key_generator",
    "join_partition_fields",
    "name_class",
    "name_key_generator",
    "prefixes_keys",
    "split_partition_fields",
]

NON_PARTITION: Final = "NON_PARTITION"
SIMPLE: Final = "SIMPLE"
COMPLEX: Final = "COMPLEX"
TIMESTAMP: Final = "TIMESTAMP"
CUSTOM: Final = "CUSTOM"
KEY_GENERATORS: Final = (SIMPLE, COMPLEX, NON_PARTITION, TIMESTAMP, CUSTOM)
"""Those whose keys this package makes."""
PREFIXED_SINCE: Final = 9
"""Table version from which every writer puts the name of a single record key column before its value."""
FIELD_PREFIXED: Final = "FIELD_PREFIXED"
VALUE_ONLY: Final = "VALUE_ONLY"
_OWN_CLASS: Final = "USER_PROVIDED"
_PACKAGE: Final = "org.apache.hudi.keygen."
_AVRO: Final = "_AVRO"
"""Of a generator that makes the same of the records of streamers."""
_CLASSES: Final = {
    "SimpleKeyGenerator": SIMPLE,
    "SimpleAvroKeyGenerator": SIMPLE,
    "ComplexKeyGenerator": COMPLEX,
    "ComplexAvroKeyGenerator": COMPLEX,
    "NonpartitionedKeyGenerator": NON_PARTITION,
    "NonpartitionedAvroKeyGenerator": NON_PARTITION,
    "TimestampBasedKeyGenerator": TIMESTAMP,
    "TimestampBasedAvroKeyGenerator": TIMESTAMP,
    "CustomKeyGenerator": CUSTOM,
    "CustomAvroKeyGenerator": CUSTOM,
    "GlobalDeleteKeyGenerator": "GLOBAL_DELETE",
    "GlobalAvroDeleteKeyGenerator": "GLOBAL_DELETE",
}
_KINDS: Final = (SIMPLE, TIMESTAMP)


def name_class(kind: str) -> str:
    """The Java class of a key generator that is given by Hudi's word, for Spark's rows; that word if it has none."""
    return next((f"{_PACKAGE}{name}" for name, word in _CLASSES.items() if word == kind), kind)


def name_key_generator(kind: str | None, java_class: str | None) -> str | None:
    """Hudi's word for a key generator that is given by its kind or by its class; None if by neither.

    Those for Spark's rows and for Avro records, which make the same keys, have one word.
    """
    if kind:
        return kind.strip().upper().removesuffix(_AVRO)
    if not java_class:
        return None
    return _CLASSES.get(java_class.strip().removeprefix(_PACKAGE), _OWN_CLASS)


def find_key_generator(
    properties: Mapping[str, str], record_key_fields: Sequence[str], partition_fields: Sequence[str]
) -> str:
    """The key generator that a table's properties name, else the one that JVM Hudi would choose for these columns."""
    named = _read_name(properties)
    if named:
        return named
    if not partition_fields:
        return NON_PARTITION
    return SIMPLE if len(record_key_fields) <= 1 and len(partition_fields) == 1 else COMPLEX


def _read_name(properties: Mapping[str, str]) -> str | None:
    kind, java_class = table_keys.KEY_GENERATOR_TYPE.name, table_keys.KEY_GENERATOR_CLASS.name
    return name_key_generator(properties.get(kind), properties.get(java_class))


def prefixes_keys(
    properties: Mapping[str, str], record_key_fields: Sequence[str], partition_fields: Sequence[str]
) -> bool | None:
    """Whether record keys are written `name:value,…`, and not as the bare value.

    Releases of Hudi differ in what ComplexKeyGenerator makes of a single record key column: the bare value in 0.14.1,
    0.15.0 and 1.0.0 to 1.0.2, `name:value` before and after.

    Returns:
        None if the properties leave it open, so that only the rows can tell.
    """
    if len(record_key_fields) != 1:
        return bool(record_key_fields)
    named = _read_name(properties)
    is_open = named == COMPLEX or (named is None and bool(partition_fields))
    return _read_encoding(properties) if is_open else False


def _read_encoding(properties: Mapping[str, str]) -> bool | None:
    encoding = properties.get(table_keys.COMPLEX_KEY_ENCODING.name, "").strip().upper()
    return encoding == FIELD_PREFIXED if encoding else None


def split_partition_fields(
    fields: Sequence[str], properties: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Partition columns and, of CustomKeyGenerator, how it names the folder of each, as in `region:SIMPLE`.

    Releases before 1.0 noted the columns alone: then of none it is told.
    """
    if _read_name(properties) != CUSTOM:
        return tuple(fields), ()
    pairs = [field.partition(":") for field in fields]
    kinds = tuple(kind for _, _, kind in pairs)
    return tuple(name for name, _, _ in pairs), kinds if all(kind.upper() in _KINDS for kind in kinds) else ()


def join_partition_fields(fields: Sequence[str], kinds: Sequence[str]) -> str:
    """The same as a table's properties have it."""
    return ",".join(map(":".join, zip(fields, kinds, strict=True))) if kinds else ",".join(fields)
