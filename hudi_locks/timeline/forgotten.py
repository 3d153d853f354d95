"""What the claim log has published and the timeline has lost: a commit whose completed file is gone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from hudi_locks.errors import DamagedTable
from hudi_locks.format import Instant, State
from hudi_locks.format.claim import Claim, ClaimKind, claim_path, decode_claim
from hudi_locks.storage import Storage
from hudi_locks.timeline.archive import has_archived, is_archived
from hudi_locks.timeline.claims import find_last_claim
from hudi_locks.timeline.layout import TimelineLayout
from hudi_locks.timeline.timeline import Timeline

__all__ = ["list_claims_back", "refuse_empty", "refuse_forgotten", "refuse_gap"]

_UNDOING: Final = ("rollback", "restore")
_MOST: Final = 1_000
"""So many claims back a write is looked for; a timeline that is archived now and then is shorter."""
_NEAR: Final = 20
"""So many claims back an instant must be known if anything is."""


def refuse_empty(storage: Storage, timeline: Timeline) -> None:
    """Refuse a table without any instant, archived ones included, that somebody has written to.

    Raises:
        DamagedTable: The first claim, which is never removed, published a write.
    """
    data = None if timeline.instants else storage.read(claim_path(1))
    if data is None or has_archived(storage, timeline.layout):
        return
    claim = decode_claim(data, 1)
    now = Timeline.load(storage, timeline.layout)  # the first write may have come since
    if claim.kind is ClaimKind.PUBLISH and not now.instants and not _is_told(storage, timeline, claim):
        raise _describe(claim, timeline.layout, what="and no instant at all is there")


def refuse_forgotten(
    storage: Storage, timeline: Timeline, *, requested: Collection[str], done: int | None = None
) -> None:
    """Refuse to take writes for unfinished that were published. Reads the claims since the oldest of them was begun.

    Args:
        storage: Of the table.
        timeline: Loaded after it was seen that they are not completed.
        requested: Of writes that look pending, or that the timeline does not show, and whose writers do not beat.
        done: Number of the last claim that is surely carried out: a later one may have published a write whose
            completed file is about to be made. None if whoever made a claim about these writes is done with it.

    Raises:
        DamagedTable: A claim published one of them, and its completed file is gone; or a claim cannot be read.
    """
    lost = {time for time in requested if not timeline.is_completed(time)}
    if not lost or timeline.pending(_UNDOING):
        return
    last = find_last_claim(storage) if done is None else done
    for claim in list_claims_back(storage, last, until=min(lost), most=_MOST):
        if claim.kind is ClaimKind.PUBLISH and claim.instant in lost and not _is_told(storage, timeline, claim):
            raise _describe(claim, timeline.layout, what="and that file is not there")


def refuse_gap(storage: Storage, timeline: Timeline, *, number: int) -> None:
    """Refuse to void claim `number` for what the timeline lacks, where it lacks what was published before, too.

    Raises:
        DamagedTable: It does.
    """
    refuse_empty(storage, timeline)
    restored = max((i.requested for i in timeline.instants if i.action == "restore"), default="")
    for claim in list_claims_back(storage, number - 1, until="", most=_NEAR):
        if claim.kind is ClaimKind.PUBLISH and claim.time > restored:
            if timeline.get(claim.instant) is None and not _is_told(storage, timeline, claim):
                raise _describe(claim, timeline.layout, what="and the timeline does not know it")
            return


def list_claims_back(storage: Storage, last: int, *, until: str, most: int) -> Iterator[Claim]:
    """The `most` claims from number `last` back to the time `until`, without those that a VOID or a RESTORE undid."""
    following = _read(storage, last + 1)
    for number in range(last, max(0, last - most), -1):
        claim = _read(storage, number)
        if claim is None or claim.time < until or claim.kind is ClaimKind.RESTORE:
            return
        if following is None or following.kind is not ClaimKind.VOID:
            yield claim
        following = claim


def _read(storage: Storage, number: int) -> Claim | None:
    data = storage.read(claim_path(number)) if number > 0 else None
    return None if data is None else decode_claim(data, number)


def _is_told(storage: Storage, timeline: Timeline, claim: Claim) -> bool:
    done = timeline.layout.path(Instant(claim.instant, claim.action, State.INFLIGHT).as_completed(claim.time))
    return storage.exists(done) or is_archived(storage, timeline.layout, requested=claim.instant)


def _describe(claim: Claim, layout: TimelineLayout, *, what: str) -> DamagedTable:
    name = claim.content.name if claim.content else claim.instant
    path = f"{layout.folder}/{name}"
    message = (
        f"{path} is lost: claim {claim.number} published the write {claim.instant}, {what}. Its rows would be missing,"
        " and its files be removed as those of a dead writer. Bring the file back: its bytes stand in"
        f" {claim_path(claim.number)}; `hudi-locks verify PATH` lists all that is damaged"
    )
    return DamagedTable(message, path=path, instant=claim.instant, claim=claim.number)
