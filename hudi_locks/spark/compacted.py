"""What a user asks of the compaction of a merge-on-read table."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hudi_locks.spark.compaction_service import CompactionService
from hudi_locks.spark.log_compaction_service import LogCompactionService
from hudi_locks.spark.result import WriteResult
from hudi_locks.transaction import Outcome

__all__ = ["CompactedTable"]


class CompactedTable(ABC):
    """A table whose logs can be compacted; `HoodieTable` is one. Lives on the driver.

    Attributes:
        path: Base path.
    """

    path: str

    @abstractmethod
    def _compaction(self) -> CompactionService:
        """What compacts it."""

    @abstractmethod
    def _log_compaction(self) -> LogCompactionService:
        """What merges its logs."""

    def compact(self) -> WriteResult | None:
        """Merge the logs of each file group into a new base file, while others write. Of a merge-on-read table.

        What completes before its plan is decided is part of it, what completes later is read on top. A plan that
        waits is run first; one whose process died is rolled back, and planned anew. Plans of JVM writers are theirs.

        Returns:
            What was done; None if there are no logs.

        Raises:
            UnsupportedTable: The table is a copy-on-write table.
            WriteAborted: It was rolled back meanwhile.
            WriteConflict: A write replaced one of the file groups first.
            OutcomeUnknown: The store did not say; `resolve` finds out.
        """
        return self._compaction().compact()

    def schedule_compaction(self) -> str | None:
        """Put a plan on the timeline, to be run here or elsewhere; None if there are no logs. See `compact`."""
        return self._compaction().schedule()

    def run_compaction(self, instant: str | None = None) -> WriteResult | None:
        """Run the plan `instant`, or the oldest of this package that waits; None if none waits. See `compact`."""
        return self._compaction().run(instant)

    def abort_compaction(self, instant: str) -> Outcome:
        """Take a plan back, with every file that was written for it; COMMITTED if it is done already.

        Raises:
            WriteAborted: There is no such plan of this package.
        """
        return self._compaction().abort(instant)

    def wait_for_compaction(self) -> tuple[WriteResult, ...]:
        """Wait for the thread of `hoodie.datasource.compaction.async.enable`; what it compacted so far."""
        return self._compaction().wait()

    def compact_logs(self) -> WriteResult | None:
        """Merge the logs of each file slice that has many into one log; its base file stays. Of a merge-on-read table.

        It costs less than `compact`, and spares readers the work of merging the same logs again and again. Enough are
        `hoodie.log.compaction.blocks.threshold` logs that no log compaction has merged. A plan that waits is run first;
        one whose process died is rolled back, and planned anew. Plans of JVM writers are theirs.

        Returns:
            What was done; None if no slice has enough logs, and while a write is under way: readers apply logs in the
            order in which their writes began, so that no write may be left that began before and completes after it.

        Raises:
            UnsupportedTable: The table is a copy-on-write table, or one whose rows fill columns of the rows below.
            WriteAborted: It was rolled back meanwhile.
            WriteConflict: A write began before it after all, or a JVM writer planned a compaction of its file groups.
            OutcomeUnknown: The store did not say; `resolve` finds out.
        """
        return self._log_compaction().compact()

    def schedule_log_compaction(self) -> str | None:
        """Put a plan on the timeline, to be run here or elsewhere; None for nothing to do now. See `compact_logs`."""
        return self._log_compaction().schedule()

    def run_log_compaction(self, instant: str | None = None) -> WriteResult | None:
        """Run the plan `instant`, or the oldest of this package that waits; None if none waits. See `compact_logs`."""
        return self._log_compaction().run(instant)

    def abort_log_compaction(self, instant: str) -> Outcome:
        """Take a plan back, with every file that was written for it; COMMITTED if it is done already.

        Raises:
            WriteAborted: There is no such plan of this package.
        """
        return self._log_compaction().abort(instant)
