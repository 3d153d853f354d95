"""One call of `LockManager.lock`, from the first request to the last."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence

from hudi_locks.clock import Clock
from hudi_locks.errors import BackendUnavailable, ProviderClosed
from hudi_locks.lock.capability import Capability
from hudi_locks.lock.lease import Lease, Owner
from hudi_locks.lock.provider import LockProvider
from hudi_locks.lock.retry import RetryPolicy
from hudi_locks.lock.scope import LockScope

__all__ = ["Acquisition"]


class Acquisition:
    """Asks a provider for one scope, or for several at once, as often and as long as policy and deadline allow.

    `BackendUnavailable` counts as a request that did not get the lock; every other error ends the acquisition at once,
    for another attempt cannot heal it.

    Args:
        timeout_s: Bound for all of it, from now; infinite for none.
        before: Called before each request; what it raises counts as if the request had raised it, and is tried again
            within the attempt also if the provider waits itself: that one was never asked.

    Attributes:
        scopes: What is asked for: all or none of it.
        attempts: Attempts begun so far.
        requests: Requests sent so far.
        started_s: When it was made, on the monotonic clock.
        sent_s: When the last request was sent, on the monotonic clock.
        last_error: What the lock service last failed with; None if it never did.
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
    ) -> None:
        self._provider = provider
        self._before = before
        self._clock: Clock = provider.clock
        self._waits_itself = Capability.TIMED_WAIT in provider.capabilities
        self.scopes = scopes
        self.owner = owner
        self.policy = policy
        self.timeout_s = timeout_s
        self.started_s = self.sent_s = self._clock.monotonic()
        self.attempts = 0
        self.requests = 0
        self.last_error: BackendUnavailable | None = None
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
        self._was_asked = False
        try:
            self._before()
            self._was_asked = True
            if len(self.scopes) > 1:
                return self._provider.acquire_many(self.scopes, self.owner, timeout_s)
            lease = self._provider.try_acquire(self.scopes[0], self.owner, timeout_s)
            return None if lease is None else [lease]
        except BackendUnavailable as error:
            self.last_error = error
            return None

    def _pause(self, duration_s: float, until_s: float, *, closing: threading.Event) -> bool:
        """Wait, but not beyond `until_s`; False without waiting if that is past."""
        left_s = until_s - self._clock.monotonic()
        if left_s <= 0:
            return False
        if self._clock.wait(closing, min(duration_s, left_s)):
            raise ProviderClosed(f"the manager was closed while it waited for {self}", scope=self.scopes[0])
        return True
