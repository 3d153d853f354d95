"""Beside a JVM that holds the lock until it is told to let go: a machine that makes the kit late changes nothing.

A Python process stands for the JVM.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hudi_locks_conformance import Harness, Outcome, Status, run_check, select_checks
from hudi_locks_conformance.checks import interop
from hudi_locks_conformance.sample import SampleLockProvider
from waiting import until

from hudi_locks import Capability

SAMPLE = "hudi_locks_conformance.sample:SampleLockProvider"
CHECKS = ("M2", "M3", "M6")
STARVED_S = 0.5
"""Longer than the shortest hold that the kit asks for."""
CONTENDER = """
import json, sys, time
from pathlib import Path
from hudi_locks import LockManager
settings = dict(word.split("=", 1) for word in sys.argv[3:])
def tell(**facts): print(json.dumps(facts), flush=True)
with LockManager("hudi_locks_conformance.sample:SampleLockProvider", {"hoodie.sample.folder": settings["folder"]}) as m:
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


@dataclass
class Stand:
    """What stands for a JVM lock holder, on the locks of a folder."""

    settings: dict[str, str]
    name: str = "stand-in"

    def command(self) -> list[str]:
        return [sys.executable, "-c", CONTENDER]


def judge(check_id: str, folder: Path, *, theirs: Path, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    monkeypatch.setattr(interop, "_find_partners", lambda *_: [Stand({"folder": str(theirs)})])
    monkeypatch.setattr(interop, "_UP_S", 1.0)
    harness = Harness(SAMPLE, {"hoodie.sample.folder": str(folder)})
    harness.__dict__["kind"] = Joined  # which cannot be loaded by name
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
