"""The kit judged itself: each planted fault is caught by the check that is named for it, and each check can fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance import Harness, Status, clocks, leases, run_check, select_checks
from hudi_locks_conformance.broken import BROKEN
from hudi_locks_conformance.broken.failures import TriesForEver
from hudi_locks_conformance.broken.habits import RevivesRemoved, TripsOverItself
from hudi_locks_conformance.broken.manners import LeaksThread
from hudi_locks_conformance.checks import hygiene

from hudi_locks import BackendUnavailable, LockProvider

pytestmark = pytest.mark.verdicts

LESS_PATIENCE: dict[type[LockProvider], tuple[Any, str, float]] = {
    TriesForEver: (clocks, "_LONGEST_IN_ALL_S", 300.0),  # not six hours of virtual time, which take a minute
    RevivesRemoved: (leases, "_WAKING_S", 2.0),
    LeaksThread: (hygiene, "_PATIENCE_S", 0.2),  # its threads end after half a minute
}


@pytest.mark.parametrize(
    ("kind", "check_id"),
    [pytest.param(kind, check, id=f"{kind.__name__}-{check}") for kind, checks in BROKEN for check in checks],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_fault_is_caught(
    kind: type[LockProvider], check_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind in LESS_PATIENCE:
        monkeypatch.setattr(*LESS_PATIENCE[kind])
    harness = Harness(f"{kind.__module__}:{kind.__qualname__}", {"hoodie.sample.folder": str(tmp_path / "locks")})
    outcome = run_check(select_checks(only=[check_id])[0], harness)
    assert outcome.status is Status.FAIL, outcome
    assert outcome.message


def test_the_table_is_sorted_and_names_checks_that_exist() -> None:
    names = [kind.__name__ for kind, _ in BROKEN]
    assert names == sorted(set(names))
    for _, checks in BROKEN:
        assert len(select_checks(only=checks)) == len(checks)


def test_a_storm_of_processes_finds_what_is_not_atomic(tmp_path: Path) -> None:
    harness = Harness("hudi_locks_conformance.broken.records:NotAtomic", {"hoodie.sample.folder": str(tmp_path)})
    outcomes = {check.id: run_check(check, harness) for check in select_checks(only=["B4", "B5", "B6", "B7"])}
    assert outcomes["B4"].status is Status.FAIL
    assert "two holders for" in outcomes["B4"].message or "a process failed" in outcomes["B4"].message
    assert [outcome.status for outcome in outcomes.values()] == [Status.FAIL] * 4


def test_what_was_raised_is_said(tmp_path: Path) -> None:
    said = run_with(TripsOverItself, "B2", tmp_path)
    assert "an acquire raised RuntimeError('the client is busy') in round " in said


@pytest.mark.parametrize("check_id", ["B2", "B3", "B10"])
def test_nobody_won_since_every_acquire_failed(check_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, *_: object) -> None:
        raise BackendUnavailable("no answer from the far side")

    monkeypatch.setattr(TripsOverItself, "try_acquire", fail)
    said = run_with(TripsOverItself, check_id, tmp_path)
    assert said.startswith("nobody ever won although the lock was free: ")
    assert "acquires failed, the first with BackendUnavailable('no answer from the far side')" in said


def run_with(kind: type[LockProvider], check_id: str, folder: Path) -> str:
    harness = Harness(f"{kind.__module__}:{kind.__qualname__}", {"hoodie.sample.folder": str(folder / "locks")})
    outcome = run_check(select_checks(only=[check_id])[0], harness)
    assert outcome.status is Status.FAIL
    return outcome.message
