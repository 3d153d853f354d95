"""Keys of a write that its index found nowhere: whether another writer brings them meanwhile. Runs on the driver."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.spark.reading.files import read_keys, read_stored, text_columns
from hudi_locks.storage import Storage
from hudi_locks.table import (
    COMMIT_TIME,
    PARTITION_PATH,
    RECORD_KEY,
    BaseFile,
    DataFiles,
    FileSlice,
    MergeRule,
    VirtualKeys,
    list_data_files,
)
from hudi_locks.table.data_files import BlockScope

__all__ = ["LoggedKeys", "MissedKeys"]

_SAMPLE: Final = 3


@dataclass(frozen=True)
class MissedKeys:
    """Keys that the index found in no file group; see `hudi_locks.transaction.AbsentKeys`.

    Attributes:
        rows: Their record keys and partition paths; asked once for each concurrent commit to the same partitions.
        storage: Of the table.
        partitions: Partitions where they were looked for; None for all.
        virtual_keys: See `MergeRule`. Then rows do not tell who wrote them: every key of a new file counts, since none
            of these was in the table when they were looked for.
    """

    rows: DataFrame
    storage: Storage
    partitions: frozenset[str] | None
    virtual_keys: VirtualKeys | None = None
    _known: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def find_among(self, paths: Collection[str], instant: str) -> tuple[str, ...]:
        """See `AbsentKeys.find_among`."""
        if instant not in self._known:
            self._known[instant] = self._look(paths, instant)
        return self._known[instant]

    def _look(self, paths: Collection[str], instant: str) -> tuple[str, ...]:
        schema, spark = text_columns(COMMIT_TIME, RECORD_KEY, PARTITION_PATH), self.rows.sparkSession
        files, logs = self._list_files(paths, instant)
        read = [read_keys(spark, self.storage, files, schema, virtual_keys=self.virtual_keys)] if files else []
        rule = MergeRule(virtual_keys=self.virtual_keys)
        read += [read_stored(spark, self.storage, logs, schema, rule=rule)] if logs else []
        if not read:
            return ()
        theirs = reduce(DataFrame.unionByName, read)
        if self.virtual_keys is None:
            theirs = theirs.where(F.col(COMMIT_TIME) == instant)
        place = [RECORD_KEY] if self.partitions is None else [RECORD_KEY, PARTITION_PATH]
        both = self.rows.join(theirs, place, "leftsemi").limit(_SAMPLE).collect()
        return tuple(row[RECORD_KEY] for row in both)

    def _list_files(self, paths: Collection[str], instant: str) -> tuple[list[BaseFile], list[FileSlice]]:
        """The base files and the logs that `instant` wrote to the file groups of `paths`."""
        del instant
        named = (BaseFile.parse(*_split(path), size=0) for path in sorted(paths))
        return [file for file in named if file is not None], []


@dataclass(frozen=True)
class LoggedKeys(MissedKeys):
    """Of a merge-on-read table also the keys that were found: nobody else may write them at all.

    A compaction takes keys away that others deleted; who builds on that brings them anew, in another file group.
    """

    def _list_files(self, paths: Collection[str], instant: str) -> tuple[list[BaseFile], list[FileSlice]]:
        """Which files a delta commit made of its file groups is looked up: a claim does not tell their kinds."""
        found = list_data_files(self.storage, {path.rpartition("/")[0] for path in paths})
        logs = [file for file in found.logs if file.instant == instant]
        pieces = [FileSlice(log.partition, log.file_id, instant, logs=(log,)) for log in logs]
        pieces += _list_old_logs(found, paths, instant)
        return [file for file in found.bases if file.instant == instant], pieces


def _list_old_logs(found: DataFiles, paths: Collection[str], instant: str) -> list[FileSlice]:
    """In version 6 a log is named by the base file below it, and holds what others wrote too."""
    logs = [file for file in found.logs if file.instant != instant and file.path in paths]
    blocks = BlockScope(names_bases=True, writes=frozenset({instant}))
    return [FileSlice(log.partition, log.file_id, instant, logs=(log,), blocks=blocks) for log in logs]


def _split(path: str) -> tuple[str, str]:
    partition, _, name = path.rpartition("/")
    return partition, name
