"""Which key generator made a table's keys: as its properties say, never by counting columns where they say it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_locks.clock import ManualClock
from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import encode_properties
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import PROPERTIES_PATH, Table, TableConfig
from hudi_locks.timeline import LAYOUT_2

KEYS, FIELDS = "hoodie.table.recordkey.fields", "hoodie.table.partition.fields"
KIND, CLASS, ENCODING = (
    "hoodie.table.keygenerator.type",
    "hoodie.table.keygenerator.class",
    "hoodie.table.complex.keygen.encoding",
)
PACKAGE = "org.apache.hudi.keygen."


def table_of(keys: str, partitions: str, said: dict[str, str]) -> TableConfig:
    key_fields, partition_fields = (tuple(filter(None, text.split(","))) for text in (keys, partitions))
    return replace(TableConfig("t", key_fields, partition_fields), extra=said)


@pytest.mark.parametrize(
    ("keys", "partitions", "said", "kind", "prefixes"),
    [
        ("a", "p", {KIND: "SIMPLE"}, "SIMPLE", False),
        ("a", "p", {CLASS: PACKAGE + "SimpleKeyGenerator"}, "SIMPLE", False),
        ("a", "p", {KIND: "COMPLEX"}, "COMPLEX", None),
        ("a", "p", {CLASS: PACKAGE + "ComplexKeyGenerator"}, "COMPLEX", None),
        ("a", "p", {KIND: "complex", ENCODING: "FIELD_PREFIXED"}, "COMPLEX", True),
        ("a", "p,q", {KIND: "COMPLEX", ENCODING: "VALUE_ONLY"}, "COMPLEX", False),
        ("a", "", {KIND: "COMPLEX"}, "COMPLEX", None),
        ("a", "", {KIND: "NON_PARTITION"}, "NON_PARTITION", False),
        ("a,b", "", {KIND: "NON_PARTITION"}, "NON_PARTITION", True),
        ("a,b", "p", {KIND: "COMPLEX", ENCODING: "VALUE_ONLY"}, "COMPLEX", True),
        ("a", "p", {}, "SIMPLE", None),
        ("a", "p,q", {}, "COMPLEX", None),
        ("a", "", {}, "NON_PARTITION", False),
    ],
)
def test_the_properties_say_how_keys_are_written(
    keys: str, partitions: str, said: dict[str, str], kind: str, prefixes: bool | None
) -> None:
    config = table_of(keys, partitions, said)
    assert (config.key_generator, config.prefixes_keys) == (kind, prefixes)


@pytest.mark.parametrize("java_class", ["ComplexAvroKeyGenerator", "ComplexKeyGenerator"])
def test_generators_for_avro_records_make_the_same_keys(java_class: str) -> None:
    assert table_of("a", "p", {CLASS: PACKAGE + java_class}).key_generator == "COMPLEX"
    assert table_of("a", "p", {KIND: "COMPLEX_AVRO", ENCODING: "FIELD_PREFIXED"}).prefixes_keys


def test_a_custom_generator_says_of_each_column_how_its_folder_is_named() -> None:
    properties = {**TableConfig("t", ("id",)).to_properties(), KIND: "CUSTOM", FIELDS: "p:simple,q:TIMESTAMP"}
    config = TableConfig.from_properties(properties)
    assert (config.partition_fields, config.partition_kinds) == (("p", "q"), ("simple", "TIMESTAMP"))
    assert config.time_fields == ("q",)
    assert config.to_properties()[FIELDS] == "p:simple,q:TIMESTAMP"


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({KIND: "GLOBAL_DELETE"}, f"{KIND}=GLOBAL_DELETE"),
        ({KIND: "TIMESTAMP", KEYS: "a,b"}, "one record key column and one partition column"),
        ({CLASS: PACKAGE + "TimestampBasedKeyGenerator", KEYS: "a,b"}, f"{CLASS}={PACKAGE}TimestampBasedKeyGenerator"),
        ({CLASS: PACKAGE + "CustomKeyGenerator"}, "hoodie.table.partition.fields=p: .*column:SIMPLE"),
        ({CLASS: PACKAGE + "CustomKeyGenerator", FIELDS: "p:SIMPLE,q:DAY"}, "hoodie.table.partition.fields=p,q"),
        ({CLASS: "com.example.OurKeys"}, f"{CLASS}=com.example.OurKeys"),
        ({KIND: "NON_PARTITION"}, "it gives no partitions, and the table has p"),
    ],
)
def test_tables_of_other_generators_are_read_and_not_written(said: dict[str, str], named: str) -> None:
    storage = MemoryStorage(ManualClock())
    properties = TableConfig("t", ("id",), ("p",), ("ts",)).to_properties()
    storage.make_folder(LAYOUT_2.archive)
    storage.replace(PROPERTIES_PATH, encode_properties({**{k: v for k, v in properties.items() if k != KIND}, **said}))
    assert Table.load(storage).config.name == "t"
    with pytest.raises(UnsupportedTable, match=named):
        Table.load(storage, for_writing=True)
