"""Completed writes behind pending ones, and what a reader of changes is shown of them (Hudi's hollow commits)."""

from __future__ import annotations

from typing import Final

from hudi_locks.config import write_keys
from hudi_locks.errors import TableError
from hudi_locks.format import add_ms
from hudi_locks.timeline.timeline import Timeline

__all__ = ["end_before_holes"]

_WRITES: Final = ("commit", "deltacommit", "replacecommit")
"""Table services are left out: they bring no rows that a reader could miss."""


def end_before_holes(timeline: Timeline, *, begin: str, end: str | None, policy: str) -> str | None:
    """Up to which completion time the span from `begin` to `end` may be shown.

    A write is behind another if it was begun later. By completion time nothing is ever missed, since a write that is
    still pending gets a later one; a reader that wants the order of beginnings gives up some of the newest instead.

    Args:
        timeline: What is read.
        begin: Completion time where the span begins, itself excluded.
        end: Completion time where it ends, itself included; None for now.
        policy: Of `hoodie.read.timeline.holes.resolution.policy`: USE_TRANSITION_TIME shows everything; BLOCK ends the
            span before the first write that is behind a pending one, so that nothing completed later is shown either,
            and a reader that goes on from there misses nothing; FAIL raises.

    Raises:
        TableError: FAIL, and there is such a write in the span.
    """
    pending = timeline.pending(_WRITES)
    if policy == write_keys.USE_TRANSITION_TIME or not pending:
        return end
    first = pending[0]
    behind = [i for i in timeline.completed_between(begin, end) if i.requested > first.requested]
    if not behind or behind[0].completion is None:
        return end
    if policy == write_keys.BLOCK:
        return add_ms(behind[0].completion, -1)
    key = write_keys.READ_HOLES_POLICY.name
    message = (
        f"{behind[0].action} {behind[0].requested} is completed while {first.action} {first.requested}, which was begun"
        f" before it, is pending, and {key} is {policy}: read once that is done or rolled back, or set {key} to"
        f" {write_keys.USE_TRANSITION_TIME}, by which nothing is missed, or {write_keys.BLOCK}"
    )
    raise TableError(message, pending=first.requested, completed=behind[0].requested, policy=policy)
