"""The bench that checks work on: what it made is closed whatever a check left behind."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance import Harness, bench
from hudi_locks_conformance.bench import Bench, close_bench
from hudi_locks_conformance.leases import hold_lease, lease_length_s
from hudi_locks_conformance.sample import SampleLockProvider
from hudi_locks_conformance.tracing import Calls
from waiting import until

from hudi_locks import BackendUnavailable, ManualClock


def test_a_renewal_that_waits_for_time_does_not_keep_the_bench_from_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "_IDLE_S", 0.01)
    made = Bench(
        Harness("hudi_locks_conformance.sample:SampleLockProvider", {"hoodie.sample.folder": str(tmp_path)}), "E13"
    )
    calls, clock = Calls(), made.clock
    held = hold_lease(made, calls)
    lease_s = lease_length_s(made, held.lease)
    calls.before_renew = lambda: clock.sleep(lease_s / 20)
    assert isinstance(clock, ManualClock)
    while not calls.renewers:
        made.let_pass(lease_s / 100)
    threads = threading.active_count()
    close_bench(made)
    assert not calls.renewers
    assert threading.active_count() < threads


def test_no_time_passes_while_a_slow_service_has_not_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager that waits for half a minute meets a first answer that comes late in real time."""
    monkeypatch.setattr(bench, "_IDLE_S", 0.01)
    folder = {"hoodie.sample.folder": str(tmp_path)}
    made = Bench(Harness("hudi_locks_conformance.sample:SampleLockProvider", folder), "H9a")
    manager, sound, asked = made.manager(), SampleLockProvider.try_acquire, itertools.count(1)

    def answer_late(*args: Any) -> Any:
        if next(asked) == 1:
            assert not until(lambda: False, 1.0)
            raise BackendUnavailable("busy")
        return sound(*args)

    monkeypatch.setattr(SampleLockProvider, "try_acquire", answer_late)
    answer = made.run(lambda: manager.lock(made.scope(), timeout_s=30))[0]
    assert answer.error is None
    assert next(asked) == 3
    close_bench(made)
