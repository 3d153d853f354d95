"""Running the plan of a table service as one Spark job. Runs on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from pyspark.sql import SparkSession

from hudi_locks.clock import Clock
from hudi_locks.format import CommitMetadata
from hudi_locks.services import PlannedService
from hudi_locks.spark.aborting import cancel_on_abort, raise_if_rolled_back
from hudi_locks.spark.failures import typed_task_errors
from hudi_locks.spark.result import Attempt, WriteResult
from hudi_locks.spark.settings import PipelineSettings
from hudi_locks.table import Table
from hudi_locks.transaction import Transaction

__all__ = ["PlannedJob", "Report"]

Report = Callable[[str], None]


class _Plan(Protocol):
    @property
    def file_groups(self) -> frozenset[tuple[str, str]]: ...


P = TypeVar("P", bound=_Plan)


@dataclass(frozen=True)
class PlannedJob(ABC, Generic[P]):
    """Runs a service of one table.

    Attributes:
        spark: Session of the job.
        service: Plans and publishes.
        settings: How files are encoded.
        clock: Its source of time.
    """

    spark: SparkSession
    service: PlannedService[P]
    settings: PipelineSettings
    clock: Clock

    doing: ClassVar[str]

    @abstractmethod
    def _write(self, transaction: Transaction, plan: P) -> CommitMetadata:
        """Write what the plan asks for; the metadata of its commit."""

    @property
    def table(self) -> Table:
        """The table."""
        return self.service.table

    def run(self, instant: str | None, report: Report) -> WriteResult | None:
        """Run a plan that waits; None if none waits.

        Raises:
            WriteConflict: A write changed one of the file groups first; the plan is taken back.
            WriteAborted: `instant` cannot be run, or was rolled back meanwhile.
            OutcomeUnknown: The store did not say.
        """
        taken = self.service.take(instant)
        return None if taken is None else self._run(*taken, report)

    def _run(self, transaction: Transaction, plan: P, report: Report) -> WriteResult:
        began_ms = self.clock.wall_ms()
        taken, vain = raise_if_rolled_back(transaction), cancel_on_abort(transaction, self.spark)
        with transaction, taken, vain, typed_task_errors():
            report(f"{self.doing} {len(plan.file_groups)} file groups")
            metadata = self._write(transaction, plan)
            report("publishing")
            published = transaction.publish(metadata)
        attempt = Attempt(
            transaction.instant, began_ms, self.clock.wall_ms(), published.outcome, conflict=published.conflict
        )
        return WriteResult.of(published.raise_unless_committed(), metadata, attempts=[attempt])
