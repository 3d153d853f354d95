"""What `hudi-locks conflicts` tells of jobs that met on a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import DamagedTable, StorageError
from hudi_locks.format import CommitMetadata
from hudi_locks.format.claim import FileGroupId
from hudi_locks.lock import LockManager, Owner
from hudi_locks.services.met_conflicts import (
    describe_conflict,
    leave_conflicts,
    list_conflicts,
    list_left,
    note_conflicts,
)
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
    assert head.split() == ["job", "gave", "way", "to", "conflicts", "early", "rewritten", "gave", "up", "lost", "last"]
    assert [line.split()[:-1] for line in lines] == [
        ["backfill", "pid", "5", "on", "d", "1", "0", "0", "0", "5.0", "s"],
        ["etl", "backfill", "3", "1", "1", "0", "3.2", "s"],
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


def test_writes_that_gave_up_are_counted_too(hudi_locks: Run, storage: Storage) -> None:
    met = [describe_conflict(replace(MET, is_early=True), lost_ms=1500, met_ms=1_800_000_000_000)]
    leave_conflicts(storage, "20990101000000000", met=met, writer="etl (pid 8 on a)")
    leave_conflicts(storage, "20000101000000000", met=met, writer="etl (pid 8 on a)")
    status, out, err = hudi_locks("conflicts", storage.base)
    assert (status, err) == (0, "")
    assert out.splitlines()[-1] == "3 of the newest 4 commits met a conflict, and 2 writes met one and gave up"
    assert "etl backfill 5 3 1 2 6.2 s 20990101000000000" in [" ".join(line.split()) for line in out.splitlines()]
    lines = hudi_locks("conflicts", storage.base, "--each", "-n", "1")[1].splitlines()
    assert " ".join(lines[-2].split()).endswith("backfill (pid 4 on b) eu early 1.5 s gave up")
    assert lines[-1] == "1 of the newest 1 commits met a conflict, and 1 write met one and gave up"
    told = json.loads(hudi_locks("conflicts", storage.base, "--json")[1])
    assert told["given_up"] == 2
    newest = told["conflicts"][-1]
    assert (newest["file_id"], newest["met_ms"], newest["gave_up"]) == ("f-0", 1_800_000_000_000, True)


def test_a_table_service_that_gave_up_is_counted_by_its_name(hudi_locks: Run, storage: Storage) -> None:
    met = [describe_conflict(MET, lost_ms=1500)]
    leave_conflicts(storage, "20990101000000000", met=met, writer="etl (pid 8 on a)", service="clustering")
    status, out, err = hudi_locks("conflicts", storage.base)
    assert (status, err) == (0, "")
    assert out.splitlines()[-1] == "3 of the newest 4 commits met a conflict, and 1 table service met one and gave up"
    assert "etl (clustering) backfill 1 0 0 1 1.5 s" in " ".join(out.split())
    assert " ".join(hudi_locks("conflicts", storage.base, "--each")[1].split()).count("clustering gave up") == 1
    leave_conflicts(storage, "20990101000000001", met=met, writer="etl (pid 8 on a)")
    ending = "and 1 write and 1 table service met one and gave up"
    assert hudi_locks("conflicts", storage.base)[1].rstrip().endswith(ending)
    told = json.loads(hudi_locks("conflicts", storage.base, "--json")[1])
    assert [one["service"] for one in told["conflicts"]][-2:] == ["clustering", None]


def test_a_table_keeps_the_newest_records_alone(storage: Storage) -> None:
    met = [describe_conflict(MET, lost_ms=1)]
    instants = [f"20260101{number:09}" for number in range(203)]
    for instant in instants:
        leave_conflicts(storage, instant, met=met, writer="etl")
    assert list_left(storage) == instants[3:]


def test_a_record_that_cannot_be_kept_or_read_is_warned_about(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    storage.create_if_absent(".hoodie/.hudi_locks/conflicts/20260101000000009.json", b"{")
    assert list_conflicts(Table.load(storage), last=9).given_up == 0
    assert "20260101000000009.json is no record of what gave up after a conflict" in caplog.text

    def fail(*_: object) -> None:
        raise StorageError("disk full", path="")

    monkeypatch.setattr(type(storage), "create_transient", fail)
    leave_conflicts(storage, "20260101000000010", met=[], writer="etl")
    assert "write 20260101000000010 gave up after a conflict could not be noted: disk full" in caplog.text


def test_a_commit_keeps_what_else_it_says() -> None:
    kept = note_conflicts(EMPTY, [describe_conflict(MET, lost_ms=1)], "a").extra
    assert {**kept, "hudi_locks.conflicts": ""} == {**EMPTY.extra, "hudi_locks.conflicts": ""}


@pytest.mark.parametrize("text", ["{", "[]", '{"writer": "a"}', '{"writer": "a", "met": [{"other": "1"}]}'])
def test_what_no_writer_of_ours_wrote_is_named(tmp_path: Path, commit: Callable[..., str], text: str) -> None:
    requested = commit("etl", extra={"hudi_locks.conflicts": text})
    with pytest.raises(DamagedTable, match=f"hudi_locks.conflicts in the extra metadata of commit {requested}"):
        list_conflicts(Table.load(open_storage(str(tmp_path / "table"))), last=5)
