"""Services of the metadata table: compaction, clean and archival, as JVM writers do them beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from hudi_locks.config import service_keys
from hudi_locks.errors import DamagedTable
from hudi_locks.format import (
    METADATA_FOLDER,
    BaseFileName,
    CleanMetadata,
    CleanPartition,
    CleanPlan,
    CompactionPlan,
    Instant,
    MetadataPartition,
    RollbackMetadata,
)
from hudi_locks.metadata_table import (
    MetadataTable,
    MetadataView,
    base_file_path,
    compact,
    find_last_commit,
    find_last_compaction,
    plan_compaction,
)
from hudi_locks.services.archival import move_to_history
from hudi_locks.services.metadata_plans import MetadataPlans
from hudi_locks.services.retention import Keep, choose_files, find_judged, list_addresses
from hudi_locks.services.settings import ArchiveSettings, CleanSettings
from hudi_locks.table import list_data_files
from hudi_locks.timeline import Timeline, create_instant, read_instant
from hudi_locks.transaction import StopPoint, TableCoordinator, View

__all__ = ["MetadataServices", "MetadataUpkeep"]

_COMPACTION: Final = "compaction"
_CLEAN: Final = "clean"
_SERVICES: Final = (_COMPACTION, _CLEAN)
_BESIDE: Final = ("clean", "commit", "rollback")
_LEAST_KEPT: Final = 20
"""So many delta commits can still be read, at least: as JVM Hudi keeps them for readers that are under way."""


@dataclass(frozen=True)
class MetadataUpkeep:
    """What was done for a metadata table.

    Attributes:
        compactions: Requested times of the compactions that were carried out.
        deleted: How many old files were removed.
        archived: How many instants left its active timeline.
    """

    compactions: tuple[str, ...] = ()
    deleted: int = 0
    archived: int = 0


class MetadataServices:
    """Keeps the metadata table of one table small. Runs on the driver, inside the table lock, as JVM Hudi does it.

    Without it a table that no JVM writer writes any more would merge ever more logs at each read, and its timeline
    would never be archived, since that ends at the last compaction of the metadata table.

    A compaction takes a time before all later ones, and its plan is on the timeline before a claim says so. So a write
    whose claim came earlier is completed, with its logs in the plan; and one that claims later sees the plan, and
    completes at a later time, so that its logs lie on top of the new base files. What is done twice, by two who both
    believe to hold the lock, gives the same files under the same names.

    Args:
        coordinator: With the writers.
        compact_commits: After so many delta commits a compaction is due.
        clean: What a clean of the table keeps: of the metadata table a fifth more stays.
        archive: How long the timeline of the table may grow.
    """

    def __init__(
        self, coordinator: TableCoordinator, *, compact_commits: int, clean: CleanSettings, archive: ArchiveSettings
    ) -> None:
        self._table = coordinator
        self._storage = coordinator.storage
        self._plans = MetadataPlans(coordinator)
        self._compact_commits = compact_commits
        self._kept = max(_LEAST_KEPT, clean.commits * 6 // 5)
        least = max(archive.min_commits, self._kept) + 1  # what the clean keeps is told by the timeline
        most = max(archive.max_commits + 1, least + archive.max_commits - archive.min_commits)
        self._archiving = replace(archive, min_commits=least, max_commits=most)

    def is_due(self) -> bool:
        """Whether there are as many delta commits as `hoodie.metadata.compact.max.delta.commits` says; one listing.

        Raises:
            DamagedTable: The timeline of the metadata table cannot be read.
        """
        return self._is_compaction_due(self._plans.load())

    def run(self) -> MetadataUpkeep:
        """Do what is due, and what somebody who died left behind an hour ago; nothing without a metadata table.

        Raises:
            AcquireTimeout: The table lock could not be had.
            DamagedTable: The metadata table, or its timeline, cannot be read.
            UnsupportedTable: It has a part that is not kept up to date here.
            StorageError: The store failed; another run goes on.
        """
        if self._table.find_metadata_table() is None:
            return MetadataUpkeep()
        with self._table.hold():
            view = self._look()
            found = self._table.find_metadata_table()
            if found is None:
                return MetadataUpkeep()
            found.refuse_unwritable()
            done = tuple(self._finish_compactions(found, view))
            if requested := self._compact(found, view):
                done = (*done, requested)
            deleted = self._finish_cleans()
            deleted += self._clean(found) if done else 0
            return MetadataUpkeep(done, deleted, self._archive(view))

    def _look(self) -> View:
        """Once the last claim is settled: what it published is completed, and its logs are there."""
        return self._table.look()

    def _is_compaction_due(self, own: Timeline) -> bool:
        last, commits = find_last_compaction(own), own.completed(("deltacommit",))
        later = [one for one in commits if (one.requested if self._plans.are_old else str(one.completion)) > last]
        return len(later) >= self._compact_commits

    def _compact(self, found: MetadataTable, view: View) -> str | None:
        """Plan a compaction and carry it out, if it is due, no service is pending, and no claim came in between."""
        shown = found.view(view.timeline)
        own = shown.own_timeline
        if own.pending(_SERVICES) or not self._is_compaction_due(own):
            return None
        if self._is_unsettled(shown) or (self._plans.are_old and _has_earlier_pending(shown)):
            return None
        plan = plan_compaction(shown)
        begun = self._plans.begin(view, _COMPACTION, plan=plan.encode(), own=own)
        if begun is None:
            return None
        return self._merge_below(found, begun) if self._plans.are_old else self._carry_out(shown, begun, plan)

    def _merge_below(self, found: MetadataTable, begun: Instant) -> str | None:
        """Carry out a compaction of version 6: of its file groups all logs below it, named or not; None if not now."""
        shown = found.view(self._look().timeline)
        if self._is_unsettled(shown):
            return None
        path = self._plans.layout.path(begun)
        planned = CompactionPlan.decode(self._storage.read(path) or b"", path).file_groups
        plan = plan_compaction(shown, below=begun.requested).only(planned)
        self._plans.rewrite(begun, plan.encode())
        self._drop_strangers(begun.requested, plan)
        return self._carry_out(shown, begun, plan)

    def _is_unsettled(self, shown: MetadataView) -> bool:
        """Whether a delta commit is completed here whose instant may still be rolled back, or was: nobody could then.

        One of which the table's timeline knows nothing is JVM Hudi's own, as after a restore, or when it adds a part.
        """
        times = [one.requested for one in shown.own_timeline.completed(("deltacommit",))]
        strange = {time for time in times if not shown.timeline.is_completed(time)}
        known = {time for time in strange if shown.timeline.get(time) is not None}
        return bool(known or (strange and strange & self._list_rolled_back(shown.timeline)))

    def _list_rolled_back(self, timeline: Timeline) -> frozenset[str]:
        done = timeline.completed(("rollback",))
        read = (RollbackMetadata.decode(self._read(timeline, one), timeline.paths[one]) for one in done)
        return frozenset(time for metadata in read for time, _ in metadata.rolled_back)

    def _read(self, timeline: Timeline, instant: Instant) -> bytes:
        return read_instant(self._storage, timeline, instant=instant)

    def _carry_out(self, shown: MetadataView, begun: Instant, plan: CompactionPlan) -> str | None:
        layout = self._plans.layout
        create_instant(self._storage, layout, instant=begun.as_inflight())
        self._table.trace(StopPoint.SERVICE_INFLIGHT)
        metadata = compact(shown, begun.requested, plan)
        self._table.trace(StopPoint.SERVICE_DONE)
        return self._plans.complete(begun, metadata.encode("commit", layout_version=layout.version))

    def _finish_compactions(self, found: MetadataTable, view: View) -> Iterator[str]:
        """Carry out the plans of those who died; a plan that lacks a log is withdrawn, but for one of version 6."""
        for begun, data in self._plans.list_abandoned(_COMPACTION):
            if self._plans.are_old:
                done = self._merge_below(found, begun)
            else:
                done = self._carry_out_if_whole(found.view(view.timeline), begun, data)
            yield from () if done is None else (done,)

    def _carry_out_if_whole(self, shown: MetadataView, begun: Instant, data: bytes) -> str | None:
        plan = CompactionPlan.decode(data, self._plans.layout.path(begun))
        if self._is_whole(plan, shown, begun.requested):
            self._drop_strangers(begun.requested, plan)
            return self._carry_out(shown, begun, plan)
        self._plans.withdraw(begun)
        return None

    def _is_whole(self, plan: CompactionPlan, shown: MetadataView, requested: str) -> bool:
        """Whether a plan has every log of what was completed before it was requested."""
        planned = {name for operation in plan.groups for name in operation.log_names}
        logs = [log for part in shown.table.parts for piece in shown.list_slices(part) for log in piece.logs]
        early = (log for log in logs if self._completed_before(shown.own_timeline, log.instant, requested))
        return all(log.path.rpartition("/")[2] in planned for log in early)

    def _completed_before(self, own: Timeline, instant: str, limit: str) -> bool:
        found = own.get(instant)
        return found is None or str(found.completion) <= limit

    def _drop_strangers(self, requested: str, plan: CompactionPlan) -> None:
        """Base files of somebody who died while carrying out the same plan, under other names."""
        ours = {base_file_path(requested, operation.partition, operation.file_id) for operation in plan.groups}
        folders = {f"{METADATA_FOLDER}/{operation.partition}" for operation in plan.groups}
        for folder in sorted(folders):
            for name in self._storage.list_names(folder):
                parsed = BaseFileName.parse(name)
                if parsed is not None and parsed.instant == requested and f"{folder}/{name}" not in ours:
                    self._storage.delete(f"{folder}/{name}")

    def _clean(self, found: MetadataTable) -> int:
        """Remove what none of the kept delta commits shows; how many files went."""
        view, own = self._look(), self._plans.load()
        commits = own.completed(("deltacommit",))
        if len(commits) <= self._kept or own.pending(_SERVICES):
            return 0
        border = commits[-self._kept]
        folders = [f"{METADATA_FOLDER}/{name}" for name in sorted(found.names)]
        listed, completion = find_judged(self._storage, own, list_data_files(self._storage, folders))
        files = choose_files(listed, Keep(border.requested), completion)
        if not files:
            return 0
        named = {path.rpartition("/")[2]: found for path, found in list_addresses(self._storage, files).items()}
        plan = CleanPlan(border, commits[-1].requested, service_keys.KEEP_COMMITS, named)
        begun = self._plans.begin(view, _CLEAN, plan=plan.encode(), own=own)
        return 0 if begun is None else self._carry_out_clean(begun, plan)

    def _carry_out_clean(self, begun: Instant, plan: CleanPlan) -> int:
        create_instant(self._storage, self._plans.layout, instant=begun.as_inflight(), data=plan.encode())
        self._table.trace(StopPoint.SERVICE_INFLIGHT)
        self._storage.delete_all(f"{METADATA_FOLDER}/{path}" for path in sorted(plan.paths))
        names = {part: tuple(path.rpartition("/")[2] for path in paths) for part, paths in plan.files.items()}
        parts = {part: CleanPartition(deleted=found) for part, found in names.items()}
        earliest = plan.earliest.requested if plan.earliest else ""
        metadata = CleanMetadata(begun.requested, 0, earliest, plan.last_completed, plan.policy, parts)
        self._table.trace(StopPoint.SERVICE_DONE)
        return metadata.deleted if self._plans.complete(begun, metadata.encode()) else 0

    def _finish_cleans(self) -> int:
        found = self._plans.list_abandoned(_CLEAN)
        plans = [(begun, CleanPlan.decode(data, self._plans.layout.path(begun))) for begun, data in found]
        for begun, plan in plans:
            self._refuse_strange(begun, plan)
        return sum(self._carry_out_clean(begun, plan) for begun, plan in plans)

    def _refuse_strange(self, begun: Instant, plan: CleanPlan) -> None:
        """A plan is text that anybody may have written, and only files of the metadata table go by it."""
        known = {part.value for part in MetadataPartition}
        for path in sorted(plan.paths):
            folder, _, name = path.rpartition("/")
            if folder not in known or not name:
                where = self._plans.layout.path(begun)
                message = f"{where} wants to remove {path}, which is no file of the metadata table: remove the plan"
                raise DamagedTable(message, path=where)

    def _archive(self, view: View) -> int:
        """Move old instants to the history of the metadata table; how many.

        None goes that is later than the last compaction, or than the start of the table's own active timeline: what
        may still be rolled back stays.
        """
        own, settings = self._plans.load(), self._archiving
        commits = own.completed(("deltacommit",))
        if len(commits) <= settings.max_commits:
            return 0
        last = find_last_compaction(own)
        limit = min([view.timeline.first_active or "", *(one.requested for one in own.pending())])
        oldest = self._plans.layout.time(self._storage.now_ms() - settings.min_age_ms)

        def may_go(one: Instant) -> bool:
            return one.requested < limit and str(one.completion) < min(last, oldest)

        going = list(takewhile(may_go, commits[: len(commits) - settings.min_commits]))
        if not going:
            return 0
        beside = [one for one in own.completed(_BESIDE) if one.requested < going[-1].requested]
        chosen = sorted([*going, *beside])
        move_to_history(self._storage, own, chosen, settings=settings)
        return len(chosen)


def _has_earlier_pending(shown: MetadataView) -> bool:
    """Whether something of the table is pending that a JVM writer would take for compacted, as in version 6."""
    last = find_last_commit(shown.own_timeline)
    return any(one.requested <= last for one in shown.timeline.pending())
