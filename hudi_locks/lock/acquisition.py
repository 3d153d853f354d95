"""How a thread gets a lock: the queue of this process, then attempts and requests, with pauses between them.

Three levels, as in Hudi: a *request* is one call of `LockProvider.try_acquire`; an *attempt* is as many requests as
`hoodie.write.lock.num_retries` + 1 within `hoodie.write.lock.wait_time_ms`; and there are
`hoodie.write.lock.client.num_retries` + 1 attempts. A provider that claims TIMED_WAIT spends the whole wait of an
attempt in one request, and applies `num_retries` to its own calls of the lock service.
"""

from __future__ import annotations

import math
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hudi_locks.clock import Clock
from hudi_locks.config import Options, lock_keys
from hudi_locks.errors import AlreadyHeld, BackendUnavailable, ProviderClosed
from hudi_locks.lock.capability import Capability
from hudi_locks.lock.lease import Lease, LockScope, Owner
from hudi_locks.lock.lock_trace import LockTrace
from hudi_locks.lock.provider import LockProvider

__all__ = ["Acquisition", "LocalQueue", "RetryPolicy"]

_DOUBLINGS: Final = 64
"""After so many a pause of a millisecond is longer than any bound."""


class Acquisition:
    """Asks a provider for one scope, or for several at once, as often and as long as policy and deadline allow.

    `BackendUnavailable` counts as a request that did not get the lock; every other error ends the acquisition at once,
    for another attempt cannot heal it.

    Args:
        timeout_s: Bound for all of it, from now; infinite for none.
        before: Called before each request; what it raises counts as if the request had raised it, and is tried again
            within the attempt also if the provider waits itself: that one was never asked.
        trace: Told who stands in the way.

    Attributes:
        scopes: What is asked for: all or none of it.
        attempts: Attempts begun so far.
        requests: Requests sent so far.
        started_s: When it was made, on the monotonic clock.
        sent_s: When the last request was sent, on the monotonic clock.
        last_error: What the lock service last failed with; None if it never did.
        is_unanswered: Whether it failed at the last request.
    """

    def __init__(
        self,
        provider: LockProvider,
        scopes: Sequence[LockScope],
        *,
        owner: Owner,
        policy: RetryPolicy,
        timeout_s: float,
        before: Callable[[], None],
        trace: LockTrace,
    ) -> None:
        self._provider = provider
        self._before = before
        self.trace = trace
        self._clock: Clock = provider.clock
        self._waits_itself = Capability.TIMED_WAIT in provider.capabilities
        self.scopes = scopes
        self.owner = owner
        self.policy = policy
        self.timeout_s = timeout_s
        self.started_s: float = self._clock.monotonic()
        self.sent_s: float = self.started_s
        self.attempts: int = 0
        self.requests: int = 0
        self.last_error: BackendUnavailable | None = None
        self.is_unanswered: bool = False
        self._was_asked = False

    def __str__(self) -> str:
        first = str(self.scopes[0])
        return first if len(self.scopes) == 1 else f"{first} and {len(self.scopes) - 1} others"

    def run(self, closing: threading.Event, rng: random.Random) -> list[Lease] | None:
        """Make all attempts; None if a lock stayed out of reach.

        Raises:
            ProviderClosed: `closing` was set meanwhile.
        """
        deadline_s = self.started_s + self.timeout_s
        while True:
            self.attempts += 1
            self.sent_s = self._clock.monotonic()
            leases = self._attempt(min(deadline_s, self.sent_s + self.policy.wait_s), closing, rng)
            if leases or self.attempts >= self.policy.attempts:
                return leases
            if not self._pause(self.policy.attempt_pause(rng), deadline_s, closing=closing):
                return None

    def _attempt(self, ends_s: float, closing: threading.Event, rng: random.Random) -> list[Lease] | None:
        leases = self._request(ends_s)
        if leases or (self._waits_itself and self._was_asked):
            return leases
        for pause_s in self.policy.request_pauses(rng):
            if not self._pause(pause_s, ends_s, closing=closing):
                return None
            self.sent_s = self._clock.monotonic()
            if leases := self._request(ends_s):
                return leases
        return None

    def _request(self, ends_s: float) -> list[Lease] | None:
        self.requests += 1
        timeout_s = max(0.0, ends_s - self.sent_s) if self._waits_itself else 0.0
        self._was_asked = self.is_unanswered = False
        try:
            self._before()
            self._was_asked = True
            if self._waits_itself:
                self.trace.ask_holder(self._provider, self.scopes)
            if len(self.scopes) > 1:
                leases = self._provider.acquire_many(self.scopes, self.owner, timeout_s)
            else:
                lease = self._provider.try_acquire(self.scopes[0], self.owner, timeout_s)
                leases = None if lease is None else [lease]
            if leases is None:
                self.trace.ask_holder(self._provider, self.scopes)
            return leases
        except BackendUnavailable as error:
            self.last_error, self.is_unanswered = error, True
            return None

    def _pause(self, duration_s: float, until_s: float, *, closing: threading.Event) -> bool:
        """Wait, but not beyond `until_s`; False without waiting if that is past."""
        left_s = until_s - self._clock.monotonic()
        if left_s <= 0:
            return False
        if self._clock.wait(closing, min(duration_s, left_s)):
            raise ProviderClosed(f"the manager was closed while it waited for {self}", scope=self.scopes[0])
        return True


class LocalQueue:
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


@dataclass(frozen=True)
class RetryPolicy:
    """The waits of one manager, in seconds.

    Attributes:
        wait_s: Longest duration of one attempt, apart from the last request in it.
        num_retries: Requests of one attempt after its first.
        pause_s: Shortest pause between two requests of one attempt; the bound above it doubles each time.
        max_pause_s: Longest such pause.
        client_num_retries: Attempts after the first.
        client_pause_s: Longest pause between two attempts; never less than half of it.
    """

    wait_s: float
    num_retries: int
    pause_s: float
    max_pause_s: float
    client_num_retries: int
    client_pause_s: float

    @classmethod
    def from_options(cls, options: Options) -> RetryPolicy:
        """The waits that Hudi's keys ask for."""
        pause_s = options.get_value(lock_keys.WAIT_TIME_MS_BETWEEN_RETRY) / 1000
        return cls(
            wait_s=options.get_value(lock_keys.WAIT_TIME_MS) / 1000,
            num_retries=options.get_value(lock_keys.NUM_RETRIES),
            pause_s=pause_s,
            max_pause_s=max(pause_s, options.get_value(lock_keys.MAX_WAIT_TIME_MS_BETWEEN_RETRY) / 1000),
            client_num_retries=options.get_value(lock_keys.CLIENT_NUM_RETRIES),
            client_pause_s=options.get_value(lock_keys.CLIENT_WAIT_TIME_MS_BETWEEN_RETRY) / 1000,
        )

    @property
    def attempts(self) -> int:
        """How many attempts are made in all."""
        return self.client_num_retries + 1

    @property
    def worst_case_s(self) -> float:
        """Longest wait before a lock is given up, apart from the time that requests themselves take."""
        return self.attempts * self.wait_s + self.client_num_retries * self.client_pause_s

    def longest_wait_s(self, *, waits_at_service: bool) -> float:
        """Longest wait before a lock is given up, with one kind of provider, apart from the time of requests.

        Args:
            waits_at_service: Whether the provider claims TIMED_WAIT. Others wait between requests alone, so that few of
                them, with short pauses, end an attempt early.
        """
        doubling = min(self.num_retries, _DOUBLINGS)
        pauses_s = sum(map(self._pause_bound_s, range(doubling)))
        pauses_s += (self.num_retries - doubling) * self._pause_bound_s(_DOUBLINGS)
        attempt_s = self.wait_s if waits_at_service else min(self.wait_s, pauses_s)
        return self.attempts * attempt_s + self.client_num_retries * self.client_pause_s

    def _pause_bound_s(self, retry: int) -> float:
        return min(self.max_pause_s, math.ldexp(self.pause_s, min(retry, _DOUBLINGS)))

    def request_pauses(self, rng: random.Random) -> Iterator[float]:
        """Pauses between the requests of one attempt: jittered, doubling, within their bounds."""
        for retry in range(self.num_retries):
            yield rng.uniform(self.pause_s, self._pause_bound_s(retry))

    def attempt_pause(self, rng: random.Random) -> float:
        """Pause before the next attempt, jittered so that contenders fall out of step."""
        return rng.uniform(0.5, 1.0) * self.client_pause_s
