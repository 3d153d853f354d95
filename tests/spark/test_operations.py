"""insert, upsert, bulk_insert and delete, with both indexes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hudi_locks.errors import BadInput
from hudi_locks.spark import HoodieTable, Operation

pytestmark = pytest.mark.spark

SIMPLE = {"hoodie.index.type": "SIMPLE"}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
FIRST = [("a", "1", 5, 1.0), ("b", "1", 5, 2.0), ("c", "2", 5, 3.0)]


def data_files(path: str) -> list[Path]:
    return sorted(Path(path).rglob("*.parquet"))


@pytest.mark.parametrize(("index", "version"), [(SIMPLE, 8), (BUCKET, 9)], ids=["simple", "bucket"])
def test_rows_are_inserted_replaced_and_taken_out(
    create: Create, frame: Frame, rows_of: RowsOf, index: dict[str, str], version: int
) -> None:
    table = create(options={**index, "hoodie.write.table.version": version})
    loaded = table.bulk_insert(frame(FIRST))
    assert (loaded.rows_inserted, loaded.rows_written) == (3, 3)
    changed = table.upsert(frame([("b", "1", 6, 20.0), ("c", "2", 4, 30.0), ("d", "3", 5, 4.0)]))
    assert (changed.rows_inserted, changed.rows_updated, changed.rows_deleted) == (1, 1, 0)
    expected = [("a", "1", 5, 1.0), ("b", "1", 6, 20.0), ("c", "2", 5, 3.0), ("d", "3", 5, 4.0)]
    assert rows_of(table) == expected
    gone = table.delete(frame([("a", "1"), ("c", "1"), ("z", "9")], "id string, month string"))
    assert gone.rows_deleted == 1
    assert rows_of(table) == expected[1:]
    added = table.insert(frame([("b", "1", 1, 0.0)]))
    assert (added.rows_inserted, added.rows_updated) == (1, 0)
    assert rows_of(table) == [("b", "1", 1, 0.0), *expected[1:]]


@pytest.mark.parametrize("index", [SIMPLE], ids=["simple"])
def test_a_key_of_another_partition_is_another_row(
    create: Create, frame: Frame, rows_of: RowsOf, index: dict[str, str]
) -> None:
    table = create(options=index)
    table.upsert(frame([("a", "1", 1, 1.0)]))
    table.upsert(frame([("a", "2", 1, 2.0)]))
    assert rows_of(table) == [("a", "1", 1, 1.0), ("a", "2", 1, 2.0)]


def test_rows_of_one_key_in_a_batch_become_one_by_their_ordering(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create()
    rows = [("a", "1", 2, 2.0), ("a", "1", 3, 3.0), ("a", "1", 1, 1.0), ("a", "1", None, 0.0), ("b", "1", None, 9.0)]
    assert table.upsert(frame(rows)).rows_inserted == 2
    assert rows_of(table) == [("a", "1", 3, 3.0), ("b", "1", None, 9.0)]
    table.upsert(frame([("a", "1", None, -1.0), ("b", "1", 0, 8.0)]))
    assert rows_of(table) == [("a", "1", 3, 3.0), ("b", "1", 0, 8.0)]


def test_rows_of_one_key_in_a_batch_stay_as_they_are_when_asked(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create(options={"hoodie.combine.before.upsert": "false"})
    assert table.upsert(frame([("a", "1", 2, 2.0), ("a", "1", 1, 1.0)])).rows_inserted == 2
    assert rows_of(table) == [("a", "1", 1, 1.0), ("a", "1", 2, 2.0)]


@pytest.mark.parametrize(
    "settings", [{"ordering": None}, {"options": {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}}]
)
def test_without_ordering_the_later_write_wins(
    create: Create, frame: Frame, rows_of: RowsOf, settings: dict[str, Any]
) -> None:
    table = create(**settings)
    table.upsert(frame([("a", "1", 9, 1.0)]))
    table.upsert(frame([("a", "1", 1, 2.0)]))
    assert rows_of(table) == [("a", "1", 1, 2.0)]


def test_version_nine_orders_by_several_columns(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create(ordering=["ts", "value"], options={"hoodie.write.table.version": 9})
    table.upsert(frame([("a", "1", 5, 2.0), ("b", "1", 5, 2.0)]))
    table.upsert(frame([("a", "1", 5, 1.0), ("b", "1", 5, 3.0)]))
    assert rows_of(table) == [("a", "1", 5, 2.0), ("b", "1", 5, 3.0)]


@pytest.mark.parametrize(
    ("operation", "index"), [(Operation.INSERT, BUCKET), (Operation.INSERT, SIMPLE), (Operation.BULK_INSERT, SIMPLE)]
)
def test_an_insert_keeps_what_it_is_not_told_to_merge(
    create: Create, frame: Frame, rows_of: RowsOf, index: dict[str, str], operation: Operation
) -> None:
    rows = frame([("a", "1", 1, 1.0), ("a", "1", 2, 2.0)])
    plain = create(options=index)
    plain.write(operation, rows)
    plain.write(operation, rows)
    assert rows_of(plain) == [("a", "1", 1, 1.0)] * 2 + [("a", "1", 2, 2.0)] * 2


@pytest.mark.parametrize(("operation", "index"), [(Operation.INSERT, SIMPLE), (Operation.BULK_INSERT, BUCKET)])
def test_an_insert_can_merge_the_rows_of_its_batch(
    create: Create, frame: Frame, rows_of: RowsOf, index: dict[str, str], operation: Operation
) -> None:
    table = create(options={**index, "hoodie.combine.before.insert": "true"})
    table.write(operation, frame([("a", "1", 1, 1.0), ("a", "1", 2, 2.0), ("a", "1", 1, 3.0)]))
    assert rows_of(table) == [("a", "1", 2, 2.0)]


@pytest.mark.parametrize("index", [SIMPLE, BUCKET], ids=["simple", "bucket"])
def test_an_insert_can_leave_out_keys_that_are_there(
    create: Create, frame: Frame, rows_of: RowsOf, index: dict[str, str]
) -> None:
    table = create(options={**index, "hoodie.datasource.write.insert.drop.duplicates": "true"})
    table.insert(frame(FIRST))
    result = table.insert(frame([("a", "1", 9, 9.0), ("d", "1", 1, 4.0), ("d", "1", 2, 5.0)]))
    assert (result.rows_inserted, result.rows_updated) == (1, 0)
    assert rows_of(table) == [*FIRST, ("d", "1", 2, 5.0)]


def test_new_rows_go_into_small_files_and_bulk_inserts_make_files(create: Create, frame: Frame, path: str) -> None:
    table = create(partition_by=(), options={"hoodie.parquet.small.file.limit": 1_000_000})
    first = table.insert(frame([("a", "1", 1, 1.0)]))
    packed = table.insert(frame([("b", "1", 1, 1.0)]))
    assert (packed.file_groups, packed.rows_inserted, packed.rows_written) == (1, 1, 2)
    assert len({file.name.split("_")[0] for file in data_files(path)}) == 1
    table.bulk_insert(frame([("c", "1", 1, 1.0)]))
    assert len({file.name.split("_")[0] for file in data_files(path)}) == 2
    assert table.read().count() == 3
    assert table.as_of(first.completion_time).count() == 1


def test_many_new_rows_are_cut_into_files_of_the_target_size(create: Create, spark: Any, path: str) -> None:
    options = {"hoodie.copyonwrite.record.size.estimate": 100, "hoodie.parquet.max.file.size": 20_000}
    table = create(partition_by=(), options=options)
    rows = spark.range(1000).selectExpr("cast(id as string) id", "'1' month", "id ts", "1.5 value")
    result = table.upsert(rows)
    assert result.file_groups == 5
    assert table.read().select("id").distinct().count() == 1000


@pytest.mark.parametrize("index", [SIMPLE, BUCKET], ids=["simple", "bucket"])
def test_empty_input_and_empty_tables(create: Create, frame: Frame, rows_of: RowsOf, index: dict[str, str]) -> None:
    table = create(options=index)
    assert rows_of(table) == []
    assert table.delete(frame(FIRST)).rows_deleted == 0
    assert table.upsert(frame([])).rows_written == 0
    table.upsert(frame(FIRST))
    assert table.upsert(frame([])).rows_written == 0
    assert table.delete(frame([], "id string, month string")).rows_deleted == 0
    assert rows_of(table) == FIRST


def test_a_delete_brings_no_columns(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    """Not even to a table without any."""
    table, gone = create(), frame([("a", "1", "x")], "id string, month string, junk string")
    assert table.delete(gone).rows_deleted == 0
    table.upsert(frame([("a", "1", 1, 1.0), ("b", "1", 1, 1.0)]))
    assert table.delete(gone).rows_deleted == 1
    assert rows_of(table) == [("b", "1", 1, 1.0)]
    assert table.read(meta_columns=False).columns == ["id", "month", "ts", "value"]


def test_meta_columns_name_instant_key_partition_and_file(create: Create, frame: Frame, path: str) -> None:
    table = create()
    first = table.upsert(frame(FIRST))
    second = table.upsert(frame([("a", "1", 6, 9.0)]))
    rows = {row["id"]: row for row in table.read().collect()}
    assert {key: row["_hoodie_commit_time"] for key, row in rows.items()} == {
        "a": second.instant,
        "b": first.instant,
        "c": first.instant,
    }
    assert len({row["_hoodie_commit_seqno"] for row in rows.values()}) == 3
    for row in rows.values():
        assert (row["_hoodie_record_key"], row["_hoodie_partition_path"]) == (row["id"], row["month"])
        assert (Path(path) / row["month"] / row["_hoodie_file_name"]).is_file()
    assert rows["a"]["_hoodie_file_name"] == rows["b"]["_hoodie_file_name"]


def test_what_was_read_can_be_written_back(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create()
    table.upsert(frame(FIRST))
    table.upsert(table.read().selectExpr("value", "_hoodie_record_key", "id", "ts + 1 as ts", "month"))
    assert rows_of(table, "id", "ts") == [("a", 6), ("b", 6), ("c", 6)]
    table.delete(table.read().where("id = 'a'"))
    assert rows_of(table, "id") == [("b",), ("c",)]


def test_a_table_object_cannot_be_pickled_and_says_so(create: Create) -> None:
    with pytest.raises(TypeError, match="load it where it is needed"):
        create().__reduce__()


def test_a_notebook_shows_a_table_and_what_a_write_did(create: Callable[..., HoodieTable], frame: Any) -> None:
    table = create()
    result = table.upsert(frame([("a", "1", 1, 1.0), ("b", "1", 1, 1.0)]))
    written, shown = result._repr_html_(), table._repr_html_()
    assert f"<td>{result.instant}</td>" in written
    assert "2 inserted, 0 updated, 0 deleted" in written
    assert f"<td>{table.path}</td>" in shown
    assert f"<td>{result.completion_time}</td>" in shown
    assert "<tr><th>partitioned by</th><td>month</td></tr>" in shown


def test_a_notebook_shows_what_a_write_does(
    create: Callable[..., HoodieTable], frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is gone at the end, also after a write that failed."""
    table, shown = create(), list[str]()
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setattr("hudi_locks.spark.session.open_notebook_line", lambda: shown.append)
    table.upsert(frame([("a", "1", 1, 1.0)]))
    title = f"upsert into {table.path}"
    assert (shown[0], shown[-1]) == (title, "")
    assert len(shown) > 2
    assert all(text.startswith(f"{title}: ") for text in shown[1:-1])
    with pytest.raises(BadInput):
        table.upsert(frame([("a", "1", 1, 1.0)]).drop("id"))
    assert shown[-1] == ""
