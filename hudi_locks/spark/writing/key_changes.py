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
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.format import MetadataPartition
from hudi_locks.format.key_groups import KeyGroups
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
_PATH: Final = "path"
_ROWS: Final = 1 << 18
"""Changes for which a task is worth while."""
_MOST_TASKS: Final = 10_000


@dataclass(frozen=True)
class _LostTask:
    """Makes what is told of keys, with their places, that a file group is to lose.

    Attributes:
        groups: The file groups of the index.
    """

    groups: KeyGroups

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
        indexed: With the file groups of the index.
        version: Of the metadata table.
    """

    storage: Storage
    requested: str
    indexed: Indexed
    version: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take changes with the numbers of their file groups, and yield each log as JSON."""
        rows = pa.Table.from_batches(batches, KEY_CHANGES.insert(0, pa.field(_NUMBER, pa.int32())))
        logs = [self._write(group, changes.drop_columns(_NUMBER)) for group, changes in self._divide(rows)]
        texts = [json.dumps(dataclasses.asdict(log)) for log in logs]
        yield pa.RecordBatch.from_pydict({_LOG: pa.array(texts, pa.string())})

    def _divide(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """The changes of each file group of the index, with its id."""
        groups, at = self.indexed.key_groups, 0
        columns = list_owner_columns(groups)
        ordered = rows.sort_by([(name, "ascending") for name in columns])
        counted = ordered.group_by(columns, use_threads=False).aggregate([([], "count_all")])
        for one in counted.to_pylist():
            yield groups.name(one.get(_PATH, ""), one[_NUMBER]), ordered.slice(at, one["count_all"])
            at += one["count_all"]

    def _write(self, group: str, changes: pa.Table) -> StagedLog:
        data, records = encode_record_log(self.requested, changes, self.version)
        path = metadata_path(MetadataPartition.RECORD_INDEX, self.indexed.name_key_log(group, self.requested))
        staged = self.storage.stage(path, instant=self.requested)
        with staged.open() as file:
            file.write(data)
        return StagedLog(group, len(data), records, staged.seal())


def list_owner_columns(groups: KeyGroups) -> list[str]:
    """Columns of what is told that are the same for all keys of one file group, and of no other."""
    return [_PATH, _NUMBER] if groups.is_partitioned else [_NUMBER]


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
        return KeyLogs(self._task, run_in_workers(keys, _LostTask(self._task.indexed.key_groups), TOLD_KEYS))

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
                self._stage(changes.unionByName(self._lost), _MOST_TASKS)
            elif told:
                self._stage(changes, 1 + told // _ROWS)
        return texts

    def take_lost(self) -> None:
        """Upload the logs of a write that only ends file groups."""
        if self._lost is not None:
            self._stage(self._lost, _MOST_TASKS)

    def _stage(self, changes: DataFrame, tasks: int) -> None:
        groups = self._task.indexed.key_groups
        spread = changes.repartition(min(tasks, groups.total), *list_owner_columns(groups))
        rows = run_in_workers(spread, self._task, f"{_LOG} string").collect()
        self.staged = tuple(StagedLog(**json.loads(row[_LOG])) for row in rows)
