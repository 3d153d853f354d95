"""Writers that each set some columns of a row."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shared_table

from hudi_locks.errors import BadInput, ConfigError
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.spark

EXAMPLE = Path(__file__).parents[2] / "examples" / "joined_streams" / "join_orders.py"
Create = Callable[..., HoodieTable]
Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]
WIDE = "id string, month string, ts long, value double, label string"
MODE = "hoodie.table.partial.update.mode"
UNSENT = "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value"
PARTIAL = {
    **shared_table.SHARED,
    "hoodie.write.table.version": "9",
    MODE: "IGNORE_DEFAULTS",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
}


def test_two_streams_join_in_one_table(spark: Any, tmp_path: Path) -> None:
    found = importlib.util.spec_from_file_location("join_orders", EXAMPLE)
    assert found
    assert found.loader
    example = importlib.util.module_from_spec(found)
    found.loader.exec_module(example)
    assert example.join(spark, tmp_path) == example.JOINED


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_null_says_nothing_and_an_older_row_fills_what_is_missing(
    create: Create, frame: Frame, rows_of: RowsOf, table_type: str
) -> None:
    table = create(table_type=table_type, options=PARTIAL)
    first = table.upsert(frame([("a", "1", 5, 1.0, None), ("b", "1", 5, None, "b"), ("c", "1", 5, 5.0, "c")], WIDE))
    second = table.upsert(
        frame([("a", "1", 6, None, "new"), ("b", "1", 2, 2.0, "old"), ("c", "1", 4, 4.0, "old")], WIDE)
    )
    assert rows_of(table) == [("a", "1", 6, 1.0, "new"), ("b", "1", 5, 2.0, "b"), ("c", "1", 5, 5.0, "c")]
    assert rows_of(table.incremental(first.completion_time), "id") == [("a",), ("b",)]
    assert second.completion_time > first.completion_time


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_of_some_columns_leave_the_others_as_they_are_whoever_was_first(
    create: Create, spark: Any, rows_of: RowsOf, table_type: str
) -> None:
    table = create(table_type=table_type, options=PARTIAL)
    orders, shipments = (
        "id string, month string, ts long, amount double",
        "id string, month string, ts long, carrier string",
    )
    for rows, columns in (
        ([("a", "1", 5, 1.0), ("b", "1", 5, 2.0)], orders),
        ([("b", "1", 4, "ship"), ("c", "1", 6, "train")], shipments),
        ([("a", "1", 7, 1.5), ("c", "1", 1, 3.0)], orders),
        ([("a", "1", 6, "plane")], shipments),
    ):
        table.upsert(spark.createDataFrame(rows, columns))
    found = rows_of(table, "id", "ts", "amount", "carrier")
    assert found == [("a", 7, 1.5, "plane"), ("b", 5, 2.0, "ship"), ("c", 6, 3.0, "train")]


def test_rows_of_one_write_fill_each_other(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create(table_type="MERGE_ON_READ", options=PARTIAL)
    table.upsert(frame([("a", "1", 1, 1.0, None), ("a", "1", 2, None, "two"), ("a", "1", 3, None, None)], WIDE))
    assert rows_of(table) == [("a", "1", 3, 1.0, "two")]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hoodie.write.table.version": "8"}, "needs table version 9"),
    ],
)
def test_what_readers_would_merge_otherwise_is_not_made(create: Create, changes: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create(options={**PARTIAL, **changes})


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_text_says_that_a_value_was_not_sent(create: Create, frame: Frame, rows_of: RowsOf, table_type: str) -> None:
    said = {
        MODE: "FILL_UNAVAILABLE",
        UNSENT: "?",
    }
    table = create(table_type=table_type, options={**PARTIAL, **said})
    table.upsert(frame([("a", "1", 5, 1.0, "kept"), ("b", "1", 5, 2.0, "?")], WIDE))
    table.upsert(frame([("a", "1", 6, None, "?"), ("b", "1", 4, 9.0, "late")], WIDE))
    assert rows_of(table) == [("a", "1", 6, None, "kept"), ("b", "1", 5, 2.0, "late")]


DEBEZIUM = "org.apache.hudi.common.model.debezium."


@pytest.mark.parametrize(
    ("payload", "version", "ordering", "told"),
    [
        ("PostgresDebeziumAvroPayload", "9", "ts", "compares rows by _event_lsn at table version 9, and not by ts"),
        (
            "MySqlDebeziumAvroPayload",
            "9",
            None,
            "by _event_bin_file,_event_pos at table version 9, and not by no column",
        ),
        ("MySqlDebeziumAvroPayload", "8", ["_event_bin_file", "_event_pos"], "by _event_seq at table version 8, and"),
        ("MySqlDebeziumAvroPayload", "6", "ts", "compares rows by _event_seq at table version 6, and not by ts"),
    ],
)
def test_a_payload_class_of_debezium_compares_its_own_columns(
    create: Create, payload: str, version: str, ordering: str | None, told: str
) -> None:
    options = {"hoodie.datasource.write.payload.class": DEBEZIUM + payload, "hoodie.write.table.version": version}
    with pytest.raises(ConfigError, match=told):
        create(ordering=ordering, options=options)


INDEXES = {
    "BLOOM": {"hoodie.index.type": "BLOOM"},
    "GLOBAL_SIMPLE": {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"},
}
PLACED = "id string, month string, _event_seq string, value double"


@pytest.mark.parametrize("version", ["6", "8"])
@pytest.mark.parametrize("index", INDEXES)
def test_events_of_mysql_are_compared_by_numbers_and_refused_without_a_place(
    create: Create, frame: Frame, rows_of: RowsOf, version: str, index: str
) -> None:
    options = {
        "hoodie.datasource.write.payload.class": f"{DEBEZIUM}MySqlDebeziumAvroPayload",
        "hoodie.write.table.version": version,
        **INDEXES[index],
    }
    table = create(ordering="_event_seq", options=options)
    table.insert(frame([("a", "1", "000001.5", 1.0), ("b", "1", "9.10", 2.0), ("c", "1", None, 3.0)], PLACED))
    table.upsert(frame([("a", "2", "1.10", 5.0), ("b", "1", "9.9", 6.0), ("c", "1", "0.1", 7.0)], PLACED))
    moved = (
        [("a", "2", "1.10", 5.0)]
        if index == "GLOBAL_SIMPLE"
        else [("a", "1", "000001.5", 1.0), ("a", "2", "1.10", 5.0)]
    )
    assert rows_of(table) == [*moved, ("b", "1", "9.10", 2.0), ("c", "1", "0.1", 7.0)]
    for place in (None, "mysql.5"):
        with pytest.raises(BadInput, match="is no place such as"):
            table.upsert(frame([("a", "1", place, 9.0)], PLACED))
