"""A table in memory whose logs are merged into logs too, seen by readers that skip what those stand for or do not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from compaction_harness import NON_BLOCKING, SCHEMA, CompactionHarness
from transaction_harness import write_file

from hudi_locks.format import CommitMetadata, CompactionPlan, IOType, LogFileName, WriteStat
from hudi_locks.services import LogCompaction, planned_slice
from hudi_locks.storage import Storage
from hudi_locks.table import FileSlice, LogFile
from hudi_locks.transaction import PublishResult, Transaction

__all__ = ["LogCompactionHarness", "read_rows"]


class LogCompactionHarness(CompactionHarness):
    """A log is the list of its rows in their order; of a log compaction it says them again, after those before it."""

    def log_compaction(self, *, threshold: int = 2, **how: Any) -> LogCompaction:
        """As a process of its own has it."""
        return LogCompaction(self.table, self.harness.open(**{**NON_BLOCKING, **how}), threshold)

    def join(self, log_compaction: LogCompaction, instant: str | None = None) -> PublishResult | None:
        taken = log_compaction.take(instant)
        return None if taken is None else self.finish_join(*taken)

    def finish_join(self, tx: Transaction, plan: CompactionPlan) -> PublishResult:
        return tx.publish(self.join_logs(tx, plan))

    def join_logs(self, tx: Transaction, plan: CompactionPlan) -> CommitMetadata:
        """Make the logs."""
        stats = [self._join_slice(tx, planned_slice(operation)) for operation in plan.groups]
        return CommitMetadata.of(stats, "LOG_COMPACT", schema=SCHEMA, compacted=True)

    def _join_slice(self, tx: Transaction, piece: FileSlice) -> WriteStat:
        name = str(LogFileName(piece.file_id, tx.instant))
        said = {"again": self.rows(replace(piece, base=None)), "stands_for": [log.instant for log in piece.logs]}
        ticket = write_file(tx.files, "p", name, json.dumps(said).encode(), io_type=IOType.CREATE)
        return WriteStat("p", piece.file_id, f"p/{name}", num_writes=1, log_version=1, ticket=ticket)

    def rows(self, piece: FileSlice) -> list[str]:
        """What readers see, who must agree: those that apply every log, those that skip some, and as if none were."""
        return read_rows(self.harness.storage, piece)


def read_rows(storage: Storage, piece: FileSlice) -> list[str]:
    """The rows of a slice in the order in which they were applied last; three ways to read it must agree."""
    base = _load(storage, piece.base.path) if piece.base else []
    logs = [(log, _load(storage, log.path)) for log in piece.logs]
    everything = _apply(base, logs)
    stood_for = {time for _, said in logs if isinstance(said, dict) for time in said["stands_for"]}
    skipping = _apply(base, [(log, said) for log, said in logs if log.instant not in stood_for])
    without = _apply(base, [(log, said) for log, said in logs if not isinstance(said, dict)])
    assert skipping == everything == without, (everything, skipping, without)
    return everything


def _load(storage: Storage, path: str) -> Any:
    return json.loads(storage.read(path) or b"[]")


def _apply(base: list[str], logs: list[tuple[LogFile, Any]]) -> list[str]:
    """Rows in the order in which they were applied last."""
    rows = list(base)
    for _, said in logs:
        said_again = said["again"] if isinstance(said, dict) else []
        rows = [row for row in rows if row not in said_again]
        rows += said_again if isinstance(said, dict) else said
    return rows
