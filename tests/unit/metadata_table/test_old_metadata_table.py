"""The metadata table of a table of version 6, as JVM Hudi 1.2.0 makes it: its logs are named by base files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import (
    BaseFileName,
    CommitMetadata,
    Instant,
    LogFileName,
    MetadataPartition,
    State,
    WriteStat,
    avro_schema,
)
from hudi_locks.format.compaction_plan import CompactionOperation, CompactionPlan
from hudi_locks.format.log_block import decode_blocks
from hudi_locks.metadata_table import OLD_METADATA_LAYOUT, DeltaCommits, MetadataTable, plan_delta_commit
from hudi_locks.metadata_table.metadata_table import INDEXES_PATH
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table, list_data_files
from hudi_locks.timeline import create_instant

T = "20261129190000000"
FILES, STATS = MetadataPartition.FILES, MetadataPartition.COLUMN_STATS


@pytest.fixture
def storage(golden: Callable[[str], LocalStorage]) -> LocalStorage:
    return golden("v6_metadata_table")


def open_it(storage: LocalStorage) -> MetadataTable:
    found = MetadataTable.of(storage, Table.load(storage).config)
    assert found is not None
    return found


def read_files(storage: LocalStorage) -> dict[str, set[str]]:
    view = open_it(storage).view(Table.load(storage).timeline())
    return {path: set(names) for path, names in view.files.items()}


def list_files(storage: LocalStorage) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for file in list_data_files(storage).bases:
        found.setdefault(file.partition, set()).add(file.path.rpartition("/")[2])
    return found


def commit(storage: LocalStorage, requested: str = T) -> tuple[DeltaCommits, list[str]]:
    """A delta commit of a write that made one file, up to its end."""
    table = open_it(storage)
    told = table.view(Table.load(storage).timeline()).describe()
    stat = WriteStat("c0", "new-0", f"c0/new-0_0-0-0_{requested}.parquet", num_writes=2, file_size_bytes=9)
    schema = Table.load(storage).schema(Table.load(storage).timeline())
    assert schema is not None
    written = CommitMetadata.of([stat], "UPSERT", schema=avro_schema(schema, "t"))
    planned = plan_delta_commit(requested, written, replace(told, columns=()))
    commits = DeltaCommits(storage, OLD_METADATA_LAYOUT)
    commits.begin(requested, planned.logs)
    commits.make_logs(planned)
    done = Instant(requested, "deltacommit", State.COMPLETED)
    data = planned.metadata.encode("deltacommit", layout_version=1)
    assert commits.complete(done.file_name(1), data, logs=planned.logs) == [OLD_METADATA_LAYOUT.path(done)]
    return commits, list(planned.logs)


def test_it_names_the_files_that_are_there(storage: LocalStorage) -> None:
    assert read_files(storage) == list_files(storage)
    view = open_it(storage).view(Table.load(storage).timeline())
    assert "ts" in open_it(storage).indexed_columns
    assert {record.statistics.column for record in view.read(STATS).values() if record.statistics} >= {"id", "ts"}


def test_our_log_comes_behind_those_of_the_jvm_and_names_its_write_by_its_token(storage: LocalStorage) -> None:
    commits, logs = commit(storage)
    (path,) = logs
    assert path.rpartition("/")[2] == ".files-0000-0_00000000000000010.log.5_20261129-190000000-6"
    assert {block.instant for block in decode_blocks(storage.read(path) or b"", path)} == {T}
    inflight = storage.read(OLD_METADATA_LAYOUT.path(Instant(T, "deltacommit", State.INFLIGHT)))
    (told,) = CommitMetadata.decode(inflight or b"", "inflight").stats
    assert (told.file_id, told.prev_commit, told.path) == ("files-0000-0", "00000000000000010", None)
    assert f"new-0_0-0-0_{T}.parquet" in read_files(storage)["c0"]
    assert commits.take_back(T) == {path}
    assert read_files(storage) == list_files(storage)
    assert not [name for name in storage.list_names(OLD_METADATA_LAYOUT.folder) if name.startswith(T)]


def test_a_delta_commit_of_a_write_that_is_under_way_does_not_count(storage: LocalStorage) -> None:
    layout = Table.load(storage).layout
    commit(storage)
    create_instant(storage, layout, instant=Instant(T, "commit", State.REQUESTED))
    assert read_files(storage) == list_files(storage)


def test_what_a_jvm_appended_to_our_log_stays_when_ours_is_taken_back(storage: LocalStorage) -> None:
    """As on HDFS."""
    commits, (path,) = commit(storage)
    _, (other,) = commit(storage, "20261129190000001")
    storage.replace(path, (storage.read(path) or b"") + (storage.read(other) or b""))
    assert storage.delete(other)
    assert commits.take_back(T) == set()
    assert storage.exists(path)
    files = read_files(storage)["c0"]
    assert "new-0_0-0-0_20261129190000001.parquet" in files
    assert f"new-0_0-0-0_{T}.parquet" not in files


def plan_compaction(storage: LocalStorage, group: str) -> str:
    requested = "20261129180000000001"
    operation = CompactionOperation("files", group, "00000000000000010", "", (), 0)
    begun = Instant(requested, "compaction", State.REQUESTED)
    create_instant(storage, OLD_METADATA_LAYOUT, instant=begun, data=CompactionPlan((operation,)).encode())
    return requested


def test_a_log_lies_above_a_compaction_that_is_planned(storage: LocalStorage) -> None:
    requested = plan_compaction(storage, "files-0000-0")
    before = read_files(storage)
    assert before == list_files(storage)
    _, (path,) = commit(storage)
    name = LogFileName.parse(path.rpartition("/")[2])
    assert name is not None
    assert (name.instant, name.version) == (requested, 1)
    assert f"new-0_0-0-0_{T}.parquet" in read_files(storage)["c0"]


@pytest.mark.parametrize(("group", "is_done"), [("files-0000-0", False), ("other-0000-0", True)])
def test_it_is_not_completed_once_a_compaction_would_leave_its_logs_out(
    storage: LocalStorage, group: str, is_done: bool
) -> None:
    commits = DeltaCommits(storage, OLD_METADATA_LAYOUT)
    path = ".hoodie/metadata/files/.files-0000-0_00000000000000010.log.5_20261129-190000000-6"
    commits.begin(T, [path])
    storage.create_if_absent(path, b"")
    plan_compaction(storage, group)
    assert (commits.complete(f"{T}.deltacommit", b"{}", logs=[path]) is not None) is is_done


def test_parts_that_are_not_kept_up_to_date_are_refused_by_name(storage: LocalStorage) -> None:
    table = open_it(storage)
    with pytest.raises(UnsupportedTable, match="part secondary_index, which this package does not keep"):
        replace(table, names=table.names | {"secondary_index"}).describe_indexed()
    storage.delete(INDEXES_PATH)
    with pytest.raises(UnsupportedTable, match="part column_stats without saying of which columns"):
        replace(table).describe_indexed()


def test_logs_of_the_record_index_are_named_before_the_lock(storage: LocalStorage) -> None:
    """And lie above a compaction that is planned by then."""
    table = replace(open_it(storage), names=frozenset({"files", "record_index"}))
    group, base = "record-index-0000-0", "20261129170000000001"
    folder = ".hoodie/metadata/record_index"
    storage.replace(f"{folder}/{BaseFileName(group, base, extension='hfile')}", b"")
    for version in (1, 2):
        storage.replace(f"{folder}/{LogFileName(group, base, version)}", b"")
    indexed = table.describe_indexed()
    assert indexed.key_groups.ids == (group,)
    assert str(indexed.name_key_log(group, T)) == f".{group}_{base}.log.3_20261129-190000000-6"
    plan = CompactionPlan((CompactionOperation("record_index", group, base, "", (), 0),))
    begun = Instant("20261129180000000001", "compaction", State.REQUESTED)
    create_instant(storage, OLD_METADATA_LAYOUT, instant=begun, data=plan.encode())
    above = table.describe_indexed()
    assert str(above.name_key_log(group, T)) == f".{group}_{begun.requested}.log.1_20261129-190000000-6"
    assert above == indexed, "another log of somebody is no change of what is indexed"
