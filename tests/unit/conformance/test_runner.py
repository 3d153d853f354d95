"""What a busy machine does to a lock service is no fault of the provider; what comes back is."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance import Harness, Status, run_check, select_checks
from hudi_locks_conformance.bench import Bench, close_bench
from hudi_locks_conformance.leases import advance, hold_lease, lease_length_s
from hudi_locks_conformance.sample import SampleLockProvider
from hudi_locks_conformance.tracing import Calls
from waiting import until

from hudi_locks import BackendUnavailable, Lease

AGAIN = "run once more, since a busy machine may be the reason of what came first"


def harness_of(kind: type[SampleLockProvider], folder: Path) -> Harness:
    made = Harness("of this module", {"hoodie.sample.folder": str(folder)})
    made.__dict__["kind"] = kind  # which cannot be loaded by name
    return made


def real_time(harness: Harness) -> Harness:
    harness._virtual_time = False
    return harness


def silent(times: int) -> type[SampleLockProvider]:
    """A provider whose service does not answer at first."""

    class Silent(SampleLockProvider):
        left = times

        def try_acquire(self, *args: Any, **kwargs: Any) -> Lease | None:
            if Silent.left:
                Silent.left -= 1
                raise BackendUnavailable("no answer in time")
            return super().try_acquire(*args, **kwargs)

    return Silent


def test_a_check_whose_service_did_not_answer_once_is_run_again_and_says_so(tmp_path: Path) -> None:
    (check,) = select_checks(only=["B1"])
    outcome = run_check(check, harness_of(silent(1), tmp_path))
    assert outcome.status is Status.PASS
    assert outcome.notes == (f"{AGAIN}: no answer in time",)


@pytest.mark.parametrize("times", [2, 1000])
def test_a_service_that_does_not_answer_again_fails_the_check(tmp_path: Path, times: int) -> None:
    (check,) = select_checks(only=["B1"])
    outcome = run_check(check, harness_of(silent(times), tmp_path))
    assert outcome.status is Status.FAIL
    assert outcome.message.startswith("unexpected BackendUnavailable: no answer in time (test_runner.py:")


def slow(times: int) -> type[SampleLockProvider]:
    """A provider that, at first, is late to refuse."""

    class Slow(SampleLockProvider):
        left = times

        def try_acquire(self, *args: Any, **kwargs: Any) -> Lease | None:
            lease = super().try_acquire(*args, **kwargs)
            if lease is None and Slow.left:
                Slow.left -= 1
                assert not until(lambda: False, 1.3)
            return lease

    return Slow


@pytest.mark.parametrize(("times", "status"), [(1, Status.PASS), (1000, Status.FAIL)])
def test_who_is_late_once_is_asked_again_and_who_is_late_again_fails(
    tmp_path: Path, times: int, status: Status
) -> None:
    (check,) = select_checks(only=["D1"])
    outcome = run_check(check, real_time(harness_of(slow(times), tmp_path)))
    assert outcome.status is status, outcome.message
    [note] = outcome.notes
    took = re.fullmatch(rf"{AGAIN}: with a timeout of 0: took (\d+\.\d+) s.*", note)
    assert took, note
    assert float(took[1]) >= 1.3


def test_no_time_passes_while_a_renewal_waits_for_a_slow_service(tmp_path: Path) -> None:
    slow, answered = threading.Event(), threading.Event()

    class Slow(SampleLockProvider):
        def renew(self, lease: Lease) -> Lease:
            slow.set()
            answered.wait()
            return super().renew(lease)

    bench, calls = Bench(harness_of(Slow, tmp_path), "E13"), Calls()
    held = hold_lease(bench, calls)
    lease_s = lease_length_s(bench, held.lease)

    def answer_late() -> None:
        slow.wait()
        assert not until(lambda: False, 0.3)
        answered.set()

    answering = threading.Thread(target=answer_late)
    answering.start()
    for _ in range(4):
        advance(bench, lease_s / 2, calls=calls)
    held.check()
    answering.join()
    close_bench(bench)
