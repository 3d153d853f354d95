"""Table services from the command line, on a folder of this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_locks.format import BaseFileName, CommitMetadata, LogFileName, WriteStat
from hudi_locks.services import Compaction
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig
from hudi_locks.transaction import Transaction, Transactions

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table of one file group with three versions, and one lock provider."""
    extra = {"hudi_locks.foreign_writers": "false"}
    config = TableConfig("t", ("id",), (), extra=extra)
    table = Table.create(open_storage(str(tmp_path / "table")), config)
    table.storage.create_if_absent(".hoodie_partition_metadata", b"")
    transactions = Transactions(table, None)
    before = "null"
    for _ in range(3):
        tx = transactions.begin("commit", "UPSERT")
        name = str(BaseFileName("g-0", tx.instant))
        table.storage.replace(name, b"rows")
        stats = [WriteStat("", "g-0", name, prev_commit=before)]
        assert tx.publish(CommitMetadata.of(stats, "UPSERT", schema="{}")).is_committed
        before = tx.instant
    return str(tmp_path / "table")


def test_clean_keeps_what_the_options_say_and_tells_what_it_did(hudi_locks: Run, path: str) -> None:
    options = ("-o", "hoodie.write.lock.provider=filesystem", "-o", "hoodie.clean.commits.retained=1")
    status, told, _ = hudi_locks("clean", path, *options)
    assert status == 0
    assert "rolled back 0 failed writes" in told
    assert "removed 1 old files, archived 0 instants" in told
    assert len(list(Path(path).glob("*.parquet"))) == 2
    found = json.loads(hudi_locks("clean", path, *options, "--json")[1])
    assert (found["cleaned"]["instants"], found["cleaned"]["deleted"]) == ([], 0)
    assert found["swept"]["data_files"] == []
    assert found["metadata_table"] == {"compactions": [], "deleted": 0, "archived": 0}


def test_clean_of_no_table_says_so(hudi_locks: Run, tmp_path: Path) -> None:
    status, _, told = hudi_locks("clean", str(tmp_path))
    assert status == 1
    assert "holds no Hudi table" in told


def test_a_slip_in_an_option_is_refused(hudi_locks: Run, path: str) -> None:
    status, _, told = hudi_locks("clean", path, "-o", "hoodie.clean.commits.retaned=1")
    assert status == 2
    assert "did you mean hoodie.clean.commits.retained" in told


def test_a_savepoint_is_made_listed_restored_and_deleted(hudi_locks: Run, path: str) -> None:
    first = min(Path(path).glob("*.parquet")).stem.rsplit("_", 1)[-1]
    assert hudi_locks("savepoint", path, "--instant", first, "--user", "me", "--comments", "why")[1] == (
        f"the savepoint of {first} keeps 1 files\n"
    )
    assert hudi_locks("savepoint", path, "--list")[1] == f"{first}: 1 files, by me: why\n"
    told = hudi_locks("restore", path, "--instant", first)
    assert told == (0, f"{path} is back at {first}: undid 2 writes, removed 2 files\n", "")
    assert len(list(Path(path).glob("*.parquet"))) == 1
    assert hudi_locks("savepoint", path, "--instant", first, "--delete")[1] == f"deleted the savepoint of {first}\n"
    assert hudi_locks("savepoint", path, "--instant", first, "--delete")[0] == 1
    assert hudi_locks("savepoint", path, "--delete")[0] == 2


def test_programs_get_one_json_object_of_each(hudi_locks: Run, path: str) -> None:
    first = Table.load(open_storage(path)).timeline().completed()[0].requested
    made = json.loads(hudi_locks("savepoint", path, "--instant", first, "--user", "me", "--json")[1])
    assert (made["instant"], made["user"], made["files"]) == (first, "me", 1)
    assert json.loads(hudi_locks("savepoint", path, "--list", "--json")[1]) == [made]
    done = json.loads(hudi_locks("restore", path, "--instant", first, "--json")[1])
    assert (done["savepoint"], len(done["undone"]), done["deleted"]) == (first, 2, 2)
    gone = hudi_locks("savepoint", path, "--instant", first, "--delete", "--json")
    assert gone[:2] == (0, f'{{"instant": "{first}"}}\n')
    assert hudi_locks("savepoint", path, "--list", "--json")[1] == "[]\n"
    assert hudi_locks("savepoint", path, "--list")[1] == "there are no savepoints\n"
    assert hudi_locks("accept-times", path, "--json")[1] == '{"newest": null}\n'


def test_a_restore_to_an_unknown_write_is_refused(hudi_locks: Run, path: str) -> None:
    status, _, told = hudi_locks("restore", path, "--instant", "20200101000000000")
    assert status == 1
    assert "no completed write of that time" in told


@pytest.fixture
def logged(tmp_path: Path) -> str:
    """A merge-on-read table of one file group: two logs that were compacted, and one on top."""
    extra = {"hudi_locks.foreign_writers": "false"}
    config = TableConfig("t", ("id",), (), table_type="MERGE_ON_READ", extra=extra)
    table = Table.create(open_storage(str(tmp_path / "table")), config)
    table.storage.create_if_absent(".hoodie_partition_metadata", b"")
    transactions = Transactions(table, None)
    compaction = Compaction(table, transactions)
    for is_compacted in (False, True, False):
        tx = transactions.begin("deltacommit", "UPSERT")
        put(table, tx, str(LogFileName("g-0", tx.instant)), log_version=1)
        taken = compaction.take() if is_compacted and compaction.schedule() else None
        if taken is not None:
            put(table, taken[0], str(BaseFileName("g-0", taken[0].instant)), compacted=True)
    return str(tmp_path / "table")


def put(table: Table, tx: Transaction, name: str, *, log_version: int | None = None, compacted: bool = False) -> None:
    table.storage.replace(name, b"rows")
    stats = [WriteStat("", "g-0", name, log_version=log_version)]
    operation = "COMPACT" if compacted else "UPSERT"
    metadata = CommitMetadata.of(stats, operation, schema="{}", compacted=compacted)
    assert tx.publish(metadata).is_committed


def test_a_table_with_logs_is_kept_cleaned_and_taken_back_as_any_other(hudi_locks: Run, logged: str) -> None:
    logs = sorted(file.name for file in Path(logged).glob(".g-0_*.log.*"))
    assert hudi_locks("savepoint", logged)[1].endswith("keeps 2 files\n")
    last = LogFileName.parse(logs[-1])
    assert last is not None
    assert "removed 2 old files" in hudi_locks("clean", logged, "-o", "hoodie.clean.commits.retained=1")[1]
    assert sorted(file.name for file in Path(logged).glob(".g-0_*.log.*")) == logs[-1:]
    told = hudi_locks("restore", logged, "--instant", last.instant)[1]
    assert told == f"{logged} is back at {last.instant}: undid 0 writes, removed 0 files\n"


def test_a_time_that_is_far_ahead_is_accepted_by_a_command(hudi_locks: Run, path: str) -> None:
    options = ("-o", "hoodie.write.lock.provider=filesystem")
    assert "no time is far ahead" in hudi_locks("accept-times", path, *options)[1]
    requested, completed = "29990101000000000", "29990101000000001"
    done = CommitMetadata().encode("commit", layout_version=2)
    for name in (f"{requested}.commit.requested", f"{requested}.inflight", f"{requested}_{completed}.commit"):
        (Path(path) / ".hoodie/timeline" / name).write_bytes(b"" if "_" not in name else done)
    status, _, told = hudi_locks("savepoint", path, *options)
    assert (status, "accept-times" in told) == (1, True)
    assert f"writers go on after {completed}" in hudi_locks("accept-times", path, *options)[1]
    assert hudi_locks("savepoint", path, *options)[0] == 0
