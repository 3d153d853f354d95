"""Ending the work of a write that cannot be published any more, and saying why. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_locks.errors import DamagedTable, StorageError, WriteAborted
from hudi_locks.transaction import Conflict, Transaction

__all__ = ["EarlyConflictMet", "cancel_on_abort", "raise_if_rolled_back"]


@contextmanager
def cancel_on_abort(transaction: Transaction, spark: SparkSession) -> Iterator[None]:
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


@contextmanager
def raise_if_rolled_back(transaction: Transaction) -> Iterator[None]:
    """Look, when the block fails for a file or a job, whether the write was rolled back meanwhile.

    Then what it reads may have been cleaned, and what it wrote removed: no file is damaged.

    Raises:
        WriteAborted: It was, with `instant` and `reason` as facts; in place of what failed, which is its cause.
    """
    try:
        yield
    except (PySparkException, Py4JError, DamagedTable, StorageError) as error:
        if reason := _find_reason(transaction):
            message = (
                f"instant {transaction.instant} is given up, and its jobs are cancelled: {reason}. Nothing of it is"
                " visible, and files that it needs may be gone: begin a new write"
            )
            raise WriteAborted(message, instant=transaction.instant, reason=reason) from error
        raise


def _find_reason(transaction: Transaction) -> str:
    with suppress(StorageError, DamagedTable):  # then only the heartbeat knows
        return transaction.find_loss()
    return transaction.lost_because
