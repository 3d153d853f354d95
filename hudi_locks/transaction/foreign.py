"""Writers outside the claim log: JVM Hudi jobs. What they did is read off the timeline."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_locks.format import Instant, State, add_ms, comparable_action
from hudi_locks.format.claim import Claim, ClaimKind
from hudi_locks.timeline import Timeline

__all__ = ["find_appeared", "find_unclaimed", "is_seen", "list_seen"]

_RECENT_MS = 3_600_000
"""A foreign writer whose clock is further off than this breaks its own protocol too."""


def list_seen(timeline: Timeline, time: str) -> frozenset[str]:
    """The instants to name in a PUBLISH at `time`: pending ones, and those completed in the hour before."""
    return frozenset(_name(instant) for instant in timeline.instants if _is_recent(instant, time))


def find_appeared(claim: Claim, timeline: Timeline) -> list[Instant]:
    """Instants that came to the timeline since a PUBLISH was claimed, its own left out.

    Another writer of this package sees to a claim before it adds anything, so these are foreign. Where the table has
    no foreign writers, nothing was noted and nothing is found.
    """
    if claim.seen is None:
        return []
    candidates = [i for i in timeline.instants if i.requested != claim.instant and _is_recent(i, claim.time)]
    return [instant for instant in candidates if _name(instant) not in claim.seen]


def is_seen(claim: Claim, requested: str, action: str) -> bool:
    """Whether an instant was completed already when `claim` was made, which notes what it saw."""
    return _name(Instant(requested, action, State.COMPLETED)) in (claim.seen or ())


def find_unclaimed(timeline: Timeline, *, known: Timeline, claims: Iterable[Claim]) -> list[Instant]:
    """Writes completed on `timeline`, not on `known`, and by none of the claims made in between."""
    came = timeline.completed_since(known)
    if not came:
        return []
    planned = (ClaimKind.ROLLBACK, ClaimKind.SCHEDULE)  # a plan of ours may have been run by a JVM writer
    claimed = {claim.instant for claim in claims if claim.kind not in planned}
    return [i for i in came if i.requested not in claimed]


def _is_recent(instant: Instant, time: str) -> bool:
    return instant.completion is None or instant.completion >= add_ms(time, -_RECENT_MS)


def _name(instant: Instant) -> str:
    state = "completed" if instant.is_completed else "pending"
    return f"{instant.requested}.{comparable_action(instant.action)}.{state}"
