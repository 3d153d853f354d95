"""A provider that does as it is told, and managers over it in virtual time."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import waiting

from hudi_locks import Capability, Holder, Lease, LockManager, LockProvider, LockScope, ManualClock, Owner


class Scripted(LockProvider):
    """Answers from lists; when a list is empty it grants, renews and releases."""

    capabilities = frozenset({Capability.SCOPE_PROCESSES, Capability.RENEWAL, Capability.LEASE})
    lease_s: float | None = None

    def __init__(self, options: Any, **given: Any) -> None:
        super().__init__(options, **given)
        self.answers: list[Any] = []
        self.renewals: list[Any] = []
        self.releases: list[Any] = []
        self.asked: list[tuple[float, float]] = []
        self.renewed: list[float] = []
        self.released: list[Lease] = []
        self.closed = 0
        self.tokens = itertools.count(1)
        self.on_request: Callable[[], None] = lambda: None
        self.on_renew: Callable[[Lease], None] = lambda lease: None
        self.now_held: Holder | None = None

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        sent_s = self.clock.monotonic()
        self.asked.append((sent_s, timeout_s))
        self.on_request()
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, BaseException):
            raise answer
        deadline_s = None if self.lease_s is None else sent_s + self.lease_s
        return Lease(scope, owner, next(self.tokens), deadline_s) if answer else None

    def renew(self, lease: Lease) -> Lease:
        sent_s = self.clock.monotonic()
        self.renewed.append(sent_s)
        self.on_renew(lease)
        answer = self.renewals.pop(0) if self.renewals else True
        if isinstance(answer, BaseException):
            raise answer
        return replace(lease, deadline_s=None if self.lease_s is None else sent_s + self.lease_s)

    def release(self, lease: Lease) -> None:
        self.released.append(lease)
        if self.releases:
            raise self.releases.pop(0)

    def holder(self, scope: LockScope) -> Holder | None:
        return self.now_held

    def close(self) -> None:
        self.closed += 1


class Patient(ManualClock):
    """Lets time pass only once a thread waits for it, so that a thread just started is not passed over."""

    def let_pass(self, duration_s: float, *, until: Callable[[], object] = lambda: True, parked: int = 1) -> None:
        """Then waits in real time for `until`: a busy machine may be late with the thread that woke.

        One that hangs on purpose waits too, and is known by that for one that will not go on: count it in `parked`.
        """
        self._await(lambda: self.parked() >= parked, f"fewer than {parked} wait for time to pass")
        self.advance(duration_s)
        self._await(until, "what was to happen did not")

    def _await(self, condition: Callable[[], object], said: str) -> None:
        assert waiting.until(condition), said


@pytest.fixture
def clock() -> ManualClock:
    return Patient()


@pytest.fixture
def scripted() -> type[Any]:
    return Scripted


@pytest.fixture
def make_manager(clock: ManualClock) -> Iterator[Callable[..., Any]]:
    made: list[LockManager] = []

    def make(kind: type[LockProvider] = Scripted, /, **options: object) -> LockManager:
        full = {name if "hoodie." in name else f"hoodie.write.lock.{name}": value for name, value in options.items()}
        made.append(LockManager(kind, full, clock=clock, application="test"))
        return made[-1]

    yield make
    for manager in made:
        manager.close()


@pytest.fixture
def run(clock: ManualClock) -> Callable[..., Any]:
    """Run a call on a thread while virtual time passes in steps; its result, or its error raised."""

    def run_through(call: Callable[[], Any], step_s: float = 0.25, limit_s: float = 100_000.0) -> Any:
        outcome: list[Any] = []
        done = threading.Event()

        def work() -> None:
            try:
                outcome.append((True, call()))
            except BaseException as error:
                outcome.append((False, error))
            finally:
                done.set()

        thread = threading.Thread(target=work)
        parked = clock.parked()
        thread.start()
        ends_s = clock.monotonic() + limit_s
        while not done.is_set() and clock.monotonic() < ends_s:
            if clock.parked() > parked:
                clock.advance(step_s)
            done.wait(0.0005)
        assert done.wait(5), "the call did not come back"
        thread.join()
        succeeded, value = outcome[0]
        if not succeeded:
            raise value
        return value

    return run_through
