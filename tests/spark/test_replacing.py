"""Overwriting and deleting whole partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import shared_table

from hudi_locks.errors import BadInput, WriteConflict
from hudi_locks.spark import HoodieTable, Operation, write

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
SHARED = {**shared_table.SHARED, "hoodie.write.num.retries.on.conflict.failures": "1"}
INDEXES = [{"hoodie.index.type": "SIMPLE"}, {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}]
FIRST = [("a", "1", 5, 1.0), ("b", "1", 5, 2.0), ("c", "2", 5, 3.0)]


@pytest.mark.parametrize("index", INDEXES, ids=["simple", "bucket"])
def test_an_overwrite_replaces_the_partitions_that_it_touches(
    create: Create, frame: Frame, rows_of: RowsOf, index: dict[str, str]
) -> None:
    table = create(options=index)
    first = table.upsert(frame(FIRST))
    result = table.insert_overwrite(frame([("n", "1", 1, 9.0), ("a", "1", 1, 9.5), ("m", "3", 1, 9.0)]))
    assert (result.rows_inserted, result.file_groups_replaced > 0) == (3, True)
    state = [("a", "1", 1, 9.5), ("c", "2", 5, 3.0), ("m", "3", 1, 9.0), ("n", "1", 1, 9.0)]
    assert rows_of(table) == state
    assert rows_of(table.as_of(first.completion_time)) == FIRST
    assert rows_of(table.incremental(first.completion_time)) == [state[0], *state[2:]]
    assert rows_of(table.incremental("0")) == state
    # What ended is neither found by its key nor filled up: b is new, and a is replaced where it lies now.
    after = table.upsert(frame([("a", "1", 6, 6.0), ("b", "1", 6, 6.0)]))
    assert (after.rows_updated, after.rows_inserted) == (1, 1)
    assert rows_of(table) == [("a", "1", 6, 6.0), ("b", "1", 6, 6.0), *state[1:]]
    assert table.table.timeline().get(result.instant).action == "replacecommit"  # type: ignore[union-attr]


def test_the_whole_table_is_replaced_also_by_nothing(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create()
    table.upsert(frame(FIRST))
    assert table.insert_overwrite(frame([])).file_groups_replaced == 0
    assert rows_of(table) == FIRST
    result = table.insert_overwrite_table(frame([("n", "3", 1, 1.0)]))
    assert (result.file_groups_replaced, rows_of(table)) == (2, [("n", "3", 1, 1.0)])
    assert table.insert_overwrite_table(frame([])).file_groups_replaced == 1
    assert rows_of(table) == []
    table.upsert(frame(FIRST))
    assert rows_of(table) == FIRST


def test_partitions_are_deleted_by_their_paths(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create(options={"hoodie.datasource.write.hive_style_partitioning": "true"})
    first = table.bulk_insert(frame([*FIRST, ("d", "3", 5, 4.0)]))
    gone = table.delete_partitions(["month=1", "month=1"])
    assert (gone.file_groups_replaced, gone.file_groups, gone.rows_written) == (1, 0, 0)
    assert rows_of(table) == [FIRST[2], ("d", "3", 5, 4.0)]
    assert rows_of(table.as_of(first.completion_time), "id") == [("a",), ("b",), ("c",), ("d",)]
    assert rows_of(table.incremental(first.completion_time)) == []
    assert table.delete_partitions(["month=1"]).file_groups_replaced == 0
    table.write(Operation.DELETE_PARTITION, frame([("2",)], "month string"))
    assert rows_of(table, "id") == [("d",)]
    key = "hoodie.datasource.write.partitions.to.delete"
    options = {**table.options, key: "month=3", "hoodie.datasource.write.operation": "delete_partition"}
    for mode in ("append", "overwrite"):
        write(frame(FIRST), table.path, options, mode)
    assert rows_of(table) == []
    assert table.table.schema(table.table.timeline()).names == ["id", "month", "ts", "value"]  # type: ignore[union-attr]


def test_partitions_that_are_not_there_are_refused_before_anything_is_written(
    create: Create, frame: Frame, files_of: Callable[[], dict[str, bytes]], path: str
) -> None:
    table = create()
    table.bulk_insert(frame(FIRST))
    before = files_of()
    for named, message in (
        ([], "no partition"),
        (["1", "9"], "'9' is no partition of the table, which has 1, 2; look"),
        (["*"], "patterns are not read"),
    ):
        with pytest.raises(BadInput, match=message):
            table.delete_partitions(named)
    flat = create(path=f"{path}/../flat", partition_by=())
    flat.bulk_insert(frame(FIRST))
    with pytest.raises(BadInput, match="insert_overwrite_table"):
        flat.delete_partitions([""])
    assert files_of() == before


@pytest.mark.parametrize("index", INDEXES, ids=["simple", "bucket"])
def test_rows_that_come_to_an_overwritten_partition_meanwhile_are_replaced_by_a_retry(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], index: dict[str, str]
) -> None:
    ours = create(options={**SHARED, **index})
    ours.bulk_insert(frame(FIRST))
    theirs: list[Any] = []
    after_job(lambda: theirs.append(load(SHARED).bulk_insert(frame([("z", "1", 1, 1.0), ("y", "2", 1, 1.0)]))))
    result = ours.insert_overwrite(frame([("n", "1", 1, 1.0)]))
    [conflict] = result.conflicts
    assert (conflict.other, conflict.partition) == (theirs[0].instant, "1")
    assert rows_of(ours, "id") == [("c",), ("n",), ("y",)]


def test_an_update_of_a_partition_that_was_deleted_meanwhile_is_placed_anew(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    """Also of a row that was to stay as it was: after the deletion it is new, and goes to a new file."""
    ours = create(options=SHARED)
    ours.bulk_insert(frame(FIRST))
    after_job(lambda: load(SHARED).delete_partitions(["1"]))
    result = ours.upsert(frame([("a", "1", 1, 7.0), ("z", "2", 1, 1.0)]))
    assert ([conflict.overwritten for conflict in result.avoided], result.rows_inserted) == ([("1",)], 2)
    assert rows_of(ours) == [("a", "1", 1, 7.0), FIRST[2], ("z", "2", 1, 1.0)]


def test_an_overwrite_and_writes_elsewhere_do_not_disturb_each_other(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    ours = create(options={**SHARED, "hoodie.write.num.retries.on.conflict.failures": "0"})
    ours.bulk_insert(frame(FIRST))
    after_job(lambda: load(SHARED).upsert(frame([("c", "2", 6, 6.0), ("z", "3", 1, 1.0)])))
    ours.insert_overwrite(frame([("n", "1", 1, 1.0)]))
    assert rows_of(ours) == [("c", "2", 6, 6.0), ("n", "1", 1, 1.0), ("z", "3", 1, 1.0)]
    after_job(lambda: load(SHARED).insert(frame([("y", "4", 1, 1.0)])))
    with pytest.raises(WriteConflict, match="partition '4', which one of them overwrites"):
        ours.insert_overwrite_table(frame([("x", "1", 1, 1.0)]))
    assert rows_of(ours, "id") == [("c",), ("n",), ("y",), ("z",)]
