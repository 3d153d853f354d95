"""The bucket index of a merge-on-read table: the id of a file group follows from its bucket alone (RFC-66).

So a file group that was replaced can never be written again: readers hide it for good, and with it whatever comes
later. And a file group of another id, which a JVM writer that blocks makes, would have a key there twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from hudi_locks.config import Options, write_keys
from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import (
    WRITE_ACTIONS,
    BucketCounts,
    WriteStat,
    bucket_of_file_id,
    fixed_bucket_file_id,
    is_fixed_bucket_file_id,
)
from hudi_locks.spark.index.bucket_index import BucketIndex
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import FixedBuckets, Placement
from hudi_locks.spark.writing.rows import KeyedRows
from hudi_locks.storage import map_in_threads
from hudi_locks.table import BaseFile, LogFile, read_commit

__all__ = ["FixedBucketIndex"]


@dataclass(frozen=True)
class FixedBucketIndex(BucketIndex):
    """Gives each bucket the file group whose id is the same for all writers; rows are logged without a listing.

    Where the table expects JVM writers, each of their commits is read once, for file groups of other ids. Not
    thread-safe.
    """

    may_replace: ClassVar[bool] = False

    _seen: set[str] = field(default_factory=set, repr=False, compare=False)

    @contextmanager
    def assign(
        self, operation: Operation, keyed: KeyedRows, snapshot: Snapshot, *, instant: str
    ) -> Iterator[Placement]:
        """See `Index.assign`: a bulk insert alone must know which buckets are new.

        Raises:
            UnsupportedTable: A write has replaced file groups of these partitions, or made one of another id.
        """
        del instant
        _check_not_replaced(snapshot, keyed.counts)
        if Options(snapshot.table.config.extra).get_value(write_keys.FOREIGN_WRITERS):
            self._check_new_commits(snapshot)
        slices = snapshot.file_slices(keyed.counts) if operation is Operation.BULK_INSERT else ()
        yield Placement(keyed.frame, FixedBuckets(self._list_groups(slices)), None)

    def _check_rows(self, snapshot: Snapshot) -> None:
        """Lists the table."""
        files = snapshot.data_files()
        _refuse_other_ids(self.buckets, files)
        keys = snapshot.sample_log_keys(files)
        self._check_samples({file: (key, bucket_of_file_id(file.file_id)) for file, key in keys.items()})

    def _check_new_commits(self, snapshot: Snapshot) -> None:
        new = [i.requested for i in snapshot.timeline.completed(WRITE_ACTIONS) if i.requested not in self._seen]
        storage, timeline = snapshot.table.storage, snapshot.timeline
        commits = map_in_threads(lambda requested: read_commit(storage, timeline, requested=requested), new)
        _refuse_other_ids(self.buckets, (stat for commit in commits for stat in commit.stats if stat.path))
        self._seen.update(new)


def _refuse_other_ids(buckets: BucketCounts, files: Iterable[BaseFile | LogFile | WriteStat]) -> None:
    for file in files:
        partition = file.partition_path if isinstance(file, WriteStat) else file.partition
        count = buckets.count(partition)
        if not is_fixed_bucket_file_id(file.file_id) or bucket_of_file_id(file.file_id) >= count:
            raise UnsupportedTable(
                f"{file.path} belongs to no file group that {count} buckets give, whose ids are such as"
                f" {fixed_bucket_file_id(0)}: it was made by a writer that did not use the simple bucket index with"
                " NON_BLOCKING_CONCURRENCY_CONTROL, or by one with more buckets, and a key could be there twice; write"
                " with what made it, or load its rows into a new table",
                path=file.path,
                buckets=count,
            )


def _check_not_replaced(snapshot: Snapshot, partitions: Iterable[str]) -> None:
    """Whether rows that are logged to these partitions will be seen.

    Raises:
        UnsupportedTable: A write replaced file groups there.
    """
    touched = frozenset(partitions)
    for (partition, file_id), instant in sorted(snapshot.replaced_groups.items()):
        if partition in touched:
            raise UnsupportedTable(
                f"replacecommit {instant} ended file group {file_id} of partition {partition!r}, and readers would hide"
                " what is logged there now; clean the table and archive that instant with JVM Hudi, or use a new table",
                partition=partition,
                file_id=file_id,
                instant=instant,
            )
