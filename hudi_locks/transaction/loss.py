"""How a writer sees that others took it for dead, before it asks to publish."""

from __future__ import annotations

from typing import Final

from hudi_locks.format import State
from hudi_locks.format.claim import Claim, ClaimKind
from hudi_locks.timeline.heartbeat import WriterHeartbeat, heartbeat_path
from hudi_locks.transaction.begun import Begun
from hudi_locks.transaction.context import Context

__all__ = ["INFLIGHT_GONE", "find_loss", "tell_lost", "tell_undone"]

INFLIGHT_GONE: Final = "the inflight file is gone: another process rolled the instant back"


def tell_undone(claim: Claim) -> str:
    """What a claim that rolled an instant back says to its writer."""
    return f"{claim.owner or 'another writer'} rolled the instant back by claim {claim.number}"


def tell_lost(heartbeat: WriterHeartbeat) -> str:
    """Why others may take the writer for dead, as far as its heartbeat knows; "" while they see it alive."""
    return heartbeat.lost_because or ("" if heartbeat.is_fresh else "the heartbeat was not renewed in time")


def find_loss(context: Context, begun: Begun) -> str:
    """Why a write cannot be published any more, by a look at the claim log and its files; "" if it may be.

    Whoever takes a writer for dead may remove what it reads. Its heartbeat tells it only at the next beat, and not at
    all after a pause in which its clock stood still, as that of a suspended machine does.

    Raises:
        DamagedTable: The claim log is unreadable.
        StorageError: The store failed.
    """
    requested = begun.instant.requested
    claims = context.log.since(begun.claim_head, context.log.read_head())
    own = next((claim for claim in reversed(claims) if claim.instant == requested), None)
    if own is not None:
        return "" if own.kind is ClaimKind.PUBLISH else tell_undone(own)
    if reason := tell_lost(begun.heartbeat):
        return reason
    if not context.storage.exists(context.path(begun.instant, State.INFLIGHT)):
        return INFLIGHT_GONE
    beat = heartbeat_path(requested)
    return "" if context.storage.exists(beat) else f"{beat} was removed"
