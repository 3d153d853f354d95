"""Jobs that fail or are in vain: errors of tasks as what they were, and what ends a job early. Runs on the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_locks import errors
from hudi_locks.errors import DamagedTable, HudiLocksError, SessionRefused, StorageError, WriteAborted
from hudi_locks.spark.session import WAY_OUT
from hudi_locks.transaction import Conflict, Transaction

__all__ = [
    "EarlyConflictMet",
    "cancel_on_abort",
    "raise_if_rolled_back",
    "typed_task_errors",
]

_RAISED: Final = re.compile(r"hudi_locks\.errors\.(\w+): ([^\n]*)")

_UNFIT: Final = (
    (re.compile(r"No module named '(hudi_locks|pyarrow|pandas|numpy|fastavro)\b"), "have no {}"),
    (re.compile(r"Python in worker has (?:a )?different version:? ([^\n]*)"), "run another version of Python: {}"),
    (re.compile(r'Cannot run program "([^"]*python[^"]*)"'), "are to run {}, which is not there"),
)
"""What Spark says of workers that cannot run our tasks."""
_DAMAGED: Final = re.compile(r"([^\n]*(?: is not a Parquet file|corrupted file:|Could not read footer)[^\n]*)")
_BASE_FILE: Final = re.compile(r"[^\s:]+\.parquet\b")
"""What its readers say of a base file that is not whole; of a wrong footer they name no file."""


@contextmanager
def typed_task_errors() -> Iterator[None]:
    """Around an action of Spark: what a task raised as an error of ours is raised here as the same class.

    Spark hands on the text of a traceback; the facts of the error stay on the executor.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        found = _find_raised(str(error)) or _find_unfit(str(error)) or _find_damaged(str(error))
        if found is None:
            raise
        raise found from error


def _find_raised(text: str) -> HudiLocksError | None:
    for name, message in reversed(_RAISED.findall(text)):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, HudiLocksError):
            return kind(message)
    return None


def _find_unfit(text: str) -> SessionRefused | None:
    for form, phrase in _UNFIT:
        if match := form.search(text):
            return SessionRefused(f"Spark's Python workers {phrase.format(match[1])}; {WAY_OUT}", found=match[1])
    return None


def _find_damaged(text: str) -> DamagedTable | None:
    match = _DAMAGED.search(text)
    if match is None:
        return None
    said = match[1].rpartition("Exception: ")[2].strip()
    named = _BASE_FILE.search(match[1])
    file = named[0] if named else None
    message = (
        f"{file or 'a base file'} is no whole Parquet file ({said}); bring it back from a copy, or restore the table"
    )
    return DamagedTable(message, path=file)


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
