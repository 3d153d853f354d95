"""Removing old versions of files: planned under a claim, carried out without the lock by whoever finds the plan."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from hudi_locks.errors import DamagedTable
from hudi_locks.format import CleanMetadata, CleanPartition, CleanPlan, Instant, State, find_writer
from hudi_locks.format.claim import ClaimKind
from hudi_locks.observe import SpanName
from hudi_locks.services.retention import CleanPlanner, count_commits_since_clean
from hudi_locks.services.settings import CleanSettings
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.heartbeat import WriterHeartbeat, find_expired, heartbeat_path
from hudi_locks.transaction import StopPoint, TableCoordinator, View, carry_out_clean

__all__ = ["CleanResult", "Cleaner"]

_ACTION: Final = "clean"
_HOUR_MS: Final = 3_600_000
_PASSED_OVER: Final = "a clean plan names %d files that are no data files; they are passed over, the first: %s"
_MOST_SHOWN: Final = 200
_log = logging.getLogger(__name__)
_FOREIGN_PATIENCE_MS: Final = _HOUR_MS
"""JVM cleaners do not beat: only what they left unfinished for so long is taken for abandoned."""


@dataclass(frozen=True)
class CleanResult:
    """What a clean did.

    Attributes:
        instants: Requested times of the cleans that were carried out, those that others left unfinished among them.
        deleted: How many files were removed.
        earliest_retained: Requested time of the oldest write that is kept with all that it shows; "" if this clean
            planned nothing, or counts versions.
    """

    instants: tuple[str, ...] = ()
    deleted: int = 0
    earliest_retained: str = ""


class Cleaner:
    """Cleans one table. Runs on the driver; any number of them may run at the same time, each on one thread.

    Args:
        coordinator: With the writers.
        settings: What is kept.
    """

    def __init__(self, coordinator: TableCoordinator, settings: CleanSettings) -> None:
        self._table = coordinator
        self._storage = coordinator.storage
        self._settings = settings
        self._known: dict[str, frozenset[str]] = {}

    def is_due(self, timeline: Timeline) -> bool:
        """Whether enough was committed since the last clean for an automatic one."""
        return count_commits_since_clean(self._storage, timeline) >= self._settings.trigger_commits

    def run(self, *, everywhere: bool = True) -> CleanResult:
        """Finish what dead cleaners left, then plan and carry out a clean.

        Args:
            everywhere: See `CleanPlanner.plan`.

        Raises:
            AcquireTimeout: The table lock could not be had.
            DamagedTable: A commit, clean or savepoint cannot be read.
            StorageError: A file could not be removed, or the store failed; the next clean goes on.
        """
        with self._table.metrics.measure(SpanName.CLEAN, "clean", self._table.clock) as told:
            result = self._run(everywhere=everywhere)
            told["numFilesDeleted"] = result.deleted
        return result

    def _run(self, *, everywhere: bool) -> CleanResult:
        done = [self._finish(requested) for requested in self._find_abandoned()]
        begun = self._schedule(everywhere=everywhere)
        if begun is None:
            return _sum_up(done, "")
        heartbeat, plan = begun
        with heartbeat.stop_at_end():
            done.append(self._carry_out(heartbeat.requested, plan))
        return _sum_up(done, _earliest(plan))

    def _schedule(self, *, everywhere: bool) -> tuple[WriterHeartbeat, CleanPlan] | None:
        """Plan outside the lock, since that lists folders, and claim the plan inside if it still holds."""
        while True:
            before = self._table.peek()
            try:
                plan = self._plan(before.timeline, everywhere=everywhere)
            except DamagedTable:
                if self._table.peek().timeline == before.timeline:
                    raise
                continue  # a commit was archived between the listing and the look into it
            if plan is None:
                return None
            self._table.trace(StopPoint.SERVICE_PLANNED)
            with self._table.hold():
                heartbeat = self._request(before, plan)
            if heartbeat is not None:
                return heartbeat, plan

    def _plan(self, timeline: Timeline, *, everywhere: bool) -> CleanPlan | None:
        if timeline.pending(("restore",)):
            return None
        oldest_ms = self._table.clock.wall_ms() - self._settings.hours * _HOUR_MS
        oldest = self._table.layout.time(oldest_ms)
        planner = CleanPlanner(self._storage, self._settings, oldest, self._known)
        return planner.plan(timeline, everywhere=everywhere)

    def _request(self, before: View, plan: CleanPlan) -> WriterHeartbeat | None:
        """Claim the plan, if nothing came in between that it should have regarded.

        Writes that came since build on what the plan leaves alone: the newest versions of their snapshot.
        """
        view = self._table.look()
        still_holds = self._still_holds(before, view)
        return self._table.schedule(view, _ACTION, plan=plan.encode()) if still_holds else None

    def _still_holds(self, before: View, now: View) -> bool:
        claims = self._table.claims_between(before, now)
        goes_back = any(claim.kind is ClaimKind.RESTORE for claim in claims) or now.timeline.pending(("restore",))
        return not goes_back and before.timeline.savepoints == now.timeline.savepoints

    def _find_abandoned(self) -> list[str]:
        timeline = self._look_for_plans().timeline
        pending = timeline.pending((_ACTION,))
        times = [instant.requested for instant in pending]
        expired = find_expired(self._storage, times, limit_ms=self._table.settings.heartbeat_limit_ms) if times else ()
        return [i.requested for i in pending if i.requested in expired and self._is_abandoned(i, timeline)]

    def _look_for_plans(self) -> View:
        """The table with every plan that was claimed on its timeline, also that of a cleaner that died right then."""
        view = self._table.peek()
        claim = view.head.claim
        if claim is None or claim.action != _ACTION or view.timeline.get(claim.instant) is not None:
            return view
        with self._table.hold():
            return self._table.look()

    def _is_abandoned(self, instant: Instant, timeline: Timeline) -> bool:
        if self._storage.exists(heartbeat_path(instant.requested)):
            return True
        file = self._storage.stat(timeline.paths[instant])
        return file is not None and file.modified_ms < self._storage.now_ms() - _FOREIGN_PATIENCE_MS

    def _finish(self, requested: str) -> CleanMetadata | None:
        path = self._table.layout.path(Instant(requested, _ACTION, State.REQUESTED))
        data = self._storage.read(path)
        done = self._carry_out(requested, CleanPlan.decode(data, path)) if data else None
        self._storage.delete(heartbeat_path(requested))
        return done

    def _carry_out(self, requested: str, plan: CleanPlan) -> CleanMetadata | None:
        """Remove the files of a plan and complete its instant; None if somebody else completed it meanwhile."""
        instant = Instant(requested, _ACTION, State.REQUESTED)
        started_s = self._table.clock.monotonic()
        self._table.begin(instant, plan.encode())
        partitions = {partition: self._delete(partition, files) for partition, files in plan.files.items()}
        self._table.trace(StopPoint.SERVICE_DONE)
        took_ms = round((self._table.clock.monotonic() - started_s) * 1000)
        metadata = CleanMetadata(
            requested, took_ms, _earliest(plan), plan.last_completed, plan.policy, partitions, plan.savepoints
        )
        with self._table.hold():
            view = self._table.look()
            gone = {partition: one.deleted for partition, one in partitions.items()}
            if not carry_out_clean(self._table, requested, gone, view=view):
                _log.warning("the metadata table changed while clean %s was carried out: the next goes on", requested)
                return None
            completed = self._table.complete(view, instant, content=metadata.encode())
        return metadata if completed else None

    def _delete(self, partition: str, files: tuple[str, ...]) -> CleanPartition:
        """Remove files of a partition; a plan is text that anybody may have written, so none but data and log files."""
        names = [file.rsplit("/", 1)[-1] for file in files]
        paths = {f"{partition}/{name}" if partition else name: name for name in names}
        removable = [path for path in paths if find_writer(path) is not None]
        if len(removable) < len(paths):
            odd = next(path for path in paths if find_writer(path) is None)
            _log.warning(_PASSED_OVER, len(paths) - len(removable), repr(odd)[:_MOST_SHOWN])
        self._storage.delete_all(removable, threads=self._settings.threads)
        return CleanPartition(deleted=tuple(paths[path] for path in removable))


def _earliest(plan: CleanPlan) -> str:
    return plan.earliest.requested if plan.earliest else ""


def _sum_up(done: list[CleanMetadata | None], earliest: str) -> CleanResult:
    ended = [metadata for metadata in done if metadata is not None]
    deleted = sum(metadata.deleted for metadata in ended)
    return CleanResult(tuple(metadata.started for metadata in ended), deleted, earliest)
