"""When a table is clustered: on demand, after a commit, or on a thread beside the writes. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from hudi_locks.config import Options
from hudi_locks.services import Clustering, ClusteringSettings
from hudi_locks.spark.clustering import ClusteringJob
from hudi_locks.spark.following_service import FollowingService
from hudi_locks.spark.result import WriteResult
from hudi_locks.spark.session import show_progress
from hudi_locks.spark.writing import Writer
from hudi_locks.transaction import Outcome

__all__ = ["ClusteringService"]


class ClusteringService(FollowingService):
    """Clustering of one table. Thread-safe.

    Args:
        spark: Session of the jobs.
        writer: Of the table; its transactions are used.
        options: Hudi's keys.
    """

    name = "clustering"

    def __init__(self, spark: SparkSession, writer: Writer, options: Options) -> None:
        self._spark = spark
        self._writer = writer
        self._options = options
        self._settings = self._read_settings()
        super().__init__(inline_commits=self._settings.inline_commits, async_commits=self._settings.async_commits)

    def schedule(self, sort_by: Sequence[str] | None = None) -> str | None:
        """See `HoodieTable.schedule_clustering`."""
        return self._make(self._read_settings(sort_by)).schedule()

    def run(self, instant: str | None = None) -> WriteResult | None:
        """See `HoodieTable.run_clustering`."""
        writer = self._writer
        with show_progress(f"clustering of {writer.table.storage.base}") as report:
            job = ClusteringJob(self._spark, self._make(self._settings), writer.settings, writer.clock)
            return job.run(instant, report)

    def cluster(self, sort_by: Sequence[str] | None = None) -> WriteResult | None:
        """See `HoodieTable.cluster`."""
        done = self.run()
        if done is not None:
            return done
        scheduled = self.schedule(sort_by)
        return None if scheduled is None else self.run(scheduled)

    def abort(self, instant: str) -> Outcome:
        """See `HoodieTable.abort_clustering`."""
        return self._make(self._settings).abort(instant)

    def _run_if_due(self, commits: int) -> WriteResult | None:
        clustering = self._make(self._settings)
        is_due = clustering.count_commits(clustering.table.timeline()) >= commits
        return self.cluster() if is_due else self.run()

    def _make(self, settings: ClusteringSettings) -> Clustering:
        return Clustering(self._writer.table, self._writer.transactions, settings)

    def _read_settings(self, sort_by: Sequence[str] | None = None) -> ClusteringSettings:
        properties = self._writer.table.config.extra
        return ClusteringSettings.of(self._options, table_properties=properties, sort_by=sort_by)
