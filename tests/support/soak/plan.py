"""What a run is, and what each of its writers is told; values that travel to processes as JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

from hudi_locks import SystemClock

__all__ = ["HEARTBEAT_LIMIT_S", "OPTIONS", "SkewedClock", "WriterSpec", "draw_stop_s", "find_heartbeat_limit_s"]

HEARTBEAT_LIMIT_S: Final = 3.0
OPTIONS: Final[Mapping[str, str]] = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.client.heartbeat.tolerable.misses": "3",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "10",
    "hoodie.archive.automatic": "false",
    "hoodie.write.lock.num_retries": "100000",
    "hoodie.write.lock.wait_time_ms": "60000",
    "hoodie.write.lock.wait_time_ms_between_retry": "5",
    "hoodie.write.lock.max_wait_time_ms_between_retry": "100",
    "hudi_locks.sweep_before_write": "true",
}
"""Of every writer; a run adds those of its lock service. What is archived could not be replayed."""
_LONG_SHARE: Final = 0.2


@dataclass(frozen=True)
class WriterSpec:
    """One writer.

    Attributes:
        path: Base path of the table.
        name: Middle part of the names of its deeds; unique in the run.
        seed: First part of them.
        options: Hudi's keys, for the write and its lock.
        skew_ms: How far its clock is off.
        lease_s: How long the lock of a dead holder stands.
        risk: How likely it stops or kills itself at each named point of the protocol.
        beside_jvm: See `draw_deed`.
        deeds: After so many it ends; 0 for none, until it is told to end.
    """

    path: str
    name: str
    seed: int
    options: Mapping[str, str]
    skew_ms: int = 0
    lease_s: float = 0.0
    risk: float = 0.0
    beside_jvm: bool = False
    deeds: int = 0

    def encode(self) -> str:
        """As an argument of a command."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> WriterSpec:
        """What `encode` gave."""
        return cls(**json.loads(text))


class SkewedClock(SystemClock):
    """The machine's clock, with a wall clock that is off by `skew_ms`."""

    def __init__(self, skew_ms: int) -> None:
        self._skew_ms = skew_ms

    def wall_ms(self) -> int:
        return super().wall_ms() + self._skew_ms


def find_heartbeat_limit_s(options: Mapping[str, str]) -> float:
    """After so long without a beat a writer with these options counts as dead."""
    names = ("hoodie.client.heartbeat.interval_in_ms", "hoodie.client.heartbeat.tolerable.misses")
    interval_ms, misses = (int(options[name]) for name in names)
    return interval_ms * misses / 1000


def draw_stop_s(rng: random.Random, lease_s: float) -> float:
    """For how long a process is stopped: about as long as a heartbeat lives, and now and then past the lease."""
    if rng.random() < _LONG_SHARE:
        return max(rng.uniform(1.05, 1.4) * lease_s, HEARTBEAT_LIMIT_S)
    return rng.uniform(0.05, 1.5 * HEARTBEAT_LIMIT_S)
