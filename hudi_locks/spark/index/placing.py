"""Choosing file groups by the index of the table. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from hudi_locks.config import index_keys
from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.format import is_bucket_file_id
from hudi_locks.format.claim import FileGroupId
from hudi_locks.spark.index.regrouping import regroup
from hudi_locks.spark.index.simple_index import SimpleIndex
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.settings import PipelineSettings
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.table_options import LAYOUT_KEYS
from hudi_locks.spark.writing.appending import FixedGroups, check_fixed_groups, check_not_replaced
from hudi_locks.spark.writing.input_preparation import KeyedRows
from hudi_locks.spark.writing.placement import Placement, Regrouped
from hudi_locks.table import BaseFile, find_bucket_counts

__all__ = ["Placer", "check_index"]


@dataclass(frozen=True)
class Placer:
    """Places the rows of one attempt.

    Attributes:
        settings: Which index, and how files are cut.
        snapshot: What the attempt builds on.
        instant: Its requested time.
        fixed_groups: Of a merge-on-read table that JVM writers may write to: looks at what they did.
    """

    settings: PipelineSettings
    snapshot: Snapshot
    instant: str
    fixed_groups: FixedGroups | None = None

    @contextmanager
    def place(self, operation: Operation, keyed: DataFrame, counts: Mapping[str, int]) -> Iterator[Placement]:
        """Rows with file groups; what was persisted for it is let go at the end.

        Args:
            operation: What is done with the rows.
            keyed: With record key and partition path.
            counts: Rows by partition path.
        """
        bucket_index = self.settings.bucket_index()
        if self.snapshot.table.is_merge_on_read and bucket_index is not None:
            check_not_replaced(self.snapshot, counts)
            if self.fixed_groups is not None:
                self.fixed_groups.check(self.snapshot)
            yield bucket_index.append(keyed)
            return
        base_files = [] if operation.replaces else self.snapshot.base_files(counts)
        if bucket_index is not None:
            yield bucket_index.place(keyed, base_files, instant=self.instant)
            return
        index = self._simple_index(operation)
        if not self.settings.looks_up(operation):
            yield index.place_new(keyed, base_files, counts)
            return
        tagged = index.tag(keyed, base_files).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield index.place(operation, tagged, base_files)
        finally:
            tagged.unpersist()

    @contextmanager
    def place_again(
        self,
        operation: Operation,
        keyed: KeyedRows,
        *,
        made: Placement,
        before: Sequence[BaseFile],
        written: Iterable[FileGroupId],
    ) -> Iterator[Regrouped]:
        """What this snapshot, a later one, makes outdated; what was persisted for it is let go at the end.

        Args:
            operation: What is done with the rows.
            keyed: All of them.
            made: How they were placed on the snapshot before.
            before: The newest files of their partitions by that.
            written: The file groups that tasks looked at since then.
        """
        now = self.snapshot.base_files(keyed.counts)
        if bucket_index := self.settings.bucket_index():
            instant = self.instant
            yield bucket_index.place_again(keyed.frame, before=before, now=now, written=written, instant=instant)
        elif made.assigned is not None:
            index, counts = self._simple_index(operation), keyed.counts
            with regroup(index, operation, made.assigned, before=before, now=now, counts=counts) as regrouped:
                yield regrouped

    def _simple_index(self, operation: Operation) -> SimpleIndex:
        sizing = self.settings.sizing(self.snapshot.record_bytes)
        if operation is Operation.BULK_INSERT:
            sizing = replace(sizing, small_file_bytes=0)
        return SimpleIndex(self.snapshot.table.storage, sizing, self.snapshot.planned_groups)


def check_index(settings: PipelineSettings, snapshot: Snapshot) -> None:
    """Whether the rows of a table lie where the index of a writer looks for them.

    A table that we made remembers its index; of others a few rows are looked at, for a writer with another index would
    double them.

    Raises:
        UnsupportedTable: They lie elsewhere.
        ConfigError: The table names other numbers of buckets.
    """
    _check_counts(settings, snapshot)
    if any(key.name in snapshot.table.config.extra for key in LAYOUT_KEYS):
        return
    bucket_index = settings.bucket_index()
    if snapshot.table.is_merge_on_read and bucket_index is not None:
        check_fixed_groups(bucket_index, snapshot)
        return
    base_files = snapshot.base_files()
    if bucket_index is not None:
        bucket_index.check(base_files, snapshot.sample_keys(base_files))
    elif base_files and all(is_bucket_file_id(file.file_id) for file in base_files):
        raise UnsupportedTable(
            f"{base_files[0].path} and all others belong to buckets; set hoodie.index.type=BUCKET and"
            " hoodie.bucket.index.num.buckets to the number that the table was written with",
            path=base_files[0].path,
        )


def _check_counts(settings: PipelineSettings, snapshot: Snapshot) -> None:
    """Whether the numbers of buckets are those that the table itself names, if it does."""
    found = find_bucket_counts(snapshot.table.storage, snapshot.timeline)
    if settings.bucket_index() is None or found is None or found == settings.buckets:
        return
    number, expressions = index_keys.BUCKET_INDEX_NUM_BUCKETS, index_keys.BUCKET_INDEX_PARTITION_EXPRESSIONS
    raise ConfigError(
        f"the table has {found.default} buckets in each partition, and others by {found.text!r}, while the options say"
        f" {settings.buckets.default} and {settings.buckets.text!r}; set {number.name}={found.default} and"
        f" {expressions.name}={found.text}, or keys would be there twice",
        key=expressions.name,
        asked=settings.buckets.text,
        table=found.text,
    )
