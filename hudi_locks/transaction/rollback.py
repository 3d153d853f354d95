"""Rolling back a pending instant: a claim first, then the files (Hudi's rollback plan and metadata on the timeline)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from hudi_locks.format import (
    WRITE_ACTIONS,
    Instant,
    LogFileName,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
    State,
    add_ms,
    find_metadata_writer,
    find_writer,
)
from hudi_locks.format.claim import Claim, ClaimKind
from hudi_locks.markers import DirectMarkers, drop_staged, read_markers
from hudi_locks.observe import SpanName
from hudi_locks.storage import map_in_threads
from hudi_locks.table import list_partitions
from hudi_locks.table.old_logs import find_blocks
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.claims import ClaimEntry
from hudi_locks.timeline.heartbeat import heartbeat_path
from hudi_locks.transaction.context import TableContext, View
from hudi_locks.transaction.hooks import StopPoint
from hudi_locks.transaction.ring_changes import take_back_rings

__all__ = ["Rollback"]

_COMPACTION = "compaction"
_LISTED_ACTIONS = ("clustering", "commit", "compaction", "deltacommit", "logcompaction", "replacecommit")


class Rollback:
    """Rolls back instants under a claim, so that either the writer's PUBLISH or this wins, never both.

    Every step may be repeated by anybody: whoever finds a ROLLBACK or VOID at the end of the log does so.
    """

    def __init__(self, context: TableContext) -> None:
        self._context = context
        self._storage = context.storage

    def run(self, view: View, instant: Instant) -> bool:
        """Roll `instant` back under a claim after `view`; False if another claim came first: look again.

        Raises:
            ClockRefused: The times are out of bounds; nothing was made.
            StorageError: No answer; see `append`.
        """
        entry = self.append(self.draft(view, instant, kind=ClaimKind.ROLLBACK))
        if entry is None or entry.claim is None:
            return False
        self.execute(entry.claim)
        return True

    def keeps_plan(self, action: str) -> bool:
        """Whether what is rolled back is one attempt to run a plan, and the plan stays.

        So it is with a compaction in version 6: logs of later writes are named by its requested time, and JVM readers
        would take them for all there is of their file groups once the plan were gone.
        """
        return action == _COMPACTION and self._context.layout.is_version_6

    def draft(self, view: View, instant: Instant, *, kind: ClaimKind) -> Claim:
        """A claim to undo `instant`, with a requested time of its own for the rollback that JVM readers will see.

        It has none where the plan stays: then nothing is told on the timeline.

        A VOID takes over the tickets of the PUBLISH before it: only by them it is known what may have got its name.

        Raises:
            ClockRefused: The times are out of bounds; nothing was made.
        """
        self._context.check_clock(view.timeline)
        earliest = self._context.time_after(view, instant.requested)
        before = view.head.claim
        tickets = before.tickets if kind is ClaimKind.VOID and before is not None else None
        if self.keeps_plan(instant.action):
            claim = self._context.new_claim(kind, instant, time=earliest)
            return self._context.log.draft(view.head, replace(claim, tickets=tickets))
        requested = self._context.reserve(earliest, is_beating=False).requested
        claim = self._context.new_claim(kind, instant, time=add_ms(requested, 1))
        return self._context.log.draft(view.head, replace(claim, rollback_instant=requested, tickets=tickets))

    def append(self, draft: Claim) -> ClaimEntry | None:
        """Claim it; None if somebody else was first.

        Raises:
            StorageError: No answer. A rollback that lands late is carried out by whoever finds it.
        """
        entry = self._context.log.append(draft)
        if entry is None and draft.rollback_instant:
            self._storage.delete(heartbeat_path(draft.rollback_instant))
        elif entry is not None:
            self._context.trace(StopPoint.ROLLBACK_CLAIMED)
        return entry

    def execute(self, claim: Claim) -> None:
        """Do, or do again, what a ROLLBACK or VOID claims; nothing if its rollback is completed.

        Raises:
            PossibleLostUpdate: The instant is completed after all, by a writer outside the claim log: left as it is.
            StorageError: The store failed; the next writer goes on.
        """
        if self.keeps_plan(claim.action):
            self._end_attempt(claim)
            return
        rollback = Instant(claim.rollback_instant or claim.time, "rollback", State.REQUESTED)
        timeline = self._context.load_timeline()
        if any(done.requested == rollback.requested for done in timeline.completed((rollback.action,))):
            return  # perhaps by a JVM writer, which goes on with pending rollbacks and takes a time of its own
        self._refuse_completed(claim, timeline)
        metrics, clock = self._context.metrics, self._context.clock
        with metrics.measure(SpanName.ROLLBACK, "rollback", clock, instant=claim.instant) as told:
            told["numFilesDeleted"] = self._carry_out(claim, rollback)

    def _carry_out(self, claim: Claim, rollback: Instant) -> int:
        """How many files were removed."""
        started_s = self._context.clock.monotonic()
        deleted = self._undo(claim, rollback)
        took_ms = round((self._context.clock.monotonic() - started_s) * 1000)
        rolled_back = ((claim.instant, claim.action),)
        metadata = RollbackMetadata(rollback.requested, took_ms, rolled_back, self._by_partition(deleted))
        self._storage.create_if_absent(self._context.layout.path(rollback.as_completed(claim.time)), metadata.encode())
        self._storage.delete(heartbeat_path(rollback.requested))
        self._context.trace(StopPoint.ROLLBACK_COMPLETED)
        return len(deleted)

    def _end_attempt(self, claim: Claim) -> None:
        """Of a VOID take away what may have got its name, which no other attempt gives; of a ROLLBACK nothing has.

        The inflight file stays. Who was asleep does nothing once a later claim is there: another attempt may have
        begun.
        """
        if claim.kind is not ClaimKind.VOID or self._context.log.read(claim.number + 1) is not None:
            return
        claimed = self._cancel(claim)
        logs = {path for path in claimed if find_metadata_writer(path) is not None}
        self._context.delete_files(claimed - logs)
        self._context.trace(StopPoint.ROLLBACK_FILES_DELETED)
        if self._context.log.read(claim.number + 1) is None:
            self._take_back_metadata(claim, logs)

    def remove_traces(self, instant: Instant) -> None:
        """Remove what is left of an instant that surely was rolled back, also what its process made since."""
        self.remove_files(instant.requested)
        take_back_rings(self._context, instant.requested, instant.action)
        self._sweep(instant.requested)

    def remove_files(self, requested: str) -> set[str]:
        """Remove the data files that are named by markers of an instant which nobody can publish; the paths removed."""
        return self._context.delete_files(read_markers(self._storage, requested).own_files)

    def _undo(self, claim: Claim, rollback: Instant) -> set[str]:
        """Cancel first: a redeem that is under way could land behind a deletion. The inflight file goes last."""
        trace, instant = self._context.trace, Instant(claim.instant, claim.action, State.INFLIGHT)
        listing = self._needs_listing(claim)
        claimed = self._cancel(claim)
        logs = {path for path in claimed if find_metadata_writer(path) is not None}
        self._take_back_metadata(claim, logs)
        named = {*claimed - logs, *self._find_files(claim.instant, listing=listing)}
        files = self._judge_old_logs(claim, named, listing=listing)
        self._plan(rollback, instant, files)
        trace(StopPoint.ROLLBACK_PLANNED)
        deleted = self._context.delete_files(files)
        trace(StopPoint.ROLLBACK_FILES_DELETED)
        self._storage.delete(self._context.path(instant, State.INFLIGHT))
        trace(StopPoint.ROLLBACK_INFLIGHT_DELETED)
        # Tasks of a JVM writer name their files: what they named before they missed the inflight file is found now.
        deleted |= self._context.delete_files(self._find_files(claim.instant, listing=listing))
        take_back_rings(self._context, claim.instant, claim.action)
        drop_staged(self._storage, [claim.instant])  # first: who sleeps on a plan must not name it again
        self._storage.delete(self._context.path(instant, State.REQUESTED))
        trace(StopPoint.ROLLBACK_REQUESTED_DELETED)
        self._sweep(claim.instant)
        return deleted

    def _judge_old_logs(self, claim: Claim, named: set[str], *, listing: bool) -> set[str]:
        """What of `named` is to be deleted, and the logs whose names do not tell the write, in version 6.

        Logs are read there, those that are named too: others may have appended to them, or taken their blocks out.
        """
        if not self._context.layout.is_version_6 or claim.action != "deltacommit":
            return named
        told = {marker.partition_path for marker in read_markers(self._storage, claim.instant).names}
        folders = list_partitions(self._storage) if listing else {*told, *(path.rpartition("/")[0] for path in named)}
        found = find_blocks(self._storage, sorted(folders), claim.instant)
        found.refuse_mixed()
        others = {path for path in named if LogFileName.parse(path.rpartition("/")[2]) is None}
        left = found.undone - self._context.find_named(found.undone) if found.undone else set()
        return others | found.alone | left

    def _plan(self, rollback: Instant, instant: Instant, files: Iterable[str]) -> None:
        requests = tuple(
            RollbackRequest(partition, tuple(self._storage.address(path) for path in paths))
            for partition, paths in _group_by_partition(files)
        )
        layout = self._context.layout
        self._storage.create_if_absent(layout.path(rollback), RollbackPlan.of(instant, requests).encode())
        self._storage.create_if_absent(layout.path(rollback.as_inflight()), b"")

    def _cancel(self, claim: Claim) -> frozenset[str]:
        """Let nothing of a VOID get its name any more; the paths. Of a ROLLBACK nothing was ever to have one."""
        tickets = self._context.log.read_tickets(claim) or {}
        map_in_threads(lambda path: self._storage.cancel(tickets[path], path), tickets)
        self._context.trace(StopPoint.ROLLBACK_CANCELLED)
        return frozenset(tickets)

    def _take_back_metadata(self, claim: Claim, logs: Collection[str]) -> None:
        """Before the instant itself: once that is off the timeline, readers take its delta commit for a whole one."""
        if logs or (claim.action in WRITE_ACTIONS and self._context.find_metadata_table() is not None):
            self._context.delta_commits.take_back(claim.instant, logs)
        self._context.trace(StopPoint.ROLLBACK_METADATA_TAKEN_BACK)

    def _needs_listing(self, claim: Claim) -> bool:
        """Whether a JVM writer may have named files that no marker tells of; tasks of this package name none."""
        if claim.action not in _LISTED_ACTIONS or not self._context.is_inflight(claim):
            return False
        if not self._context.expects_foreign_writers():
            return False
        return not read_markers(self._storage, claim.instant).is_complete

    def _find_files(self, requested: str, *, listing: bool) -> Iterator[str]:
        yield from read_markers(self._storage, requested).own_files
        if listing:
            yield from self._list_files(requested)

    def _list_files(self, requested: str) -> Iterator[str]:
        for folder in self._storage.list(""):
            if folder.is_folder and folder.name != ".hoodie":
                yield from (path for path, _ in self._storage.walk(folder.name) if find_writer(path) == requested)
            elif not folder.is_folder and find_writer(folder.name) == requested:
                yield folder.name

    def _sweep(self, requested: str) -> None:
        DirectMarkers(self._storage, requested).delete()
        drop_staged(self._storage, [requested])
        self._storage.delete(heartbeat_path(requested))

    def _refuse_completed(self, claim: Claim, timeline: Timeline) -> None:
        found = timeline.get(claim.instant)
        if found is None or not found.is_completed:
            return
        reason = f"claim {claim.number} rolls {claim.instant} back, and it is completed on the timeline"
        self._context.notices.endanger(claim.instant, other="a writer outside the claim log", found=reason)
        self._context.notices.check()

    def _by_partition(self, deleted: Iterable[str]) -> dict[str, RollbackPartition]:
        return {
            partition: RollbackPartition(deleted=tuple(self._storage.address(path) for path in paths))
            for partition, paths in _group_by_partition(deleted)
        }


def _group_by_partition(paths: Iterable[str]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for path in sorted(paths):
        groups.setdefault(path.rpartition("/")[0], []).append(path)
    return sorted(groups.items())
