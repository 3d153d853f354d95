"""Beside a JVM that holds the lock until it is told to let go: a machine that makes the kit late changes nothing.

Nor do requests that a starved lock service does not answer. A Python process stands for the JVM.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hudi_locks_conformance import Harness, Outcome, Status, run_check, select_checks
from hudi_locks_conformance.checks import interop
from hudi_locks_conformance.partners import JvmContender
from hudi_locks_conformance.sample import SampleHooks, SampleLockProvider
from hudi_locks_conformance.storm import open_gate
from waiting import until

from hudi_locks import BackendUnavailable, Capability, Holder, Lease, LockScope, Owner, SystemClock

pytestmark = pytest.mark.verdicts

SAMPLE = "hudi_locks_conformance.sample:SampleLockProvider"
CHECKS = ("M2", "M3", "M4", "M6")
LEASE_S = 4.0
SHORT_S = 0.2
STARVED_S = 0.5
"""Longer than the shortest hold that the kit asks for."""
CONTENDER = """
import json, sys, time
from pathlib import Path
from hudi_locks import LockManager
settings = dict(word.split("=", 1) for word in sys.argv[3:])
def tell(**facts): print(json.dumps(facts), flush=True)
options = {"hoodie.sample.folder": settings["folder"], "hoodie.sample.lease_s": settings["lease_s"]}
with LockManager("hudi_locks_conformance.sample:SampleLockProvider", options) as m:
    asked = time.monotonic_ns()
    held, tries = None, 0
    while held is None:
        held, tries = m.try_lock(), tries + 1
        time.sleep(0.001)  # real time: it stands for a process of Java
    begun = time.monotonic_ns()
    tell(held_ns=begun)
    time.sleep(float(sys.argv[2]))  # real time: likewise
    while "until" in settings and not Path(settings["until"]).exists():
        time.sleep(0.001)  # real time: likewise
    freeing = time.monotonic_ns()
    held.release()
    tell(asked_ns=asked, held_ns=begun, freeing_ns=freeing, freed_ns=time.monotonic_ns(), tries=tries)
"""


class Joined(SampleLockProvider):
    """Says that it joins a JVM class."""

    capabilities = SampleLockProvider.capabilities | {Capability.JVM_COMPATIBLE}

    @classmethod
    def conformance_hooks(cls) -> Any:
        short = {"hoodie.sample.lease_s": str(LEASE_S)}
        return type("Hooks", (SampleHooks,), {"short_lease_options": short, "record_form": None})


class Silent(Joined):
    """Gives no answer to the first two requests of each kind."""

    asked: ClassVar[Counter[str]]

    def hush(self, name: str) -> None:
        self.asked[name] += 1
        if self.asked[name] <= 2:
            raise BackendUnavailable(f"no answer to {name}")

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        self.hush("acquire held" if self.path(scope).exists() else "acquire free")
        return super().try_acquire(scope, owner, timeout_s)

    def release(self, lease: Lease) -> None:
        self.hush("release")
        super().release(lease)

    def holder(self, scope: LockScope) -> Holder | None:
        self.hush("holder")
        return super().holder(scope)


@dataclass
class Stand:
    """What stands for a JVM lock holder, on the locks of a folder."""

    settings: dict[str, str]
    name: str = "stand-in"

    def command(self) -> list[str]:
        return [sys.executable, "-c", CONTENDER]


def judge(
    check_id: str, folder: Path, *, theirs: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Joined] = Joined
) -> Outcome:
    stand = Stand({"folder": str(theirs), "lease_s": str(LEASE_S if check_id == "M4" else 60)})
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    monkeypatch.setattr(interop, "_find_partners", lambda *_: [stand])
    monkeypatch.setattr(interop, "_UP_S", 1.0)
    harness = Harness(SAMPLE, {"hoodie.sample.folder": str(folder)})
    harness.__dict__["kind"] = kind  # which cannot be loaded by name
    return run_check(select_checks(only=[check_id])[0], harness)


@pytest.mark.parametrize("check_id", CHECKS)
def test_a_kit_that_is_late_to_ask_finds_the_lock_held(
    check_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_held = interop._wait_held

    def wait_and_starve(*args: object) -> None:
        wait_held(*args)  # type: ignore[arg-type]
        assert not until(lambda: False, STARVED_S)

    monkeypatch.setattr(interop, "_wait_held", wait_and_starve)
    outcome = judge(check_id, tmp_path, theirs=tmp_path, monkeypatch=monkeypatch)
    assert outcome.status is Status.PASS, outcome


@pytest.mark.parametrize("check_id", CHECKS)
def test_a_holder_of_another_lock_is_found_out(check_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = judge(check_id, tmp_path / "ours", theirs=tmp_path / "theirs", monkeypatch=monkeypatch)
    assert outcome.status is Status.FAIL, outcome


@pytest.mark.parametrize("check_id", ["M2", "M4"])
def test_requests_without_an_answer_are_asked_again(
    check_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Silent, "asked", Counter(), raising=False)
    outcome = judge(check_id, tmp_path, theirs=tmp_path, monkeypatch=monkeypatch, kind=Silent)
    assert outcome.status is Status.PASS, outcome
    assert "asked once more" in outcome.notes[0]
    assert not any("run once more" in note for note in outcome.notes)


def test_a_lock_service_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Silent, "asked", Counter({"acquire free": -1_000_000}), raising=False)
    monkeypatch.setattr(interop, "_START_S", SHORT_S)
    outcome = judge("M2", tmp_path, theirs=tmp_path, monkeypatch=monkeypatch, kind=Silent)
    assert outcome.status is Status.FAIL, outcome
    assert "no answer to acquire free" in outcome.message


class Dead(Stand):
    """A JVM that ends before it has the lock, as one does that finds no memory."""

    def command(self) -> list[str]:
        return [sys.executable, "-c", "import sys; sys.exit('not enough space for object heap')"]


def test_a_jvm_that_died_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began_s = SystemClock().monotonic()
    with JvmContender(Dead({}), "hold", 1) as theirs:  # type: ignore[arg-type]
        assert not theirs.wait_held(50.0)
        assert theirs.has_ended()
    monkeypatch.setattr(interop, "_find_partners", lambda *_: [Dead({})])
    harness = Harness(SAMPLE, {"hoodie.sample.folder": str(tmp_path)})
    harness.__dict__["kind"] = Joined
    outcome = run_check(select_checks(only=["M2"])[0], harness)
    assert outcome.status is Status.FAIL
    assert "not enough space for object heap" in outcome.message
    assert SystemClock().monotonic() - began_s < 50.0


def test_a_storm_begins_without_a_jvm_that_died(tmp_path: Path) -> None:
    with JvmContender(Dead({}), "storm", 1) as theirs:  # type: ignore[arg-type]
        assert until(theirs.has_ended)
        open_gate(tmp_path, [], others=[theirs])
    assert (tmp_path / "gate").exists()
