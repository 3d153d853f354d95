"""Where the rows of a key lie, and where new ones go: what a write asks of the index of a table. Runs on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame

from hudi_locks.config import import_class, index_keys
from hudi_locks.errors import ConfigError
from hudi_locks.format import is_fixed_bucket_file_id
from hudi_locks.format.claim import FileGroupId
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.settings import PipelineSettings
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.table_options import LAYOUT_KEYS
from hudi_locks.spark.writing.placement import Placement, Regrouped
from hudi_locks.spark.writing.rows import CountedRows, KeyedRows
from hudi_locks.table.hash_rings import has_hash_rings

__all__ = ["Count", "Index", "open_index"]

Count = Callable[[DataFrame, int], CountedRows]
"""Rows by partition path, after a look at each, and their keys if they are no more than the number says."""


@dataclass(frozen=True)
class Index(ABC):
    """The index of one table, as its writer has it (Hudi's HoodieIndex). Lives on the driver.

    A writer checks it once; for each write it keeps the input, assigns file groups, and replans what others touched.

    Attributes:
        settings: How to write.
    """

    settings: PipelineSettings

    can_replan: ClassVar[bool] = True
    """Whether a write that met a conflict can find out what of it is outdated; else it begins anew."""
    may_replace: ClassVar[bool] = True
    """Whether file groups may end: not where a later one would have the same id, which readers hide for good."""

    def check(self, snapshot: Snapshot) -> None:
        """Whether the rows of a table lie where this index looks for them.

        A table that this package made remembers its index; of others a few rows are looked at, for a writer with
        another index would double them.

        Raises:
            UnsupportedTable: They lie elsewhere.
            ConfigError: The table names other settings of the index.
        """
        if not any(key.name in snapshot.table.config.extra for key in LAYOUT_KEYS):
            self._check_rows(snapshot)

    @abstractmethod
    def keep(self, keyed: KeyedRows, operation: Operation, *, count: Count) -> AbstractContextManager[KeyedRows]:
        """The input as every attempt and every task computed again sees it, for the length of the block.

        Args:
            keyed: With record keys and partition paths.
            operation: What is done with the rows.
            count: Counts them, and refuses some.
        """

    @abstractmethod
    def assign(
        self, operation: Operation, keyed: KeyedRows, snapshot: Snapshot, *, instant: str
    ) -> AbstractContextManager[Placement]:
        """Rows with file groups; what was persisted for it is let go at the end.

        Args:
            operation: What is done with the rows.
            keyed: What `keep` gave.
            snapshot: What the attempt builds on.
            instant: Its requested time.

        Raises:
            UnsupportedTable: A file group of the snapshot is none of this index.
        """

    @abstractmethod
    def replan(
        self,
        operation: Operation,
        keyed: KeyedRows,
        made: Placement,
        *,
        before: Snapshot,
        now: Snapshot,
        written: Iterable[FileGroupId],
        instant: str,
    ) -> AbstractContextManager[Regrouped]:
        """What a later snapshot makes outdated; what was persisted for it is let go at the end.

        Asked only where it `can_replan`, and `tells_places`.

        Args:
            operation: What is done with the rows.
            keyed: What `keep` gave.
            made: How they were placed on the snapshot before.
            before: That snapshot.
            now: The later one.
            written: The file groups that tasks looked at since then.
            instant: Requested time of the write.

        Raises:
            UnsupportedTable: See `assign`.
        """

    @abstractmethod
    def tells_places(self, operation: Operation) -> bool:
        """Whether rows go where their keys are looked for, so that it can be told which of them others touched."""

    @abstractmethod
    def _check_rows(self, snapshot: Snapshot) -> None:
        """Whether a few rows lie where this index looks for them; see `check`."""


_COPY_ON_WRITE = {
    "SIMPLE": "hudi_locks.spark.index.simple_index:SimpleIndex",
    "BLOOM": "hudi_locks.spark.index.simple_index:SimpleIndex",
    "GLOBAL_SIMPLE": "hudi_locks.spark.index.global_index:GlobalIndex",
    "GLOBAL_BLOOM": "hudi_locks.spark.index.global_index:GlobalIndex",
    "RECORD_INDEX": "hudi_locks.spark.index.record_index:RecordIndex",
    "GLOBAL_RECORD_LEVEL_INDEX": "hudi_locks.spark.index.record_index:RecordIndex",
    "RECORD_LEVEL_INDEX": "hudi_locks.spark.index.partition_record_index:PartitionRecordIndex",
    "BUCKET": "hudi_locks.spark.index.bucket_index:BucketIndex",
}
_MERGE_ON_READ = {
    "SIMPLE": "hudi_locks.spark.index.logged_index:LoggedIndex",
    "BLOOM": "hudi_locks.spark.index.logged_index:LoggedIndex",
    "GLOBAL_SIMPLE": "hudi_locks.spark.index.logged_index:LoggedGlobalIndex",
    "GLOBAL_BLOOM": "hudi_locks.spark.index.logged_index:LoggedGlobalIndex",
    "RECORD_INDEX": "hudi_locks.spark.index.record_index:LoggedRecordIndex",
    "GLOBAL_RECORD_LEVEL_INDEX": "hudi_locks.spark.index.record_index:LoggedRecordIndex",
    "RECORD_LEVEL_INDEX": "hudi_locks.spark.index.partition_record_index:LoggedPartitionRecordIndex",
    "BUCKET": "hudi_locks.spark.index.fixed_bucket_index:FixedBucketIndex",
}


_RINGS = "hudi_locks.spark.index.consistent_index:ConsistentIndex"
_LISTED_BUCKETS = "hudi_locks.spark.index.listed_bucket_index:ListedBucketIndex"


def open_index(settings: PipelineSettings, snapshot: Snapshot, *, is_non_blocking: bool) -> Index:
    """The index that a writer's settings name, for its kind of table.

    Args:
        settings: Of the writer.
        snapshot: Of the table.
        is_non_blocking: Whether its writers do not wait for each other: then ids of buckets follow from their numbers.

    Raises:
        ConfigError: There is none of this name for such a table, or its rows lie by the rings of another.
    """
    _refuse_rings(settings, snapshot)
    known = _MERGE_ON_READ if snapshot.table.is_merge_on_read else _COPY_ON_WRITE
    if known is _MERGE_ON_READ and settings.index_type == "BUCKET":
        known = {**known, "BUCKET": _choose_buckets(settings, snapshot, is_non_blocking=is_non_blocking)}
    name = known.get(settings.index_type, settings.index_type)
    return import_class(name, Index, key="hoodie.index.type", known=known)(settings)  # type: ignore[type-abstract]


def _refuse_rings(settings: PipelineSettings, snapshot: Snapshot) -> None:
    table = snapshot.table
    if settings.hashes_consistently or not table.is_merge_on_read or not has_hash_rings(table.storage):
        return
    index, engine = index_keys.INDEX_TYPE.name, index_keys.BUCKET_INDEX_ENGINE.name
    message = (
        f"{table.storage.base} has a consistent hashing index, whose writers look for rows nowhere else: set"
        f" {index}=BUCKET and {engine}=CONSISTENT_HASHING"
    )
    raise ConfigError(message, key=engine)


def _choose_buckets(settings: PipelineSettings, snapshot: Snapshot, *, is_non_blocking: bool) -> str:
    if settings.hashes_consistently:
        return _RINGS
    return _MERGE_ON_READ["BUCKET"] if is_non_blocking or _has_fixed_ids(snapshot) else _LISTED_BUCKETS


def _has_fixed_ids(snapshot: Snapshot) -> bool:
    """Whether ids of buckets follow from their numbers, as on tables that were made here; of others files are asked.

    In version 6 they never do: its JVM writers give every file group an id of its own.
    """
    if snapshot.timeline.layout.is_version_6:
        return False
    if any(key.name in snapshot.table.config.extra for key in LAYOUT_KEYS):
        return True
    ids = [piece.file_id for piece in snapshot.file_slices()]
    return bool(ids) and all(is_fixed_bucket_file_id(file_id) for file_id in ids)
