"""Two who find a lease over: the kit stops one of them at every line, also where leases end in real time."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hudi_locks_conformance import Harness, Status, run_check, select_checks
from hudi_locks_conformance.broken.takeovers import TakesOverByName
from hudi_locks_conformance.checks import late, takeover
from hudi_locks_conformance.interleaving import find_lines, stop_at
from hudi_locks_conformance.sample import SampleLockProvider
from waiting import until

from hudi_locks import Lease, LockScope, Owner, SystemClock

pytestmark = pytest.mark.verdicts

KIND = SampleLockProvider


def judge(kind: type[SampleLockProvider], folder: Path, *, virtual: bool) -> tuple[Status, str]:
    options = {"hoodie.sample.folder": str(folder), "hoodie.sample.lease_s": "60" if virtual else "1"}
    harness = Harness(f"{kind.__module__}:{kind.__qualname__}", options, virtual_time=virtual)
    (check,) = select_checks(only=["E16"])
    outcome = run_check(check, harness)
    return outcome.status, outcome.message


@pytest.mark.parametrize("virtual", [True, False])
def test_a_takeover_by_name_is_found_and_its_line_named(tmp_path: Path, virtual: bool) -> None:
    status, message = judge(TakesOverByName, tmp_path, virtual=virtual)
    assert status is Status.FAIL
    assert message.startswith("two took over one lock, while the other one was stopped before line ")


@pytest.mark.parametrize("virtual", [True, False])
def test_a_takeover_that_is_guarded_passes(tmp_path: Path, virtual: bool) -> None:
    assert judge(SampleLockProvider, tmp_path, virtual=virtual) == (Status.PASS, "")


def test_the_other_one_runs_before_the_line_at_which_the_first_is_stopped(tmp_path: Path) -> None:
    done: list[str] = []
    made = SimpleNamespace(path=SampleLockProvider.path, folder=tmp_path)
    scope = SimpleNamespace(partition="p", file_id="f")

    def call() -> str:
        done.append("begins")
        path = made.path(made, scope)
        done.append("ends")
        return str(path.parent)

    lines = find_lines(KIND, call)
    assert len(lines) == 2
    done.clear()
    stopped, other = stop_at(lines[-1], KIND, call, lambda: done.append("meanwhile"))
    assert done == ["begins", "meanwhile", "ends"]
    assert (stopped.value, stopped.error, other.error) == (str(tmp_path), None, None)


def test_errors_of_both_are_handed_back(tmp_path: Path) -> None:
    stopped, other = stop_at(("nowhere", 1), KIND, lambda: 1 / 0, tmp_path.iterdir().__next__)
    assert isinstance(stopped.error, ZeroDivisionError)
    assert isinstance(other.error, StopIteration)


def stand_still(seconds: float) -> None:
    assert not until(lambda: False, seconds)


class Slow(SampleLockProvider):
    """Its service takes longer for as many locks as the kit would like than a lease lasts."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        stand_still(0.06)
        return super().try_acquire(scope, owner, timeout_s)


class SlowToRenew(SampleLockProvider):
    """Each answer to a renewal comes when the lease is over."""

    def renew(self, lease: Lease) -> Lease:
        assert lease.deadline_s is not None
        stand_still(lease.deadline_s - SystemClock().monotonic() + 0.01)
        return super().renew(lease)


@pytest.mark.parametrize(("kind", "check_id"), [(Slow, "E16"), (SlowToRenew, "B13")])
def test_a_lease_that_ends_while_the_service_is_asked_is_no_fault(
    kind: type[SampleLockProvider], check_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (takeover, late):
        monkeypatch.setattr(module, "_MOST_REAL_STOPS", 4)
    monkeypatch.setattr(takeover, "_RACES", 4)
    options = {"hoodie.sample.folder": str(tmp_path), "hoodie.sample.lease_s": "1"}
    harness = Harness("of this module", options, virtual_time=False)
    harness.__dict__["kind"] = kind  # which cannot be loaded by name
    outcome = run_check(select_checks(only=[check_id])[0], harness)
    assert (outcome.status, outcome.message) == (Status.PASS, "")
