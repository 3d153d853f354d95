"""The record index: keys are looked up in the metadata table, and no data file is read for it. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame

from hudi_locks.spark.index.global_index import PLACE, GlobalIndex
from hudi_locks.spark.index.logged_index import LoggedGlobalIndex
from hudi_locks.spark.index.record_lookup import FILE_ID, KEY, PATH, RecordLookup, warn_without_index
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import GROUP
from hudi_locks.spark.writing.rows import KeyedRows
from hudi_locks.table import RECORD_KEY, BaseFile

__all__ = ["LoggedRecordIndex", "RecordIndex"]

_COLUMNS = {KEY: RECORD_KEY, PATH: PLACE, FILE_ID: GROUP}


@dataclass(frozen=True)
class RecordIndex(GlobalIndex):
    """Hudi's SparkMetadataTableRecordIndex. Where the table has no record index it is as GLOBAL_SIMPLE, as in Hudi."""

    def check(self, snapshot: Snapshot) -> None:
        """See `Index.check`; one by partition is refused."""
        super().check(snapshot)
        warn_without_index(snapshot, "all of its files")
        RecordLookup.of(snapshot, by_partition=False)

    @contextmanager
    def find(self, keyed: KeyedRows, snapshot: Snapshot, base_files: Sequence[BaseFile]) -> Iterator[DataFrame]:
        """See `GlobalIndex.find`; where the index does not do for the snapshot, its files are searched."""
        lookup = RecordLookup.of(snapshot, by_partition=False)
        if lookup is not None:
            with lookup.find(keyed, base_files, _COLUMNS, by=[RECORD_KEY]) as known:
                if known is not None:
                    yield known
                    return
        with super().find(keyed, snapshot, base_files) as found:
            yield found


@dataclass(frozen=True)
class LoggedRecordIndex(RecordIndex, LoggedGlobalIndex):
    """The same of a merge-on-read table: rows whose key is found are logged to its file group."""
