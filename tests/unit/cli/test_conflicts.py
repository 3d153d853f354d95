"""What `hudi-locks conflicts` tells of jobs that met on a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import DamagedTable
from hudi_locks.format import CommitMetadata
from hudi_locks.format.claim import FileGroupId
from hudi_locks.lock import LockManager, Owner
from hudi_locks.services.met_conflicts import describe_conflict, list_conflicts, note_conflicts
from hudi_locks.storage import Storage, open_storage
from hudi_locks.table import Table, TableConfig
from hudi_locks.transaction import Conflict, Transactions

Run = Callable[..., tuple[int, str, str]]
EMPTY = CommitMetadata.of((), "UPSERT", schema=None, extra={"checkpoint": "7"})
MET = Conflict(
    "20260101000000002",
    (FileGroupId("eu", "f-0"),),
    "20260101000000001",
    "commit",
    "backfill (pid 4 on b)",
    1500,
    "try again",
)


@pytest.fixture
def commit(tmp_path: Path) -> Callable[..., str]:
    """Commits for a job, which met these conflicts on the way; of the latter the time that was lost, or None."""
    base = str(tmp_path / "table")
    options = {"hoodie.base.path": base, "hoodie.write.lock.provider": "in_process"}
    table = Table.create(open_storage(base), TableConfig("t", ("id",)))

    def make(job: str, *met: tuple[Conflict, int | None], **changes: Any) -> str:
        owner = Owner(job, host="a", pid=3, application=job)
        with LockManager.from_options(options) as locks:
            tx = Transactions(table, locks, options=options, owner=owner).begin("commit", "UPSERT")
            noted = [describe_conflict(conflict, lost_ms=lost_ms) for conflict, lost_ms in met]
            metadata = replace(EMPTY, **changes)
            assert tx.publish(note_conflicts(metadata, noted, str(owner)) if noted else metadata).is_committed
        return tx.instant

    return make


@pytest.fixture
def storage(tmp_path: Path, commit: Callable[..., str]) -> Storage:
    commit("etl", (MET, 2500))
    commit("etl")
    commit("etl", (replace(MET, is_early=True, other_writer="backfill (local-17) (pid 9 on c)"), 700), (MET, None))
    commit("backfill", (replace(MET, other_writer="pid 5 on d", groups=()), 5000))
    return open_storage(str(tmp_path / "table"))


def test_jobs_that_met_are_added_up_the_dearest_first(hudi_locks: Run, storage: Storage) -> None:
    status, out, err = hudi_locks("conflicts", storage.base)
    assert (status, err) == (0, "")
    head, *lines, last = out.splitlines()
    assert head.split() == ["job", "gave", "way", "to", "conflicts", "early", "rewritten", "lost", "last"]
    assert [line.split()[:-1] for line in lines] == [
        ["backfill", "pid", "5", "on", "d", "1", "0", "0", "5.0", "s"],
        ["etl", "backfill", "3", "1", "1", "3.2", "s"],
    ]
    assert last == "3 of the newest 4 commits met a conflict"


def test_each_conflict_is_listed(hudi_locks: Run, storage: Storage) -> None:
    status, out, err = hudi_locks("conflicts", storage.base, "--each", "-n", "3")
    assert (status, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert len(lines) == 5
    assert "etl (pid 3 on a) commit 20260101000000001 backfill (local-17) (pid 9 on c) eu early 0.7 s" in lines[1]
    assert lines[2].endswith("eu rewritten 0.0 s")
    assert lines[3].endswith("pid 5 on d at publish 5.0 s")
    assert lines[4] == "2 of the newest 3 commits met a conflict"


def test_programs_read_both(hudi_locks: Run, storage: Storage) -> None:
    told = json.loads(hudi_locks("conflicts", storage.base, "--json")[1])
    assert (told["commits"], told["met"]) == (4, 3)
    assert [(one["job"], one["lost_ms"]) for one in told["jobs"]] == [("backfill", 5000), ("etl", 3200)]
    assert [one["found"] for one in told["conflicts"]] == ["at publish", "early", "rewritten", "at publish"]
    assert [one["partition"] for one in told["conflicts"]] == ["eu", "eu", "eu", None]


def test_a_table_without_conflicts_says_so(hudi_locks: Run, commit: Callable[..., str], tmp_path: Path) -> None:
    commit("etl")
    status, out, err = hudi_locks("conflicts", str(tmp_path / "table"))
    assert (status, out, err) == (0, "0 of the newest 1 commits met a conflict\n", "")


def test_a_commit_keeps_what_else_it_says() -> None:
    kept = note_conflicts(EMPTY, [describe_conflict(MET, lost_ms=1)], "a").extra
    assert {**kept, "hudi_locks.conflicts": ""} == {**EMPTY.extra, "hudi_locks.conflicts": ""}


@pytest.mark.parametrize("text", ["{", "[]", '{"writer": "a"}', '{"writer": "a", "met": [{"other": "1"}]}'])
def test_what_no_writer_of_ours_wrote_is_named(tmp_path: Path, commit: Callable[..., str], text: str) -> None:
    requested = commit("etl", extra={"hudi_locks.conflicts": text})
    with pytest.raises(DamagedTable, match=f"hudi_locks.conflicts in the extra metadata of commit {requested}"):
        list_conflicts(Table.load(open_storage(str(tmp_path / "table"))), last=5)
