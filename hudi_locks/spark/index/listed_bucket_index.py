"""The bucket index of a merge-on-read table whose writers wait for each other: a bucket has a file group of any id.

JVM writers make such tables in every mode but NON_BLOCKING_CONCURRENCY_CONTROL. All rows go to logs, so a file group
need not have a base file before it is compacted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hudi_locks.format import bucket_of_file_id
from hudi_locks.spark.index.bucket_index import BucketIndex
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import Placement
from hudi_locks.spark.writing.rows import KeyedRows

__all__ = ["ListedBucketIndex"]


@dataclass(frozen=True)
class ListedBucketIndex(BucketIndex):
    """Hudi's HoodieBucketIndex with the SIMPLE engine, where rows are logged to the file group that a bucket has."""

    @contextmanager
    def assign(
        self, operation: Operation, keyed: KeyedRows, snapshot: Snapshot, *, instant: str
    ) -> Iterator[Placement]:
        """See `Index.assign`."""
        slices = () if operation.replaces else snapshot.file_slices(keyed.counts)
        yield self._place(keyed.frame, slices, instant=instant)

    def _check_rows(self, snapshot: Snapshot) -> None:
        """Lists the table."""
        self._by_bucket(snapshot.file_slices())
        keys = snapshot.sample_log_keys(snapshot.data_files())
        self._check_samples({file: (key, bucket_of_file_id(file.file_id)) for file, key in keys.items()})
