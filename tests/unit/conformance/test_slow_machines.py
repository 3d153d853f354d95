"""However often a machine lets the kit look, it waits for others in real time; what ends that is judged once more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hudi_locks_conformance import Harness, Outcome, Status, bench, leases, limits, run_check, select_checks
from hudi_locks_conformance.bench import Bench, Running, close_bench
from hudi_locks_conformance.check import Late, Stuck, Violation
from hudi_locks_conformance.checks import fairness, hygiene
from hudi_locks_conformance.faults import scheduler
from hudi_locks_conformance.faults.meddler import Meddler
from hudi_locks_conformance.faults.scheduler import Scheduler
from hudi_locks_conformance.limits import Patience
from hudi_locks_conformance.sample import SampleLockProvider
from hudi_locks_conformance.storm import explain_failure
from hudi_locks_conformance.tracing import Calls
from waiting import until

import hudi_locks.clock
from hudi_locks import BackendUnavailable, Held, Lease, LockManager, LockScope, Owner, ProviderClosed, SystemClock

pytestmark = pytest.mark.verdicts

SLOW_S = 2.0
MANY_LOOKS = 30_000
"""More than a machine lets the kit have in a quarter of a minute, if it lets others run too."""
SHORT_S = 0.2


class Looks:
    """Counts how often the kit looks at calls that are under way."""

    number = 0

    def outlast(self, many: int = MANY_LOOKS) -> None:
        """Return when the kit has looked so many times more."""
        until_number = self.number + many
        assert until(lambda: self.number > until_number)


@pytest.fixture
def looks(quick: None, monkeypatch: pytest.MonkeyPatch) -> Looks:
    looks, let_pass = Looks(), Running.let_pass

    def count(self: Running, duration_s: float) -> None:
        looks.number += 1
        let_pass(self, duration_s)

    monkeypatch.setattr(Running, "let_pass", count)
    return looks


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which the kit looks again at once, while it keeps others from running."""
    monkeypatch.setattr(bench, "_POLL_S", 0.0)
    monkeypatch.setattr(leases, "_LOOK_S", 0.0)
    monkeypatch.setattr(hygiene, "_LOOK_S", 0.0)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Bench]:
    named = f"{SampleLockProvider.__module__}:{SampleLockProvider.__qualname__}"
    made = Bench(Harness(named, {"hoodie.sample.folder": str(tmp_path)}), "E13")
    yield made
    close_bench(made)


def judge(kind: type[SampleLockProvider], check_id: str, folder: Path) -> Outcome:
    harness = Harness("of this module", {"hoodie.sample.folder": str(folder)})
    harness.__dict__["kind"] = kind  # which cannot be loaded by name
    return run_check(select_checks(only=[check_id])[0], harness)


def be_slow(slow_s: float = SLOW_S) -> None:
    assert not until(lambda: False, slow_s)


class SlowOnce(SampleLockProvider):
    """Its service takes its time for the first answer to an owner called b."""

    first: ClassVar[threading.Lock]
    looks: ClassVar[Looks]

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        if owner.thread == "b" and self.first.acquire(blocking=False):
            self.looks.outlast()
        return super().try_acquire(scope, owner, timeout_s)


@pytest.mark.parametrize("check_id", ["B8", "D1"])
def test_a_service_that_takes_its_time_to_answer_is_waited_for(
    check_id: str, tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SlowOnce, "looks", looks, raising=False)
    monkeypatch.setattr(SlowOnce, "first", threading.Lock(), raising=False)
    outcome = judge(SlowOnce, check_id, tmp_path)
    assert outcome.status is Status.PASS, outcome
    assert outcome.notes == ()


def test_waits_that_end_when_a_starved_thread_runs_again_have_ended(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = LockManager.lock

    def lock_and_starve(self: LockManager, *args: Any, **named: Any) -> Held:
        try:
            return lock(self, *args, **named)
        except ProviderClosed:
            looks.outlast(6_000)
            raise

    monkeypatch.setattr(LockManager, "lock", lock_and_starve)
    outcome = judge(SampleLockProvider, "D8", tmp_path)
    assert outcome.status is Status.PASS, outcome


class Stands(SampleLockProvider):
    """Never comes back."""

    over: ClassVar[threading.Event]

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        if owner.thread == "b":
            self.over.wait()
        return super().try_acquire(scope, owner, timeout_s)


def test_a_call_that_never_comes_back_is_run_once_more_and_then_fails_and_counts_as_hung(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stands, "over", threading.Event(), raising=False)
    monkeypatch.setattr(limits, "PATIENCE_S", SHORT_S)
    outcome = judge(Stands, "D1", tmp_path)
    Stands.over.set()
    assert (outcome.status, outcome.hung) == (Status.FAIL, True)
    assert "a call did not come back within 0.2 s" in outcome.message
    assert outcome.notes[-1].startswith("run once more")


def test_a_call_that_goes_on_is_waited_for_longer_than_one_that_stands_still(
    made: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PATIENCE_S", 4 * SHORT_S)

    def go_on() -> None:
        for number in range(8):
            be_slow(SHORT_S)
            made.history.add("a", "acquire", "invoke", t_s=float(number))

    assert made.run(go_on)[0].error is None
    with pytest.raises(Stuck, match="did not come back"):
        made.run(lambda: be_slow(8 * SHORT_S))


def test_a_call_that_waits_for_virtual_time_for_ever_is_given_up(made: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_LONGEST_S", 5.0)
    over = threading.Event()
    with pytest.raises(Stuck, match="within 5 s of virtual time"):
        made.run(lambda: made.clock.wait(over, None))
    over.set()


def test_a_call_that_neither_waits_nor_comes_back_is_no_violation_by_itself(
    made: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PATIENCE_S", SHORT_S)
    with pytest.raises(Stuck, match="neither waits nor comes back"):
        made.start(lambda: be_slow(5 * SHORT_S)).settle()


@pytest.mark.usefixtures("quick")
def test_what_comes_true_seconds_later_comes_true(made: Bench) -> None:
    began_s = SystemClock().monotonic()
    assert leases.wait_until(made, lambda: SystemClock().monotonic() - began_s > SLOW_S)
    began_s = SystemClock().monotonic()
    assert hygiene._comes_true(lambda: SystemClock().monotonic() - began_s > SLOW_S)


def test_what_never_comes_true_is_told_after_its_time(made: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_WAKING_S", SHORT_S)
    monkeypatch.setattr(hygiene, "_PATIENCE_S", SHORT_S)
    assert not leases.wait_until(made, lambda: False, steps=3)
    assert not hygiene._comes_true(lambda: False)


@pytest.mark.usefixtures("quick")
def test_no_time_passes_before_a_renewal_is_answered(made: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, answered = Calls(), threading.Event()
    calls.before_renew = lambda: answered.wait(60)  # type: ignore[assignment]
    held = leases.hold_lease(made, calls)
    monkeypatch.setattr(hudi_locks.clock, "_SETTLE_LOOKS", 1)
    made.let_pass(leases.lease_length_s(made, held.lease) / 2)
    assert until(lambda: calls.renewers)
    now_s = made.clock.monotonic()
    monkeypatch.setattr(limits, "PATIENCE_S", SHORT_S)
    with pytest.raises(Late, match="a renewal was not answered within"):
        leases.advance(made, 10.0, calls=calls)
    monkeypatch.undo()
    assert made.clock.monotonic() == now_s
    answered.set()


def test_who_asks_without_end_is_late_and_who_is_silent_for_a_moment_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    meddler = Meddler()
    monkeypatch.setattr(fairness, "_QUIET_S", SHORT_S)
    fairness._await_quiet([meddler])
    monkeypatch.setattr(limits, "PATIENCE_S", 3 * SHORT_S)
    over = threading.Event()

    def ask_on() -> None:
        while not over.wait(SHORT_S / 20):
            meddler("read", lambda: None)

    asking = threading.Thread(target=ask_on)
    asking.start()
    with pytest.raises(Late, match="ask without end"):
        fairness._await_quiet([meddler])
    over.set()
    asking.join()


def run_scheduled(made: Bench, *works: Callable[[], None]) -> None:
    Scheduler(made, made.rng).run({str(number): work for number, work in enumerate(works)})


def test_a_client_that_takes_its_time_is_waited_for_by_the_scheduler(
    made: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_POLL_S", 0.0)
    run_scheduled(made, lambda: be_slow(SLOW_S), lambda: None)
    monkeypatch.setattr(limits, "PATIENCE_S", SHORT_S)
    with pytest.raises(Stuck, match="neither goes on nor ends"):
        run_scheduled(made, lambda: be_slow(5 * SHORT_S), lambda: None)


def test_threads_that_did_not_begin_together_tell_nothing(made: Bench) -> None:
    def meet() -> None:
        threading.Barrier(2).wait(0.01)

    with pytest.raises(Late, match="did not begin together"):
        made.expect_no_error(made.run(meet), "a contender's call")


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("hudi_locks.lock.acquisition.AcquireTimeout: no lock", Late),
        ("TimeoutError: python-0 did not get it", Late),
        ("hudi_locks.errors.BackendUnavailable: no answer", BackendUnavailable),
        ("AttributeError: nothing", Violation),
    ],
)
def test_a_process_that_did_not_get_the_lock_in_time_may_have_met_a_busy_machine(
    said: str, kind: type[Exception]
) -> None:
    assert type(explain_failure(f"Traceback\n{said}")) is kind


def test_patience_begins_anew() -> None:
    patience = Patience(SHORT_S)
    assert not until(lambda: patience.is_over, SHORT_S / 4)
    patience.renew()
    assert not until(lambda: patience.is_over, SHORT_S / 2)
    assert until(lambda: patience.is_over, 60)
    with pytest.raises(Stuck, match=r"nobody came within 0\.2 s"):
        patience.expect_left("nobody came", Stuck)


def test_a_thread_is_waited_for_and_one_that_does_not_end_is_stuck() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait, daemon=True)
    thread.start()
    with pytest.raises(Stuck, match=r"it did not end within 0\.2 s"):
        Patience(SHORT_S).await_end(thread, "it did not end")
    over.set()
    Patience().await_end(thread, "it did not end")
    assert not thread.is_alive()


class LosesOnce(SampleLockProvider):
    """Who comes next gets the lock, as if the holder's session had ended while the machine stood still."""

    granted: ClassVar[list[tuple[SampleLockProvider, Lease]]]
    losses: ClassVar[int]

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        if self.granted and self.granted[-1][0] is not self and len(self.granted) <= self.losses:
            provider, lease = self.granted[-1]
            provider.release(lease)
        got = super().try_acquire(scope, owner, timeout_s)
        if got is not None:
            self.granted.append((self, got))
        return got


@pytest.mark.parametrize("virtual", [False, True])
@pytest.mark.parametrize(("losses", "stalled", "status"), [(1, True, "pass"), (50, True, "fail"), (1, False, "fail")])
def test_a_lock_that_the_kit_lost_on_a_machine_that_stood_still_is_waited_for_once_more(
    losses: int, stalled: bool, status: str, virtual: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LosesOnce, "granted", [], raising=False)
    monkeypatch.setattr(LosesOnce, "losses", losses, raising=False)
    monkeypatch.setattr(limits.StallWatch, "has_stalled", stalled)
    harness = Harness("of this module", {"hoodie.sample.folder": str(tmp_path)}, virtual_time=virtual)
    harness.__dict__["kind"] = LosesOnce
    outcome = run_check(select_checks(only=["D10b"])[0], harness)
    assert outcome.status is Status(status), outcome
    assert [("the machine stood still" in note) for note in outcome.notes] == [True] * stalled


def test_a_process_that_does_not_run_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the machine had been stopped between two looks."""
    times, over = iter([0.0, 0.05, 1.6, 1.65]), threading.Event()

    class Stopped(SystemClock):
        def monotonic(self) -> float:
            told = next(times, None)
            if told is None:
                over.set()
            return 1.7 if told is None else told

    monkeypatch.setattr(limits, "SystemClock", Stopped)
    monkeypatch.setattr(limits, "_LOOK_S", 0.001)
    with limits.StallWatch() as watch:
        assert over.wait(SLOW_S)
    assert watch.has_stalled
    assert watch.longest_s == pytest.approx(1.55, abs=0.01)
