"""Rolling forward: whoever reads the end of the claim log sees to what the last claim left unfinished.

Only the last claim can be unfinished, since the maker of each claim has seen to the one before it.
"""

from __future__ import annotations

import uuid
from typing import Final

from hudi_locks.errors import StorageError, UpdateEndangered
from hudi_locks.format import Instant, State, parse_instant_name
from hudi_locks.format.claim import Claim, ClaimKind, Content
from hudi_locks.markers import staging_folder
from hudi_locks.timeline.archive import is_archived, list_archived_since
from hudi_locks.timeline.claims import ClaimEntry
from hudi_locks.timeline.forgotten import refuse_gap
from hudi_locks.transaction.context import Context
from hudi_locks.transaction.foreign import find_appeared, is_seen
from hudi_locks.transaction.rollback import Rollback
from hudi_locks.transaction.stop import StopPoint

__all__ = ["RollForward"]

_COMPLETED: Final = "completed"
"""Where completed files are staged; no turn of tasks has that name."""


class RollForward:
    """Finishes claims. Every step may be repeated by anybody, and be paused anywhere."""

    def __init__(self, context: Context, rollback: Rollback) -> None:
        self._context = context
        self._storage = context.storage
        self._log = context.log
        self._rollback = rollback
        self._seen_to = 0

    def to_head(self) -> ClaimEntry:
        """Read forward to the last claim and see to it.

        Returns:
            The last claim, all of whose consequences are on the timeline.

        Raises:
            DamagedTable: A claim is unreadable.
            UpdateEndangered: A writer outside the claim log undid what a claim says.
            StorageError: The store failed.
        """
        while True:
            head = self._log.read_head()
            if head.number == self._seen_to or self._see_to(head.claim):
                self._seen_to = head.number
                return head

    def settle(self, claim: Claim) -> bool:
        """Make the completed file of a PUBLISH; True if it counts, False if it is voided.

        Raises:
            UpdateEndangered: A writer outside the claim log rolled the instant back after it was completed.
            StorageError: The store failed; another call goes on.
        """
        while not self._is_voided(claim):
            if self._context.is_inflight(claim):
                if self._complete(claim):
                    return True
            elif self._is_archived(claim):
                return True
            elif not self._void(claim) and not self._is_voided(claim):
                self._report_undone(claim)
        return False

    def _see_to(self, claim: Claim | None) -> bool:
        if claim is None:
            return True
        if claim.kind in (ClaimKind.ROLLBACK, ClaimKind.VOID):
            self._rollback.execute(claim)
            return True
        return self._see_to_publish(claim) if claim.kind is ClaimKind.PUBLISH else self._see_to_plan(claim)

    def _see_to_plan(self, claim: Claim) -> bool:
        content = self._log.read_content(claim)
        if (
            claim.content is not None
            and content is not None
            and self._is_wanted(claim.content)
            and not self._is_known(claim)
        ):
            self._storage.create_if_absent(f"{self._context.layout.folder}/{claim.content.name}", content)
        return True

    def _is_wanted(self, content: Content) -> bool:
        """Whether a file is still to be made: not a completed one, such as a savepoint, that a JVM job has deleted."""
        instant = parse_instant_name(content.name)
        if instant is None or not instant.is_completed:
            return True
        return self._storage.exists(self._context.layout.path(instant.as_inflight()))

    def _is_known(self, claim: Claim) -> bool:
        return self._context.load_timeline().get(claim.instant) is not None or self._is_archived(claim)

    def _see_to_publish(self, claim: Claim) -> bool:
        if self._is_completed(claim):
            return True
        if self._context.is_inflight(claim) and self._was_overtaken(claim):
            self._void(claim)
            return False
        is_settled = self.settle(claim)
        if is_settled:  # what others staged who died on the way to it
            self._storage.delete_folder(_staged_folder(claim))
        return is_settled

    def _was_overtaken(self, claim: Claim) -> bool:
        return bool(find_appeared(claim, self._context.load_timeline())) or self._was_overtaken_long_ago(claim)

    def _was_overtaken_long_ago(self, claim: Claim) -> bool:
        if claim.seen is None:
            return False
        since = self._context.earliest(claim.time)
        found = list_archived_since(self._storage, self._context.layout, completed_after=since)
        others = [instant for instant in found if instant.requested != claim.instant]
        return any(not is_seen(claim, other.requested, other.action) for other in others)

    def _is_completed(self, claim: Claim) -> bool:
        return self._storage.exists(self._completed_path(claim))

    def _is_archived(self, claim: Claim) -> bool:
        return is_archived(self._storage, self._context.layout, requested=claim.instant)

    def _is_voided(self, claim: Claim) -> bool:
        following = self._log.read(claim.number + 1)
        return following is not None and following.kind is ClaimKind.VOID and following.instant == claim.instant

    def _complete(self, claim: Claim) -> bool:
        content = self._log.read_content(claim)
        if content is None:
            return not self._is_voided(claim)  # a later claim is there: its maker has made the file, or voided it
        if not self._make_completed(claim, content):
            return False
        self._context.trace(StopPoint.PUBLISH_COMPLETED)
        if self._look_again(claim):
            return True
        self._storage.delete(self._completed_path(claim))
        return False

    def _make_completed(self, claim: Claim, content: bytes) -> bool:
        """Make the completed file; False if the instant was archived or rolled back meanwhile.

        An archiver removes the inflight file, then what is staged, then the completed file: so what was staged before
        the look cannot be named after it, however long this process sleeps, and however it dies then. Others who
        complete the same instant remove what is staged too, once the file is there.
        """
        staged = f"{_staged_folder(claim)}/{uuid.uuid4().hex}"
        try:
            return self._name_staged(claim, content, staged)
        except StorageError:
            if not self._context.is_inflight(claim):
                return False
            if not self._is_completed(claim):
                raise
        return True

    def _name_staged(self, claim: Claim, content: bytes, staged: str) -> bool:
        self._storage.create_transient(staged, content)
        self._context.trace(StopPoint.PUBLISH_STAGED)
        is_there = self._context.is_inflight(claim)
        if is_there:
            self._context.trace(StopPoint.PUBLISH_LOOKED)
        if not is_there or not self._storage.move_if_absent(staged, self._completed_path(claim)):
            self._storage.delete(staged)
        return is_there

    def _look_again(self, claim: Claim) -> bool:
        is_there = self._context.is_inflight(claim)
        self._context.trace(StopPoint.PUBLISH_LOOKED_AGAIN)
        return is_there

    def _void(self, claim: Claim) -> bool:
        head = self._log.read_head()
        if head.number != claim.number:
            return False
        instant = Instant(claim.instant, claim.action, State.INFLIGHT)
        timeline = self._context.load_timeline()
        refuse_gap(self._storage, timeline, number=claim.number)
        draft = self._rollback.draft(head, instant, kind=ClaimKind.VOID, timeline=timeline)
        return self._rollback.append(draft) is not None

    def _report_undone(self, claim: Claim) -> None:
        found = f"claim {claim.number} published {claim.instant}, which is neither on the timeline nor archived"
        self._context.notices.endanger(claim.instant, other="a rollback outside the claim log", found=found)
        raise UpdateEndangered(found, instant=claim.instant, other="", found=found)

    def _completed_path(self, claim: Claim) -> str:
        name = claim.content.name if claim.content else ""
        return f"{self._context.layout.folder}/{name}"


def _staged_folder(claim: Claim) -> str:
    return f"{staging_folder(claim.instant)}/{_COMPLETED}"
