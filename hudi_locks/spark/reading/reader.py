"""Reads as DataFrames: Spark's own vectorised Parquet reader, and a merge on the executors where there are logs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.config import Options, service_keys
from hudi_locks.errors import StorageError, TableError
from hudi_locks.format import META_COLUMNS, is_time
from hudi_locks.redaction import open_log
from hudi_locks.spark.partitions import choose_matching_partitions
from hudi_locks.spark.reading.change_data import CHANGE_LOG_SCHEMA, as_change_log, compare
from hudi_locks.spark.reading.conditions import RowCondition, read_condition
from hudi_locks.spark.reading.files import Address, find_address, read_as_stored, read_base_files, read_packs
from hudi_locks.spark.reading.planning import ReadPlanner, leave_out_logs
from hudi_locks.spark.reading.point_reads import choose_slices, find_groups, list_wanted_keys
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.rows import column_named, to_spark
from hudi_locks.table import (
    COMMIT_TIME,
    BaseFile,
    FileSlice,
    PartitionValues,
    Table,
    add_meta_schema,
    list_partitions,
)

__all__ = ["Reader"]

_log = open_log(__name__)


@dataclass(frozen=True)
class Reader(ReadPlanner):
    """Reads one table. Runs on the driver.

    A DataFrame shows the table as it was when it was made: a later commit does not change it, and cleaning the files
    away makes it fail instead of showing less.

    Attributes:
        spark: Session of the DataFrames.
        table: The table.
        meta_columns: Whether the five meta columns come first, as in Hudi.
        columns: Only these of the user's; all if None.
        partitions: Only the rows of these partition paths; all if None.
        where: Of a snapshot, only rows for which this condition is true; all if None.
        options: Say whether the metadata table tells which files there are, where a listing costs requests, and which
            of them cannot hold a row that is wanted.
        condition: What `where` means to ranges of values; found when it is read.
    """

    spark: SparkSession
    table: Table
    meta_columns: bool
    columns: Sequence[str] | None = None
    partitions: Sequence[str] | None = None
    where: str | Column | None = None
    options: Options = field(default_factory=Options)
    condition: RowCondition | None = None

    def snapshot(
        self, *, completed: str | None = None, requested: str | None = None, read_optimized: bool = False
    ) -> DataFrame:
        """The rows now, or as of a completion time, or as of a requested time as the JVM's `as.of.instant` means it.

        Of a merge-on-read table `read_optimized` shows the base files alone: what is in logs comes with compaction.
        """
        limits = self._limit(completed=completed, requested=requested)

        def read(now: Snapshot) -> DataFrame:
            snapshot = now.past(**limits) if limits else now
            self._check(snapshot)
            chosen = self if self.where is None else self._choose(snapshot)
            slices: Sequence[FileSlice] = chosen._list_slices(snapshot, **limits)  # noqa: SLF001  # of its own class
            if chosen.condition is not None and not limits:
                slices = chosen._find_rows(slices, snapshot, chosen.condition)  # noqa: SLF001
            if read_optimized:
                slices = leave_out_logs(slices)
            if self.where is None:
                return self._select(self._merge(slices, snapshot))
            return chosen._filter(slices, snapshot, self.where)  # noqa: SLF001

        return self._read_newest(read)

    def at(self, snapshot: Snapshot) -> DataFrame:
        """The rows of this snapshot, which a later commit may have changed since."""
        self._check(snapshot)
        return self._select(self._merge(self._list_slices(snapshot), snapshot))

    def _filter(self, slices: Sequence[FileSlice], snapshot: Snapshot, where: str | Column) -> DataFrame:
        left = self._leave_out(slices, snapshot)
        return self._select(self._merge(left, snapshot, also=self._filtered).where(where))

    def _choose(self, snapshot: Snapshot) -> Reader:
        """The same for the partitions that `where` leaves, if it is about them alone; else with what it means."""
        if self.where is None or snapshot.shown_schema is None:
            return self
        values = PartitionValues.of(self.table.config, snapshot.shown_schema)
        there = list_partitions(self.table.storage) if self.partitions is None else self.partitions
        matching = choose_matching_partitions(self.spark, there, values, self.where)
        if matching is not None:
            return replace(self, partitions=matching)
        schema = add_meta_schema(snapshot.shown_schema)
        return replace(self, condition=read_condition(self.spark, schema, self.where))

    def _wants_record_index(self) -> bool:
        asked = (service_keys.RECORD_INDEX_ENABLE, service_keys.PARTITION_INDEX_ENABLE)
        return any(self.options.get_value(key) for key in asked)

    def _find_rows(
        self, slices: Sequence[FileSlice], snapshot: Snapshot, condition: RowCondition
    ) -> Sequence[FileSlice]:
        """Those that have rows of the keys that are wanted, if these are named and a record index is to tell it."""
        asked = self._skips_files() and self._wants_record_index()
        if snapshot.shown_schema is None or not asked:
            return slices
        keys = list_wanted_keys(condition.condition, self.table.config, snapshot.shown_schema)
        if keys is None:
            return slices

        def choose(partitions: Iterable[str]) -> Collection[str]:
            return self._tell_partitions(snapshot, filter(self._is_wanted, partitions))

        try:
            groups = find_groups(snapshot, keys, choose=choose)
            return slices if groups is None else choose_slices(slices, groups, choose=choose)
        except (TableError, StorageError) as error:
            _log.warning("rows of %s are not looked up in its record index: %s", self.table.storage.base, error)
            return slices

    @property
    def _filtered(self) -> tuple[str, ...]:
        """Columns that `where` needs."""
        if self.condition is not None:
            return tuple(sorted(self.condition.columns))
        return () if self.where is None else self.table.config.partition_fields

    def change_data(self, begin: str, end: str | None, *, holes_policy: str, meta_columns: bool) -> DataFrame:
        """What commits with begin < completion time <= end made of each row; see `compare`.

        The reader has the meta columns, which tell versions of a row apart; `meta_columns` says whether they are shown.
        """
        self._refuse_unmarked()

        def read(snapshot: Snapshot) -> DataFrame:
            self._check(snapshot)
            first, last = self._bound(snapshot, begin, end, holes_policy=holes_policy)
            before = self._list_slices(snapshot, as_of=first) if is_time(first) else ()
            now = self._list_slices(snapshot, **({} if last is None else {"as_of": last}))
            there = self._shown([] if snapshot.shown_schema is None else snapshot.shown_schema.names)
            columns = [name for name in there if meta_columns or name not in META_COLUMNS]
            return self._compare(snapshot, before, now, columns=columns)

        return self._read_newest(read)

    def _compare(
        self, snapshot: Snapshot, before: Sequence[FileSlice], now: Sequence[FileSlice], *, columns: Sequence[str]
    ) -> DataFrame:
        """Slices that are the same in both states are not read."""
        same = set(before) & set(now)
        old, new = (self._merge([piece for piece in slices if piece not in same], snapshot) for slices in (before, now))
        return compare(old, new, columns=columns)

    def change_log(self, begin: str, end: str | None, *, holes_policy: str) -> DataFrame:
        """What each commit with begin < completion time <= end made of each row; see `as_change_log`."""
        self._refuse_unmarked()

        def read(snapshot: Snapshot) -> DataFrame:
            self._check(snapshot)
            first, last = self._bound(snapshot, begin, end, holes_policy=holes_policy)
            there = self._shown([] if snapshot.shown_schema is None else snapshot.shown_schema.names)
            columns = [name for name in there if name not in META_COLUMNS]
            found, before = [], self._list_slices(snapshot, as_of=first) if is_time(first) else ()
            for commit in self._find_changes(snapshot, first, last)[1]:
                now = self._list_slices(snapshot, as_of=str(commit.completion))
                changed = self._compare(snapshot, before, now, columns=columns)
                found.append(as_change_log(changed, instant=commit.requested))
                before = now
            return reduce(DataFrame.unionAll, found) if found else self.spark.createDataFrame([], CHANGE_LOG_SCHEMA)

        return self._read_newest(read)

    def changes(self, begin: str, end: str | None, *, holes_policy: str) -> DataFrame:
        """Rows written by commits with begin < completion time <= end, each as the last of them left it.

        `holes_policy` says what is shown of commits that were completed behind a pending one.
        """
        self._refuse_unmarked()

        def read(snapshot: Snapshot) -> DataFrame:
            self._check(snapshot)
            span = self._bound(snapshot, begin, end, holes_policy=holes_policy)
            slices, commits = self._find_changes(snapshot, *span)
            rows = self._merge(slices, snapshot, also=(COMMIT_TIME,))
            return self._select(rows.where(F.col(COMMIT_TIME).isin([one.requested for one in commits])))

        return self._read_newest(read)

    def _merge(self, slices: Sequence[FileSlice], snapshot: Snapshot, *, also: Sequence[str] = ()) -> DataFrame:
        """The columns that are shown, and `also` these.

        Plain slices need no merge, and are left to Spark with all that it can push down.
        """
        self._refuse_untold(slices, snapshot)
        plain = [piece.base for piece in slices if piece.base is not None and piece.is_plain]
        address = find_address(self.spark, self.table.storage, plain)
        merged = tuple(piece for piece in slices if not piece.is_plain or address is None)
        if not merged:
            return self._open(plain, snapshot, address)
        cores = self.spark.sparkContext.defaultParallelism
        found = self._hide_made_keys(read_packs(self.spark, self._plan_merge(merged, snapshot, cores=cores, also=also)))
        if address is None or not plain:
            return found
        return self._open(plain, snapshot, address).select(*map(column_named, found.columns)).unionByName(found)

    def _hide_made_keys(self, rows: DataFrame) -> DataFrame:
        """Meta columns as files have them, where keys were made to merge the rows."""
        if self.table.config.has_meta_columns:
            return rows
        return rows.withColumns({n: F.lit(None).cast("string") for n in META_COLUMNS if n in rows.columns})

    def _open(self, files: Sequence[BaseFile], snapshot: Snapshot, address: Address | None) -> DataFrame:
        narrow, storage = self._narrow(snapshot.shown_schema), self.table.storage
        if address is None or not files:
            return self.spark.createDataFrame([], to_spark(narrow))

        def read(some: Sequence[BaseFile], columns: pa.Schema) -> DataFrame:
            return read_base_files(self.spark, address, some, columns, PartitionValues.of(self.table.config, columns))

        return read_as_stored(storage, snapshot.timeline, files, narrow, read=read, history=snapshot.history)

    def _select(self, rows: DataFrame) -> DataFrame:
        shown = self._shown(rows.columns)
        return rows if list(shown) == rows.columns else rows.select(*map(column_named, shown))
