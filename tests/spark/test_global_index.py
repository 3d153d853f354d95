"""Global indexes: a key has one row in the whole table, whatever partition its rows name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import shared_table

from hudi_locks.errors import BadInput
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.spark

RETRIED = {
    **shared_table.SHARED,
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.num.retries.on.conflict.failures": "1",
}
KINDS = {
    "GLOBAL_SIMPLE": "hoodie.simple.index.update.partition.path",
    "GLOBAL_BLOOM": "hoodie.bloom.index.update.partition.path",
}
ROWS = [("a", "m1", 1, 1.0), ("b", "m1", 1, 2.0), ("c", "m2", 1, 3.0)]
Create = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture(params=[True, False], ids=["moving", "staying"])
def moves(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def made(create: Create, frame: Any) -> Callable[..., HoodieTable]:
    def make(kind: str = "GLOBAL_SIMPLE", *, moves: bool = True, **changes: Any) -> HoodieTable:
        options = {"hoodie.index.type": kind, KINDS[kind]: str(moves).lower()}
        table = create(options=options, **changes)
        table.upsert(frame(ROWS))
        return table

    return make


def paths(table: HoodieTable) -> dict[str, str]:
    rows = table.read(meta_columns=True).select("_hoodie_record_key", "_hoodie_partition_path").collect()
    found = {row[0]: row[1] for row in rows}
    assert len(found) == len(rows), "a key has more than one row"
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_whose_partition_changed_moves_or_stays_as_the_option_says(
    made: Callable[..., HoodieTable], frame: Any, rows_of: RowsOf, kind: str, moves: bool
) -> None:
    table = made(kind, moves=moves)
    result = table.upsert(frame([("a", "m2", 2, 10.0), ("b", "m1", 2, 20.0), ("d", "m3", 2, 40.0)]))
    assert rows_of(table, "id", "value") == [("a", 10.0), ("b", 20.0), ("c", 3.0), ("d", 40.0)]
    assert paths(table) == {"a": "m2" if moves else "m1", "b": "m1", "c": "m2", "d": "m3"}
    assert result.rows_inserted - result.rows_deleted == 1


def test_a_row_that_is_older_than_the_one_in_the_other_partition_changes_nothing(
    made: Callable[..., HoodieTable], frame: Any, rows_of: RowsOf, moves: bool
) -> None:
    table = made(moves=moves)
    table.upsert(frame([("a", "m2", 0, 10.0), ("c", "m3", 1, 30.0)]))
    assert rows_of(table, "id", "value") == [("a", 1.0), ("b", 2.0), ("c", 30.0)]
    assert paths(table) == {"a": "m1", "b": "m1", "c": "m3" if moves else "m2"}


def test_rows_of_one_key_in_several_partitions_become_one_row(
    made: Callable[..., HoodieTable], frame: Any, rows_of: RowsOf, moves: bool
) -> None:
    table = made(moves=moves)
    table.upsert(frame([("n", "m1", 5, 1.0), ("n", "m2", 7, 2.0), ("n", "m3", 6, 3.0), ("a", "m3", 3, 9.0)]))
    table.upsert(frame([("a", "m2", 4, 8.0), ("a", "m4", 6, 7.0), ("a", "m1", 5, 6.0)]))
    assert rows_of(table, "id", "value") == [("a", 7.0), ("b", 2.0), ("c", 3.0), ("n", 2.0)]
    assert paths(table) == {"a": "m4" if moves else "m1", "b": "m1", "c": "m2", "n": "m2"}


def test_a_delete_finds_its_key_in_whatever_partition(
    made: Callable[..., HoodieTable], frame: Any, rows_of: RowsOf, moves: bool
) -> None:
    table = made(moves=moves)
    table.delete(frame([("a", "m7", 9, 0.0), ("nobody", "m1", 9, 0.0)]))
    assert rows_of(table, "id") == [("b",), ("c",)]


def test_a_row_that_is_marked_as_deleted_goes_from_where_it_lies(
    made: Callable[..., HoodieTable], frame: Any, rows_of: RowsOf, moves: bool
) -> None:
    table = made(moves=moves)
    columns = "id string, month string, ts long, value double, _hoodie_is_deleted boolean"
    marked = [("a", "m2", 2, 0.0, True), ("b", "m2", 0, 0.0, True), ("c", "m1", 2, 5.0, False)]
    table.upsert(frame(marked, columns))
    assert rows_of(table, "id", "value") == [("b", 2.0), ("c", 5.0)]
    assert paths(table) == {"b": "m1", "c": "m1" if moves else "m2"}


def test_an_insert_that_drops_duplicates_looks_in_every_partition(
    made: Callable[..., HoodieTable], load: Callable[..., HoodieTable], frame: Any, rows_of: RowsOf
) -> None:
    made()
    table = load({"hoodie.datasource.write.insert.drop.duplicates": "true"})
    table.insert(frame([("a", "m9", 9, 9.0), ("n", "m9", 9, 9.0)]))
    assert rows_of(table, "id", "value") == [("a", 1.0), ("b", 2.0), ("c", 3.0), ("n", 9.0)]


@pytest.mark.parametrize("partition", ["m1", "m9"], ids=["here", "elsewhere"])
def test_a_key_that_another_writer_brings_to_any_partition_meanwhile_has_one_row(
    create: Create,
    load: Callable[..., HoodieTable],
    frame: Any,
    rows_of: RowsOf,
    after_job: Callable[..., None],
    partition: str,
) -> None:
    options = {**RETRIED, "hoodie.index.type": "GLOBAL_SIMPLE"}
    table = create(options=options)
    table.upsert(frame(ROWS))
    after_job(lambda: load(options).upsert(frame([("n", partition, 3, 30.0)])))
    assert table.upsert(frame([("n", "m1", 4, 40.0), ("a", "m1", 4, 4.0)])).retries == 1
    assert rows_of(table, "id", "value") == [("a", 4.0), ("b", 2.0), ("c", 3.0), ("n", 40.0)]
    assert paths(table)["n"] == "m1"


def test_a_row_that_another_writer_moves_meanwhile_is_found_where_it_went(
    create: Create, load: Callable[..., HoodieTable], frame: Any, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    options = {**RETRIED, "hoodie.index.type": "GLOBAL_SIMPLE"}
    table = create(options=options)
    table.upsert(frame(ROWS))
    after_job(lambda: load(options).upsert(frame([("a", "m5", 3, 30.0)])))
    assert table.upsert(frame([("a", "m6", 4, 40.0)])).retries == 1
    assert rows_of(table, "id", "value") == [("a", 40.0), ("b", 2.0), ("c", 3.0)]
    assert paths(table)["a"] == "m6"


def test_a_move_is_refused_where_nulls_are_filled_from_the_row_before(create: Create, frame: Any) -> None:
    filling = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS", "hoodie.write.table.version": "9"}
    table = create(options={**filling, "hoodie.index.type": "GLOBAL_SIMPLE"})
    table.upsert(frame(ROWS))
    with pytest.raises(BadInput, match=r"hoodie\.simple\.index\.update\.partition\.path=false"):
        table.upsert(frame([("a", "m2", 2, 10.0)]))
    assert paths(table)["a"] == "m1"


def test_rows_move_by_logs_of_a_merge_on_read_table_and_back(
    made: Callable[..., HoodieTable], frame: Any, rows_of: RowsOf
) -> None:
    table = made(table_type="MERGE_ON_READ")
    table.upsert(frame([("a", "m1", 2, 10.0)]))
    table.upsert(frame([("a", "m2", 1, 0.0), ("b", "m1", 2, 20.0)]))  # a is older than what was logged
    assert paths(table) == {"a": "m1", "b": "m1", "c": "m2"}
    table.upsert(frame([("a", "m3", 3, 11.0), ("n", "m3", 1, 1.0)]))
    assert paths(table) == {"a": "m3", "b": "m1", "c": "m2", "n": "m3"}
    table.upsert(frame([("a", "m1", 4, 12.0)]))  # the base file that it left has its key yet
    assert paths(table) == {"a": "m1", "b": "m1", "c": "m2", "n": "m3"}
    table.upsert(frame([("a", "m3", 5, 13.0)]))
    table.delete(frame([("b", "nowhere", 0, 0.0)]))
    table.compaction.run()
    table.upsert(frame([("b", "m2", 0, 21.0), ("a", "m3", 6, 14.0)]))
    assert paths(table) == {"a": "m3", "b": "m2", "c": "m2", "n": "m3"}
    assert rows_of(table, "id", "value") == [("a", 14.0), ("b", 21.0), ("c", 3.0), ("n", 1.0)]


def test_rows_of_a_merge_on_read_table_stay_where_they_are_if_asked(
    made: Callable[..., HoodieTable], frame: Any, rows_of: RowsOf
) -> None:
    table = made(moves=False, table_type="MERGE_ON_READ")
    table.upsert(frame([("a", "m2", 2, 10.0), ("c", "m1", 0, 0.0), ("n", "m1", 1, 1.0)]))
    table.delete(frame([("b", "m2", 0, 0.0)]))
    assert paths(table) == {"a": "m1", "c": "m2", "n": "m1"}
    assert rows_of(table, "id", "value") == [("a", 10.0), ("c", 3.0), ("n", 1.0)]


def test_two_writers_that_move_one_row_leave_it_once(
    made: Callable[..., HoodieTable], load: Callable[..., HoodieTable], frame: Any, rows_of: RowsOf, after_job: Any
) -> None:
    options = {**RETRIED, "hoodie.index.type": "GLOBAL_SIMPLE", KINDS["GLOBAL_SIMPLE"]: "true"}
    made(table_type="MERGE_ON_READ")
    table = load(options)
    after_job(lambda: load(options).upsert(frame([("a", "m2", 2, 10.0), ("n", "m2", 1, 1.0)])))
    assert table.upsert(frame([("a", "m3", 3, 11.0), ("n", "m4", 2, 2.0)])).retries == 1
    assert paths(table) == {"a": "m3", "b": "m1", "c": "m2", "n": "m4"}
