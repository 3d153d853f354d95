"""A service that plans merges of logs, and runs such plans: compaction or log compaction. Runs on the driver."""

from __future__ import annotations

from hudi_locks.services import Compaction
from hudi_locks.spark.compaction import CompactionJob
from hudi_locks.spark.following_service import FollowingService
from hudi_locks.spark.result import WriteResult
from hudi_locks.spark.session import show_progress
from hudi_locks.transaction import Outcome

__all__ = ["CompactingService"]


class CompactingService(FollowingService):
    """Schedules, runs and takes back what one of the two does. Thread-safe.

    Args:
        planning: Makes the plans.
        job: Runs them.
        inline_commits: See `FollowingService`.
        async_commits: See `FollowingService`.
    """

    def __init__(self, planning: Compaction, job: CompactionJob, *, inline_commits: int, async_commits: int) -> None:
        self._planning = planning
        self._job = job
        super().__init__(inline_commits=inline_commits, async_commits=async_commits)

    def schedule(self) -> str | None:
        """Put a plan on the timeline; see `CompactedTable`."""
        return self._planning.schedule()

    def run(self, instant: str | None = None) -> WriteResult | None:
        """Run a plan; see `CompactedTable`."""
        with show_progress(f"{self.name} of {self._job.table.storage.base}") as report:
            return self._job.run(instant, report)

    def compact(self) -> WriteResult | None:
        """Run the plan that waits, or make one and run it; see `CompactedTable`."""
        with show_progress(f"{self.name} of {self._job.table.storage.base}") as report:
            return self._job.compact(report)

    def abort(self, instant: str) -> Outcome:
        """Take a plan back; see `CompactedTable`."""
        return self._planning.abort(instant)

    def _is_due(self, commits: int) -> bool:
        return self._planning.count_commits(self._planning.table.timeline()) >= commits

    def _run_if_due(self, commits: int) -> WriteResult | None:
        return self.compact() if self._is_due(commits) else self.run()
