"""Two writers on one table: overlaps are forced, and nothing is lost."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shared_table

from hudi_locks.errors import AcquireTimeout, SecondWriterRefused, WriteConflict, WriteError
from hudi_locks.services.activity import list_activity
from hudi_locks.services.met_conflicts import list_conflicts
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.writing.writer import Writer
from hudi_locks.transaction import Outcome

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
SHARED = {
    **shared_table.SHARED,
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.num.retries.on.conflict.failures": "1",
}
FIRST = [("a", "1", 1, 1.0), ("b", "1", 1, 1.0), ("c", "2", 1, 1.0)]
DEADLINE_S = 60


def test_of_two_writers_of_one_file_group_the_later_begins_anew_and_nothing_is_lost(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], path: str
) -> None:
    ours = create(options=SHARED)
    ours.bulk_insert(frame(FIRST))
    theirs: list[Any] = []
    after_job(lambda: theirs.append(load(SHARED).upsert(frame([("b", "1", 2, 2.0)]))))
    result = ours.upsert(frame([("a", "1", 2, 2.0)]))
    [conflict] = result.conflicts
    assert conflict.other == theirs[0].instant
    assert (conflict.partition, conflict.other_action) == ("1", "commit")
    assert [attempt.outcome for attempt in result.attempts] == [Outcome.ABORTED, Outcome.COMMITTED]
    assert (result.retries, result.attempts[-1].instant) == (1, result.instant)
    [kept] = list_conflicts(ours.table, last=9).conflicts
    lost_ms = result.attempts[0].ended_ms - result.attempts[0].began_ms
    assert (kept.instant, kept.other, kept.found) == (result.instant, conflict.other, "at publish")
    assert kept.lost_ms == lost_ms > 0
    assert kept.writer == kept.other_writer == conflict.other_writer  # both of this process
    assert rows_of(ours) == [("a", "1", 2, 2.0), ("b", "1", 2, 2.0), ("c", "2", 1, 1.0)]
    aborted = result.attempts[0].instant
    assert not [file for file in Path(path).rglob("*.parquet") if aborted in file.name]
    assert not (Path(path) / ".hoodie/lock").exists()


def test_a_commit_names_the_job_that_made_it(spark: Any, create: Create, load: Load, frame: Frame) -> None:
    ours, context = create(options=SHARED), spark.sparkContext
    ours.bulk_insert(frame(FIRST))
    load({**SHARED, "hoodie.write.lock.app_id": "nightly"}).bulk_insert(frame(FIRST))
    first, second = (one.writer.partition(" (pid ")[0] for one in list_activity(ours.table, last=2))
    assert (first, second) == (f"{context.appName} ({context.applicationId})", "nightly")


def test_writers_of_different_file_groups_do_not_disturb_each_other(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    ours = create(options=SHARED)
    ours.bulk_insert(frame(FIRST))
    after_job(lambda: load(SHARED).upsert(frame([("c", "2", 2, 2.0)])))
    assert ours.upsert(frame([("a", "1", 2, 2.0)])).conflicts == ()
    assert rows_of(ours) == [("a", "1", 2, 2.0), ("b", "1", 1, 1.0), ("c", "2", 2, 2.0)]


@pytest.mark.parametrize("first", ["upsert", "insert", "bulk_insert"])
def test_a_key_that_is_new_to_two_writers_is_there_once(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], first: str
) -> None:
    """Their rows go to two new file groups, which no comparison of file groups can see."""
    ours = create(options=SHARED)
    ours.bulk_insert(frame(FIRST))
    theirs: list[Any] = []
    write = getattr(load(SHARED), first)
    after_job(lambda: theirs.append(write(frame([("n", "9", 2, 2.0), ("m", "9", 2, 2.0)]))))
    result = ours.upsert(frame([("n", "9", 3, 3.0), ("o", "9", 3, 3.0)]))
    [conflict] = result.conflicts
    assert (conflict.other, conflict.keys, conflict.groups) == (theirs[0].instant, ("n",), ())
    assert "both change record key 'n'" in str(conflict)
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert rows_of(ours)[3:] == [("m", "9", 2, 2.0), ("n", "9", 3, 3.0), ("o", "9", 3, 3.0)]


def test_new_keys_that_differ_do_not_disturb_each_other(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    """Neither does one key in two partitions."""
    ours = create(options=SHARED)
    after_job(lambda: load(SHARED).upsert(frame([("m", "9", 2, 2.0), ("n", "8", 2, 2.0)])))
    assert ours.upsert(frame([("n", "9", 3, 3.0)])).conflicts == ()
    assert rows_of(ours, "id", "month") == [("m", "9"), ("n", "8"), ("n", "9")]


def test_two_inserts_that_drop_duplicates_bring_a_key_once(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    options = {**SHARED, "hoodie.datasource.write.insert.drop.duplicates": "true"}
    ours = create(options=options)
    after_job(lambda: load(options).insert(frame([("n", "9", 2, 2.0)])))
    assert ours.insert(frame([("n", "9", 3, 3.0)])).retries == 1
    assert rows_of(ours) == [("n", "9", 2, 2.0)]


def test_two_writers_that_make_the_same_new_bucket_lose_and_double_nothing(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    create(options={**SHARED, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    ours = load(SHARED)  # the table knows its index
    after_job(lambda: load(SHARED).upsert(frame([("m", "9", 2, 2.0)])))
    assert ours.upsert(frame([("n", "9", 3, 3.0)])).retries == 1
    assert rows_of(ours) == [("m", "9", 2, 2.0), ("n", "9", 3, 3.0)]
    assert ours.upsert(frame([("m", "9", 4, 4.0)])).rows_updated == 1


def test_an_insert_writes_only_those_rows_again_whose_small_file_another_changed(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], path: str
) -> None:
    """Its rows of partition 1 went to the file of a and b, which changes meanwhile; those of 2 and 9 stay."""
    none = {**SHARED, "hoodie.write.num.retries.on.conflict.failures": "0"}
    ours = create(options=none)
    ours.bulk_insert(frame(FIRST))
    theirs: list[Any] = []
    staged: set[int] = set()

    def change() -> None:
        theirs.append(load(SHARED).upsert(frame([("b", "1", 2, 2.0)])))
        staged.update(file.stat().st_ino for file in Path(path, ".hoodie/.hudi_locks/staging").glob("*/*"))

    after_job(change)
    result = ours.insert(frame([("k", "1", 1, 1.0), ("l", "2", 1, 1.0), ("m", "9", 1, 1.0)]))
    [conflict] = result.avoided
    assert [one.found for one in list_conflicts(ours.table, last=9).conflicts] == ["rewritten"]
    assert (result.retries, conflict.other, conflict.partition) == (0, theirs[0].instant, "1")
    assert rows_of(ours, "id", "ts") == [("a", 1), ("b", 2), ("c", 1), ("k", 1), ("l", 1), ("m", 1)]
    kept = {file.stat().st_ino for file in Path(path).glob("[29]/*.parquet") if result.instant in file.name}
    assert len(kept) == 2
    assert kept < staged
    ours_in_1 = [file.name for file in Path(path).glob("1/*.parquet") if result.instant in file.name]
    assert len(ours_in_1) == 1
    assert not ours_in_1[0].startswith(str(conflict.file_id))
    assert result.file_groups == 3


def test_without_retries_left_the_conflict_is_raised_with_its_facts(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    ours = create(options={**SHARED, "hoodie.write.num.retries.on.conflict.failures": "0"})
    ours.bulk_insert(frame(FIRST))
    theirs: list[Any] = []
    after_job(lambda: theirs.append(load(SHARED).delete(frame([("b", "1")], "id string, month string"))))
    with pytest.raises(WriteConflict, match=r"both change file group .* of partition '1'") as caught:
        ours.upsert(frame([("a", "1", 2, 2.0)]))
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.other, error.partition, error.other_action) == (theirs[0].instant, "1", "commit")
    assert error.instant != error.other
    assert error.file_id == error.groups[0].file_id
    found = list_conflicts(ours.table, last=9)
    assert found.given_up == 1
    assert [(one.instant, one.other, one.file_id, one.found, one.gave_up) for one in found.conflicts] == [
        (error.instant, error.other, error.file_id, "at publish", True)
    ]
    assert rows_of(ours) == [FIRST[0], FIRST[2]]
    assert ours.upsert(frame([("a", "1", 2, 2.0)])).retries == 0


@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
def test_two_threads_that_publish_at_once_both_get_through(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    options = {**SHARED, **shared_table.BY_INDEX[index]}
    table = create(options=options)
    table.bulk_insert(frame(FIRST))
    barrier, run_job, met = threading.Barrier(2), Writer._run_job, set[int]()

    def meet_once(self: Writer, *args: Any) -> Any:
        found = run_job(self, *args)
        if threading.get_ident() not in met:
            met.add(threading.get_ident())
            barrier.wait(DEADLINE_S)
        return found

    monkeypatch.setattr(Writer, "_run_job", meet_once)
    changes = [frame([("a", "1", 2, 2.0), ("n", "1", 1, 0.0)]), frame([("b", "1", 2, 2.0), ("m", "1", 1, 0.0)])]
    results: list[Any] = []
    threads = [threading.Thread(target=lambda c=c: results.append(load(options).upsert(c))) for c in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    # the one that began first and comes last begins anew, the other one goes on
    assert sorted(result.retries + len(result.avoided) for result in results) == [0, 1]
    assert rows_of(table, "id", "ts") == [("a", 2), ("b", 2), ("c", 1), ("m", 1), ("n", 1)]
    assert all(result.outcome is Outcome.COMMITTED for result in results)


def test_one_object_writes_one_frame_at_a_time(create: Create, frame: Frame, after_job: Callable[..., None]) -> None:
    table = create()
    refused: list[BaseException] = []

    def write_again() -> None:
        with pytest.raises(WriteError, match="load a second object") as caught:
            table.upsert(frame(FIRST))
        refused.append(caught.value)

    after_job(write_again)
    table.upsert(frame(FIRST))
    assert len(refused) == 1


def test_two_objects_in_one_process_share_a_table_where_several_writers_are_meant(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    ours = create(options=SHARED)
    after_job(lambda: load(SHARED).upsert(frame(FIRST[2:])))
    assert ours.upsert(frame(FIRST[:2])).retries == 0
    assert rows_of(ours) == FIRST


def test_two_objects_that_are_single_writers_do_not(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None]
) -> None:
    ours = create()
    refused: list[SecondWriterRefused] = []

    def write_beside() -> None:
        with pytest.raises(SecondWriterRefused, match="the same lock provider") as caught:
            load({}).upsert(frame(FIRST[2:]))
        refused.append(caught.value)

    after_job(write_beside)
    result = ours.upsert(frame(FIRST[:2]))
    assert [error.other for error in refused] == [result.instant]
    load({}).upsert(frame(FIRST[2:]))
    assert rows_of(ours) == FIRST


def test_a_lock_that_somebody_else_holds_is_waited_for_and_named(
    create: Create, frame: Frame, path: str, files_of: Callable[[], dict[str, bytes]]
) -> None:
    options = {**SHARED, "hoodie.write.lock.wait_time_ms": "50", "hoodie.write.lock.client.num_retries": "0"}
    table = create(options=options)
    lock = Path(path) / ".hoodie/lock"
    lock.write_text("")
    before = files_of()
    with pytest.raises(AcquireTimeout, match="lock"):
        table.upsert(frame(FIRST))
    assert files_of() == before
    lock.unlink()
    assert table.upsert(frame(FIRST)).rows_inserted == 3


def test_an_instant_that_somebody_rolled_back_is_no_commit(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: Callable[..., None], path: str
) -> None:
    """Another writer takes this one for dead, since its heartbeat is old."""
    table = create(options=SHARED)
    table.upsert(frame(FIRST[:1]))

    def bury() -> None:
        for file in Path(path, ".hoodie/.heartbeat").iterdir():
            os.utime(file, (1_600_000_000, 1_600_000_000))
        load(SHARED).upsert(frame([("c", "2", 1, 1.0)]))

    after_job(bury)
    with pytest.raises(WriteError, match=r"rolled"):
        table.upsert(frame([("z", "9", 1, 1.0)]))
    assert rows_of(table) == [FIRST[0], FIRST[2]]
