"""A provider that never comes back fails its check, and does not keep the others from being judged."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hudi_locks_conformance import Harness, Limit, Status, run_check, run_checks, select_checks
from hudi_locks_conformance.broken.failures import TriesForEverAtOnce
from hudi_locks_conformance.limits import Hung, call_within
from hudi_locks_conformance.sample import SampleLockProvider

from hudi_locks import Lease, LockScope, Owner

SHORT = Limit(0.2)


class Stuck(SampleLockProvider):
    """Waits until the test is over."""

    over = threading.Event()

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        self.over.wait()
        return super().try_acquire(scope, owner, timeout_s)


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[Harness]:
    harness = Harness("of this module", {"hoodie.sample.folder": str(tmp_path)})
    harness.__dict__["kind"] = Stuck  # which cannot be loaded by name
    Stuck.over.clear()
    yield harness
    Stuck.over.set()


def test_a_check_that_does_not_come_back_fails_and_says_where_it_was(stuck: Harness) -> None:
    (check,) = select_checks(only=["B1"])
    outcome = run_check(check, stuck, limit=SHORT)
    assert (outcome.status, outcome.hung) == (Status.FAIL, True)
    assert outcome.message.startswith("did not come back within 0.2 s; it was at test_limits.py:")
    assert "try_acquire" in outcome.message


def test_after_three_of_them_the_rest_is_left_out_and_says_why(stuck: Harness) -> None:
    checks = select_checks(only=["A2", "B1", "C3", "C4", "F2a", "A0"])
    outcomes = {one.check.id: one for one in run_checks(checks, stuck, limit=lambda _: SHORT)}
    assert [name for name, one in outcomes.items() if one.hung] == ["A2", "B1", "C3"]
    assert outcomes["A0"].status is Status.PASS
    assert outcomes["C4"].status is Status.NOT_RUN
    assert outcomes["C4"].message == "left out, since A2, B1, C3 did not come back"


def test_output_and_warnings_are_given_back_where_the_call_had_replaced_them() -> None:
    output, shown, over = sys.stdout, warnings.showwarning, threading.Event()

    def replace_and_stay() -> None:
        sys.stdout = sys.stderr
        warnings.showwarning = print  # type: ignore[assignment]
        over.wait()

    with pytest.raises(Hung, match=r"did not come back within 0\.5 s"):
        call_within(Limit(0.5), replace_and_stay)
    assert (sys.stdout, warnings.showwarning) == (output, shown)
    over.set()


def test_who_waits_hears_of_it_and_gets_value_and_error() -> None:
    heard, over = list[float](), threading.Event()

    def hear(took_s: float) -> None:
        heard.append(took_s)
        over.set()

    assert call_within(Limit(60, every_s=0.01, on_wait=hear), lambda: over.wait(60)) is True
    assert heard
    with pytest.raises(ZeroDivisionError):
        call_within(Limit(60), lambda: 1 / 0)


@pytest.mark.verdicts
def test_the_command_ends_says_why_and_told_of_it_meanwhile(tmp_path: Path) -> None:
    name = f"{TriesForEverAtOnce.__module__}:{TriesForEverAtOnce.__qualname__}"
    options = ["--provider", name, "--option", f"hoodie.sample.folder={tmp_path}", "--only", "H5", "--limit", "2"]
    command = [sys.executable, "-c", "from hudi_locks_conformance.cli import command; command()", *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 1, ended.stderr
    assert "H5 unreachable-is-said      did not come back within 2 s; it was at " in ended.stdout
    assert "H5 unreachable-is-said: 1 s so far, at most 2" in ended.stderr
