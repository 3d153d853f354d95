"""Going back to a savepoint: every later write is undone, and every write under way is refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from hudi_locks.errors import SavepointRefused
from hudi_locks.format import (
    WRITE_ACTIONS,
    BaseFileName,
    Instant,
    LogFileName,
    MetadataPartition,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPartition,
    State,
    comparable_action,
)
from hudi_locks.format.claim import ClaimKind
from hudi_locks.markers import DirectMarkers, drop_staged, read_markers
from hudi_locks.observe import SpanName
from hudi_locks.services.metadata_properties import remove_parts
from hudi_locks.services.old_restoring import (
    drop_rollbacks,
    is_completed,
    leave_old_compactions,
    list_old_logs,
)
from hudi_locks.services.savepoints import Savepoints
from hudi_locks.storage import map_in_threads
from hudi_locks.table import list_data_files
from hudi_locks.timeline import PENDING_ENDINGS, Timeline, index_files
from hudi_locks.timeline.heartbeat import WriterHeartbeat, heartbeat_path
from hudi_locks.transaction import StopPoint, TableCoordinator, carry_out_restore
from hudi_locks.transaction.ring_changes import take_back_rings

__all__ = ["RestoreResult", "Restorer"]

_ACTION: Final = "restore"
_KEYS: Final = MetadataPartition.RECORD_INDEX.value
_CHANGED: Final = (
    "the metadata table changed while restore {} was carried out, and is not in step yet: repeat the restore"
)


@dataclass(frozen=True)
class RestoreResult:
    """A restore that was carried out.

    Attributes:
        instant: Requested time of the restore.
        savepoint: Requested time of the write that the table went back to.
        undone: Requested times of the writes that are gone, the newest first.
        deleted: How many data files were removed.
        dropped: Names of parts of the metadata table that told where each key is, and were deleted: the record index.
        indexed_keys: How many record keys the record index has that was made in its place; None if none was made.
    """

    instant: str
    savepoint: str
    undone: tuple[str, ...] = ()
    deleted: int = 0
    dropped: tuple[str, ...] = ()
    indexed_keys: int | None = None


class Restorer:
    """Restores one table. Runs on the driver.

    The `RESTORE` claim decides: whoever publishes before it is undone, whoever was under way when it was made meets a
    conflict, and nobody begins before it is done. A restore that died is finished by the next one.

    A record index is deleted before anything is undone, since it would go on to name file groups that are gone.

    Args:
        coordinator: With the writers.
    """

    def __init__(self, coordinator: TableCoordinator) -> None:
        self._table = coordinator
        self._storage = coordinator.storage
        self._savepoints = Savepoints(coordinator)
        self._has_old_logs = coordinator.strategy.is_merge_on_read and coordinator.layout.is_version_6

    def run(self, instant: str) -> RestoreResult:
        """Go back to what the write begun at `instant` shows; a savepoint of it is made first if there is none.

        Raises:
            AcquireTimeout: The table lock could not be had.
            DamagedTable: The metadata table cannot be read.
            SavepointRefused: Files of that snapshot are gone, or a restore to another savepoint is not finished: repeat
                that one first.
            StorageError: The store failed; the same call goes on.
            UnsupportedTable: The metadata table has a part that is not kept up to date here.
        """
        with self._table.metrics.span(SpanName.RESTORE, savepoint=instant) as span:
            result = self._run(instant)
            span.note(instant=result.instant, undone=len(result.undone), files_deleted=result.deleted)
        return result

    def _run(self, instant: str) -> RestoreResult:
        self._table.describe_indexed()  # refuses what is not kept up to date
        if (unfinished := self._find_unfinished()) is not None:
            return self._finish(unfinished, instant)
        self._savepoints.create(instant, comments="made by a restore")
        heartbeat, plan = self._request(instant)
        with heartbeat.stop_at_end():
            return self._carry_out(heartbeat.requested, plan)

    def _drop_record_index(self) -> tuple[str, ...]:
        """Inside the lock: also one that a JVM writer made while the restore was under way."""
        indexed = self._table.describe_indexed()
        return remove_parts(self._storage, (_KEYS,)) if indexed is not None and indexed.key_groups else ()

    def _find_unfinished(self) -> Instant | None:
        with self._table.hold():
            pending = self._table.look().timeline.pending((_ACTION,))
        return pending[0] if pending else None

    def _finish(self, unfinished: Instant, instant: str) -> RestoreResult:
        path = self._table.layout.path(unfinished.as_requested())
        plan = RestorePlan.decode(self._storage.read(path) or b"", path)
        if plan.savepoint != instant:
            message = f"restore {unfinished.requested} to {plan.savepoint} is not finished: repeat that one first"
            raise SavepointRefused(message, instant=instant, reason=message)
        drop_rollbacks(self._storage, self._table.peek().timeline, unfinished.requested, plan)
        result = self._carry_out(unfinished.requested, plan)
        self._storage.delete(heartbeat_path(unfinished.requested))
        return result

    def _request(self, savepoint: str) -> tuple[WriterHeartbeat, RestorePlan]:
        while True:
            with self._table.hold():
                view = self._table.look()
                plan = RestorePlan(savepoint, self._list_later(view.timeline, savepoint))
                if self._has_old_logs:
                    self._list_files(view.timeline, [time for time, _ in plan.instants])  # refuses before it begins
                heartbeat = self._table.schedule(view, _ACTION, plan=plan.encode(), kind=ClaimKind.RESTORE)
            if heartbeat is not None:
                return heartbeat, plan

    def _carry_out(self, requested: str, plan: RestorePlan) -> RestoreResult:
        """Undo the newest write first, so that the table is at every moment as it once was."""
        restore = Instant(requested, _ACTION, State.REQUESTED)
        started_s = self._table.clock.monotonic()
        self._table.begin(restore)
        with self._table.hold():
            dropped = self._drop_record_index()
        began = self._table.peek().timeline
        files = self._list_files(began, [time for time, _ in plan.instants])
        rollbacks = {time: (self._undo(time, action, files[time]),) for time, action in plan.instants}
        self._delete_late([time for time in files if not (self._has_old_logs and is_completed(began, time))])
        self._table.trace(StopPoint.SERVICE_DONE)
        took_ms = round((self._table.clock.monotonic() - started_s) * 1000)
        metadata = RestoreMetadata(requested, took_ms, plan.instants, rollbacks)
        dropped += self._complete(restore, metadata)
        deleted = sum(len(part.deleted) for (done,) in rollbacks.values() for part in done.partitions.values())
        undone = tuple(time for time, _ in plan.instants)
        return RestoreResult(requested, plan.savepoint or "", undone, deleted, tuple(sorted(set(dropped))))

    def _complete(self, restore: Instant, metadata: RestoreMetadata) -> tuple[str, ...]:
        with self._table.hold():
            dropped = self._drop_record_index()
            view = self._table.look()
            is_pending = bool(view.timeline.pending((_ACTION,)))
            if is_pending and not carry_out_restore(self._table, restore.requested, view=view):
                message = _CHANGED.format(restore.requested)
                raise SavepointRefused(message, instant=restore.requested, reason=message)
            self._table.complete(view, restore, content=metadata.encode())
            return dropped

    def _list_later(self, timeline: Timeline, savepoint: str) -> tuple[tuple[str, str], ...]:
        later = _find_later(timeline, savepoint)
        if self._has_old_logs:
            later = leave_old_compactions(self._storage, timeline, later, savepoint)
        return tuple((instant.requested, instant.action) for instant in reversed(later))

    def _list_files(self, timeline: Timeline, instants: Collection[str]) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {time: set() for time in instants}
        for file in list_data_files(self._storage).every:
            if file.instant in found:
                found[file.instant].add(file.path)
        if self._has_old_logs:
            for time, logs in list_old_logs(self._storage, timeline, instants).items():
                found[time].update(logs)
        return {time: frozenset(files | read_markers(self._storage, time).own_files) for time, files in found.items()}

    def _undo(self, requested: str, action: str, files: frozenset[str]) -> RollbackMetadata:
        """First readers stop seeing the write, then its files go; at last what says that it was begun."""
        self._savepoints.remove_files(requested)
        layout = self._table.layout
        paths = index_files(self._storage, layout).get((requested, comparable_action(action)), ())
        completed = [path for path in paths if not path.endswith(PENDING_ENDINGS)]
        if not completed:
            self._table.delta_commits.take_back(requested)
        self._storage.delete_all(completed)
        self._storage.delete_all(sorted(files))
        take_back_rings(self._table, requested, action)
        for path in reversed(paths):
            self._storage.delete(path)
        DirectMarkers(self._storage, requested).delete()
        drop_staged(self._storage, [requested])
        self._storage.delete_all(completed)  # once more: who slept on its way may have named it again
        self._storage.delete(heartbeat_path(requested))
        self._table.trace(StopPoint.RESTORE_UNDONE)
        return RollbackMetadata(requested, 0, ((requested, action),), self._by_partition(files))

    def _delete_late(self, instants: Collection[str]) -> None:
        """What tasks finished before they saw that their inflight file is gone."""
        found = self._list_files(self._table.peek().timeline, instants)
        map_in_threads(self._storage.delete, sorted(path for paths in found.values() for path in paths))

    def _by_partition(self, files: Iterable[str]) -> dict[str, RollbackPartition]:
        groups: dict[str, tuple[str, ...]] = {}
        for path in sorted(files):
            partition, _, name = path.rpartition("/")
            if BaseFileName.parse(name) or LogFileName.parse(name):
                groups[partition] = (*groups.get(partition, ()), self._storage.address(path))
        return {partition: RollbackPartition(deleted=paths) for partition, paths in groups.items()}


def _find_later(timeline: Timeline, savepoint: str) -> list[Instant]:
    """Writes that the savepoint does not keep: begun after it, not completed when it was made, or under way now."""
    made = next((str(i.completion) for i in timeline.completed(("savepoint",)) if i.requested == savepoint), "")
    return [
        instant
        for instant in timeline.instants
        if instant.action in WRITE_ACTIONS
        and (instant.requested > savepoint or not instant.is_completed or str(instant.completion) > made)
    ]
