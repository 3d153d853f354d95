"""Which rows of a write have to be written again on a later snapshot, and where. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.format import new_file_id
from hudi_locks.format.claim import FileGroupId
from hudi_locks.spark.index.absent_keys import MissedKeys
from hudi_locks.spark.index.simple_index import SimpleIndex, choose_group, choose_rows
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.writing.placement import FOUND, GROUP, RESERVED, ListedGroups, Placement, Regrouped
from hudi_locks.table import PARTITION_PATH, RECORD_KEY, BaseFile, find_changed

__all__ = ["regroup"]

_BEFORE = f"{RESERVED}before"
_NOW = f"{RESERVED}now"


@contextmanager
def regroup(
    index: SimpleIndex,
    operation: Operation,
    assigned: DataFrame,
    *,
    before: Sequence[BaseFile],
    now: Sequence[BaseFile],
    counts: Mapping[str, int],
) -> Iterator[Regrouped]:
    """Look the keys up in the files that changed, and see which file groups get other rows than before by that.

    A row whose key is found elsewhere, or nowhere any more, leaves the file that it was written to, so that one is
    touched too. A row that is new stays where it was put unless that file group changed; then it goes to a new one.

    Args:
        index: Of the table.
        operation: What is done with the rows.
        assigned: All rows, with where they were found and where they were written to.
        before: Newest files of the partitions when that was decided.
        now: The same by the later snapshot.
        counts: Rows by partition path.
    """
    changed = find_changed(before, now)
    files = [file for file in now if FileGroupId(file.partition, file.file_id) in changed]
    rows = _assign(operation, index.locate(assigned, files, _NOW), changed, counts)
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        touched = _find_touched(kept, changed)
        bases = {(file.partition, file.file_id): file for file in now}
        again = choose_rows(kept.where(_is_in(GROUP, touched))).drop(_BEFORE)
        absent = MissedKeys(_select_absent(kept), index.storage, frozenset(counts))
        groups = _list_found(kept)
        placement = Placement(again, ListedGroups(bases), len(touched), absent, groups, kept.drop(_BEFORE))
        yield Regrouped(placement, touched, tuple(bases[group] for group in touched if group in bases))
    finally:
        kept.unpersist()


def _assign(
    operation: Operation, located: DataFrame, changed: frozenset[FileGroupId], counts: Mapping[str, int]
) -> DataFrame:
    found = F.when(_is_in(FOUND, changed), F.col(_NOW)).otherwise(F.coalesce(FOUND, _NOW))
    stays = F.col(FOUND).isNull() & F.col(_BEFORE).isNotNull() & ~_is_in(_BEFORE, changed)
    spare = F.create_map(*(F.lit(text) for path in counts for text in (path, new_file_id())))
    drawn = F.when(stays, F.col(_BEFORE)).otherwise(F.element_at(spare, F.col(PARTITION_PATH)))
    placed = located.withColumnRenamed(GROUP, _BEFORE).withColumn(GROUP, drawn).withColumn(FOUND, found).drop(_NOW)
    return placed.withColumn(GROUP, choose_group(operation))


def _find_touched(rows: DataFrame, changed: frozenset[FileGroupId]) -> frozenset[FileGroupId]:
    is_touched = ~F.col(_BEFORE).eqNullSafe(F.col(GROUP)) | _is_in(_BEFORE, changed) | _is_in(GROUP, changed)
    moves = rows.where(is_touched).select(PARTITION_PATH, _BEFORE, GROUP).distinct().collect()
    found = ((row[PARTITION_PATH], row[name]) for row in moves for name in (_BEFORE, GROUP))
    return frozenset(FileGroupId(*group) for group in found if group[1] is not None)


def _select_absent(rows: DataFrame) -> DataFrame:
    return rows.where(F.col(FOUND).isNull()).select(RECORD_KEY, PARTITION_PATH)


def _list_found(rows: DataFrame) -> frozenset[FileGroupId]:
    found = rows.where(F.col(FOUND).isNotNull()).select(PARTITION_PATH, FOUND).distinct().collect()
    return frozenset(FileGroupId(row[PARTITION_PATH], row[FOUND]) for row in found)


def _is_in(name: str, groups: Iterable[FileGroupId]) -> Column:
    """False also for null."""
    path = F.concat(F.col(PARTITION_PATH), F.lit("/"), F.coalesce(F.col(name), F.lit("")))
    return path.isin([f"{group.partition}/{group.file_id}" for group in groups])
