"""Reads as DataFrames: Spark's own vectorised Parquet reader, and a merge on the executors where there are logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from hudi_locks.config import Options, service_keys, table_keys, write_keys
from hudi_locks.errors import BadInput, StorageError, TableError, UnsupportedTable
from hudi_locks.format import META_COLUMNS, is_time, parse_moment
from hudi_locks.format.column_range import ColumnRange, ValueKind
from hudi_locks.metadata_table import find_slice_ranges
from hudi_locks.redaction import open_log
from hudi_locks.spark.partitions import choose_matching_partitions
from hudi_locks.spark.reading.change_data import compare
from hudi_locks.spark.reading.conditions import RowCondition, find_partition_ranges, read_condition
from hudi_locks.spark.reading.files import Address, find_address, read_as_stored, read_base_files, read_packs
from hudi_locks.spark.reading.merged_reading import MergeTask, pack_slices
from hudi_locks.spark.reading.point_reads import choose_slices, find_groups, list_wanted_keys
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.rows import column_named, to_spark, widen
from hudi_locks.table import (
    COMMIT_TIME,
    PARTITION_METADATA,
    RECORD_KEY,
    BaseFile,
    FileSlice,
    OvertakenSnapshot,
    PartitionValues,
    Table,
    add_meta_schema,
    files_changed,
    latest_file_slices,
    list_partitions,
    refuse_altered,
    refuse_cleaned,
    refuse_inexact,
    refuse_removed,
    slices_changed,
)
from hudi_locks.timeline import end_before_holes

__all__ = ["Reader"]

_log = open_log(__name__)
_ADVICE = "Read the table as it is now, or what you ask for with JVM Hudi"
_NAMED = 5
"""So many partitions are named in an error."""
_ATTEMPTS = 10
"""A cleaner that overtakes a reader so often keeps too little for it."""


@dataclass(frozen=True)
class Reader:
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
        times = {"as_of": completed, "as_of_requested": requested}
        limits = {name: parse_moment(time) for name, time in times.items() if time is not None}
        if limits:
            refuse_altered(self.table.storage, advice=_ADVICE)

        def read(snapshot: Snapshot) -> DataFrame:
            self._check(snapshot)
            chosen = self if self.where is None else self._choose(snapshot)
            slices: Sequence[FileSlice] = chosen._list_slices(snapshot, **limits)  # noqa: SLF001  # of its own class
            if chosen.condition is not None and not limits:
                slices = chosen._find_rows(slices, snapshot, chosen.condition)  # noqa: SLF001
            if read_optimized:
                slices = tuple(replace(piece, logs=()) for piece in slices if piece.base is not None)
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

    def _leave_out(self, slices: Sequence[FileSlice], snapshot: Snapshot) -> Sequence[FileSlice]:
        """Those that may hold a row that is wanted: as their partition says, and the metadata table."""
        if self.condition is None or snapshot.shown_schema is None:
            return slices
        values, wanted = PartitionValues.of(self.table.config, snapshot.shown_schema), self.condition.condition
        told = {partition: find_partition_ranges(values, partition) for partition in {one.partition for one in slices}}
        left = [piece for piece in slices if wanted.may_hold(told[piece.partition])]
        known = self._find_ranges(left, snapshot, self.condition.kinds)
        pairs = zip(left, known, strict=True)
        return [piece for piece, ranges in pairs if wanted.may_hold({**ranges, **told[piece.partition]})]

    def _find_rows(
        self, slices: Sequence[FileSlice], snapshot: Snapshot, condition: RowCondition
    ) -> Sequence[FileSlice]:
        """Those that have rows of the keys that are wanted, if these are named and a record index is to tell it."""
        asked = self._skips_files() and self.options.get_value(service_keys.RECORD_INDEX_ENABLE)
        if snapshot.shown_schema is None or not asked:
            return slices
        keys = list_wanted_keys(condition.condition, self.table.config, snapshot.shown_schema)
        if keys is None:
            return slices
        try:
            groups = find_groups(snapshot, keys)
            return slices if groups is None else choose_slices(slices, groups, partitions=self.partitions)
        except (TableError, StorageError) as error:
            _log.warning("rows of %s are not looked up in its record index: %s", self.table.storage.base, error)
            return slices

    def _find_ranges(
        self, slices: Sequence[FileSlice], snapshot: Snapshot, kinds: Mapping[str, ValueKind]
    ) -> Sequence[Mapping[str, ColumnRange]]:
        """A metadata table that cannot be read tells nothing, and its owner is warned."""
        unknown: list[dict[str, ColumnRange]] = [{} for _ in slices]
        if not self._skips_files() or snapshot.history is not None:  # ranges have the names of their time
            return unknown
        try:
            view = snapshot.metadata
            return unknown if view is None else find_slice_ranges(view, slices, kinds)
        except (TableError, StorageError) as error:
            _log.warning("all files of %s are opened: %s", self.table.storage.base, error)
            return unknown

    def _skips_files(self) -> bool:
        return self._goes_by_metadata() and self.options.get_value(write_keys.DATA_SKIPPING)

    def _goes_by_metadata(self) -> bool:
        enable = table_keys.METADATA_ENABLE
        return not self.options.has(enable) or bool(self.options.get_value(enable))

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

    def changes(self, begin: str, end: str | None, *, holes_policy: str) -> DataFrame:
        """Rows written by commits with begin < completion time <= end, each as the last of them left it.

        `holes_policy` says what is shown of commits that were completed behind a pending one.
        """
        self._refuse_unmarked()

        def read(snapshot: Snapshot) -> DataFrame:
            self._check(snapshot)
            return self._select(
                self._find_changes(snapshot, *self._bound(snapshot, begin, end, holes_policy=holes_policy))
            )

        return self._read_newest(read)

    def _refuse_unmarked(self) -> None:
        """Without meta columns no row tells which commit wrote it; JVM Hudi refuses this too."""
        refuse_altered(self.table.storage, advice=_ADVICE)
        if not self.table.config.has_meta_columns:
            told = f"{table_keys.POPULATE_META_FIELDS.name}=false"
            message = f"{told}: no row of the table tells which commit wrote it; compare two reads by as_of() instead"
            raise UnsupportedTable(message, key=table_keys.POPULATE_META_FIELDS.name, value="false")

    def _read_newest(self, read: Callable[[Snapshot], DataFrame]) -> DataFrame:
        """Read the table as it is now, anew where a cleaner was faster: what it takes was superseded before."""
        for _ in range(_ATTEMPTS):
            with suppress(OvertakenSnapshot):
                return read(Snapshot.load(self.table))
        return read(Snapshot.load(self.table))

    def _bound(self, snapshot: Snapshot, begin: str, end: str | None, *, holes_policy: str) -> tuple[str, str | None]:
        begin, end = parse_moment(begin), end if end is None else parse_moment(end)
        return begin, end_before_holes(snapshot.timeline, begin=begin, end=end, policy=holes_policy)

    def _list_slices(self, snapshot: Snapshot, **limits: str) -> tuple[FileSlice, ...]:
        storage, timeline, partitions = self.table.storage, snapshot.timeline, self.partitions
        moment = {"completed": limits.get("as_of"), "requested": limits.get("as_of_requested")}
        refuse_cleaned(storage, timeline, **moment)
        given: dict[str, Any] = {"partitions": partitions, "refuses_overtaken": True, **limits}
        slices = self._list_by_metadata(snapshot, given)
        if slices is None:
            slices = latest_file_slices(storage, timeline, **given)
        refuse_removed(storage, timeline, slices, partitions=partitions, **moment)
        return slices

    def _list_by_metadata(self, snapshot: Snapshot, given: Mapping[str, Any]) -> tuple[FileSlice, ...] | None:
        """None where the folders are to be listed, as they are if the metadata table lacks what commits name."""
        if not (self.table.storage.is_remote and self._goes_by_metadata()):
            return None
        try:
            view = snapshot.metadata
            if view is None:
                return None
            listed = view.data_files(self.partitions)
            return latest_file_slices(self.table.storage, snapshot.timeline, listed=listed, **given)
        except OvertakenSnapshot:
            raise
        except (TableError, StorageError) as error:
            _log.warning("the folders of %s are listed: %s", self.table.storage.base, error)
            return None

    def _find_changes(self, snapshot: Snapshot, begin: str, end: str | None) -> DataFrame:
        storage, timeline = self.table.storage, snapshot.timeline
        if self.table.is_merge_on_read:
            merged = slices_changed(storage, timeline, begin=begin, end=end, partitions=self.partitions)
            slices, instants = merged.slices, merged.instants
        else:
            changes = files_changed(storage, timeline, begin=begin, end=end)
            files = [file for file in changes.files if self._is_wanted(file.partition)]
            slices, instants = tuple(FileSlice(f.partition, f.file_id, f.instant, f) for f in files), changes.instants
        return self._merge(slices, snapshot, also=(COMMIT_TIME,)).where(F.col(COMMIT_TIME).isin(list(instants)))

    def _merge(self, slices: Sequence[FileSlice], snapshot: Snapshot, *, also: Sequence[str] = ()) -> DataFrame:
        """The columns that are shown, and `also` these.

        Slices without logs need no merge, and are left to Spark with all that it can push down.
        """
        self._refuse_untold(slices, snapshot)
        plain = [piece.base for piece in slices if piece.base is not None and not piece.logs]
        address = find_address(self.spark, self.table.storage, plain)
        merged = tuple(piece for piece in slices if piece.logs or address is None)
        if not merged:
            return self._open(plain, snapshot, address)
        found = self._hide_made_keys(read_packs(self.spark, self._plan_merge(merged, snapshot, also=also)))
        if address is None or not plain:
            return found
        return self._open(plain, snapshot, address).select(*map(column_named, found.columns)).unionByName(found)

    def _hide_made_keys(self, rows: DataFrame) -> DataFrame:
        """Meta columns as files have them, where keys were made to merge the rows."""
        if self.table.config.has_meta_columns:
            return rows
        return rows.withColumns({n: F.lit(None).cast("string") for n in META_COLUMNS if n in rows.columns})

    def _refuse_untold(self, slices: Sequence[FileSlice], snapshot: Snapshot) -> None:
        """Refuse folders that do not tell the partition columns which their files lack: these would be null."""
        fields = self.table.config.dropped_fields
        if not fields or snapshot.shown_schema is None:
            return
        values = PartitionValues.of(self.table.config, snapshot.shown_schema)
        for partition in sorted({piece.partition for piece in slices}):
            if values.read(partition) is None:
                message = (
                    f"the files of the table have no partition columns ({', '.join(fields)}), and the folder"
                    f" {partition!r} does not tell them, as far as it is known here; read other partitions, by"
                    " partitions=[...]"
                )
                raise UnsupportedTable(message, partition=partition, fields=list(fields))

    def _plan_merge(self, slices: Sequence[FileSlice], snapshot: Snapshot, *, also: Sequence[str]) -> MergeTask:
        needed = self._narrow(snapshot.shown_schema)
        bases = [piece.base for piece in slices if piece.base is not None]
        logs = [log for piece in slices for log in piece.logs]
        history = snapshot.history
        refuse_inexact(self.table.storage, snapshot.timeline, (*bases, *logs), needed, history=history)
        shown = tuple(dict.fromkeys((*self._shown(needed.names), *also)))
        packs = pack_slices(slices, cores=self.spark.sparkContext.defaultParallelism)
        sent = shown or (RECORD_KEY,)  # Arrow does not count rows without columns
        values = PartitionValues.of(self.table.config, needed)
        rule = replace(self.table.config.merge_rule, history=history)
        return MergeTask(self.table.storage, packs, needed, rule, sent, values)

    def _narrow(self, schema: pa.Schema | None) -> pa.Schema:
        """The columns that are wanted, and those that decide between rows, in types that Spark has."""
        there = add_meta_schema(schema if schema is not None else pa.schema([]))
        user = set(there.names).difference(META_COLUMNS) if self.columns is None else self.columns
        meta = META_COLUMNS if self.meta_columns else (COMMIT_TIME, RECORD_KEY)
        config = self.table.config
        needed = {*user, *meta, *self._filtered, *config.merge_rule.deciding, *config.dropped_fields}
        return widen(pa.schema([field for field in there if field.name in needed]))

    def _open(self, files: Sequence[BaseFile], snapshot: Snapshot, address: Address | None) -> DataFrame:
        narrow, storage = self._narrow(snapshot.shown_schema), self.table.storage
        if address is None or not files:
            return self.spark.createDataFrame([], to_spark(narrow))

        def read(some: Sequence[BaseFile], columns: pa.Schema) -> DataFrame:
            return read_base_files(self.spark, address, some, columns, PartitionValues.of(self.table.config, columns))

        return read_as_stored(storage, snapshot.timeline, files, narrow, read=read, history=snapshot.history)

    def _check(self, snapshot: Snapshot) -> None:
        if snapshot.history is not None and self.table.config.virtual_keys is not None:
            refuse_altered(self.table.storage, advice=_ADVICE)
        found = [] if snapshot.shown_schema is None else snapshot.shown_schema.names
        lacking = [name for name in self.columns or () if name not in found]
        if lacking:
            message = f"there is no column {', '.join(map(repr, lacking))} to read; the table has {', '.join(found)}"
            raise BadInput(message, columns=lacking, found=found)
        for partition in self.partitions or ():
            self._check_partition(partition)

    def _check_partition(self, partition: str) -> None:
        if any(entry.name.startswith(PARTITION_METADATA) for entry in self.table.storage.list(partition)):
            return
        some = ", ".join(list_partitions(self.table.storage)[:_NAMED]) or "none"
        message = f"there is no partition {partition!r} to read; give partition paths, as these of the table: {some}"
        raise BadInput(message, partition=partition)

    def _is_wanted(self, partition: str) -> bool:
        return self.partitions is None or partition in self.partitions

    def _select(self, rows: DataFrame) -> DataFrame:
        shown = self._shown(rows.columns)
        return rows if list(shown) == rows.columns else rows.select(*map(column_named, shown))

    def _shown(self, there: Sequence[str]) -> Sequence[str]:
        user = [name for name in there if name not in META_COLUMNS] if self.columns is None else self.columns
        return (*(META_COLUMNS if self.meta_columns else ()), *user)
