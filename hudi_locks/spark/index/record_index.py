"""The record index: keys are looked up in the metadata table, and no data file is read for it. Runs on the driver."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.errors import DamagedTable
from hudi_locks.format import MetadataPartition
from hudi_locks.format.metadata_keys import group_numbers
from hudi_locks.metadata_table import find_keys
from hudi_locks.spark._compat import run_in_workers
from hudi_locks.spark.index.global_index import PLACE, GlobalIndex
from hudi_locks.spark.index.logged_index import LoggedGlobalIndex
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import GROUP
from hudi_locks.spark.writing.rows import KeyedRows, keep_persisted
from hudi_locks.storage import Storage
from hudi_locks.table import RECORD_KEY, BaseFile, FileSlice, Table

__all__ = ["LoggedRecordIndex", "RecordIndex"]

_NUMBER: Final = "number"
_TASKS_PER_CORE: Final = 2
_PART: Final = MetadataPartition.RECORD_INDEX


@dataclass(frozen=True)
class _NumberTask:
    """Keys with the number of their file group of the index."""

    groups: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys = batch.column(RECORD_KEY)
            numbers = pa.array(group_numbers(keys, self.groups), pa.int32())
            yield pa.RecordBatch.from_arrays([numbers, keys], [_NUMBER, RECORD_KEY])


@dataclass(frozen=True)
class _FindTask:
    """Looks keys up in file groups of the index. Picklable; made on the driver, called on executors.

    Attributes:
        storage: Of the table.
        slices: The newest slice of each file group.
    """

    storage: Storage
    slices: tuple[FileSlice, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take keys with the numbers of their file groups, and yield those that are there with their places."""
        schema = pa.schema([pa.field(_NUMBER, pa.int32()), pa.field(RECORD_KEY, pa.string())])
        rows = pa.Table.from_batches(batches, schema)
        for number in pc.unique(rows.column(_NUMBER)).to_pylist():
            keys = rows.filter(pc.equal(rows.column(_NUMBER), number)).column(RECORD_KEY).combine_chunks()
            found = find_keys(self.storage, self.slices[number], keys).drop_columns("is_gone")
            yield from found.rename_columns([RECORD_KEY, PLACE, GROUP]).to_batches()


@dataclass(frozen=True)
class RecordIndex(GlobalIndex):
    """Hudi's SparkMetadataTableRecordIndex. Where the table has no record index it is as GLOBAL_SIMPLE, as in Hudi."""

    def check(self, snapshot: Snapshot) -> None:
        """See `Index.check`."""
        super().check(snapshot)
        if not snapshot.has_record_index:
            message = f"{snapshot.table.storage.base} has no record index: keys are looked for in all of its files"
            warnings.warn(message, UserWarning, stacklevel=2)

    @contextmanager
    def find(self, keyed: KeyedRows, snapshot: Snapshot, base_files: Sequence[BaseFile]) -> Iterator[DataFrame]:
        """See `GlobalIndex.find`.

        The index may know of writes that the snapshot does not have. Where it names a file group that the snapshot
        lacks, as after a clustering, keys are looked for in the files of the snapshot.
        """
        slices = _list_slices(snapshot)
        if not slices:
            with super().find(keyed, snapshot, base_files) as found:
                yield found
            return
        rows, task = keyed.frame, _FindTask(snapshot.table.storage, slices)
        with keep_persisted(_look_up(rows, task)) as known:
            [told] = known.agg(F.collect_set(F.struct(PLACE, GROUP))).collect()
            if {tuple(place) for place in told[0]} <= {(file.partition, file.file_id) for file in base_files}:
                yield rows.join(known, [RECORD_KEY], "left")
                return
        with super().find(keyed, snapshot, base_files) as found:
            yield found


@dataclass(frozen=True)
class LoggedRecordIndex(RecordIndex, LoggedGlobalIndex):
    """The same of a merge-on-read table: rows whose key is found are logged to its file group."""


def _list_slices(snapshot: Snapshot) -> tuple[FileSlice, ...]:
    """Those of the index; none where there is none, or it was dropped since the table was loaded."""
    view = snapshot.metadata
    if view is None or not snapshot.has_record_index:
        return ()
    try:
        return tuple(view.list_slices(_PART))
    except DamagedTable:
        now = Table.load(snapshot.table.storage, zone=snapshot.table.config.zone)
        if _PART.value in now.config.metadata_parts:
            raise
        return ()


def _look_up(rows: DataFrame, task: _FindTask) -> DataFrame:
    groups, cores = len(task.slices), rows.sparkSession.sparkContext.defaultParallelism
    keys = rows.select(RECORD_KEY).where(F.col(RECORD_KEY).isNotNull())
    numbered = run_in_workers(keys, _NumberTask(groups), f"{_NUMBER} int, {RECORD_KEY} string")
    spread = numbered.repartition(min(groups, _TASKS_PER_CORE * cores), _NUMBER)
    return run_in_workers(spread, task, f"{RECORD_KEY} string, {PLACE} string, {GROUP} string")
