"""Stands between one client and its lock service: counts requests, and does to them what a check asks for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from hudi_locks import LockProvider
from hudi_locks_conformance.bench import Bench

__all__ = ["Action", "Meddler", "Send", "fail_with", "lose_answer", "send_twice"]

Send = Callable[[], Any]
"""Sends a request in truth, and returns its answer; may be called again, later, or never."""
Action = Callable[[Send], Any]
"""What is done in place of sending a request."""


class Meddler:
    """What the hook `tamper` passes requests to. One for each client.

    Attributes:
        names: Of the requests since `begin`.
        always: Done to every request.
        at: Done to the request of that number since `begin`, from 0.
        to: How the names of the requests begin that `at` counts; others pass, for the same work may take more or fewer
            of them the next time.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.always: Action | None = None
        self.at: Mapping[int, Action] = {}
        self.to: str = ""

    def __call__(self, name: str, send: Send) -> Any:
        """Pass one request on, or not."""
        number = sum(earlier.startswith(self.to) for earlier in self.names)
        self.names.append(name)
        action = self.at.get(number, self.always) if name.startswith(self.to) else self.always
        return send() if action is None else action(send)

    def begin(self, at: Mapping[int, Action] | None = None, to: str = "") -> None:
        """Count from 0 again, and do to the requests with these numbers, of those called `to`, what `at` says."""
        self.names = []
        self.at = at or {}
        self.to = to

    def rest(self) -> None:
        """Let all requests pass."""
        self.always, self.at = None, {}

    def watch(self, bench: Bench, provider: LockProvider, door: str = "tamper") -> LockProvider:
        """Stand before a client until the end of the check; the client."""
        context = bench.hook(provider, door)(self)
        stack = bench.stack
        stack.enter_context(context)
        stack.callback(self.rest)
        return provider


def fail_with(error: Exception) -> Action:
    """Answer with an error in place of sending."""

    def fail(send: Send) -> Any:  # noqa: ARG001  # never sent
        raise error

    return fail


def lose_answer(send: Send) -> Any:
    """Let the request take effect, and its answer be lost."""
    send()
    raise TimeoutError("planted by the conformance kit: the answer is lost")


def send_twice(*, keep_first: bool) -> Action:
    """Deliver a request twice, as a network that repeats does; the first answer arrives, or the second."""

    def repeat(send: Send) -> Any:
        if not keep_first:
            with contextlib.suppress(Exception):
                send()
            return send()
        answer = send()
        with contextlib.suppress(Exception):
            send()
        return answer

    return repeat
