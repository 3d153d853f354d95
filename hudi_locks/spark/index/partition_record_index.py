"""The record index by partition: a key is looked up in what the metadata table tells of its partition.

Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.spark.index.global_index import PLACE, Moves
from hudi_locks.spark.index.logged_index import LoggedIndex
from hudi_locks.spark.index.record_lookup import FILE_ID, KEY, PATH, RecordLookup, warn_without_index
from hudi_locks.spark.index.simple_index import SimpleIndex
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.reading.files import read_live_keys
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import GROUP, Placement
from hudi_locks.spark.writing.rows import KeyedRows, keep_persisted
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, BaseFile

__all__ = ["LoggedPartitionRecordIndex", "PartitionRecordIndex"]

_COLUMNS = {KEY: RECORD_KEY, PATH: PARTITION_PATH, FILE_ID: GROUP}


@dataclass(frozen=True)
class PartitionRecordIndex(SimpleIndex):
    """Hudi's RECORD_LEVEL_INDEX. Where the table has no record index it is as SIMPLE, as in Hudi."""

    can_replan: ClassVar[bool] = False  # what its tasks told of their keys could not be taken back

    def check(self, snapshot: Snapshot) -> None:
        """See `Index.check`; an index of the whole table is refused."""
        super().check(snapshot)
        if snapshot.timeline.instants:  # a new table gets its index with its first rows
            warn_without_index(snapshot, "the files of their partitions")
        RecordLookup.of(snapshot, by_partition=True)

    @contextmanager
    def assign(
        self, operation: Operation, keyed: KeyedRows, snapshot: Snapshot, *, instant: str
    ) -> Iterator[Placement]:
        """See `Index.assign`."""
        index = RecordLookup.of(snapshot, by_partition=True) if self.settings.looks_up(operation) else None
        if index is None:
            with super().assign(operation, keyed, snapshot, instant=instant) as placement:
                yield placement
            return
        base_files = snapshot.base_files(keyed.counts)
        with self._find(index, keyed, snapshot, base_files) as rows, keep_persisted(rows) as found:
            tagged = self._settle(operation, found, snapshot)
            yield self._look_up(operation, snapshot, keyed.counts).place(operation, tagged, base_files)

    @contextmanager
    def _find(
        self, index: RecordLookup, keyed: KeyedRows, snapshot: Snapshot, base_files: Sequence[BaseFile]
    ) -> Iterator[DataFrame]:
        """The rows with the file group that has their key, or null; see `RecordIndex.find`."""
        with index.find(keyed, base_files, _COLUMNS, by=[RECORD_KEY, PARTITION_PATH]) as known:
            if known is not None:
                yield known
                return
        yield self._search(keyed, snapshot, base_files)

    def _search(self, keyed: KeyedRows, snapshot: Snapshot, base_files: Sequence[BaseFile]) -> DataFrame:
        lookup = self._look_up(Operation.UPSERT, snapshot, keyed.counts)
        return lookup.locate(keyed.frame, base_files, GROUP, keyed=keyed).rows

    def _settle(self, operation: Operation, found: DataFrame, snapshot: Snapshot) -> DataFrame:
        """Those of the rows that change something."""
        del operation, snapshot
        return found


@dataclass(frozen=True)
class LoggedPartitionRecordIndex(PartitionRecordIndex, LoggedIndex):
    """The same of a merge-on-read table: rows whose key is found are logged to its file group."""

    def _search(self, keyed: KeyedRows, snapshot: Snapshot, base_files: Sequence[BaseFile]) -> DataFrame:
        """Base files alone have keys that a log took out, and the index would not learn that they are back."""
        del base_files
        known = read_live_keys(keyed.frame.sparkSession, snapshot, snapshot.file_slices(keyed.counts), file_id=GROUP)
        return keyed.frame.join(known, [RECORD_KEY, PARTITION_PATH], "left")

    def _settle(self, operation: Operation, found: DataFrame, snapshot: Snapshot) -> DataFrame:
        if operation is not Operation.UPSERT:
            return found
        placed = found.withColumn(PLACE, F.when(F.col(GROUP).isNotNull(), F.col(PARTITION_PATH)))
        return Moves(self, placed, snapshot).without_older_deletes().found.drop(PLACE)
