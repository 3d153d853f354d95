"""What a busy machine does to a lock service is no fault of the provider; what comes back is."""

from __future__ import annotations

import itertools
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

import hudi_locks.clock
from hudi_locks import BackendUnavailable, Held, Lease

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


def test_no_time_passes_while_a_thread_that_woke_to_renew_is_kept_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a machine does that has other work: between its waking and its call."""
    tend = Held.tend
    woken: list[Held] = []

    def tend_late(held: Held) -> None:
        woken.append(held)
        assert not until(lambda: False, 0.1)
        tend(held)

    monkeypatch.setattr(hudi_locks.clock, "_SETTLE_LOOKS", 1)
    monkeypatch.setattr(Held, "tend", tend_late)
    bench, calls = Bench(harness_of(SampleLockProvider, tmp_path), "E13"), Calls()
    held = hold_lease(bench, calls)
    lease_s = lease_length_s(bench, held.lease)
    for _ in range(8):
        advance(bench, lease_s / 2, calls=calls)
        held.check()
    assert len(woken) >= 4
    close_bench(bench)


def hiccuping(every: int) -> type[SampleLockProvider]:
    """A provider whose service leaves one request of so many without an answer."""

    class Hiccuping(SampleLockProvider):
        asked = itertools.count(1)

        def try_acquire(self, *args: Any, **kwargs: Any) -> Lease | None:
            if next(self.asked) % every == 0:
                raise BackendUnavailable("no answer in time")
            return super().try_acquire(*args, **kwargs)

    return Hiccuping


@pytest.mark.parametrize("check_id", ["E13", "E16"])
def test_one_request_of_fifty_without_an_answer_is_asked_again(check_id: str, tmp_path: Path) -> None:
    (check,) = select_checks(only=[check_id])
    outcome = run_check(check, harness_of(hiccuping(50), tmp_path))
    assert outcome.status is Status.PASS, outcome.message
    assert "asked once more, since the lock service failed: no answer in time" in outcome.notes


@pytest.mark.parametrize("check_id", ["E13", "E16"])
def test_a_service_that_never_answers_is_not_asked_for_ever(check_id: str, tmp_path: Path) -> None:
    (check,) = select_checks(only=[check_id])
    outcome = run_check(check, harness_of(hiccuping(1), tmp_path))
    assert outcome.status is Status.FAIL


def deaf(times: int) -> type[SampleLockProvider]:
    """A provider whose service answers no renewal at first."""

    class Deaf(SampleLockProvider):
        left = times

        def renew(self, lease: Lease) -> Lease:
            if Deaf.left:
                Deaf.left -= 1
                raise BackendUnavailable("no answer in time")
            return super().renew(lease)

    return Deaf


@pytest.mark.parametrize(("times", "status"), [(1, Status.PASS), (1000, Status.FAIL)])
def test_a_hold_that_could_not_be_verified_once_is_judged_again(tmp_path: Path, times: int, status: Status) -> None:
    (check,) = select_checks(only=["C4"])
    outcome = run_check(check, harness_of(deaf(times), tmp_path))
    assert outcome.status is status, outcome.message
    assert outcome.notes[0].startswith(AGAIN)


@pytest.mark.parametrize(("times", "status"), [(10, Status.PASS), (1000, Status.FAIL)])
def test_a_living_holder_whose_renewals_were_not_answered_once_is_judged_again(
    tmp_path: Path, times: int, status: Status
) -> None:
    (check,) = select_checks(only=["E12"])
    outcome = run_check(check, harness_of(deaf(times), tmp_path))
    assert outcome.status is status, outcome.message
    assert outcome.notes[0].startswith(AGAIN)
