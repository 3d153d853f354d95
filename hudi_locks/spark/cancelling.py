"""Ending the jobs of a write that cannot be published any more. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_locks.transaction import Conflict, Transaction

__all__ = ["EarlyConflictMet", "cancelled_when_vain"]


@contextmanager
def cancelled_when_vain(transaction: Transaction, spark: SparkSession) -> Iterator[None]:
    """Cancel the jobs that this thread runs in the block as soon as it is known that they are in vain.

    The heartbeat of the write is lost, so that others may roll it back; or a task has met an earlier write, and would
    meet it again as often as Spark repeats it.

    Raises:
        EarlyConflictMet: A task has met an earlier write; in place of what Spark says of the job.
    """
    tag, context = f"hudi_locks-{transaction.instant}", spark.sparkContext
    context.addJobTag(tag)
    transaction.call_when_lost(lambda _: context.cancelJobsWithTag(tag))
    try:
        with transaction.call_at_conflict(lambda: context.cancelJobsWithTag(tag)):
            yield
    except (PySparkException, Py4JError) as error:
        conflict = None if transaction.lost_because else transaction.find_early_conflict()
        if conflict is None:
            raise
        raise EarlyConflictMet(conflict) from error
    finally:
        context.removeJobTag(tag)


class EarlyConflictMet(Exception):
    """A task met an earlier write before it wrote.

    Attributes:
        conflict: With whom.
    """

    def __init__(self, conflict: Conflict) -> None:
        super().__init__(str(conflict))
        self.conflict = conflict
