"""The simple index: a key is found by reading the keys of the partitions that the input touches.

They are read for a write, again in what others changed since, and in what they brought. Runs on the driver.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import is_bucket_file_id, new_file_id
from hudi_locks.format.claim import FileGroupId
from hudi_locks.spark._compat import local_rows
from hudi_locks.spark.index.index import Count, Index
from hudi_locks.spark.index.key_search import FEW_KEYS, MOST_KEYS, FoundKeys, GroupCounts, KeySearch, search_files
from hudi_locks.spark.index.missed_keys import LoggedKeys, MissedKeys
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.reading.files import read_keys, read_stored, text_columns
from hudi_locks.spark.settings import FileSizing
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.placement import FOUND, GROUP, RESERVED, ListedGroups, Placement, Regrouped
from hudi_locks.spark.writing.rows import KeyedRows, keep_persisted, literal_map
from hudi_locks.storage import Storage
from hudi_locks.table import (
    PARTITION_PATH,
    RECORD_KEY,
    BaseFile,
    FileSlice,
    MergeRule,
    VirtualKeys,
    find_changed,
)

__all__ = ["KeyLookup", "SimpleIndex", "regroup"]

_SHARES: Final = f"{RESERVED}shares"
_BEFORE: Final = f"{RESERVED}before"
_NOW: Final = f"{RESERVED}now"
_FEW_CONSTANTS: Final = 16
"""For so many partitions a row is compared with each; else Spark joins."""
_BLOOM: Final = ("BLOOM", "GLOBAL_BLOOM")


@dataclass(frozen=True)
class SimpleIndex(Index):
    """Hudi's HoodieSimpleIndex: reads the keys of the partitions that the input touches."""

    @contextmanager
    def keep(self, keyed: KeyedRows, operation: Operation, *, count: Count) -> Iterator[KeyedRows]:
        """See `Index.keep`."""
        del operation
        with keep_persisted(keyed.frame) as frame:
            counted = count(frame, FEW_KEYS)
            yield replace(keyed, frame=frame, counts=counted.counts, keys=counted.keys)

    @contextmanager
    def assign(
        self, operation: Operation, keyed: KeyedRows, snapshot: Snapshot, *, instant: str
    ) -> Iterator[Placement]:
        """See `Index.assign`."""
        del instant
        base_files = [] if operation.replaces else snapshot.base_files(keyed.counts)
        lookup = self._look_up(operation, snapshot, keyed.counts)
        if not self.settings.looks_up(operation):
            yield lookup.place_new(keyed.frame, base_files, keyed.counts)
            return
        located = lookup.locate(keyed.frame, base_files, GROUP, keyed=keyed)
        with keep_persisted(located.rows) if located.counts is None else nullcontext(located.rows) as tagged:
            yield lookup.place(operation, tagged, base_files, counts=located.counts)

    @contextmanager
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
    ) -> Iterator[Regrouped]:
        """See `Index.replan`: keys are looked up in the files that changed."""
        del written, instant
        if made.assigned is None:
            raise ValueError(f"a write that looked no key up cannot be replanned: {operation.value}")
        old, new = before.base_files(keyed.counts), now.base_files(keyed.counts)
        lookup = self._look_up(operation, now, keyed.counts)
        with regroup(lookup, operation, made.assigned, before=old, now=new, keyed=keyed) as regrouped:
            yield regrouped

    def tells_places(self, operation: Operation) -> bool:
        """See `Index.tells_places`."""
        return self.settings.looks_up(operation)

    def _check_rows(self, snapshot: Snapshot) -> None:
        """Lists the table only where its newest write looks like one of a bucket index."""
        if all(is_bucket_file_id(file.file_id) for file in snapshot.newest_files):
            self._check_files(snapshot)

    def _check_files(self, snapshot: Snapshot) -> None:
        base_files = snapshot.base_files()
        if base_files and all(is_bucket_file_id(file.file_id) for file in base_files):
            raise UnsupportedTable(
                f"{base_files[0].path} and all others belong to buckets; set hoodie.index.type=BUCKET and"
                " hoodie.bucket.index.num.buckets to the number that the table was written with",
                path=base_files[0].path,
            )

    def _look_up(self, operation: Operation, snapshot: Snapshot, counts: Mapping[str, int] | None) -> KeyLookup:
        """How keys are looked up: of rows that are counted by partition path, or of any."""
        sizing = self.settings.sizing(snapshot.record_bytes)
        if operation is Operation.BULK_INSERT:
            sizing = replace(sizing, small_file_bytes=0)
        searches = counts is not None and self._searches(counts)
        storage, planned = snapshot.table.storage, snapshot.planned_groups
        keys = snapshot.table.config.virtual_keys
        return KeyLookup(
            storage, sizing, planned, searches=searches, by_filter=self._goes_by_filters, virtual_keys=keys
        )

    def _searches(self, counts: Mapping[str, int]) -> bool:
        """Whether files are searched for the keys of so many rows."""
        return sum(counts.values()) <= MOST_KEYS

    @property
    def _goes_by_filters(self) -> bool:
        return self.settings.index_type in _BLOOM


@dataclass(frozen=True)
class LocatedRows:
    """Rows whose keys were looked up.

    Attributes:
        rows: With ids of file groups, as often as files have their keys; once if none has.
        counts: How many there are of each file group; None if only Spark knows.
    """

    rows: DataFrame
    counts: GroupCounts | None


@dataclass(frozen=True)
class KeyLookup:
    """The keys of some rows, joined with those of base files of one snapshot. Runs on the driver.

    Attributes:
        storage: Of the table.
        sizing: How new rows are cut into files.
        closed: (partition path, file id) of file groups that take no new rows, since a plan will replace them, or they
            have logs.
        late_logs: Of a merge-on-read table, where rows of found keys are logged: slices without their base files, and
            of their logs those that may have keys that these lack. None for a copy-on-write table.
        searches: Whether base files are searched for the keys; else Spark joins them with all keys of the files.
        by_filter: See `search_base_file`.
        virtual_keys: See `search_base_file`.
    """

    storage: Storage
    sizing: FileSizing
    closed: frozenset[tuple[str, str]] = frozenset()
    late_logs: tuple[FileSlice, ...] | None = None
    searches: bool = False
    by_filter: bool = False
    virtual_keys: VirtualKeys | None = None

    def locate(self, rows: DataFrame, base_files: Sequence[BaseFile], column: str, *, keyed: KeyedRows) -> LocatedRows:
        """The rows with the id of the file group among those of `base_files` that has their key, or null.

        Args:
            rows: With record keys and partition paths.
            base_files: Of the partitions.
            column: Name of that id.
            keyed: The same rows, with what is known of them all.
        """
        if not base_files:
            new: GroupCounts = {(path, None): number for path, number in keyed.counts.items()}
            return LocatedRows(rows.withColumn(column, F.lit(None).cast("string")), new)
        found = self._find_keys(rows, base_files, column, keyed.keys)
        if not self.late_logs:
            return LocatedRows(found.join(rows), found.count())
        keys = text_columns(RECORD_KEY, PARTITION_PATH)
        rule = MergeRule(virtual_keys=self.virtual_keys)
        logged = read_stored(rows.sparkSession, self.storage, self.late_logs, keys, file_id=column, rule=rule)
        known = found.frame.unionByName(logged).distinct()
        return LocatedRows(rows.join(known, [RECORD_KEY, PARTITION_PATH], "left"), None)

    def _find_keys(
        self, rows: DataFrame, base_files: Sequence[BaseFile], column: str, keys: pa.Table | None
    ) -> FoundKeys:
        if self.searches:
            asked = KeySearch(
                self.storage, column, by_partition=True, by_filter=self.by_filter, virtual_keys=self.virtual_keys
            )
            return search_files(asked, rows, base_files, keys=keys)
        spark, columns, virtual_keys = rows.sparkSession, text_columns(RECORD_KEY, PARTITION_PATH), self.virtual_keys
        found = read_keys(spark, self.storage, base_files, columns, file_id=column, virtual_keys=virtual_keys)
        return FoundKeys(spark, column, tasks=found)

    def place(
        self,
        operation: Operation,
        tagged: DataFrame,
        base_files: Sequence[BaseFile],
        *,
        counts: GroupCounts | None = None,
    ) -> Placement:
        """Give those rows of a tagged input file groups that the operation writes; the input should be persisted.

        Also what is not written rests on what the index found: a row that is left out, and a key that is nowhere.

        Args:
            operation: What is done with the rows.
            tagged: The rows, with the file group that has the key as GROUP, null for a key that is new.
            base_files: Those of the partitions.
            counts: Rows by partition path and GROUP; Spark counts them if None.
        """
        counted = _count_groups(tagged) if counts is None else counts
        fresh = {path: rows for (path, group), rows in counted.items() if group is None}
        groups = frozenset(FileGroupId(path, group) for path, group in counted if group is not None)
        found = tagged.withColumn(FOUND, F.col(GROUP))
        absent = tagged.where(F.col(GROUP).isNull()).select(RECORD_KEY, PARTITION_PATH)
        fresh_rows = {} if operation is Operation.DELETE else fresh
        placement = self._share(found, base_files, fresh_rows, held={group.file_id for group in groups})
        assigned = placement.rows.withColumn(GROUP, _choose_group(operation))
        missed = MissedKeys(absent, self.storage, frozenset(fresh), self.virtual_keys)
        if self.late_logs is not None:
            keys = tagged.select(RECORD_KEY, PARTITION_PATH)
            missed = LoggedKeys(keys, self.storage, frozenset(path for path, _ in counted), self.virtual_keys)
        rows = _choose_rows(assigned)
        return replace(placement, rows=rows, absent_keys=missed, read_groups=groups, assigned=assigned)

    def place_new(self, rows: DataFrame, base_files: Sequence[BaseFile], counts: Mapping[str, int]) -> Placement:
        """Give rows file groups without looking at their keys."""
        return self._share(rows.withColumn(GROUP, F.lit(None).cast("string")), base_files, counts)

    def _share(
        self,
        tagged: DataFrame,
        base_files: Sequence[BaseFile],
        new_rows: Mapping[str, int],
        *,
        held: Collection[str] = (),
    ) -> Placement:
        open_files = [file for file in base_files if (file.partition, file.file_id) not in self.closed]
        shares = self.sizing.share_rows(new_rows, open_files)
        placed = self._fill(tagged, shares) if shares else tagged
        shared = {file_id for ids in shares.values() for file_id in ids}
        bases = {(file.partition, file.file_id): file for file in base_files}
        logged = frozenset(held) - shared if self.late_logs is not None else frozenset[str]()
        return Placement(placed, ListedGroups(bases, logged), len(shared.union(held)))

    def _fill(self, tagged: DataFrame, shares: dict[str, list[str]]) -> DataFrame:
        position = F.pmod(F.xxhash64(RECORD_KEY), F.size(_SHARES)) + 1
        drawn = F.element_at(F.col(_SHARES), position.cast("int"))
        shared = _add_shares(tagged, shares)
        return shared.withColumn(GROUP, F.coalesce(GROUP, drawn)).drop(_SHARES)


def _add_shares(tagged: DataFrame, shares: dict[str, list[str]]) -> DataFrame:
    """The rows with the file groups that new rows of their partition go to; few are a constant of the query."""
    if len(shares) <= _FEW_CONSTANTS:
        return tagged.withColumn(_SHARES, F.element_at(literal_map(shares, "array<string>"), F.col(PARTITION_PATH)))
    columns = {PARTITION_PATH: "string", _SHARES: "array<string>"}
    listed = local_rows(tagged.sparkSession, columns, shares.items())
    return tagged.join(F.broadcast(listed), PARTITION_PATH, "left")


def _count_groups(tagged: DataFrame) -> GroupCounts:
    counted = tagged.groupBy(PARTITION_PATH, GROUP).count().collect()
    return {(row[PARTITION_PATH], row[GROUP]): row["count"] for row in counted}


def _choose_group(operation: Operation) -> Column:
    """The file group that a row is written to, or null, by FOUND, and by GROUP where it would go if that is null."""
    if operation is Operation.DELETE:
        return F.col(FOUND)
    if operation is Operation.UPSERT:
        return F.coalesce(FOUND, GROUP)
    return F.when(F.col(FOUND).isNull(), F.col(GROUP))


def _choose_rows(assigned: DataFrame) -> DataFrame:
    """Those that are written."""
    return assigned.where(F.col(GROUP).isNotNull()).drop(FOUND)


@contextmanager
def regroup(
    index: KeyLookup,
    operation: Operation,
    assigned: DataFrame,
    *,
    before: Sequence[BaseFile],
    now: Sequence[BaseFile],
    keyed: KeyedRows,
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
        keyed: The input.
    """
    changed = find_changed(before, now)
    files = [file for file in now if FileGroupId(file.partition, file.file_id) in changed]
    rows = _assign(operation, index.locate(assigned, files, _NOW, keyed=keyed).rows, changed, keyed.counts)
    with keep_persisted(rows) as kept:
        touched = _find_touched(kept, changed)
        bases = {(file.partition, file.file_id): file for file in now}
        again = _choose_rows(kept.where(_is_in(GROUP, touched))).drop(_BEFORE)
        absent = MissedKeys(_select_absent(kept), index.storage, frozenset(keyed.counts), index.virtual_keys)
        groups = _list_found(kept)
        placement = Placement(again, ListedGroups(bases), len(touched), absent, groups, kept.drop(_BEFORE))
        yield Regrouped(placement, touched, tuple(bases[group] for group in touched if group in bases))


def _assign(
    operation: Operation, located: DataFrame, changed: frozenset[FileGroupId], counts: Mapping[str, int]
) -> DataFrame:
    found = F.when(_is_in(FOUND, changed), F.col(_NOW)).otherwise(F.coalesce(FOUND, _NOW))
    stays = F.col(FOUND).isNull() & F.col(_BEFORE).isNotNull() & ~_is_in(_BEFORE, changed)
    spare = F.create_map(*(F.lit(text) for path in counts for text in (path, new_file_id())))
    drawn = F.when(stays, F.col(_BEFORE)).otherwise(F.element_at(spare, F.col(PARTITION_PATH)))
    placed = located.withColumnRenamed(GROUP, _BEFORE).withColumn(GROUP, drawn).withColumn(FOUND, found).drop(_NOW)
    return placed.withColumn(GROUP, _choose_group(operation))


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
