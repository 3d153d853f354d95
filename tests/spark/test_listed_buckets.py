"""Merge-on-read tables of a bucket index whose writers wait for each other, as JVM Hudi makes them: with random ids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shared_table

from hudi_locks.format import bucket_of_file_id, fixed_bucket_file_id
from hudi_locks.spark import HoodieTable
from hudi_locks.table import latest_file_slices
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
SHARED = {**shared_table.SHARED, **BUCKETS, "hoodie.write.num.retries.on.conflict.failures": "1"}
FIRST = [("a", "1", 1, 1.0), ("b", "1", 1, 1.0), ("c", "2", 1, 1.0)]
Load = Callable[..., HoodieTable]
Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def table(create: Callable[..., HoodieTable], load: Load, frame: Frame, path: str) -> HoodieTable:
    """Its properties say nothing of an index, as those of JVM Hudi."""
    create(table_type="MERGE_ON_READ", options=BUCKETS)
    properties = Path(path, ".hoodie", "hoodie.properties")
    kept = [line for line in properties.read_text().splitlines() if "index" not in line and "checksum" not in line]
    properties.write_text("\n".join(kept) + "\n")
    made = load(SHARED)
    made.insert(frame(FIRST))
    return made


def groups_of(table: HoodieTable) -> dict[tuple[str, int], str]:
    slices = latest_file_slices(table.table.storage, table.table.timeline())
    found = {(piece.partition, bucket_of_file_id(piece.file_id)): piece.file_id for piece in slices}
    assert len(found) == len(slices), "a bucket has two file groups"
    return found


def test_rows_are_logged_to_the_file_group_that_a_bucket_has(table: HoodieTable, frame: Frame, rows_of: RowsOf) -> None:
    groups = groups_of(table)
    assert not {fixed_bucket_file_id(bucket) for bucket in range(2)} & set(groups.values())
    table.upsert(frame([("a", "1", 2, 2.0), ("c", "2", 0, 0.0), ("n", "3", 1, 1.0)]))
    table.delete(frame([("b", "1", 0, 0.0)]))
    state = [("a", "1", 2, 2.0), FIRST[2], ("n", "3", 1, 1.0)]
    assert rows_of(table) == state
    assert table.compaction.run() is not None
    table.upsert(frame([("b", "1", 5, 5.0), ("a", "1", 1, 9.0)]))
    assert rows_of(table) == [state[0], ("b", "1", 5, 5.0), *state[1:]]
    assert groups.items() <= groups_of(table).items()
    assert verify_table(table.table.storage).damages == ()


def test_partitions_are_overwritten_and_deleted_and_written_again(
    table: HoodieTable, frame: Frame, rows_of: RowsOf
) -> None:
    table.upsert(frame([("a", "1", 2, 2.0)]))
    before = groups_of(table)
    ended = {key for key in before if key[0] == "1"}
    assert table.insert_overwrite(frame([("z", "1", 1, 6.0)])).file_groups_replaced == len(ended)
    assert rows_of(table) == [FIRST[2], ("z", "1", 1, 6.0)]
    table.upsert(frame([("z", "1", 2, 7.0), ("a", "1", 1, 8.0)]))
    table.delete_partitions(["2"])
    table.upsert(frame([("c", "2", 1, 9.0)]))
    assert rows_of(table) == [("a", "1", 1, 8.0), ("c", "2", 1, 9.0), ("z", "1", 2, 7.0)]
    assert not set(before.values()) & set(groups_of(table).values())


@pytest.mark.parametrize("partition", ["1", "new"])
def test_two_writers_of_one_bucket_are_put_in_order(
    table: HoodieTable, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], partition: str
) -> None:
    after_job(lambda: load(SHARED).upsert(frame([("a", partition, 5, 5.0)])))
    assert table.upsert(frame([("a", partition, 6, 6.0)])).retries == 1
    assert rows_of(table.read().where(f"month = '{partition}' and id = 'a'")) == [("a", partition, 6, 6.0)]
    groups_of(table)
