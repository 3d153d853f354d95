"""Requests that travel together, and what came of each."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from kazoo.exceptions import ConnectionLoss

__all__ = ["Errand", "Flight", "submit"]

_PENDING: Final = object()


class _Slot:
    """One answer; what kazoo's connection knows as an asynchronous result."""

    __slots__ = ("_flight", "outcome")

    def __init__(self, flight: Flight) -> None:
        self._flight = flight
        self.outcome: Any = _PENDING

    def set(self, value: Any = None) -> None:
        self._end(value)

    def set_exception(self, error: Exception) -> None:
        self._end(error)

    def _end(self, outcome: Any) -> None:
        if self.outcome is _PENDING:
            self.outcome = outcome
            self._flight.count_one()


class Errand:
    """One request whose outcome is told to `heard` on kazoo's connection thread, once."""

    def __init__(self, heard: Callable[[Any], None]) -> None:
        self._heard: Callable[[Any], None] | None = heard

    def set(self, value: Any = None) -> None:
        """What kazoo calls with an answer."""
        heard, self._heard = self._heard, None
        if heard is not None:
            heard(value)

    def set_exception(self, error: Exception) -> None:
        """What kazoo calls with a failure."""
        self.set(error)


class Flight:
    """Some requests sent one after the other, of which the server answers each, in order.

    Cheaper than as many asynchronous results of kazoo: one lock for all, and no second thread for completions.
    """

    def __init__(self, size: int) -> None:
        self._left = size
        self._counting = threading.Lock()
        self._landed = threading.Lock()
        self._landed.acquire()
        self.slots: Sequence[_Slot] = [_Slot(self) for _ in range(size)]

    def count_one(self) -> None:
        """Note that one more slot has its outcome."""
        with self._counting:
            self._left -= 1
            if self._left == 0:
                self._landed.release()

    def wait(self, timeout_s: float) -> list[Any]:
        """The outcome of each request, a value or an exception; those without an answer by then count as lost."""
        if self._landed.acquire(timeout=timeout_s):
            return [slot.outcome for slot in self.slots]
        lost = ConnectionLoss()
        return [lost if slot.outcome is _PENDING else slot.outcome for slot in self.slots]


def submit(client: Any, request: Any, answer: _Slot | Errand) -> None:
    """Queue a request with kazoo's client; its public methods would cost a thread's turn for each answer.

    A client that loses its link fails what is queued, and keeps what is queued a moment later until the link is back:
    that one is taken out again, so that its sender need not wait for it.
    """
    client._call(request, answer)  # noqa: SLF001  # see above
    if not client.connected:
        with contextlib.suppress(ValueError, IndexError):  # gone already, or on its way while we look
            client._queue.remove((request, answer))  # noqa: SLF001  # see above
        answer.set_exception(ConnectionLoss())
