"""What a read opens, found without a Spark session: file slices, their columns, and the tasks that merge them.

Runs on the driver, or in a process that plans for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from hudi_locks.config import Options, table_keys, write_keys
from hudi_locks.errors import BadInput, StorageError, TableError, UnsupportedTable
from hudi_locks.format import META_COLUMNS, Instant, parse_moment
from hudi_locks.format.column_range import ColumnRange, ValueKind
from hudi_locks.metadata_table import find_slice_ranges
from hudi_locks.redaction import open_log
from hudi_locks.spark.reading.conditions import RowCondition, find_partition_ranges
from hudi_locks.spark.reading.merged_reading import MergeTask, pack_slices
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.rows import widen
from hudi_locks.table import (
    COMMIT_TIME,
    PARTITION_METADATA,
    RECORD_KEY,
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
from hudi_locks.table.bootstrap import refuse_lost_sources
from hudi_locks.timeline import end_before_holes

__all__ = ["ReadPlanner", "leave_out_logs"]

_log = open_log(__name__)
T = TypeVar("T")
_ADVICE = "Read the table as it is now, or what you ask for with JVM Hudi"
_NAMED = 5
"""So many partitions are named in an error."""
_ATTEMPTS = 10
"""A cleaner that overtakes a reader so often keeps too little for it."""


def leave_out_logs(slices: Sequence[FileSlice]) -> tuple[FileSlice, ...]:
    """The base files of slices alone, as a read-optimized read shows them."""
    return tuple(replace(piece, logs=()) for piece in slices if piece.base is not None)


class ReadPlanner:
    """Plans reads of one table.

    Attributes:
        table: The table.
        meta_columns: Whether the five meta columns come first, as in Hudi.
        columns: Only these of the user's; all if None.
        partitions: Only the rows of these partition paths; all if None.
        options: Say whether the metadata table tells which files there are, where a listing costs requests, and which
            of them cannot hold a row that is wanted.
        condition: What rows must meet that are wanted, as far as ranges of values tell it.
    """

    table: Table
    meta_columns: bool
    columns: Sequence[str] | None
    partitions: Sequence[str] | None
    options: Options
    condition: RowCondition | None

    @property
    def _filtered(self) -> tuple[str, ...]:
        """Columns that are needed to choose rows."""
        return ()

    def _limit(self, *, completed: str | None = None, requested: str | None = None) -> dict[str, str]:
        """The moment of a read, for `_list_slices`; empty for now."""
        times = {"as_of": completed, "as_of_requested": requested}
        return {name: parse_moment(time) for name, time in times.items() if time is not None}

    def _read_newest(self, read: Callable[[Snapshot], T]) -> T:
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

    def _goes_by_metadata(self) -> bool:
        enable = table_keys.METADATA_ENABLE
        return not self.options.has(enable) or bool(self.options.get_value(enable))

    def _leave_out(self, slices: Sequence[FileSlice], snapshot: Snapshot) -> Sequence[FileSlice]:
        """Those that may hold a row that is wanted: as their partition says, and the metadata table."""
        if self.condition is None:
            return slices
        told = self._tell_partitions(snapshot, (piece.partition for piece in slices))
        left = [piece for piece in slices if piece.partition in told]
        known = self._find_ranges(left, snapshot, self.condition.kinds)
        pairs = zip(left, known, strict=True)
        return [
            piece for piece, ranges in pairs if self.condition.condition.may_hold({**ranges, **told[piece.partition]})
        ]

    def _tell_partitions(
        self, snapshot: Snapshot, partitions: Iterable[str]
    ) -> Mapping[str, Mapping[str, ColumnRange]]:
        """Those of some partition paths that may hold a row that is wanted, with what each tells of its rows."""
        if self.condition is None or snapshot.shown_schema is None:
            return {path: {} for path in partitions}
        values = PartitionValues.of(self.table.config, snapshot.shown_schema)
        told = {path: find_partition_ranges(values, path) for path in set(partitions)}
        return {path: ranges for path, ranges in told.items() if self.condition.condition.may_hold(ranges)}

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

    def _find_changes(
        self, snapshot: Snapshot, begin: str, end: str | None
    ) -> tuple[tuple[FileSlice, ...], tuple[Instant, ...]]:
        """The slices that a span wrote, and its commits, as they were completed: their rows alone are of the span."""
        storage, timeline = self.table.storage, snapshot.timeline
        if self.table.is_merge_on_read:
            merged = slices_changed(storage, timeline, begin=begin, end=end, partitions=self.partitions)
            refuse_lost_sources(storage, (piece.base.path for piece in merged.slices if piece.base is not None))
            return merged.slices, merged.commits
        changes = files_changed(storage, timeline, begin=begin, end=end)
        files = [file for file in changes.files if self._is_wanted(file.partition)]
        refuse_lost_sources(storage, (file.path for file in files))
        return tuple(FileSlice(f.partition, f.file_id, f.instant, f) for f in files), changes.commits

    def _refuse_unmarked(self) -> None:
        """Without meta columns no row tells which commit wrote it; JVM Hudi refuses this too."""
        if not self.table.config.has_meta_columns:
            told = f"{table_keys.POPULATE_META_FIELDS.name}=false"
            message = f"{told}: no row of the table tells which commit wrote it; compare two reads by as_of() instead"
            raise UnsupportedTable(message, key=table_keys.POPULATE_META_FIELDS.name, value="false")

    def _check(self, snapshot: Snapshot) -> None:
        if snapshot.history is not None and self.table.config.virtual_keys is not None:
            refuse_altered(self.table.storage, snapshot.timeline, advice=_ADVICE)
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

    def _plan_merge(
        self, slices: Sequence[FileSlice], snapshot: Snapshot, *, cores: int, also: Sequence[str] = ()
    ) -> MergeTask:
        needed = self._narrow(snapshot.shown_schema)
        bases = [piece.base for piece in slices if piece.base is not None]
        logs = [log for piece in slices for log in piece.logs]
        history = snapshot.history
        refuse_inexact(self.table.storage, snapshot.timeline, (*bases, *logs), needed, history=history)
        shown = tuple(dict.fromkeys((*self._shown(needed.names), *also)))
        packs = pack_slices(slices, cores=cores)
        sent = shown or (RECORD_KEY,)  # Arrow does not count rows without columns
        values = PartitionValues.of(self.table.config, needed)
        rule = replace(self.table.config.merge_rule, history=history)
        wanted = None if self.condition is None else self.condition.condition
        return MergeTask(self.table.storage, packs, needed, rule, sent, values, wanted=wanted)

    def _narrow(self, schema: pa.Schema | None) -> pa.Schema:
        """The columns that are wanted, and those that decide between rows, in types that Spark has."""
        there = add_meta_schema(schema if schema is not None else pa.schema([]))
        user = set(there.names).difference(META_COLUMNS) if self.columns is None else self.columns
        meta = META_COLUMNS if self.meta_columns else (COMMIT_TIME, RECORD_KEY)
        config = self.table.config
        needed = {*user, *meta, *self._filtered, *config.merge_rule.deciding, *config.dropped_fields}
        return widen(pa.schema([field for field in there if field.name in needed]))

    def _is_wanted(self, partition: str) -> bool:
        return self.partitions is None or partition in self.partitions

    def _shown(self, there: Sequence[str]) -> Sequence[str]:
        user = [name for name in there if name not in META_COLUMNS] if self.columns is None else self.columns
        return (*(META_COLUMNS if self.meta_columns else ()), *user)
