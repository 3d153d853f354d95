"""Rolling forward: whoever reads the end of the claim log sees to what the last claim left unfinished.

Only the last claim can be unfinished, since the maker of each claim has seen to the one before it.
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from hudi_locks.errors import PossibleLostUpdate, StorageError
from hudi_locks.format import Instant, RestorePlan, State, find_metadata_writer, parse_instant_name
from hudi_locks.format.claim import Claim, ClaimKind, Content
from hudi_locks.markers import drop_staged, staging_folder
from hudi_locks.storage import map_in_threads
from hudi_locks.table import read_current_properties
from hudi_locks.timeline.archive import is_archived, list_archived_since, refuse_gap
from hudi_locks.timeline.claims import ClaimEntry
from hudi_locks.transaction.context import TableContext, View
from hudi_locks.transaction.foreign_writers import find_appeared, is_seen
from hudi_locks.transaction.hooks import StopPoint
from hudi_locks.transaction.rollback import Rollback
from hudi_locks.transaction.version_change import carry_out_change

__all__ = ["Place", "RollForward"]

_COMPLETED: Final = "completed"
"""Where files of the timeline are staged; no ticket of a data file has that name."""

_NAMING_THREADS: Final = 32
"""So many data files get their names at the same time: each waits for the store most of the time."""

_HAVE_TASKS: Final = ("clustering", "compaction", "logcompaction", "replacecommit")

_NO_CLAIM: Final = -1


class Filled(enum.Enum):
    """What became of a file that was to be made: this call made it, it was there, or nobody wants it any more."""

    MADE = "made"
    THERE = "there"
    UNWANTED = "unwanted"


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

    def fill(self, context: TableContext, content: bytes, *, is_wanted: Callable[[], bool]) -> Filled:
        """Make the file, unless it is not wanted any more.

        Whoever removes it first ends what makes it wanted (a later claim is there, the inflight file is gone), then
        removes what is staged for the instant, then the file. So what was staged before the look cannot be named after
        it, however long this process sleeps, and however it dies then. Others who make the same file may remove what is
        staged too.

        A store without folders cannot promise that. There the file is made at its name, and who sleeps between the look
        and that makes it too late: then a second look of the caller takes it away.

        Raises:
            StorageError: The store failed.
        """
        if not context.storage.capabilities.ended_folders:
            return self._create(context, content, is_wanted=is_wanted)
        staged = f"{_completed_folder(self.requested)}/{uuid.uuid4().hex}"
        try:
            context.storage.create_transient(staged, content)
            context.trace(self.staged_at)
            if not is_wanted():
                context.storage.delete(staged)
                return Filled.UNWANTED
            context.trace(self.looked_at)
            if context.storage.move_if_absent(staged, self.path):
                return Filled.MADE
            context.storage.delete(staged)
        except StorageError:
            if not is_wanted():
                return Filled.UNWANTED
            if not context.storage.exists(self.path):
                raise
        return Filled.THERE

    def _create(self, context: TableContext, content: bytes, *, is_wanted: Callable[[], bool]) -> Filled:
        context.trace(self.staged_at)
        if not is_wanted():
            return Filled.UNWANTED
        context.trace(self.looked_at)
        return Filled.MADE if context.storage.create_if_absent(self.path, content) else Filled.THERE

    def tidy(self, context: TableContext, *, has_tasks: bool) -> None:
        """Remove what was staged for it, by others too who died on the way; only once the file is there.

        Tasks of an instant that has some may stage their files beside it.
        """
        if not has_tasks:
            drop_staged(context.storage, [self.requested])
        elif context.storage.capabilities.ended_folders:
            context.storage.delete_folder(_completed_folder(self.requested))


class RollForward:
    """Finishes claims. Every step may be repeated by anybody, and be paused anywhere."""

    def __init__(self, context: TableContext, rollback: Rollback) -> None:
        self._context = context
        self._storage = context.storage
        self._log = context.log
        self._rollback = rollback
        self._seen_to = 0
        self._version_known_at: int | None = None
        self._own = _NO_CLAIM
        """Number of the claim that this process has settled, and not looked at since."""

    def to_head(self) -> ClaimEntry:
        """Read forward to the last claim and see to it.

        Returns:
            The last claim, all of whose consequences are on the timeline.

        Raises:
            DamagedTable: A claim is unreadable.
            PossibleLostUpdate: A writer outside the claim log undid what a claim says.
            StorageError: The store failed.
            TableError: The table became one of another version since it was opened.
        """
        while True:
            head = self._log.read_head()
            if head.number != self._seen_to:
                self._check_version(head)
            if head.number == self._seen_to or self._see_to(head.claim):
                self._seen_to = head.number
                return head

    def _check_version(self, head: ClaimEntry) -> None:
        """By the properties at first, and then wherever a claim says that they change.

        Before anything is seen to: a claim of after the change is about files of the other layout. One that is the last
        is carried out before.
        """
        if head.claim is not None and head.claim.kind is ClaimKind.VERSION:
            carry_out_change(self._context, head.claim)
        known = self._version_known_at
        if known is None or any(claim.kind is ClaimKind.VERSION for claim in self._log.since(known, head)):
            read_current_properties(self._storage, self._context.version)
        self._version_known_at = head.number

    def distrust(self, head: ClaimEntry) -> bool:
        """Let `to_head` look at the last claim once more; False if it did, and not merely made its completed file."""
        is_unseen = head.number == self._own
        if is_unseen:
            self._seen_to, self._own = 0, _NO_CLAIM
        return is_unseen

    def settle(self, claim: Claim) -> bool:
        """Name the data files of a PUBLISH, then make its completed file; True if it counts, False if it is voided.

        Raises:
            DamagedTable: Its tickets cannot be read.
            PossibleLostUpdate: A writer outside the claim log rolled the instant back after it was completed.
            StorageError: The store failed; another call goes on.
        """
        made: list[str] = []
        is_last = self._context.goes_by_claims  # as it was a moment ago; where a JVM can take it back, look once more
        while is_last or not self._is_voided(claim):
            is_last = False
            self._context.trace(StopPoint.PUBLISH_SETTLING)
            made += self._begin_metadata(claim)
            if not self._name_files(claim):
                if self._is_completed(claim) or self._is_archived(claim) or not self._void_or_pass(claim):
                    break
            elif self._may_complete(claim) and self._complete_metadata(claim, made) and self._complete(claim):
                self._note_seen(claim)
                return True
            elif self._is_archived(claim) or self._was_restored(claim):
                return True
            elif not self._void(claim) and not self._is_voided(claim):
                self._report_undone(claim)
        return self._look_for_void(claim, made)

    def _may_complete(self, claim: Claim) -> bool:
        """Whether nobody took the instant back; where its completed file alone is to be made, that is asked later."""
        asks_later = claim.metadata is None and self._storage.capabilities.ended_folders
        return asks_later or self._context.is_inflight(claim)

    def _note_seen(self, claim: Claim) -> None:
        """Where every writer claims, and a look costs a request, the next listing shows what this process completed."""
        if self._context.goes_by_claims and self._storage.is_remote:
            self._seen_to = self._own = claim.number

    def _look_for_void(self, claim: Claim, made: list[str]) -> bool:
        """Whether a claim stands; if not, what was `made` after somebody rolled the instant back goes."""
        if not self._is_voided(claim):
            return True
        self._context.delta_commits.remove(made)
        return False

    def _name_files(self, claim: Claim) -> bool:
        """Redeem every ticket of a claim, and no other; False if a file has no name and will never get one.

        Its name is looked for only when its ticket is not there: a look before would take a file for missing that
        another process is about to name.
        """
        tickets = self._log.read_tickets(claim)
        if not tickets:
            return True  # none, or a later claim is there: its maker has named them all, or voided the claim
        if not all(all(self._name_all(tickets, paths)) for paths in self._arrange(tickets)):
            return False
        self._storage.flush(tickets)
        self._context.trace(StopPoint.PUBLISH_NAMED)
        return True

    def _arrange(self, tickets: Mapping[str, str]) -> list[list[str]]:
        """Paths that get their names at a time: all; in version 6 first what the logs of the metadata table name.

        Who rolls back there tells the metadata table which files it deleted, and no others.
        """
        logs = _list_logs(tickets) if self._context.layout.is_version_6 else []
        return [[path for path in tickets if path not in logs], logs]

    def _name_all(self, tickets: Mapping[str, str], paths: Collection[str]) -> list[bool]:
        return map_in_threads(lambda path: self._name(path, tickets[path]), paths, threads=_NAMING_THREADS)

    def _begin_metadata(self, claim: Claim) -> list[str]:
        """Before its logs have names: a JVM writer that rolls it back looks for the logs of what is pending there."""
        made: list[str] = []
        if claim.metadata is not None:
            made = self._context.delta_commits.begin(claim.instant, _list_logs(self._log.read_tickets(claim) or {}))
        self._context.trace(StopPoint.PUBLISH_METADATA_BEGUN)
        return made

    def _complete_metadata(self, claim: Claim, made: list[str]) -> bool:
        """Complete the delta commit of the metadata table, if the claim has one; False if that cannot be any more.

        What is made for it is added to `made`.
        """
        content, tickets = self._log.read_metadata(claim), self._log.read_tickets(claim)
        if claim.metadata is None or content is None or tickets is None:
            return True  # none, or a later claim is there: its maker has completed it, or voided the claim
        logs = _list_logs(tickets)
        found = self._context.delta_commits.complete(claim.metadata.name, content, logs=logs)
        made += found or ()
        return found is not None

    def _name(self, path: str, ticket: str) -> bool:
        return self._storage.redeem(ticket, path) or self._storage.exists(path)

    def _void_or_pass(self, claim: Claim) -> bool:
        """Void a claim of which a file is lost; False if a later claim is there, whose maker has decided about it."""
        return self._void(claim) or self._log.read(claim.number + 1) is None

    def _see_to(self, claim: Claim | None) -> bool:
        if claim is None or claim.kind is ClaimKind.VERSION:
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
            filled = place.fill(self._context, content, is_wanted=lambda: self._log.read(claim.number + 1) is None)
            if filled is not Filled.UNWANTED:
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
        if is_settled and self._storage.capabilities.ended_folders:  # what others staged who died on the way to it
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

    def _was_restored(self, claim: Claim) -> bool:
        """Whether others completed it while this process slept, and a restore has undone it since."""
        later = self._log.since(claim.number, self._log.read_head())
        restores = [other.instant for other in later if other.kind is ClaimKind.RESTORE]
        paths = [self._context.layout.path(Instant(one, "restore", State.REQUESTED)) for one in restores]
        plans = [RestorePlan.decode(data, path) for path in paths if (data := self._storage.read(path))]
        return any(requested == claim.instant for plan in plans for requested, _ in plan.instants)

    def _is_voided(self, claim: Claim) -> bool:
        following = self._log.read(claim.number + 1)
        return following is not None and following.kind is ClaimKind.VOID and following.instant == claim.instant

    def _complete(self, claim: Claim) -> bool:
        self._context.trace(StopPoint.PUBLISH_METADATA_COMPLETED)
        content = self._log.read_content(claim)
        if content is None:
            return not self._is_voided(claim)  # a later claim is there: its maker has made the file, or voided it
        place = Place(claim.instant, self._completed_path(claim), StopPoint.PUBLISH_STAGED, StopPoint.PUBLISH_LOOKED)
        # Where the file is made at its name nothing lies between the look of the caller and that.
        is_inflight = partial(self._context.is_inflight, claim)
        is_wanted = is_inflight if self._storage.capabilities.ended_folders else lambda: True
        filled = place.fill(self._context, content, is_wanted=is_wanted)
        if filled is Filled.UNWANTED:
            return False  # it was archived or rolled back meanwhile
        self._context.trace(StopPoint.PUBLISH_COMPLETED)
        if self._look_again(claim):
            return True
        # A file that was there is an archiver's, if there is one: it removes the oldest first, so that no gap appears.
        if filled is Filled.MADE or not self._is_archived(claim):
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
        read_current_properties(self._storage, self._context.version)  # a sleeper finds nothing where the timeline was
        found = f"claim {claim.number} published {claim.instant}, which is neither on the timeline nor archived"
        self._context.notices.endanger(claim.instant, other="a rollback outside the claim log", found=found)
        raise PossibleLostUpdate(found, instant=claim.instant, other="", found=found)

    def _completed_path(self, claim: Claim) -> str:
        name = claim.content.name if claim.content else ""
        return f"{self._context.layout.folder}/{name}"


def _completed_folder(requested: str) -> str:
    return f"{staging_folder(requested)}/{_COMPLETED}"


def _list_logs(tickets: Iterable[str]) -> list[str]:
    """Those of files that are logs of the metadata table."""
    return [path for path in tickets if find_metadata_writer(path) is not None]
