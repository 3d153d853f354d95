"""Telling a failure of one's own from what others did to a write that they took for dead. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hudi_locks.errors import DamagedTable, StorageError, WriteAborted
from hudi_locks.transaction import Transaction

__all__ = ["told_when_taken_away"]


@contextmanager
def told_when_taken_away(transaction: Transaction) -> Iterator[None]:
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
