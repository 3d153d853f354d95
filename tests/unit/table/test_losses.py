"""Data files that are gone or cut off are noticed before anything is shown or built on; what a service took is not."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import pytest
from sized_writes import PARTITION, CountingStorage, Writes, made_in, time

from hudi_locks.errors import DamagedTable, TableError
from hudi_locks.format import BaseFileName, CleanPlan, Instant, LogFileName, State
from hudi_locks.storage import LocalStorage
from hudi_locks.table import (
    OvertakenSnapshot,
    Table,
    files_changed,
    latest_base_files,
    latest_file_slices,
    refuse_removed,
    slices_changed,
)
from hudi_locks.timeline import Timeline, create_instant

GOLDEN = [
    "v6_cow", "v8_cow", "v8_cow_bucket", "v8_cow_unpartitioned", "v8_mor", "v8_mor_compacted", "v8_mor_nbcc", "v9_cow",
    "v9_mor",
]  # fmt: skip


@pytest.fixture
def writes() -> Writes:
    return made_in(CountingStorage())


def refused(writes: Writes, path: str, n: int, **limits: str) -> DamagedTable:
    with pytest.raises(DamagedTable, match="hudi-locks verify") as caught:
        writes.slices(**limits)
    assert (caught.value.path, caught.value.instant) == (path, time(n))
    assert pickle.loads(pickle.dumps(caught.value)).path == path
    return caught.value


# ---- lost and cut off ----
def test_a_lost_base_file_of_the_last_commit_is_not_the_version_before(writes: Writes) -> None:
    writes.put(1, "a-0", "b-0")
    [path] = writes.put(3, "a-0")
    writes.storage.delete(path)
    assert refused(writes, path, 3).found is None
    with pytest.raises(DamagedTable, match=path):
        latest_base_files(writes.storage, writes.table.timeline(), partitions=[PARTITION])


def test_a_lost_file_of_an_older_commit_whose_group_nobody_wrote_since_is_noticed(writes: Writes) -> None:
    first, _ = writes.put(1, "a-0", "b-0")
    writes.put(3, "b-0")
    writes.storage.delete(first)
    refused(writes, first, 1)


def test_a_lost_partition_is_noticed(writes: Writes) -> None:
    [path] = writes.put(1, "a-0")
    writes.storage.delete_folder(PARTITION)
    refused(writes, path, 1)


def test_a_base_file_that_is_empty_or_of_another_size_is_noticed(writes: Writes) -> None:
    [path] = writes.put(1, "a-0")
    for data in (b"", b"012345678", b"01234567890"):
        writes.storage.replace(path, data)
        assert refused(writes, path, 1).facts["found"] == len(data)
    writes.storage.replace(path, b"9876543210")
    assert len(writes.slices()) == 1


@pytest.mark.parametrize("data", [None, b"", b"012345678"])
def test_a_log_that_is_gone_or_cut_off_is_noticed(writes: Writes, data: bytes | None) -> None:
    writes.put(1, "a-0", action="deltacommit")
    logs = [path for n in (3, 5) for path in writes.put(n, logs=("a-0",), action="deltacommit")]
    assert len(writes.slices()) == 1
    for path, n in zip(logs, (3, 5), strict=True):
        writes.storage.delete(path) if data is None else writes.storage.replace(path, data)
        refused(writes, path, n)
        writes.storage.replace(path, b"0123456789, and more")
    assert len(writes.slices()) == 1


def test_a_snapshot_of_the_past_and_changes_notice_it_too(writes: Writes) -> None:
    [old] = writes.put(1, "a-0")
    writes.put(3, "a-0")
    writes.storage.delete(old)
    assert len(writes.slices()) == 1
    refused(writes, old, 1, as_of=time(2))
    refused(writes, old, 1, as_of_requested=time(1))
    with pytest.raises(DamagedTable, match=old):
        files_changed(writes.storage, writes.table.timeline(), begin=time(0), end=time(2))


def test_changes_of_logs_notice_it(writes: Writes) -> None:
    [log] = writes.put(1, logs=("a-0",), action="deltacommit")
    writes.storage.replace(log, b"")
    for end in ({}, {"end": time(9)}):
        with pytest.raises(DamagedTable, match="has 0 bytes"):
            slices_changed(writes.storage, writes.table.timeline(), begin=time(0), **end)


def test_an_empty_file_of_an_archived_write_is_noticed(writes: Writes) -> None:
    writes.storage.replace(f"{PARTITION}/{BaseFileName('b-0', time(1))}", b"")
    writes.put(3, "a-0")
    refused(writes, f"{PARTITION}/{BaseFileName('b-0', time(1))}", 1)


# ---- taken away on purpose ----
def test_superseded_files_may_be_cleaned(writes: Writes) -> None:
    [old] = writes.put(1, "a-0")
    writes.put(3, "a-0")
    writes.clean(5, old)
    assert len(writes.slices()) == 1
    timeline = writes.table.timeline()
    limits = {"as_of": time(2)}
    shown = latest_file_slices(writes.storage, timeline, **limits)  # type: ignore[arg-type]
    with pytest.raises(TableError, match="was cleaned"):
        refuse_removed(writes.storage, timeline, shown, completed=time(2))
    with pytest.raises(TableError, match="was cleaned") as caught:
        files_changed(writes.storage, timeline, begin=time(0), end=time(2))
    assert not isinstance(caught.value, DamagedTable)


def test_logs_below_a_compacted_base_file_may_be_cleaned(writes: Writes) -> None:
    logs = [path for n in (1, 3) for path in writes.put(n, logs=("a-0",), action="deltacommit")]
    writes.put(5, "a-0")
    [on_top] = writes.put(2, logs=("a-0",), action="deltacommit", completion=8)
    writes.clean(9, *logs)
    assert len(writes.slices()) == 1
    writes.storage.delete(on_top)
    refused(writes, on_top, 2)


def test_replaced_file_groups_may_be_cleaned(writes: Writes) -> None:
    old = writes.put(1, "a-0", "b-0")
    writes.put(3, "c-0", action="replacecommit", ends=("a-0", "b-0"))
    for path in old:
        writes.storage.delete(path)
    assert [piece.file_id for piece in writes.slices()] == ["c-0"]  # type: ignore[attr-defined]


def test_a_clean_that_is_under_way_is_believed(writes: Writes) -> None:
    [path] = writes.put(1, "a-0")
    plan = CleanPlan(None, "", "K", {PARTITION: (f"/t/{path}",)})
    instant = Instant(time(5), "clean", State.REQUESTED)
    create_instant(writes.storage, writes.table.layout, instant=instant, data=plan.encode())
    writes.storage.delete(path)
    assert writes.slices() == ()


# ---- others at work ----
def test_a_commit_and_a_clean_between_timeline_and_listing_are_no_damage(writes: Writes) -> None:
    [old] = writes.put(1, "a-0")
    timeline = writes.table.timeline()

    def overtake() -> None:
        writes.put(3, "a-0")
        writes.clean(5, old)

    writes.storage.after_list[PARTITION] = overtake
    assert latest_file_slices(writes.storage, timeline, partitions=[PARTITION]) == ()
    with pytest.raises(OvertakenSnapshot, match="load the timeline again"):
        latest_file_slices(writes.storage, timeline, partitions=[PARTITION], refuses_overtaken=True)
    assert len(latest_file_slices(writes.storage, writes.table.timeline(), refuses_overtaken=True)) == 1


def test_a_commit_that_is_undone_between_timeline_and_listing_is_no_damage(writes: Writes) -> None:
    writes.put(1, "a-0")
    [new] = writes.put(3, "a-0")
    timeline = writes.table.timeline()
    writes.storage.delete(timeline.paths[timeline.completed()[-1]])
    writes.storage.delete(new)
    assert [piece.barrier for piece in latest_file_slices(writes.storage, timeline)] == [time(1)]
    with pytest.raises(OvertakenSnapshot):
        files_changed(writes.storage, loaded_before(writes), begin=time(0))


def loaded_before(writes: Writes) -> Timeline:
    """A timeline that showed a commit which is gone now with its file."""
    [path] = writes.put(7, "d-0")
    timeline = writes.table.timeline()
    files_changed(writes.storage, timeline, begin=time(0))
    writes.storage.after_list[PARTITION] = lambda: writes.storage.delete(timeline.paths[timeline.completed()[-1]])
    writes.storage.delete(path)
    return timeline


def test_pending_writes_and_empty_files_of_failed_tasks_are_no_damage(writes: Writes) -> None:
    writes.put(1, "a-0")
    writes.begin(3)
    writes.storage.replace(f"{PARTITION}/{BaseFileName('a-0', time(3))}", b"")
    writes.storage.replace(f"{PARTITION}/{LogFileName('a-0', time(1), write_token='9-9-9')}", b"")
    assert [piece.barrier for piece in writes.slices()] == [time(1)]  # type: ignore[attr-defined]


# ---- costs ----
def test_each_commit_is_read_once(writes: Writes) -> None:
    for n in range(1, 40, 2):
        writes.put(n, "a-0")
    writes.slices()
    writes.put(41, "a-0")
    del writes.storage.reads[:]
    writes.slices()
    assert [path for path in writes.storage.reads if "commit" in path] == [
        f".hoodie/timeline/{time(41)}_{time(42)}.commit"
    ]


# ---- tables of the JVM ----
def damages(storage: LocalStorage) -> Iterator[tuple[str, bytes | None]]:
    """Each file that a snapshot shows, in the ways in which it can be lost."""
    for piece in latest_file_slices(storage, Table.load(storage).timeline()):
        for path in piece.paths:
            data = storage.read(path)
            assert data
            yield from ((path, None), (path, b""), (path, data[:-1]))


@pytest.mark.parametrize("name", GOLDEN)
def test_each_file_of_a_jvm_table_is_missed(golden: Callable[[str], LocalStorage], name: str) -> None:
    storage = golden(name)
    timeline = Table.load(storage).timeline()
    for path, left in damages(storage):
        sound = storage.read(path)
        assert sound
        storage.delete(path) if left is None else storage.replace(path, left)
        with pytest.raises(DamagedTable) as caught:
            latest_file_slices(storage, timeline)
        assert caught.value.path == path
        storage.replace(path, sound)
    assert latest_file_slices(storage, timeline)
