from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from old_archive_files import GOLDEN as OLD_ARCHIVE

from hudi_locks.clock import ManualClock, SystemClock
from hudi_locks.errors import DamagedTable, TableError
from hudi_locks.format import FIRST_TIME, ArchiveRow, BaseFileName, CommitMetadata, Instant, State, WriteStat
from hudi_locks.storage import LocalStorage, MemoryStorage
from hudi_locks.table import (
    Changes,
    Table,
    TableConfig,
    create_partition_metadata,
    files_changed,
    latest_base_files,
    list_partitions,
    slices_changed,
)
from hudi_locks.timeline import LAYOUT_1, Timeline, create_instant
from hudi_locks.timeline.archive import ArchivedInstant, list_archived_since
from hudi_locks.timeline.history import ArchivedHistory

META = "_hoodie_"
COW = ["v6_cow", "v8_cow", "v8_cow_unpartitioned", "v9_cow", "v8_cow_bucket"]


NOTHING = Changes((), ())


def time(n: int) -> str:
    return f"202611210000{n:05d}"


@pytest.fixture
def table() -> Table:
    return Table.create(MemoryStorage(ManualClock()), TableConfig("t", ("id",), ("p",), hive_style=True))


def write(table: Table, n: int, *groups: str, partition: str = "p=1") -> CommitMetadata:
    """Base files of these groups by the write begun at `n`."""
    create_partition_metadata(table.storage, partition, instant=time(n))
    paths = [f"{partition}/{BaseFileName(group, time(n))}" for group in groups]
    for path in paths:
        assert table.storage.create_if_absent(path, b"rows")
    return CommitMetadata.of(
        [WriteStat(partition, g, p) for g, p in zip(groups, paths, strict=True)], "UPSERT", schema="{}"
    )


def complete(table: Table, n: int, completion: int, metadata: CommitMetadata, action: str = "commit") -> None:
    instant = Instant(time(n), action, State.COMPLETED, time(completion))
    data = metadata.encode(action, layout_version=2)
    assert create_instant(table.storage, table.layout, instant=instant, data=data)


def begin(table: Table, n: int) -> None:
    assert create_instant(table.storage, table.layout, instant=Instant(time(n), "commit", State.INFLIGHT))


def seen(table: Table, **options: str) -> list[tuple[str, str]]:
    files = latest_base_files(table.storage, table.timeline(), **options)
    return [(file.file_id, file.instant[-2:].lstrip("0")) for file in files]


def test_the_newest_completed_file_of_each_group_is_seen(table: Table) -> None:
    complete(table, 1, 2, write(table, 1, "a-0", "b-0"))
    complete(table, 3, 4, write(table, 3, "a-0"))
    begin(table, 5)
    write(table, 5, "b-0", "c-0")
    assert seen(table) == [("a-0", "3"), ("b-0", "1")]


def test_files_of_archived_commits_are_seen(table: Table) -> None:
    write(table, 1, "a-0")
    complete(table, 3, 4, write(table, 3, "b-0"))
    write(table, 5, "c-0")
    assert seen(table) == [("a-0", "1"), ("b-0", "3")]


def test_a_write_that_came_after_the_timeline_with_an_older_time_is_not_taken_for_archived(table: Table) -> None:
    complete(table, 3, 4, write(table, 3, "a-0"))
    timeline = table.timeline()
    begin(table, 2)
    write(table, 2, "b-0")
    write(table, 1, "c-0")
    files = latest_base_files(table.storage, timeline)
    assert [file.file_id for file in files] == ["a-0", "c-0"]


def test_an_empty_timeline_shows_nothing(table: Table) -> None:
    write(table, 1, "a-0")
    assert seen(table) == []


def test_snapshots_of_the_past_go_by_completion_or_by_begin(table: Table) -> None:
    complete(table, 1, 2, write(table, 1, "a-0"))
    complete(table, 3, 9, write(table, 3, "a-0"))
    complete(table, 4, 5, write(table, 4, "b-0"))
    assert seen(table, as_of=time(5)) == [("a-0", "1"), ("b-0", "4")]
    assert seen(table, as_of=time(9)) == [("a-0", "3"), ("b-0", "4")]
    assert seen(table, as_of_requested=time(3)) == [("a-0", "3")]
    assert seen(table, as_of=time(1)) == []


def test_replaced_groups_are_hidden_from_the_replacing_commit_on(table: Table) -> None:
    complete(table, 1, 2, write(table, 1, "a-0", "b-0"))
    new = write(table, 3, "c-0")
    replacing = CommitMetadata.of(new.stats, "CLUSTER", schema="{}", replaced_file_ids={"p=1": ("a-0",)})
    complete(table, 3, 4, replacing, "replacecommit")
    assert seen(table) == [("b-0", "1"), ("c-0", "3")]
    assert seen(table, as_of=time(3)) == [("a-0", "1"), ("b-0", "1")]


def test_equal_ids_in_two_partitions_are_two_groups(table: Table) -> None:
    complete(table, 1, 2, write(table, 1, "a-0"))
    complete(table, 3, 4, write(table, 3, "a-0", partition="p=2"))
    files = latest_base_files(table.storage, table.timeline())
    assert [(file.partition, file.instant) for file in files] == [("p=1", time(1)), ("p=2", time(3))]
    only = latest_base_files(table.storage, table.timeline(), partitions=["p=2", "p=7"])
    assert [(file.partition, file.size) for file in only] == [("p=2", 4)]


def test_partitions_are_found_at_any_depth_and_other_folders_are_not(table: Table) -> None:
    for partition in ("a/b/c", "a/d", "e"):
        create_partition_metadata(table.storage, partition, instant=time(1))
    table.storage.replace("notes/readme.txt", b"")
    assert list_partitions(table.storage) == ("a/b/c", "a/d", "e")


def test_no_folder_is_listed_twice_where_all_partitions_are_read(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    complete(table, 1, 2, write(table, 1, "a-0", partition="a/b"))
    complete(table, 3, 4, write(table, 3, "b-0", partition="a/c"))
    for partition in ("a/b", "a/c"):
        create_partition_metadata(table.storage, partition, instant=time(1))
    listed: list[str] = []
    list_folder = type(table.storage).list

    def spy(self: Any, folder: str) -> Any:
        listed.append(folder)
        return list_folder(self, folder)

    monkeypatch.setattr(type(table.storage), "list", spy)
    assert seen(table) == [("a-0", "1"), ("b-0", "3")]
    assert sorted(folder for folder in listed if not folder.startswith(".hoodie")) == ["", "a", "a/b", "a/c"]


def test_changes_lie_between_two_completion_times(table: Table) -> None:
    complete(table, 1, 2, write(table, 1, "a-0"))
    complete(table, 3, 9, write(table, 3, "a-0"))
    complete(table, 4, 5, write(table, 4, "b-0"))
    begin(table, 6)
    changes = files_changed(table.storage, table.timeline(), begin=time(2), end=time(5))
    assert changes.instants == (time(4),)
    assert [file.file_id for file in changes.files] == ["b-0"]
    changes = files_changed(table.storage, table.timeline(), begin=time(0))
    assert changes.instants == (time(1), time(4), time(3))
    assert [(file.file_id, file.instant) for file in changes.files] == [("a-0", time(3)), ("b-0", time(4))]
    assert files_changed(table.storage, table.timeline(), begin=time(9)).files == ()


def test_changes_leave_out_what_was_replaced_meanwhile(table: Table) -> None:
    complete(table, 1, 2, write(table, 1, "a-0"))
    new = write(table, 3, "b-0")
    replacing = CommitMetadata.of(new.stats, "CLUSTER", schema="{}", replaced_file_ids={"p=1": ("a-0",)})
    complete(table, 3, 4, replacing, "replacecommit")
    changes = files_changed(table.storage, table.timeline(), begin=time(0))
    assert [file.file_id for file in changes.files] == ["b-0"]


def archive(table: Table, *numbers: int) -> None:
    """Move what was begun at these times to the history."""
    timeline = table.timeline()
    for n in numbers:
        instant = timeline.get(time(n))
        assert instant is not None
        data = table.storage.read(timeline.paths[instant])
        assert data is not None
        row = ArchiveRow(instant.requested, str(instant.completion), instant.action, data)
        ArchivedHistory(table.storage, table.layout).add([row])
        table.storage.delete(timeline.paths[instant])


def test_changes_that_are_archived_in_part_are_read_from_the_history(table: Table) -> None:
    complete(table, 1, 2, write(table, 1, "a-0", "b-0"))
    complete(table, 3, 4, write(table, 3, "b-0"))
    complete(table, 5, 6, write(table, 5, "a-0"))
    whole = [files_changed(table.storage, table.timeline(), begin=time(begin)) for begin in (0, 2, 3, 4)]
    end = files_changed(table.storage, table.timeline(), begin=time(0), end=time(4))
    archive(table, 1, 3)
    assert [files_changed(table.storage, table.timeline(), begin=time(begin)) for begin in (0, 2, 3, 4)] == whole
    assert files_changed(table.storage, table.timeline(), begin=time(0), end=time(4)) == end
    assert [files_changed(table.storage, table.timeline(), begin=text) for text in ("0", "2027")] == [whole[0], NOTHING]


def test_an_archived_write_that_was_completed_after_the_first_active_one_is_not_forgotten(table: Table) -> None:
    complete(table, 1, 8, write(table, 1, "a-0"))
    complete(table, 3, 4, write(table, 3, "b-0"))
    archive(table, 1)
    changes = files_changed(table.storage, table.timeline(), begin=time(5))
    assert (changes.instants, [file.file_id for file in changes.files]) == ((time(1),), ["a-0"])


def test_archived_changes_whose_files_were_cleaned_are_refused(table: Table) -> None:
    complete(table, 1, 2, write(table, 1, "a-0"))
    complete(table, 3, 4, write(table, 3, "a-0"))
    complete(table, 5, 6, write(table, 5, "b-0"))
    archive(table, 1)
    path = f"p=1/{BaseFileName('a-0', time(1))}"
    table.storage.delete(path)
    with pytest.raises(TableError, match=r"are archived, and .* was cleaned") as caught:
        files_changed(table.storage, table.timeline(), begin=time(0), end=time(2))
    assert (caught.value.first_active, caught.value.path) == (time(3), path)
    newer = files_changed(table.storage, table.timeline(), begin=time(0))
    assert [file.instant for file in newer.files] == [time(3), time(5)]


def put_old_archive(storage: MemoryStorage) -> tuple[Timeline, list[ArchivedInstant]]:
    """The archive of a table of version 6, and the files that its commits wrote."""
    storage.replace(f"{LAYOUT_1.archive}/.commits_.archive.1_1-0-1", OLD_ARCHIVE.read_bytes())
    archived = list_archived_since(storage, LAYOUT_1, completed_after=FIRST_TIME)
    for one in archived:
        for stat in CommitMetadata.decode(one.metadata, "").stats:
            assert stat.path
            storage.replace(stat.path, bytes(stat.file_size_bytes))
    return Timeline.load(storage, LAYOUT_1), archived


def test_changes_of_version_6_that_are_archived_are_read_from_its_archive() -> None:
    storage = MemoryStorage(SystemClock())
    timeline, archived = put_old_archive(storage)
    first, second = archived
    whole = files_changed(storage, timeline, begin="0")
    assert whole.instants == (first.requested, second.requested)
    assert {file.instant for file in whole.files} == {second.requested}
    later = files_changed(storage, timeline, begin=first.completion)
    assert (later.instants, later.files) == ((second.requested,), whole.files)
    assert slices_changed(storage, timeline, begin="0").instants == whole.instants
    early = files_changed(storage, timeline, begin="0", end=first.completion)
    assert {file.instant for file in early.files} == {first.requested}
    storage.delete(early.files[0].path)
    with pytest.raises(TableError, match=r"are archived, and .* was cleaned"):
        files_changed(storage, timeline, begin="0", end=first.completion)
    assert files_changed(storage, timeline, begin="0") == whole


def test_an_archive_of_version_6_that_cannot_be_read_is_named() -> None:
    storage = MemoryStorage(SystemClock())
    storage.replace(f"{LAYOUT_1.archive}/.commits_.archive.1_1-0-1", b"archived")
    with pytest.raises(DamagedTable, match=r"\.commits_\.archive\.1_1-0-1"):
        files_changed(storage, Timeline.load(storage, LAYOUT_1), begin=time(1))


def test_a_damaged_commit_is_named_not_skipped(table: Table) -> None:
    instant = Instant(time(1), "replacecommit", State.COMPLETED, time(2))
    create_instant(table.storage, table.layout, instant=instant, data=b"Obj\x01garbage")
    for read in (lambda: seen(table), lambda: files_changed(table.storage, table.timeline(), begin=time(0))):
        with pytest.raises(DamagedTable, match=f"{time(1)}_{time(2)}.replacecommit"):
            read()


def rows_of(storage: LocalStorage, paths: list[str]) -> pa.Table:
    return pa.concat_tables(pq.ParquetFile(storage.address(path)).read() for path in paths)


def as_lines(rows: pa.Table) -> list[dict[str, object]]:
    ordered = rows.sort_by([("_hoodie_partition_path", "ascending"), ("_hoodie_record_key", "ascending")])
    plain = ordered.select([name for name in rows.column_names if not name.startswith(META)])
    return list(plain.to_pylist())


@pytest.mark.parametrize("name", COW)
def test_rows_of_the_jvm_are_the_expected_ones(
    golden: Callable[[str], LocalStorage], golden_rows: Callable[[str], str], name: str
) -> None:
    storage = golden(name)
    files = latest_base_files(storage, Table.load(storage).timeline())
    expected = [json.loads(line) for line in golden_rows(name).splitlines()]
    for row in expected:
        row["at"] = datetime.fromisoformat(row["at"])
    assert as_lines(rows_of(storage, [file.path for file in files])) == expected
    assert all(storage.address(file.path).endswith(f"_{file.instant}.parquet") for file in files)


@pytest.mark.parametrize("name", ["v8_cow", "v9_cow", "v8_cow_bucket"])
def test_changes_of_the_jvm_are_the_rows_of_its_upsert(golden: Callable[[str], LocalStorage], name: str) -> None:
    storage = golden(name)
    timeline = Table.load(storage).timeline()
    insert, upsert, _ = timeline.completed()
    changes = files_changed(storage, timeline, begin=insert.completion or "", end=upsert.completion)
    rows = rows_of(storage, [file.path for file in changes.files])
    new = rows.filter(pc.is_in(rows.column("_hoodie_commit_time"), value_set=pa.array(changes.instants)))
    assert new.num_rows == 7
    assert all(storage.stat(file.path).size == file.size for file in changes.files)  # type: ignore[union-attr]
