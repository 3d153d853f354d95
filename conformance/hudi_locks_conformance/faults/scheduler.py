"""Interleaves the requests of several clients in an order that a seed decides, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random
from typing import Any, Final

from hudi_locks import ManualClock
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Stuck
from hudi_locks_conformance.faults.meddler import Send
from hudi_locks_conformance.limits import Patience

__all__ = ["Scheduler"]

_POLL_S: Final = 0.002
_STEP_S: Final = 0.05


class Scheduler:
    """Runs each client on a thread of its own, of which one goes on at a time, up to its next step.

    Requests on other threads than the clients' own are let pass.

    Args:
        bench: Of the check, for its clock.
        rng: Chooses who goes on.

    Attributes:
        trace: Who went on, and up to which step.
    """

    def __init__(self, bench: Bench, rng: Random) -> None:
        self.trace: list[tuple[str, str]] = []
        self._bench = bench
        self._rng = rng
        self._changed = threading.Condition()
        self._parked: dict[str, str] = {}
        self._chosen: str | None = None
        self._failures: list[BaseException] = []
        self._is_over = False

    def step(self, name: str) -> None:
        """Wait for one's turn before the step of that name; returns at once on a thread that is no client's."""
        me = threading.current_thread().name
        with self._changed:
            if me not in self._names or self._is_over:
                return
            self._parked[me] = name
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._chosen == me or self._is_over)
            self._chosen = None
            self._parked.pop(me, None)

    def meddle(self, name: str, send: Send) -> Any:
        """Send a request when it is its client's turn: for the hook `tamper`."""
        self.step(name)
        return send()

    def run(self, works: dict[str, Callable[[], None]]) -> None:
        """Let all work until they are done.

        Raises:
            Stuck: One neither goes on nor ends; and whatever one raises.
        """
        self._names = frozenset(works)
        threads = {
            name: threading.Thread(target=self._work, args=(name, work), name=name, daemon=True)
            for name, work in works.items()
        }
        for thread in threads.values():
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads.values()):
                self._choose(threads)
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()
        self._await_ends(threads)
        if self._failures:
            raise self._failures[0]

    def _work(self, name: str, work: Callable[[], None]) -> None:
        try:
            self.step("begin")
            work()
        except BaseException as error:  # noqa: BLE001  # raised again by `run`
            self._failures.append(error)
        finally:
            with self._changed:
                self._parked[name] = ""
                self._changed.notify_all()

    def _choose(self, threads: dict[str, threading.Thread]) -> None:
        """Wait until all are parked or done, and let one go on."""
        with self._changed:
            patience = Patience()
            while not self._changed.wait_for(
                lambda: self._chosen is None and len(self._parked) == len(threads), _POLL_S
            ):
                patience.expect_left("a client neither goes on nor ends while the others stand still", Stuck)
                self._let_pass(threads)
            ready = sorted(name for name, step in self._parked.items() if step)
            if ready:
                self._chosen = self._rng.choice(ready)
                self.trace.append((self._chosen, self._parked[self._chosen]))
                self._changed.notify_all()
        if not ready:
            self._await_ends(threads)

    def _await_ends(self, threads: dict[str, threading.Thread]) -> None:
        patience = Patience()
        for thread in threads.values():
            patience.await_end(thread, "a client did not end")

    def _let_pass(self, threads: dict[str, threading.Thread]) -> None:
        """Let time pass for a client that waits for it."""
        clock = self._bench.clock
        if isinstance(clock, ManualClock) and any(clock.waits(thread) for thread in threads.values()):
            self._changed.release()
            try:
                clock.advance(_STEP_S)
            finally:
                self._changed.acquire()
