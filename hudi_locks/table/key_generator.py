"""How a table's record keys are written (Hudi's KeyGeneratorType, ComplexKeyGenerator, HUDI-7001)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hudi_locks.config import table_keys

__all__ = [
    "COMPLEX",
    "FIELD_PREFIXED",
    "KEY_GENERATORS",
    "NON_PARTITION",
    "PREFIXED_SINCE",
    "SIMPLE",
    "VALUE_ONLY",
    "find_key_generator",
    "name_key_generator",
    "prefixes_keys",
]

NON_PARTITION: Final = "NON_PARTITION"
SIMPLE: Final = "SIMPLE"
COMPLEX: Final = "COMPLEX"
KEY_GENERATORS: Final = (SIMPLE, COMPLEX, NON_PARTITION)
"""Those whose keys this package makes."""
_OWN_CLASS: Final = "USER_PROVIDED"
PREFIXED_SINCE: Final = 9
"""Table version from which every writer puts the name of a single record key column before its value."""
FIELD_PREFIXED: Final = "FIELD_PREFIXED"
VALUE_ONLY: Final = "VALUE_ONLY"
_CLASSES: Final = {
    "SimpleKeyGenerator": SIMPLE,
    "SimpleAvroKeyGenerator": "SIMPLE_AVRO",
    "ComplexKeyGenerator": COMPLEX,
    "ComplexAvroKeyGenerator": "COMPLEX_AVRO",
    "NonpartitionedKeyGenerator": NON_PARTITION,
    "NonpartitionedAvroKeyGenerator": "NON_PARTITION_AVRO",
    "TimestampBasedKeyGenerator": "TIMESTAMP",
    "TimestampBasedAvroKeyGenerator": "TIMESTAMP_AVRO",
    "CustomKeyGenerator": "CUSTOM",
    "CustomAvroKeyGenerator": "CUSTOM_AVRO",
    "GlobalDeleteKeyGenerator": "GLOBAL_DELETE",
    "GlobalAvroDeleteKeyGenerator": "GLOBAL_DELETE_AVRO",
}
_PACKAGE: Final = "org.apache.hudi.keygen."


def name_key_generator(kind: str | None, java_class: str | None) -> str | None:
    """Hudi's word for a key generator that is given by its kind or by its class; None if by neither."""
    if kind:
        return kind.strip().upper()
    if not java_class:
        return None
    return _CLASSES.get(java_class.strip().removeprefix(_PACKAGE), _OWN_CLASS)


def find_key_generator(
    properties: Mapping[str, str], record_key_fields: Sequence[str], partition_fields: Sequence[str]
) -> str:
    """The key generator that a table's properties name, else the one that JVM Hudi would choose for these columns."""
    kind = properties.get(table_keys.KEY_GENERATOR_TYPE.name)
    named = name_key_generator(kind, properties.get(table_keys.KEY_GENERATOR_CLASS.name))
    if named:
        return named
    if not partition_fields:
        return NON_PARTITION
    return SIMPLE if len(record_key_fields) == len(partition_fields) == 1 else COMPLEX


def prefixes_keys(
    properties: Mapping[str, str], record_key_fields: Sequence[str], partition_fields: Sequence[str]
) -> bool | None:
    """Whether record keys are written `name:value,…`, and not as the bare value.

    Releases of Hudi differ in what ComplexKeyGenerator makes of a single record key column: the bare value in 0.14.1,
    0.15.0 and 1.0.0 to 1.0.2, `name:value` before and after.

    Returns:
        None if the properties leave it open, so that only the rows can tell.
    """
    if len(record_key_fields) > 1:
        return True
    named = name_key_generator(
        properties.get(table_keys.KEY_GENERATOR_TYPE.name), properties.get(table_keys.KEY_GENERATOR_CLASS.name)
    )
    is_open = named == COMPLEX or (named is None and bool(partition_fields))
    return _read_encoding(properties) if is_open else False


def _read_encoding(properties: Mapping[str, str]) -> bool | None:
    encoding = properties.get(table_keys.COMPLEX_KEY_ENCODING.name, "").strip().upper()
    return encoding == FIELD_PREFIXED if encoding else None
