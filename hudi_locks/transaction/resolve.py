"""What became of an instant whose publish gave no answer."""

from __future__ import annotations

from hudi_locks.format.claim import ClaimKind
from hudi_locks.timeline.archive import is_archived
from hudi_locks.timeline.claims import ClaimEntry
from hudi_locks.transaction.context import Context
from hudi_locks.transaction.forward import RollForward
from hudi_locks.transaction.outcome import Outcome
from hudi_locks.transaction.rollback import Rollback

__all__ = ["resolve_instant"]


def resolve_instant(context: Context, requested: str, *, forward: RollForward, rollback: Rollback) -> Outcome:
    """Find out, or decide by rolling it back: see `Transactions.resolve`. Inside the table lock."""
    context.check_clock(context.load_timeline())
    while True:
        head = forward.to_head()
        timeline = context.load_timeline()
        found = timeline.get(requested)
        if found is not None and found.is_completed:
            return Outcome.COMMITTED
        if (claimed := _find_claimed(context, requested, head)) is not None:
            return claimed
        if is_archived(context.storage, context.layout, requested=requested):
            return Outcome.COMMITTED
        if found is None:
            return Outcome.ABORTED  # a PUBLISH that still lands is voided, for its inflight file is gone
        draft = rollback.draft(head, found, kind=ClaimKind.ROLLBACK, timeline=timeline)
        entry = rollback.append(draft)
        if entry is not None and entry.claim is not None:
            rollback.execute(entry.claim)
            return Outcome.ABORTED


def _find_claimed(context: Context, requested: str, head: ClaimEntry) -> Outcome | None:
    """The decision in the log, which no plan is. Claims about an instant are later: the search ends at its time."""
    number = head.number
    while number and (claim := context.log.read(number)) is not None and claim.time >= requested:
        if claim.instant == requested and claim.kind is not ClaimKind.SCHEDULE:
            return Outcome.COMMITTED if claim.kind is ClaimKind.PUBLISH else Outcome.ABORTED
        number -= 1
    return None
