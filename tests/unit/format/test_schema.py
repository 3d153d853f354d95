from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.errors import BadInput, DamagedTable, UnsupportedTable
from hudi_locks.format import META_COLUMNS, BaseFileName, arrow_schema, avro_schema, canonical_schema, merge_schemas
from hudi_locks.storage import LocalStorage

US = pa.timestamp("us", "UTC")

EVERY_TYPE = pa.schema(
    [
        ("id", pa.string()),
        ("b", pa.bool_()),
        ("i8", pa.int8()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("bin", pa.binary()),
        ("dec", pa.decimal128(10, 2)),
        ("dec38", pa.decimal128(38, 10)),
        ("dec18", pa.decimal128(18, 2)),
        ("date", pa.date32()),
        ("ts", US),
        ("ntz", pa.timestamp("us")),
        ("arr", pa.list_(pa.int32())),
        ("map", pa.map_(pa.string(), pa.int64())),
        ("st", pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string()), ("w", pa.decimal128(5, 1))]))])),
        ("ms", pa.map_(pa.string(), pa.struct([("x", pa.int32())]))),
        ("aa", pa.list_(pa.list_(pa.decimal128(7, 2)))),
    ]
)

kinds = st.recursive(
    st.sampled_from([pa.bool_(), pa.int32(), pa.string(), pa.binary(), pa.date32(), US, pa.decimal128(20, 3)]),
    lambda inner: (
        inner.map(lambda kind: pa.list_(pa.field("element", kind)))
        | inner.map(lambda kind: pa.map_(pa.string(), pa.field("value", kind)))
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda found: pa.struct([pa.field(f"f{at}", kind) for at, kind in enumerate(found)])
        )
    ),
    max_leaves=5,
)
schemas = st.lists(kinds, min_size=1, max_size=5).map(
    lambda found: pa.schema([(f"c{i}", k) for i, k in enumerate(found)])
)


@given(schemas)
def test_schemas_survive_the_round_trip(schema: pa.Schema) -> None:
    assert arrow_schema(avro_schema(schema, "t"), "x") == schema == canonical_schema(schema)


def avro_type(schema: pa.Schema, column: str) -> object:
    fields = json.loads(avro_schema(schema, "t8"))["fields"]
    return next(field["type"] for field in fields if field["name"] == column)


@pytest.mark.parametrize(
    ("column", "avro"),
    [
        ("id", "string"),
        ("i8", "int"),
        ("bin", "bytes"),
        ("date", {"type": "int", "logicalType": "date"}),
        ("ts", {"type": "long", "logicalType": "timestamp-micros"}),
        ("ntz", {"type": "long", "logicalType": "local-timestamp-micros"}),
        (
            "dec",
            {
                "type": "fixed", "name": "fixed", "namespace": "hoodie.t8.t8_record.dec", "size": 5,
                "logicalType": "decimal", "precision": 10, "scale": 2,
            },
        ),
        ("arr", {"type": "array", "items": ["null", "int"]}),
        ("map", {"type": "map", "values": ["null", "long"]}),
        (
            "ms",
            {
                "type": "map",
                "values": [
                    "null",
                    {
                        "type": "record", "name": "ms", "namespace": "hoodie.t8.t8_record",
                        "fields": [{"name": "x", "type": ["null", "int"], "default": None}],
                    },
                ],
            },
        ),
    ],
)  # fmt: skip
def test_types_are_written_as_the_jvm_writes_them(column: str, avro: object) -> None:
    assert avro_type(EVERY_TYPE, column) == ["null", avro]


def test_decimals_take_the_bytes_that_the_jvm_gives_them() -> None:
    sizes = {p: avro_type(pa.schema([("d", pa.decimal128(p, 0))]), "d") for p in (1, 2, 3, 9, 10, 18, 19, 38)}
    assert {p: t[1]["size"] for p, t in sizes.items() if isinstance(t, list)} == {
        1: 1, 2: 1, 3: 2, 9: 4, 10: 5, 18: 8, 19: 9, 38: 16,
    }  # fmt: skip


def test_nested_names_lie_below_the_record_around_them() -> None:
    text = avro_schema(EVERY_TYPE, "t8")
    assert '"name":"y","namespace":"hoodie.t8.t8_record.st"' in text
    assert '"name":"fixed","namespace":"hoodie.t8.t8_record.st.y.w"' in text
    assert '"name":"fixed","namespace":"hoodie.t8.t8_record.aa"' in text


def test_table_names_become_legal_record_names() -> None:
    record = json.loads(avro_schema(pa.schema([("id", pa.string())]), "my-t9no"))
    assert (record["name"], record["namespace"]) == ("my__t9no_record", "hoodie.my__t9no")
    assert json.loads(avro_schema(pa.schema([("id", pa.string())]), "9t"))["name"] == "__t_record"


@pytest.mark.parametrize("name", ["v6_cow", "v8_cow", "v9_cow"])
def test_footers_of_the_jvm_are_reproduced(golden: Callable[[str], LocalStorage], name: str) -> None:
    storage = golden(name)
    path = next(path for path, entry in storage.walk("") if BaseFileName.parse(entry.name))
    footer = pq.read_metadata(storage.address(path)).metadata[b"parquet.avro.schema"].decode()
    schema = arrow_schema(footer, path)
    assert avro_schema(schema, name, with_meta_columns=True) == footer
    columns = pq.read_schema(Path(storage.address(path)))
    stored = pa.schema([field for field in columns if field.name not in META_COLUMNS])
    assert canonical_schema(stored) == schema


def test_what_spark_would_widen_is_widened() -> None:
    wide = canonical_schema(
        pa.schema(
            [
                pa.field("a", pa.int16(), nullable=False),
                ("b", pa.large_string()),
                ("c", pa.timestamp("ms", "Europe/Berlin")),
                ("d", pa.dictionary(pa.int8(), pa.string())),
                ("e", pa.large_list(pa.field("item", pa.int8(), nullable=False))),
            ]
        )
    )
    assert wide == pa.schema(
        [
            ("a", pa.int32()),
            ("b", pa.string()),
            ("c", US),
            ("d", pa.string()),
            ("e", pa.list_(pa.field("element", pa.int32()))),
        ]
    )


@pytest.mark.parametrize(
    "kind", [pa.uint8(), pa.float16(), pa.null(), pa.timestamp("ns"), pa.time64("us"), pa.map_(pa.int32(), pa.string())]
)
def test_types_without_a_place_are_refused_by_column(kind: pa.DataType) -> None:
    with pytest.raises(BadInput, match=r"'s\.x'") as caught:
        canonical_schema(pa.schema([("s", pa.struct([("x", kind)]))]))
    assert caught.value.type == str(kind)


@pytest.mark.parametrize("name", ["my-col", "1st", "a b", "", "é"])
def test_names_without_a_place_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="letters, digits"):
        canonical_schema(pa.schema([(name, pa.string())]))


def test_names_that_spark_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(BadInput, match="one to Spark"):
        canonical_schema(pa.schema([("id", pa.string()), ("ID", pa.string())]))


def test_added_columns_go_to_the_end_also_in_structs() -> None:
    old = pa.schema([("a", pa.int32()), ("s", pa.struct([("x", pa.int32())])), ("l", pa.list_(pa.struct([("p", US)])))])
    new = pa.schema(
        [
            ("z", pa.string()),
            ("l", pa.list_(pa.struct([("q", pa.int64()), ("p", US)]))),
            ("s", pa.struct([("y", pa.int32()), ("x", pa.int32())])),
            ("a", pa.int16()),
        ]
    )
    merged = merge_schemas(old, new)
    assert merged.names == ["a", "s", "l", "z"]
    assert merged.field("s").type == pa.struct([("x", pa.int32()), ("y", pa.int32())])
    assert merged.field("l").type == pa.list_(pa.field("element", pa.struct([("p", US), ("q", pa.int64())])))


@given(schemas)
def test_same_columns_merge_to_themselves(schema: pa.Schema) -> None:
    assert merge_schemas(schema, schema) == schema


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int32(), pa.int64()),
        (pa.string(), pa.int32()),
        (pa.decimal128(5, 1), pa.decimal128(5, 2)),
        (US, pa.timestamp("us")),
        (pa.list_(pa.int32()), pa.list_(pa.string())),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.string())),
        (pa.struct([("x", pa.int32())]), pa.struct([("x", pa.string())])),
    ],
)
def test_a_changed_type_is_refused_with_both(old: pa.DataType, new: pa.DataType) -> None:
    with pytest.raises(BadInput, match=r"column 'c") as caught:
        merge_schemas(pa.schema([("c", old)]), pa.schema([("c", new)]))
    assert caught.value.table_type != caught.value.incoming_type


def test_a_missing_column_is_refused() -> None:
    with pytest.raises(BadInput, match="'b' of the table is missing"):
        merge_schemas(pa.schema([("a", pa.int32()), ("b", pa.int32())]), pa.schema([("a", pa.int32())]))


def test_a_column_in_another_case_is_refused() -> None:
    with pytest.raises(BadInput, match="one to Spark"):
        merge_schemas(pa.schema([("a", pa.int32())]), pa.schema([("a", pa.int32()), ("A", pa.int32())]))


@pytest.mark.parametrize("avro", ["", "{", "[]", "3", '{"fields": [{}]}', '{"fields": [{"name": "a", "type": {}}]}'])
def test_what_is_no_schema_is_named(avro: str) -> None:
    with pytest.raises(DamagedTable, match="there"):
        arrow_schema(avro, "there")


@pytest.mark.parametrize("kind", ['["int","string"]', '"never.Heard"'])
def test_types_that_spark_lacks_are_refused(kind: str) -> None:
    with pytest.raises(UnsupportedTable, match="no column type"):
        arrow_schema(f'{{"fields": [{{"name": "a", "type": {kind}}}]}}', "there")


def test_types_of_other_engines_are_read() -> None:
    avro = {
        "fields": [
            {"name": "t", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
            {"name": "again", "type": ["null", "E"]},
            {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}},
        ]
    }
    assert arrow_schema(json.dumps(avro), "x").types == [
        pa.timestamp("ms", "UTC"), pa.string(), pa.string(), pa.decimal128(4, 2),
    ]  # fmt: skip
