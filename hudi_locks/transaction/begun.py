"""A write that was begun, as every later step of it knows it."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_locks.format import Instant
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.heartbeat import WriterHeartbeat

__all__ = ["Begun"]


@dataclass(frozen=True)
class Begun:
    """A write that was begun.

    Attributes:
        instant: Inflight.
        timeline: The snapshot that it builds on.
        claim_head: Number of the last claim before that snapshot.
        heartbeat: Beats until the write ends.
        lock_wait_ms: How long its begin waited for the table lock.
        lock_held_ms: How long its begin held it.
        archived: Instants that had left the timeline before the snapshot was taken, as far as it may matter.
        mark: What its inflight file must hold at the publish; None if that does not matter.
        turn: How often it went on from a later snapshot.
    """

    instant: Instant
    timeline: Timeline
    claim_head: int
    heartbeat: WriterHeartbeat
    lock_wait_ms: int = 0
    lock_held_ms: int = 0
    archived: frozenset[str] = frozenset()
    mark: bytes | None = None
    turn: int = 0
