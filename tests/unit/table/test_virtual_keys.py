"""Virtual keys: record keys that are made of the columns of rows whose files leave the meta columns empty."""

from __future__ import annotations

import datetime as dt
import pickle

import pyarrow as pa
import pytest

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import META_COLUMNS
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, TableConfig, VirtualKeys, check_readable, check_writable
from hudi_locks.table.virtual_keys import clear_meta_columns

DAY = dt.date(2024, 2, 29)
AT = dt.datetime(2024, 2, 29, 12, tzinfo=dt.timezone.utc)


def make(keys: VirtualKeys, **columns: pa.Array) -> list[str | None]:
    made: list[str | None] = keys.make(pa.table(columns)).to_pylist()
    return made


@pytest.mark.parametrize(
    ("values", "made"),
    [
        (pa.array(["a", "", None]), ["a", None, None]),
        (pa.array(["a", "a"]).dictionary_encode(), ["a", "a"]),
        (pa.array([1, -2], pa.int32()), ["1", "-2"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([DAY]), ["2024-02-29"]),
        (pa.array([AT], pa.timestamp("us", "UTC")), ["1709208000000000"]),
        (pa.array([AT], pa.timestamp("ms")), ["1709208000000000"]),
    ],
    ids=str,
)
def test_a_bare_key_is_the_text_of_its_column(values: pa.Array, made: list[str | None]) -> None:
    assert make(VirtualKeys(("id",), is_composite=False), id=values) == made


def test_a_composite_key_names_its_columns_and_what_is_missing() -> None:
    keys = VirtualKeys(("id", "at.day"), is_composite=True)
    at = pa.StructArray.from_arrays([pa.array([DAY, None, None])], ["day"])
    made = make(keys, id=pa.array(["a", "", None]), at=at)
    assert made == ["id:a,at.day:2024-02-29", None, None]
    assert keys.columns == ("id", "at")
    both = VirtualKeys(("a", "b"), is_composite=True)
    assert make(both, a=pa.array(["x", "x"]), b=pa.array(["", None])) == ["a:x,b:__empty__", "a:x,b:__null__"]


def test_rows_are_filled_and_cleared() -> None:
    keys = pickle.loads(pickle.dumps(VirtualKeys(("id",), is_composite=False)))
    rows = pa.table({**{name: pa.nulls(2, pa.string()) for name in META_COLUMNS}, "id": ["a", "b"]})
    filled = keys.fill(rows, "eu")
    assert filled.column(RECORD_KEY).to_pylist() == ["a", "b"]
    assert filled.column(PARTITION_PATH).to_pylist() == ["eu", "eu"]
    assert clear_meta_columns(filled).equals(rows)
    narrow = keys.fill(rows.select(["id"]), "eu")
    assert narrow.column_names == ["id", RECORD_KEY, PARTITION_PATH]


@pytest.mark.parametrize("kind", [pa.float64(), pa.binary(), pa.decimal128(9, 2)], ids=str)
def test_a_type_of_which_java_makes_another_text_is_refused(kind: pa.DataType) -> None:
    keys = VirtualKeys(("id",), is_composite=False)
    with pytest.raises(UnsupportedTable, match="record key column 'id' is of type") as caught:
        keys.check(pa.schema([("id", kind)]))
    assert caught.value.facts == {"column": "id", "type": str(kind)}
    with pytest.raises(UnsupportedTable, match="'id' is not in the file"):
        keys.check(pa.schema([("other", pa.string())]))


META = "hoodie.populate.meta.fields"
PLAIN = {
    "hoodie.table.name": "t",
    "hoodie.table.version": "8",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "day",
    "hoodie.table.keygenerator.type": "SIMPLE",
    "hoodie.table.timeline.timezone": "UTC",
    META: "false",
}
OPEN = {"hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.keygenerator.type": "COMPLEX"}


def test_a_table_whose_keys_can_be_made_is_written() -> None:
    config = TableConfig.from_properties(PLAIN)
    check_writable(config)
    assert config.virtual_keys == VirtualKeys(("id",), is_composite=False)
    check_writable(TableConfig.from_properties({**PLAIN, **OPEN}))
    both = TableConfig.from_properties({**PLAIN, "hoodie.table.recordkey.fields": "id,day"})
    assert both.virtual_keys == VirtualKeys(("id", "day"), is_composite=True)
    assert TableConfig.from_properties({**PLAIN, META: "true"}).virtual_keys is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.table.recordkey.fields", ""),
        ("hoodie.table.keygenerator.type", "TIMESTAMP"),
    ],
)
def test_a_table_whose_keys_cannot_be_made_is_refused_where_rows_are_merged(key: str, value: str) -> None:
    properties = {**PLAIN, key: value}
    with pytest.raises(UnsupportedTable, match=f"{META}=false: rows without meta columns are found by keys"):
        check_readable(TableConfig.from_properties(properties))
    plain = TableConfig.from_properties({**properties, "hoodie.table.type": "COPY_ON_WRITE"})
    check_readable(plain)
    with pytest.raises(UnsupportedTable, match=f"{META}=false: rows without meta columns are found by keys"):
        check_writable(plain)


def test_a_log_of_keys_that_are_written_in_one_of_two_ways_is_not_merged() -> None:
    config = TableConfig.from_properties({**PLAIN, **OPEN, "hoodie.table.type": "MERGE_ON_READ"})
    with pytest.raises(UnsupportedTable, match=f"{META}=false"):
        check_readable(config)


@pytest.mark.parametrize(
    ("key", "value"), [("hoodie.table.cdc.enabled", "true"), ("hoodie.table.metadata.partitions", "files,record_index")]
)
def test_what_else_needs_the_keys_is_refused(key: str, value: str) -> None:
    config = TableConfig.from_properties({**PLAIN, key: value})
    check_readable(config)
    with pytest.raises(UnsupportedTable, match=f"{META}=false: .*without record index and change logs"):
        check_writable(config)
