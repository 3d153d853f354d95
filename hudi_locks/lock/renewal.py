"""The renewal thread: keeps every lease of a manager alive, and tells of those that are lost."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Final

from hudi_locks.clock import Clock
from hudi_locks.lock.lease import generation

__all__ = ["Renewable", "Renewals"]

_MOST_THREADS: Final = 8
"""One thread does the work. Others come only while it is stuck in a call, so that one slow lock service call does not
keep other leases from being renewed; this many may be stuck before renewals fall behind."""
_JOIN_S: Final = 5.0


class Renewable(ABC):
    """What the renewal thread looks after.

    Attributes:
        due_s: When it wants to be tended next, on the monotonic clock.
    """

    due_s: float

    @abstractmethod
    def alarm_s(self) -> float:
        """When it must be looked at even if its present tending does not come back."""

    @abstractmethod
    def tend(self) -> None:
        """Renew, or tell of the loss; sets `due_s`. Never raises."""


class Renewals:
    """Calls `tend` of everything added, when it is due. Thread-safe; daemon threads, started by the first `add`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tended: dict[Renewable, None] = {}
        self._idle: dict[threading.Event, float] = {}
        self._threads: list[threading.Thread] = []
        self._first_wake_s = float("-inf")
        self._latest_due_s = float("-inf")
        self._closed = False
        self._generation = generation()

    def add(self, renewable: Renewable) -> None:
        """Look after `renewable` from now on."""
        with self._lock:
            self._tended[renewable] = None
            self._latest_due_s = renewable.due_s
            if not self._threads:
                self._start_thread()
            elif renewable.due_s < self._first_wake_s:
                self._wake_all()

    def discard(self, renewable: Renewable) -> None:
        """Look after it no more."""
        with self._lock:
            self._tended.pop(renewable, None)

    def poke(self) -> None:
        """Look at all `due_s` again, for one has come nearer."""
        with self._lock:
            self._wake_all()

    def close(self) -> None:
        """End the threads, apart from one that calls this itself; in a forked child there are none."""
        if self._generation != generation():
            return
        with self._lock:
            self._closed = True
            self._wake_all()
            threads = [thread for thread in self._threads if thread is not threading.current_thread()]
        for thread in threads:
            thread.join(_JOIN_S)

    def _work(self) -> None:
        while (renewable := self._take()) is not None:
            renewable.tend()

    def _take(self) -> Renewable | None:
        while True:
            with self._lock:
                if self._closed:
                    return None
                first = min(self._tended, key=lambda renewable: renewable.due_s, default=None)
                now_s = self._clock.monotonic()
                if first is not None and first.due_s <= now_s:
                    return self._begin(first)
                event, wakes_s = threading.Event(), self._choose_wake_s(first, now_s)
                self._idle[event] = wakes_s
                self._note_first_wake()
            self._clock.wait(event, wakes_s - now_s)
            with self._lock:
                del self._idle[event]
                self._note_first_wake()

    def _note_first_wake(self) -> None:
        """Kept, since every lock that is taken asks for it; with nobody idle there is nobody to wake."""
        self._first_wake_s = min(self._idle.values(), default=float("-inf"))

    def _choose_wake_s(self, first: Renewable | None, now_s: float) -> float:
        """When to look again by itself.

        With nothing to do that is when the last lease added would have been due: a thread that slept for ever would be
        woken by every one of a row of quick lock cycles.
        """
        if first is not None:
            return first.due_s
        return self._latest_due_s if self._latest_due_s > now_s else float("inf")

    def _begin(self, renewable: Renewable) -> Renewable:
        renewable.due_s = renewable.alarm_s()
        if not self._idle and len(self._threads) < _MOST_THREADS:
            self._start_thread()
        return renewable

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=f"hudi-locks-renewal-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _wake_all(self) -> None:
        for event in self._idle:
            event.set()
