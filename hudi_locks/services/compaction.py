"""Compaction: the logs of a file slice and its base file become one base file. Planning and bookkeeping."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from hudi_locks.errors import UnsupportedTable, WriteAborted
from hudi_locks.format import BaseFileName, CompactionOperation, CompactionPlan, Instant, State, clustered_file_groups
from hudi_locks.format.compaction_plan import compacted_file_groups
from hudi_locks.table import BaseFile, FileSlice, LogFile, Table, latest_file_slices
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Outcome, Transaction, Transactions

__all__ = ["Compaction", "PendingCompaction", "planned_slice"]

_ACTION: Final = "compaction"


@dataclass(frozen=True)
class PendingCompaction:
    """A plan that was not run to its end.

    Attributes:
        instant: Its requested time.
        plan: What it merges.
        is_begun: Whether somebody has begun to run it.
        is_alive: Whether a process that runs it, or is about to, gave a sign of life lately.
        is_ours: Whether this package made the plan; a JVM writer runs its own.
    """

    instant: str
    plan: CompactionPlan
    is_begun: bool
    is_alive: bool
    is_ours: bool


@dataclass(frozen=True)
class Compaction:
    """Compaction of one table, but for the rows themselves. Runs on the driver.

    Attributes:
        table: The table.
        transactions: Schedules, begins and publishes.
    """

    table: Table
    transactions: Transactions

    def schedule(self) -> str | None:
        """Put a plan for all file groups with logs on the timeline; None if there is nothing to compact.

        Raises:
            UnsupportedTable: The table has no logs by its type.
        """
        if not self.table.is_merge_on_read:
            path = self.table.storage.base
            raise UnsupportedTable(f"{path} is a copy-on-write table, which has no logs to compact", path=path)
        return self.transactions.schedule_compaction(self.make_plan)

    def make_plan(self, timeline: Timeline) -> CompactionPlan | None:
        """What is to be compacted of the table that `timeline` shows."""
        busy = self._find_busy(timeline)
        slices = latest_file_slices(self.table.storage, timeline)
        chosen = (piece for piece in slices if piece.logs and (piece.partition, piece.file_id) not in busy)
        plan = CompactionPlan(tuple(_plan_slice(piece) for piece in chosen))
        return plan if plan.groups else None

    def list_pending(self, timeline: Timeline) -> list[PendingCompaction]:
        """Plans that were not run to their end, the oldest first.

        Raises:
            DamagedTable: A plan cannot be read.
        """
        pending = timeline.pending((_ACTION,))
        dead = self.transactions.find_dead(instant.requested for instant in pending)
        return [self._describe(instant, is_alive=instant.requested not in dead) for instant in pending]

    def take(self, instant: str | None = None) -> tuple[Transaction, CompactionPlan] | None:
        """Begin a plan that waits: `instant`, or the oldest of ours; None if none waits.

        What a dead process began is rolled back, with every file of it, and planned anew: with what was logged since.

        Raises:
            WriteAborted: `instant` cannot be run: it is not there, is under way, or somebody else planned it.
        """
        for pending in self._choose(instant):
            requested: str | None = pending.instant
            if pending.is_begun:
                is_undone = self.transactions.resolve(pending.instant) is Outcome.ABORTED
                requested = self.schedule() if is_undone else None
            if requested is not None:
                return self.transactions.resume_compaction(requested), self.read_plan(requested)
        return None

    def read_plan(self, requested: str) -> CompactionPlan:
        """The plan of a compaction; empty if it is gone."""
        path = self.table.layout.path(Instant(requested, _ACTION, State.REQUESTED))
        return CompactionPlan.decode(self.table.storage.read(path) or b"", path)

    def _choose(self, instant: str | None) -> list[PendingCompaction]:
        pending = self.list_pending(self.table.timeline())
        ready = [one for one in pending if one.is_ours and not one.is_alive and instant in (None, one.instant)]
        if instant is not None and not ready:
            named = ", ".join(one.instant for one in pending) or "none"
            message = f"{instant} is no compaction of this package that waits; pending are: {named}"
            raise WriteAborted(message, instant=instant)
        return ready

    def _find_busy(self, timeline: Timeline) -> frozenset[tuple[str, str]]:
        readers = {_ACTION: compacted_file_groups, "logcompaction": compacted_file_groups}
        pending = timeline.pending((*readers, "clustering"))
        paths = [
            (timeline.layout.path(i.as_requested()), readers.get(i.action, clustered_file_groups)) for i in pending
        ]
        return frozenset(group for path, read in paths for group in read(self.table.storage.read(path) or b"", path))

    def _describe(self, instant: Instant, *, is_alive: bool) -> PendingCompaction:
        plan, is_ours = self.read_plan(instant.requested), self.transactions.is_own_plan(instant.requested)
        return PendingCompaction(instant.requested, plan, instant.state is State.INFLIGHT, is_alive, is_ours)


def planned_slice(operation: CompactionOperation) -> FileSlice:
    """What an operation merges, as it is read; sizes are not known."""
    base = _find_base(operation)
    logs = (LogFile.parse(operation.partition, name, 0) for name in operation.log_names)
    piece = FileSlice(operation.partition, operation.file_id, operation.base_instant, base)
    return replace(piece, logs=tuple(log for log in logs if log is not None))


def _find_base(operation: CompactionOperation) -> BaseFile | None:
    name = BaseFileName.parse(operation.base_name)
    if name is None:
        return None
    path = f"{operation.partition}/{operation.base_name}" if operation.partition else operation.base_name
    return BaseFile(operation.partition, operation.file_id, name.instant, path, 0)


def _plan_slice(piece: FileSlice) -> CompactionOperation:
    names = tuple(log.path.rpartition("/")[2] for log in piece.logs)
    base = piece.base.path.rpartition("/")[2] if piece.base else ""
    size = sum(log.size for log in piece.logs)
    return CompactionOperation(piece.partition, piece.file_id, piece.barrier, base, names, size)
