"""How often and how long a lock is asked for.

Three levels, as in Hudi: a *request* is one call of `LockProvider.try_acquire`; an *attempt* is as many requests as
`hoodie.write.lock.num_retries` + 1 within `hoodie.write.lock.wait_time_ms`; and there are
`hoodie.write.lock.client.num_retries` + 1 attempts. A provider that claims TIMED_WAIT spends the whole wait of an
attempt in one request, and applies `num_retries` to its own calls of the lock service.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from hudi_locks.config import Options, lock_keys

__all__ = ["RetryPolicy"]


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

    def request_pauses(self, rng: random.Random) -> Iterator[float]:
        """Pauses between the requests of one attempt: jittered, doubling, within their bounds."""
        for retry in range(self.num_retries):
            bound_s = min(self.max_pause_s, math.ldexp(self.pause_s, min(retry, 64)))
            yield rng.uniform(self.pause_s, bound_s)

    def attempt_pause(self, rng: random.Random) -> float:
        """Pause before the next attempt, jittered so that contenders fall out of step."""
        return rng.uniform(0.5, 1.0) * self.client_pause_s
