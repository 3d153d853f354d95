"""A write under way: what its later steps know of it, and whether other processes took its writer for dead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hudi_locks.format import Instant, State
from hudi_locks.format.claim import Claim, ClaimKind
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.heartbeat import WriterHeartbeat, heartbeat_path
from hudi_locks.transaction.context import TableContext

__all__ = ["INFLIGHT_GONE", "WriteState", "describe_rollback", "find_loss"]

INFLIGHT_GONE: Final = "the inflight file is gone: another process rolled the instant back"


@dataclass(frozen=True)
class WriteState:
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

    @property
    def requested(self) -> str:
        """The requested time of its instant."""
        return self.instant.requested

    @property
    def lost_because(self) -> str:
        """Why others may take the writer for dead, as far as its heartbeat knows; "" while they see it alive."""
        beat = self.heartbeat
        return beat.lost_because or ("" if beat.is_fresh else "the heartbeat was not renewed in time")


def describe_rollback(claim: Claim) -> str:
    """What a claim that rolled an instant back says to its writer."""
    return f"{claim.owner or 'another writer'} rolled the instant back by claim {claim.number}"


def find_loss(context: TableContext, state: WriteState) -> str:
    """Why a write cannot be published any more, by a look at the claim log and its files; "" if it may be.

    Whoever takes a writer for dead may remove what it reads. Its heartbeat tells it only at the next beat, and not at
    all after a pause in which its clock stood still, as that of a suspended machine does.

    Raises:
        DamagedTable: The claim log is unreadable.
        StorageError: The store failed.
    """
    claims = context.log.since(state.claim_head, context.log.read_head())
    own = next((claim for claim in reversed(claims) if claim.instant == state.requested), None)
    if own is not None:
        return "" if own.kind is ClaimKind.PUBLISH else describe_rollback(own)
    if reason := state.lost_because:
        return reason
    if not context.storage.exists(context.path(state.instant, State.INFLIGHT)):
        return INFLIGHT_GONE
    beat = heartbeat_path(state.requested)
    return "" if context.storage.exists(beat) else f"{beat} was removed"
