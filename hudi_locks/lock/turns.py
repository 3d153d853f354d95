"""The local queue: threads of one process stand in line here, so that one of them asks the lock service."""

from __future__ import annotations

import threading
from collections import deque

from hudi_locks.clock import Clock
from hudi_locks.errors import AlreadyHeld
from hudi_locks.lock.lease import Owner
from hudi_locks.lock.scope import LockScope

__all__ = ["Turns"]


class Turns:
    """First come, first served, for each scope. A turn lasts from `enter` until `leave`. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._lines: dict[LockScope, deque[tuple[Owner, threading.Event | None]]] = {}

    def enter(self, scope: LockScope, owner: Owner, timeout_s: float) -> bool:
        """Stand in line and wait for the turn; False, and out of the line, if it did not come in time.

        Raises:
            AlreadyHeld: It is the owner's turn.
        """
        with self._lock:
            line = self._lines.setdefault(scope, deque())
            if line and line[0][0] == owner:
                raise AlreadyHeld(
                    f"thread {owner.thread} holds the lock on {scope} already; release it first, or pass the hold on",
                    scope=scope,
                    owner=owner,
                )
            place = (owner, threading.Event() if line else None)
            line.append(place)
        if place[1] is None:
            return True
        try:
            arrived = self._clock.wait(place[1], timeout_s)
        except BaseException:
            if not self._give_up(scope, place):
                self.leave(scope)
            raise
        return arrived or not self._give_up(scope, place)

    def leave(self, scope: LockScope) -> None:
        """End the turn; the next in line has it from here on."""
        with self._lock:
            line = self._lines[scope]
            line.popleft()
            if not line:
                del self._lines[scope]
            elif (event := line[0][1]) is not None:
                event.set()

    def owner(self, scope: LockScope) -> Owner | None:
        """Whose turn it is; None if nobody stands in line."""
        with self._lock:
            line = self._lines.get(scope)
            return line[0][0] if line else None

    def waiting(self, scope: LockScope) -> int:
        """How many stand in line behind the one whose turn it is."""
        with self._lock:
            return max(0, len(self._lines.get(scope, ())) - 1)

    def _give_up(self, scope: LockScope, place: tuple[Owner, threading.Event | None]) -> bool:
        with self._lock:
            line = self._lines[scope]
            if line[0] is not place:
                line.remove(place)
                return True
        return False
