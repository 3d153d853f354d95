"""Rolling forward: whoever reads the end of the claim log sees to what the last claim left unfinished.

Only the last claim can be unfinished, since the maker of each claim has seen to the one before it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from hudi_locks.errors import PossibleLostUpdate, StorageError
from hudi_locks.format import Instant, State, parse_instant_name
from hudi_locks.format.claim import Claim, ClaimKind, Content
from hudi_locks.markers import staging_folder
from hudi_locks.timeline.archive import is_archived, list_archived_since, refuse_gap
from hudi_locks.timeline.claims import ClaimEntry
from hudi_locks.transaction.context import TableContext, View
from hudi_locks.transaction.foreign_writers import find_appeared, is_seen
from hudi_locks.transaction.hooks import StopPoint
from hudi_locks.transaction.rollback import Rollback

__all__ = ["Place", "RollForward"]

_COMPLETED: Final = "completed"
"""Where files of the timeline are staged; no turn of tasks has that name."""

_HAVE_TASKS: Final = ("clustering", "compaction", "logcompaction")


@dataclass(frozen=True)
class Place:
    """Where a file of an instant belongs that others may make too, and remove again while its maker sleeps.

    Attributes:
        requested: Requested time of the instant.
        path: Of the file, relative to the base path.
        staged_at: Where a test may stop its maker once it is staged.
        looked_at: Where a test may stop its maker once it is known to be wanted.
    """

    requested: str
    path: str
    staged_at: StopPoint
    looked_at: StopPoint

    def fill(self, context: TableContext, content: bytes, *, is_wanted: Callable[[], bool]) -> bool:
        """Make the file, unless it is not wanted any more; False then.

        Whoever removes it first ends what makes it wanted (a later claim is there, the inflight file is gone), then
        removes what is staged for the instant, then the file. So what was staged before the look cannot be named after
        it, however long this process sleeps, and however it dies then. Others who make the same file may remove what is
        staged too.

        Raises:
            StorageError: The store failed.
        """
        staged = f"{_completed_folder(self.requested)}/{uuid.uuid4().hex}"
        try:
            context.storage.create_transient(staged, content)
            context.trace(self.staged_at)
            is_still_wanted = is_wanted()
            if is_still_wanted:
                context.trace(self.looked_at)
            if not is_still_wanted or not context.storage.move_if_absent(staged, self.path):
                context.storage.delete(staged)
        except StorageError:
            if not is_wanted():
                return False
            if not context.storage.exists(self.path):
                raise
            return True
        return is_still_wanted

    def tidy(self, context: TableContext, *, has_tasks: bool) -> None:
        """Remove what was staged for it, by others too who died on the way; only once the file is there.

        Tasks of an instant that has some may stage their files beside it.
        """
        folder = _completed_folder(self.requested) if has_tasks else staging_folder(self.requested)
        context.storage.delete_folder(folder)


class RollForward:
    """Finishes claims. Every step may be repeated by anybody, and be paused anywhere."""

    def __init__(self, context: TableContext, rollback: Rollback) -> None:
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
            PossibleLostUpdate: A writer outside the claim log undid what a claim says.
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
            PossibleLostUpdate: A writer outside the claim log rolled the instant back after it was completed.
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
            place = Place(claim.instant, self._completed_path(claim), StopPoint.PLAN_STAGED, StopPoint.PLAN_LOOKED)
            if place.fill(self._context, content, is_wanted=lambda: self._log.read(claim.number + 1) is None):
                place.tidy(self._context, has_tasks=claim.action in _HAVE_TASKS)
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
            self._storage.delete_folder(_completed_folder(claim.instant))
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
        place = Place(claim.instant, self._completed_path(claim), StopPoint.PUBLISH_STAGED, StopPoint.PUBLISH_LOOKED)
        if not place.fill(self._context, content, is_wanted=partial(self._context.is_inflight, claim)):
            return False  # it was archived or rolled back meanwhile
        self._context.trace(StopPoint.PUBLISH_COMPLETED)
        if self._look_again(claim):
            return True
        self._storage.delete(place.path)
        return False

    def _look_again(self, claim: Claim) -> bool:
        is_there = self._context.is_inflight(claim)
        self._context.trace(StopPoint.PUBLISH_LOOKED_AGAIN)
        return is_there

    def _void(self, claim: Claim) -> bool:
        head = self._log.read_head()
        if head.number != claim.number:
            return False
        instant = Instant(claim.instant, claim.action, State.INFLIGHT)
        view = View(head, self._context.load_timeline())
        refuse_gap(self._storage, view.timeline, number=claim.number)
        draft = self._rollback.draft(view, instant, kind=ClaimKind.VOID)
        return self._rollback.append(draft) is not None

    def _report_undone(self, claim: Claim) -> None:
        found = f"claim {claim.number} published {claim.instant}, which is neither on the timeline nor archived"
        self._context.notices.endanger(claim.instant, other="a rollback outside the claim log", found=found)
        raise PossibleLostUpdate(found, instant=claim.instant, other="", found=found)

    def _completed_path(self, claim: Claim) -> str:
        name = claim.content.name if claim.content else ""
        return f"{self._context.layout.folder}/{name}"


def _completed_folder(requested: str) -> str:
    return f"{staging_folder(requested)}/{_COMPLETED}"
