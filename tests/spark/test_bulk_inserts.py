"""Bulk inserts into merge-on-read tables with buckets: base files for new buckets, logs for those that are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import shared_table

from hudi_locks.errors import ConfigError, WriteConflict
from hudi_locks.spark import HoodieTable
from hudi_locks.table import latest_file_slices
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
RINGS = {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
TOGETHER = {**shared_table.SHARED, **BUCKETS, "hoodie.write.concurrency.mode": "non_blocking_concurrency_control"}
FIRST = [("a", "1", 1, 1.0), ("b", "1", 1, 1.0), ("a", "1", 3, 3.0), ("x", "2", 1, 1.0)]
STATE = [("a", "1", 3, 3.0), ("b", "1", 1, 1.0), ("x", "2", 1, 1.0)]


def slices_of(table: HoodieTable) -> list[tuple[str, bool, int]]:
    """Partition, whether there is a base file, and how many logs, of each file group."""
    slices = latest_file_slices(table.table.storage, table.table.timeline())
    return sorted((piece.partition, piece.base is not None, len(piece.logs)) for piece in slices)


@pytest.mark.parametrize("buckets", [BUCKETS, RINGS], ids=["simple", "rings"])
def test_new_buckets_get_base_files_and_a_key_is_there_once(
    create: Create, frame: Frame, rows_of: RowsOf, buckets: dict[str, str]
) -> None:
    table = create(table_type="MERGE_ON_READ", options={**shared_table.SHARED, **buckets})
    result = table.bulk_insert(frame(FIRST))
    assert (result.rows_inserted, rows_of(table)) == (3, STATE)
    assert {(has_base, logs) for _, has_base, logs in slices_of(table)} == {(True, 0)}
    assert [instant.action for instant in table.table.timeline().completed()] == ["deltacommit"]
    table.upsert(frame([("a", "1", 4, 4.0), ("n", "3", 1, 1.0)]))
    table.bulk_insert(frame([("a", "1", 2, 9.0), ("b", "1", 5, 5.0), ("n", "3", 1, 9.0), ("z", "4", 1, 1.0)]))
    state = [("a", "1", 4, 4.0), ("b", "1", 5, 5.0), ("n", "3", 1, 9.0), ("x", "2", 1, 1.0), ("z", "4", 1, 1.0)]
    assert rows_of(table) == state
    assert [piece for piece in slices_of(table) if piece[0] in "34"] == [("3", False, 2), ("4", True, 0)]
    table.delete(frame([("b", "1", 0, 0.0), ("z", "4", 0, 0.0)]))
    assert table.compaction.run() is not None
    assert rows_of(table) == [row for row in state if row[0] not in "bz"]
    assert verify_table(table.table.storage).damages == ()


def test_a_bulk_insert_meets_what_is_logged_to_its_new_buckets_and_begins_anew(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    table = create(table_type="MERGE_ON_READ", options=TOGETHER)
    after_job(lambda: load(TOGETHER).upsert(frame([("a", "1", 9, 9.0)])))
    with pytest.raises(WriteConflict, match="deltacommit"):
        table.bulk_insert(frame(FIRST))
    retrying = load({**TOGETHER, "hoodie.write.num.retries.on.conflict.failures": "1"})
    after_job(lambda: load(TOGETHER).upsert(frame([("x", "2", 9, 9.0)])))
    assert retrying.bulk_insert(frame(FIRST)).retries == 1
    after_job(lambda: load(TOGETHER).upsert(frame([("b", "1", 9, 9.0)])))
    assert table.bulk_insert(frame(FIRST)).conflicts == ()
    assert rows_of(table) == [("a", "1", 9, 9.0), ("b", "1", 9, 9.0), ("x", "2", 9, 9.0)]


def test_tables_of_version_6_take_inserts_alone(create: Create, frame: Frame) -> None:
    options = {**shared_table.SHARED, **BUCKETS, "hoodie.write.table.version": "6"}
    table = create(table_type="MERGE_ON_READ", options=options)
    with pytest.raises(ConfigError, match=r"bulk_insert is not offered .*version 6.*use insert"):
        table.bulk_insert(frame(FIRST))
    assert table.table.timeline().instants == ()
