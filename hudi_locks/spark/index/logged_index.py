"""The simple index of a merge-on-read table: keys are found in base files, and in those logs that may have more.

New keys go to base files, so that logs bring none: but a key that a compaction took away since it was found, as another
write had deleted it, is in the log of its writer alone. JVM Hudi does not look there, and would have it twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

from pyspark.sql import DataFrame

from hudi_locks.errors import UnsupportedTable
from hudi_locks.spark.index.global_index import GlobalIndex
from hudi_locks.spark.index.simple_index import KeyLookup, SimpleIndex
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.reading.files import read_live_keys
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import GROUP
from hudi_locks.spark.writing.rows import KeyedRows
from hudi_locks.table import BaseFile, FileSlice

__all__ = ["LoggedGlobalIndex", "LoggedIndex"]


@dataclass(frozen=True)
class LoggedIndex(SimpleIndex):
    """Hudi's HoodieSimpleIndex where rows whose key is found are logged to its file group."""

    can_replan: ClassVar[bool] = False  # what others logged is not looked at

    def _look_up(self, operation: Operation, snapshot: Snapshot, counts: Mapping[str, int] | None) -> KeyLookup:
        lookup = super()._look_up(operation, snapshot, counts)
        slices = () if operation.replaces else snapshot.file_slices(counts)
        _refuse_unfounded(slices)
        logged = frozenset((piece.partition, piece.file_id) for piece in slices if piece.logs)
        late = tuple(snapshot.list_late_logs(slices)) if self.settings.looks_up(operation) else ()
        return replace(lookup, closed=lookup.closed | snapshot.compacting_groups | logged, late_logs=late)

    def _check_files(self, snapshot: Snapshot) -> None:
        _refuse_unfounded(snapshot.file_slices())
        super()._check_files(snapshot)


@dataclass(frozen=True)
class LoggedGlobalIndex(GlobalIndex, LoggedIndex):
    """Hudi's HoodieGlobalSimpleIndex where rows whose key is found are logged, and so is that a row moved away.

    The base file of the place that a row left has its key until a compaction. So file groups with logs are merged to
    find the keys that they have.
    """

    def _read_known(self, keyed: KeyedRows, snapshot: Snapshot, base_files: Sequence[BaseFile]) -> DataFrame:
        del base_files
        spark, slices = keyed.frame.sparkSession, snapshot.file_slices()
        if not self._searches(keyed.counts):
            return read_live_keys(spark, snapshot, slices, file_id=GROUP)
        plain = [piece.base for piece in slices if piece.base is not None and not piece.logs]
        logged = [piece for piece in slices if piece.logs]
        read = [super()._read_known(keyed, snapshot, plain)] if plain else []
        read += [read_live_keys(spark, snapshot, logged, file_id=GROUP)] if logged else []
        return reduce(DataFrame.unionByName, read)


def _refuse_unfounded(slices: Iterable[FileSlice]) -> None:
    for piece in slices:
        if piece.base is None:
            path = piece.logs[0].path
            message = (
                f"{path} belongs to a file group without a base file, so that its keys are found by the index alone"
                " that wrote them; set hoodie.index.type=BUCKET, if its id begins with the number of a bucket, or"
                " compact the table with what writes it"
            )
            raise UnsupportedTable(message, path=path, partition=piece.partition, file_id=piece.file_id)
