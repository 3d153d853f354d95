"""What a write says of columns that have a history, and tables whose columns it does not follow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_locks.errors import UnsupportedTable, WriteAborted
from hudi_locks.format.column_versions import ColumnVersion
from hudi_locks.storage import LocalStorage
from hudi_locks.table import (
    NEWEST_COLUMNS,
    SchemaHistory,
    TableConfig,
    check_altered,
    choose_history,
    tell_columns,
)

CONFIG = TableConfig(name="t", record_key_fields=("id",), ordering_fields=("ts",), version=9)
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("x", pa.int32()), ("s", pa.struct([("a", pa.int32())]))])
TIME, LATER = "20260101000000000", "20260101000000001"


def history(*, renamed: str = "") -> SchemaHistory:
    first = ColumnVersion.of(SCHEMA, table_version=9)
    second = first.rename(renamed, "new") if renamed else first.add("new", pa.int32(), table_version=9)
    return SchemaHistory("the history", (second.at(int(TIME)), first))


def test_a_write_says_the_newest_version_or_one_with_the_columns_that_it_adds() -> None:
    known = history()
    told = tell_columns(known, known.newest.schema, instant=LATER, table_version=9)
    assert told == {NEWEST_COLUMNS: known.newest.text}
    added = known.newest.schema.append(pa.field("more", pa.string()))
    text = tell_columns(known, added, instant=LATER, table_version=9)[NEWEST_COLUMNS]
    assert f'"version_id":{LATER}' in text
    assert '"id":11,"name":"more"' in text


def test_a_write_planned_before_the_change_and_a_field_inside_a_column_are_refused() -> None:
    known = history()
    with pytest.raises(WriteAborted, match="was planned before ALTER TABLE changed the columns"):
        tell_columns(known, known.newest.schema, instant=TIME, table_version=9)
    grown = known.newest.schema.set(3, pa.field("s", pa.struct([("a", pa.int32()), ("b", pa.int32())])))
    with pytest.raises(UnsupportedTable, match="'s' would get a field inside it"):
        tell_columns(known, grown, instant=LATER, table_version=9)


def test_a_history_that_a_writer_did_not_follow_is_left_where_columns_are_where_their_names_say() -> None:
    known, schema = history(), history().newest.schema
    assert choose_history(CONFIG, known, schema) is known
    wider = schema.set(2, pa.field("x", pa.int64()))
    for other in (schema.append(pa.field("foreign", pa.string())), schema.remove(2), wider):
        assert choose_history(CONFIG, known, other) is None
    assert choose_history(replace(CONFIG, version=6), known, schema) is known


@pytest.mark.parametrize(
    ("found", "config", "schema", "told"),
    [
        (history(renamed="x"), CONFIG, SCHEMA, r"x was renamed to new\).*newest commit has x and lacks new"),
        (history(renamed="ts"), CONFIG, None, "ts is a record key, partition or ordering column"),
        (history(renamed="x"), replace(CONFIG, extra={"hoodie.table.cdc.enabled": "true"}), None, "change logs"),
    ],
)
def test_what_would_be_read_wrongly_is_refused_with_the_way_out(
    tmp_path: Path, found: SchemaHistory, config: TableConfig, schema: pa.Schema | None, told: str
) -> None:
    with pytest.raises(UnsupportedTable, match=rf"{told}.*copy it to a new table"):
        check_altered(LocalStorage(str(tmp_path)), config, found, found.newest.schema if schema is None else schema)


def test_a_type_that_another_writer_changed_is_named(tmp_path: Path) -> None:
    found = history(renamed="x")
    wider = found.newest.schema.set(2, pa.field("new", pa.int64()))
    with pytest.raises(UnsupportedTable, match="newest commit has new as int64"):
        check_altered(LocalStorage(str(tmp_path)), CONFIG, found, wider)


def test_altered_columns_of_a_bootstrapped_table_are_refused(tmp_path: Path) -> None:
    """Its sources have the columns of the bootstrap."""
    known = history(renamed="x")
    config = replace(CONFIG, extra={"hoodie.bootstrap.base.path": "/sources"})
    with pytest.raises(UnsupportedTable, match="it was bootstrapped"):
        choose_history(config, known, known.newest.schema)
    with pytest.raises(UnsupportedTable, match="it was bootstrapped"):
        check_altered(LocalStorage(str(tmp_path)), config, known, known.newest.schema)
