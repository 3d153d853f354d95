"""How long a publish of many files holds the lock on a store 20 ms away: each file gets its name after the claim."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.commits_side import LOCK, Place, prepare, stage_files
from benchmarks.contention import distant_s3
from benchmarks.figures import Figure
from hudi_locks import LockManager
from hudi_locks.format import CommitMetadata
from hudi_locks.storage import open_storage
from hudi_locks.table import Table
from hudi_locks.transaction import Transactions

__all__ = ["run"]

_COUNTS = (10, 100, 1_000)


def run(*, quick: bool) -> list[Figure]:
    """On versitygw, an S3 service of this machine; the peer names the files before it takes the lock."""
    figures = []
    with tempfile.TemporaryDirectory() as made, distant_s3() as (_, endpoint):
        for count in _COUNTS[: 2 if quick else 3]:
            place = Place(Path(made, f"t-{count}"), endpoint)
            prepare("ours", place)
            after, before = (_publish(place, count, named_before=early) for early in (False, True))
            title = f"lock held by a publish of {count:,} files"
            figures.append(Figure(title, after, "named before the claim", before, "ms", "lower"))
    return figures


def _publish(place: Place, count: int, *, named_before: bool) -> float:
    options = {"hoodie.base.path": place.base, **LOCK, **place.lock, **place.service}
    table = Table.load(open_storage(place.base, options=options), for_writing=True)
    with LockManager.from_options(options) as locks:
        transactions = Transactions(table, locks, options=options)
        with transactions.begin("commit", "INSERT") as transaction:
            stats, schema = stage_files(transaction, count, table, named_before=named_before)
            done = transaction.publish(CommitMetadata.of(stats, "INSERT", schema=schema))
            assert done.is_committed, done
            return done.lock_held_ms
