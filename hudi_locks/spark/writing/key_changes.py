"""What a write tells the record index of the metadata table: which keys file groups gained and lost.

The tasks that write the rows tell it beside their write stats. The rows of that are then brought together by file group
of the index, each of which gets one log, before the write is published.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.format import MetadataPartition
from hudi_locks.format.metadata_keys import KEY_CHANGES
from hudi_locks.metadata_table import Indexed, StagedLog, encode_record_log, metadata_path
from hudi_locks.spark._compat import run_in_workers
from hudi_locks.spark.operation import STAT, TOLD_KEYS, KeyReport, decode_report
from hudi_locks.spark.reading.files import read_live_keys
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.rows import keep_persisted
from hudi_locks.storage import Storage
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, FileSlice, Table
from hudi_locks.transaction import Transaction

__all__ = ["KeyLogs", "RecordLogTask"]

_FILE_ID: Final = "file_id"
_NUMBER: Final = "number"
_LOG: Final = "log"
_ROWS: Final = 1 << 18
"""Changes for which a task is worth while."""


@dataclass(frozen=True)
class _LostTask:
    """Makes what is told of keys, with their places, that a file group is to lose.

    Attributes:
        groups: Over how many file groups the index is spread.
    """

    groups: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take record keys, partition paths and file ids."""
        for batch in batches:
            told = KeyReport(self.groups)
            told.tell_lost(*(batch.column(name) for name in (RECORD_KEY, PARTITION_PATH, _FILE_ID)))
            yield from told.keys()


@dataclass(frozen=True)
class RecordLogTask:
    """Uploads the logs of some file groups of the index. Picklable; made on the driver, called on executors.

    Attributes:
        storage: Of the table.
        requested: Of the write.
        indexed: With the file groups of the index, in their order.
        version: Of the metadata table.
    """

    storage: Storage
    requested: str
    indexed: Indexed
    version: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take changes with the numbers of their file groups, and yield each log as JSON."""
        rows = pa.Table.from_batches(batches, KEY_CHANGES.insert(0, pa.field(_NUMBER, pa.int32())))
        numbers = pc.unique(rows.column(_NUMBER)).to_pylist()
        logs = [self._write(n, rows.filter(pc.equal(rows.column(_NUMBER), n)).drop_columns(_NUMBER)) for n in numbers]
        texts = [json.dumps(dataclasses.asdict(log)) for log in logs]
        yield pa.RecordBatch.from_pydict({_LOG: pa.array(texts, pa.string())})

    def _write(self, number: int, changes: pa.Table) -> StagedLog:
        group = self.indexed.key_groups[number]
        data, records = encode_record_log(self.requested, changes, self.version)
        path = metadata_path(MetadataPartition.RECORD_INDEX, self.indexed.name_key_log(group, self.requested))
        staged = self.storage.stage(path, instant=self.requested)
        with staged.open() as file:
            file.write(data)
        return StagedLog(group, len(data), records, staged.seal())


class KeyLogs:
    """Makes the logs of one write. Lives on the driver.

    Args:
        task: Uploads them.
        lost: Keys of file groups that end with the write, with the columns of KEY_CHANGES.

    Attributes:
        staged: What was uploaded so far.
    """

    def __init__(self, task: RecordLogTask, lost: DataFrame | None = None) -> None:
        self._task = task
        self._lost = lost
        self.staged: tuple[StagedLog, ...] = ()

    @classmethod
    def of(cls, transaction: Transaction, table: Table) -> KeyLogs:
        """Those of a write to a table with a record index, which ends no file group."""
        indexed = transaction.indexed or Indexed()
        return cls(RecordLogTask(table.storage, transaction.instant, indexed, table.config.version))

    def take_out(self, snapshot: Snapshot, ended: Sequence[FileSlice], spark: SparkSession) -> KeyLogs:
        """The same for a write that ends the file groups of some slices; their keys are read where they are used."""
        if not ended:
            return self
        keys = read_live_keys(spark, snapshot, ended, file_id=_FILE_ID)
        return KeyLogs(self._task, run_in_workers(keys, _LostTask(len(self._task.indexed.key_groups)), TOLD_KEYS))

    def take(self, reported: DataFrame) -> list[str]:
        """Upload the logs of all keys that tasks tell; the texts of the write stats that they report.

        Args:
            reported: With a write stat, or a key, in each row; computed once.
        """
        with keep_persisted(reported) as kept:
            texts = [row[STAT] for row in kept.where(F.col(STAT).isNotNull()).select(STAT).collect()]
            told = sum(stat.num_inserts + stat.num_deletes for stat in decode_report(texts)[0])
            changes = kept.where(F.col(STAT).isNull()).drop(STAT)
            if self._lost is not None:
                self._stage(changes.unionByName(self._lost), len(self._task.indexed.key_groups))
            elif told:
                self._stage(changes, 1 + told // _ROWS)
        return texts

    def take_lost(self) -> None:
        """Upload the logs of a write that only ends file groups."""
        if self._lost is not None:
            self._stage(self._lost, len(self._task.indexed.key_groups))

    def _stage(self, changes: DataFrame, tasks: int) -> None:
        spread = changes.repartition(min(tasks, len(self._task.indexed.key_groups)), _NUMBER)
        rows = run_in_workers(spread, self._task, f"{_LOG} string").collect()
        self.staged = tuple(StagedLog(**json.loads(row[_LOG])) for row in rows)
