"""Faults in who comes next."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from hudi_locks import Capability, Clock, Lease, LockScope, Owner, ProviderClosed
from hudi_locks.lock import LossCallback
from hudi_locks_conformance.sample import SampleHooks, SampleLockProvider

__all__ = ["PunishesWaiting", "Queued", "ServesTheLast", "StaysInLine", "WaitsOnAndOn", "WakesAll"]


class Queued(SampleLockProvider):
    """Lets the threads of one process wait in line, first come, first served; nothing is wrong with it."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities | {
        Capability.TIMED_WAIT,
        Capability.FAIR,
        Capability.CANCEL,
    }
    lines: ClassVar[dict[Path, list[threading.Event]]] = {}

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.turns: list[threading.Event] = []

    def line(self, scope: LockScope) -> list[threading.Event]:
        """Who waits for a lock."""
        return self.lines.setdefault(self.path(scope), [])

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Acquire, or wait for one's turn."""
        lease = None if self.line(scope) else super().try_acquire(scope, owner, 0.0)
        if lease is not None or timeout_s <= 0:
            return lease
        turn = threading.Event()
        self.turns.append(turn)
        self.line(scope).append(turn)
        return self.await_turn(scope, owner, turn, self.clock.monotonic() + timeout_s)

    def await_turn(self, scope: LockScope, owner: Owner, turn: threading.Event, until_s: float) -> Lease | None:
        """Wait until it is one's turn, and take it."""
        self.clock.wait(turn, until_s - self.clock.monotonic())
        self.leave(scope, turn)
        return super().try_acquire(scope, owner, 0.0)

    def leave(self, scope: LockScope, turn: threading.Event) -> None:
        """Stand in line no more."""
        if turn in self.line(scope):
            self.line(scope).remove(turn)
        if self.closed:
            raise ProviderClosed("the sample lock provider is closed", scope=scope)

    def wake(self, line: list[threading.Event]) -> None:
        """Tell who is next."""
        line[0].set()

    def release(self, lease: Lease) -> None:
        """Let go, and wake the next one."""
        was_ours = lease.scope in self.held
        super().release(lease)
        if was_ours and self.line(lease.scope):
            self.wake(self.line(lease.scope))

    def close(self) -> None:
        """End its waits, too."""
        super().close()
        for turn in self.turns:
            turn.set()

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""

        class Hooks(SampleHooks):
            def waiters(self, scope: LockScope) -> int:
                """How many stand in line."""
                provider: Any = self._provider
                return len(provider.line(scope))

        return Hooks


class ServesTheLast(Queued):
    """Serves who came last first."""

    def wake(self, line: list[threading.Event]) -> None:
        """The wrong end."""
        line[-1].set()


class WakesAll(Queued):
    """Lets everybody look after each release."""

    def wake(self, line: list[threading.Event]) -> None:
        """All of them."""
        for turn in line:
            turn.set()

    def await_turn(self, scope: LockScope, owner: Owner, turn: threading.Event, until_s: float) -> Lease | None:
        """Look whenever woken; the first in line takes it."""
        while self.clock.monotonic() < until_s:
            self.clock.wait(turn, until_s - self.clock.monotonic())
            turn.clear()
            if self.read(scope) is None and self.line(scope)[0] is turn:
                break
        self.leave(scope, turn)
        return SampleLockProvider.try_acquire(self, scope, owner, 0.0)


class StaysInLine(Queued):
    """Does not leave the line when its client is closed."""

    def leave(self, scope: LockScope, turn: threading.Event) -> None:
        """Leave only while open."""
        if not self.closed:
            self.line(scope).remove(turn)
        super().leave(scope, threading.Event())


class PunishesWaiting(SampleLockProvider):
    """Makes who was refused wait twice as long each time before it looks again."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Refuse until the penalty is over."""
        penalties = self.__dict__.setdefault("penalties", {})
        since_s, penalty_s = penalties.get(scope, (0.0, 0.0))
        if self.clock.monotonic() < since_s + penalty_s:
            return None
        lease = super().try_acquire(scope, owner, timeout_s)
        penalties[scope] = (self.clock.monotonic(), 2 * penalty_s or 100.0) if lease is None else (0.0, 0.0)
        return lease


class WaitsOnAndOn(SampleLockProvider):
    """Claims to wait, and waits five times as long as it may."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities | {Capability.TIMED_WAIT}

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Ask, sleep, ask."""
        lease = super().try_acquire(scope, owner, timeout_s)
        if lease is None and timeout_s > 0:
            self.clock.sleep(5 * timeout_s)
            lease = super().try_acquire(scope, owner, timeout_s)
        return lease
