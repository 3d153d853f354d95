"""What a check works with: clients, owners, scopes, time, and the two ways to end."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from hudi_locks import (
    BackendUnavailable,
    Clock,
    Lease,
    LockManager,
    LockProvider,
    LockScope,
    ManualClock,
    Owner,
    SystemClock,
)
from hudi_locks.config import Options
from hudi_locks.lock import LossCallback
from hudi_locks_conformance.check import Inapplicable, Late, NotRun, Stuck, Violation
from hudi_locks_conformance.clocks import BenchClock
from hudi_locks_conformance.harness import Harness
from hudi_locks_conformance.history import History
from hudi_locks_conformance.limits import Patience
from hudi_locks_conformance.tracing import Calls, trace

__all__ = ["Answer", "Bench"]

_LONGEST_S: Final = 1_200.0
"""So much virtual time passes for calls that wait for it; one that then still waits tries again for ever."""
_IDLE_S: Final = 10.0
"""After so much real time in which calls neither come back nor wait, time passes all the same, where another thread
waits for it: what they wait for may be in its hands. Where none does, a service is slow to answer."""
_STEP_S: Final = 0.05
_POLL_S: Final = 0.0005
_QUICK_WAITS: Final = {
    "hoodie.write.lock.wait_time_ms": 2_000,
    "hoodie.write.lock.num_retries": 1_000,
    "hoodie.write.lock.wait_time_ms_between_retry": 20,
    "hoodie.write.lock.max_wait_time_ms_between_retry": 40,
    "hoodie.write.lock.client.num_retries": 0,
    "hoodie.write.lock.client.wait_time_ms_between_retry": 20,
}


@dataclass
class Answer:
    """How a call ended, and when on the bench's clock it did."""

    value: Any = None
    error: BaseException | None = None
    ended_s: float = 0.0


class Bench:
    """Made anew for each check; what it made is closed afterwards.

    Attributes:
        clock: Virtual if the provider can keep it, else the system's.
        rng: Seeded by the run and the check.
        history: For checks that record one; kept as evidence.
        notes: What a person should know although it is no violation.
        run_name: Unique; part of all its names.
        stack: What is undone at the end of the check, the last first.
    """

    def __init__(self, harness: Harness, check_id: str, *, real_time: bool = False) -> None:
        self.harness = harness
        self.check_id = check_id
        self.clock: Clock = BenchClock() if harness.virtual_time and not real_time else SystemClock()
        self.rng: random.Random = random.Random(f"{harness.seed} {check_id}")  # noqa: S311  # repeatable, guards nothing
        self.history: History = History()
        self.notes: list[str] = []
        self.stack: ExitStack = ExitStack()
        self.run_name: str = uuid.uuid4().hex

    @property
    def is_virtual(self) -> bool:
        """Whether the kit moves the time."""
        return isinstance(self.clock, ManualClock)

    @property
    def slack_s(self) -> float:
        """By how much a duration may be exceeded: one step of virtual time, or what a busy machine takes."""
        return 3 * _STEP_S if self.is_virtual else 1.0

    def scope(self, number: int = 0) -> LockScope:
        """A file group that no other check uses."""
        return LockScope.file_group(f"conformance/{self.check_id}", f"{self.run_name}-{number}")

    def scopes(self) -> tuple[LockScope, LockScope]:
        """The table's own lock, and a file group's."""
        return LockScope.table(), self.scope()

    def owner(self, name: str = "a") -> Owner:
        """An owner of that name, in this process."""
        return Owner(f"{name}-{self.run_name}", "conformance-host", 4711, name, "conformance kit")

    def provider(
        self,
        options: Mapping[str, str] | None = None,
        *,
        clock: Clock | None = None,
        calls: Calls | None = None,
        on_lost: LossCallback = lambda *_: None,
    ) -> LockProvider:
        """A new client; with `calls`, one whose calls are recorded and may be tampered with there."""
        kind = self.harness.kind if calls is None else trace(self.harness.kind, calls)
        full = self.harness.options if options is None else options
        made = kind(full if isinstance(full, Options) else dict(full), clock=clock or self.clock, on_lost=on_lost)
        self.stack.callback(made.close)
        return made

    def manager(
        self, options: Mapping[str, object] | None = None, *, calls: Calls | None = None, clock: Clock | None = None
    ) -> LockManager:
        """A manager over a new client, with short waits; `options` come on top."""
        kind = self.harness.kind if calls is None else trace(self.harness.kind, calls)
        full = {**self.harness.options, **_QUICK_WAITS, **(options or {})}
        made = LockManager(kind, full, clock=clock or self.clock, application="conformance kit")
        self.stack.callback(made.close)
        return made

    def hook(self, provider: LockProvider, name: str) -> Callable[..., Any]:
        """A back door of the provider.

        Raises:
            NotRun: It has none of that name.
        """
        self.need_hook(name)
        found: Callable[..., Any] = getattr(self.harness.hooks(provider), name)
        return found

    def need_hook(self, name: str) -> Any:
        """The back door's value on the class; see `hook`.

        Raises:
            Inapplicable: It is None there.
        """
        if not hasattr(self.harness.hooks, name):
            raise NotRun(f"the provider offers no hook {name!r} (conformance_hooks)")
        found = getattr(self.harness.hooks, name)
        if found is None:
            raise Inapplicable(f"the provider's hooks say that {name!r} has no meaning for it")
        return found

    def hooks(self) -> Any:
        """The back doors of a client that is used for nothing else; None if the class has none."""
        return self.harness.hooks and self.harness.hooks(self.provider())

    def need_virtual(self) -> ManualClock:
        """The virtual clock.

        Raises:
            NotRun: The provider keeps another time.
        """
        if not isinstance(self.clock, ManualClock):
            raise NotRun("the provider does not keep the kit's time (hooks: virtual_time)")
        return self.clock

    def acquire(self, provider: LockProvider, scope: LockScope, name: str = "a") -> Lease:
        """Acquire a lock that must be free."""
        lease = provider.try_acquire(scope, self.owner(name), 0.0)
        if lease is None:
            raise Violation(f"a free lock ({scope}) was not granted to {name}")
        return lease

    def expect(self, holds: object, demand: str) -> None:
        """Fail with `demand` unless `holds`."""
        if not holds:
            raise Violation(demand)

    def expect_no_error(self, answers: Iterable[Answer], said: str) -> None:
        """Fail with `said` and what was raised, if anything was.

        Raises:
            BackendUnavailable: The lock service did not answer, which may be a hiccup.
            Late: The threads did not meet at their barrier.
        """
        for answer in answers:
            if isinstance(answer.error, BackendUnavailable):
                raise answer.error
            if isinstance(answer.error, threading.BrokenBarrierError):
                raise Late("the threads of the kit did not begin together in time")
            self.expect(answer.error is None, f"{said} raised {answer.error!r}")

    def expect_in_time(self, took_s: float, longest_s: float, said: str) -> None:
        """Fail with `said` if it took longer, by more than `slack_s`."""
        if took_s > longest_s + self.slack_s:
            raise (Violation if self.is_virtual else Late)(said)

    def expect_free(self, scope: LockScope, said: str) -> None:
        """Fail unless another client can have the lock now."""
        self.expect(self.is_free(scope), said)

    def is_free(self, scope: LockScope) -> bool:
        """Whether another client can have the lock now."""
        other = self.provider()
        lease = other.try_acquire(scope, self.owner("successor"), 0.0)
        if lease is not None:
            other.release(lease)
        other.close()
        return lease is not None

    def expect_taken(self, scope: LockScope, said: str) -> None:
        """Fail if another client can have the lock now."""
        other = self.provider()
        lease = other.try_acquire(scope, self.owner("intruder"), 0.0)
        self.expect(lease is None, said)
        other.close()

    @contextmanager
    def expect_raises(
        self, kinds: type[BaseException] | tuple[type[BaseException], ...], said: str
    ) -> Iterator[Answer]:
        """Fail unless the block raises one of `kinds`."""
        answer = Answer()
        try:
            yield answer
        except kinds as error:
            answer.error = error
        self.expect(answer.error is not None, said)

    def let_pass(self, duration_s: float) -> None:
        """Let time pass, whoever waits for it."""
        if isinstance(self.clock, ManualClock):
            self.clock.advance(duration_s)
        else:
            self.clock.sleep(duration_s)

    def retire(self) -> None:
        """Close all that was made so far, so that none of its threads counts among those that wait for time."""
        (closed,) = self.run(self.stack.close)
        if closed.error is not None:
            raise closed.error

    def note(self, text: str) -> None:
        """Tell something that is no violation."""
        self.notes.append(text)

    def run(self, *calls: Callable[[], Any], beside: Callable[[], None] = lambda: None) -> list[Answer]:
        """Run calls side by side on threads while time passes; how each ended.

        Args:
            calls: What to run.
            beside: Called again and again meanwhile, on this thread.

        Raises:
            Stuck: One does not come back.
        """
        return self.finish(self.start(*calls), beside=beside)

    def finish(
        self, running: Running, *, step_s: float = _STEP_S, beside: Callable[[], None] = lambda: None
    ) -> list[Answer]:
        """Let time pass in steps until the calls came back, while anything goes on; how each ended.

        Raises:
            Stuck: One does not come back.
        """
        patience, seen, ends_s = Patience(), self._progress(running), self.clock.monotonic() + _LONGEST_S
        while not running.done():
            beside()
            running.let_pass(step_s)
            before, seen = seen, self._progress(running)
            if seen != before:
                patience.renew()
            patience.expect_left("a call did not come back", Stuck)
            if self.clock.monotonic() > ends_s:
                raise Stuck(f"a call did not come back within {_LONGEST_S:.0f} s of virtual time")
        return running.answers

    def _progress(self, running: Running) -> tuple[float, ...]:
        """What changes where something goes on: calls that end, what they recorded, virtual time that passed."""
        passed_s = self.clock.monotonic() if self.is_virtual else 0.0
        return running.count_ended(), len(self.history.operations), passed_s

    def start(self, *calls: Callable[[], Any]) -> Running:
        """Run calls side by side on threads; time passes only by `Running.let_pass`."""
        return Running(calls, self.clock)


class Running:
    """Calls on threads of their own."""

    def __init__(self, calls: tuple[Callable[[], Any], ...], clock: Clock) -> None:
        self._clock = clock
        self._idle = Patience(_IDLE_S)
        self.answers: list[Answer] = [Answer() for _ in calls]
        self._threads = [
            threading.Thread(target=self._work, args=(call, answer), daemon=True)
            for call, answer in zip(calls, self.answers, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, call: Callable[[], Any], answer: Answer) -> None:
        try:
            answer.value = call()
        except BaseException as error:  # noqa: BLE001  # handed to the check, which judges it
            answer.error = error
        answer.ended_s = self._clock.monotonic()

    def done(self) -> bool:
        """Whether all came back."""
        return self.count_ended() == len(self._threads)

    def count_ended(self) -> int:
        """How many came back."""
        return sum(not thread.is_alive() for thread in self._threads)

    def waiting(self) -> bool:
        """Whether all that did not come back wait for time to pass, as far as can be told."""
        if not isinstance(self._clock, ManualClock):
            return True
        return all(self._clock.waits(thread) for thread in self._threads if thread.is_alive())

    def let_pass(self, duration_s: float) -> None:
        """Let virtual time pass if all wait for it, or if nothing else helps; a moment of real time in any case."""
        if self.waiting():
            self._idle.renew()
        if isinstance(self._clock, ManualClock) and not self.done() and (self._may_help(self._clock) or self.waiting()):
            self._clock.advance(duration_s)
        SystemClock().sleep(_POLL_S)

    def _may_help(self, clock: ManualClock) -> bool:
        """Whether time may free the calls: they have stood still for long, and another thread waits for it."""
        return self._idle.is_over and clock.parked() > 0

    def settle(self) -> None:
        """Return once all wait or came back.

        Raises:
            Stuck: One does neither.
        """
        patience = Patience()
        while not (self.done() or self.waiting()):
            patience.expect_left("a call neither waits nor comes back", Stuck)
            SystemClock().sleep(_POLL_S)
        if not isinstance(self._clock, ManualClock):
            SystemClock().sleep(_STEP_S)


def close_bench(bench: Bench) -> None:
    """Close all that a bench made."""
    bench.retire()
