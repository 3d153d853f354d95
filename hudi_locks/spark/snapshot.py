"""The table as one timeline shows it. Runs on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import pyarrow as pa

from hudi_locks.config import datasource_keys, table_keys
from hudi_locks.errors import UnsupportedTable, WriteAborted
from hudi_locks.format import clustered_file_groups, merge_schemas
from hudi_locks.format.compaction_plan import compacted_file_groups
from hudi_locks.format.instant import METADATA_BOOTSTRAP
from hudi_locks.markers import StagedFiles
from hudi_locks.metadata_table import MetadataTable, MetadataView
from hudi_locks.spark.operation import Operation
from hudi_locks.table import (
    COMPLEX,
    PREFIXED_SINCE,
    PROPERTIES_PATH,
    RECORD_KEY,
    BaseFile,
    ColumnHistory,
    DataFiles,
    FileSlice,
    LogFile,
    SchemaHistory,
    Table,
    choose_history,
    find_completions,
    find_schema_history,
    latest_file_slices,
    read_commit,
    read_commit_files,
    read_first_key,
    read_log,
    read_schema_history,
    tell_columns,
)
from hudi_locks.table.old_logs import find_log_places, list_planned_barriers
from hudi_locks.timeline import Timeline

__all__ = ["Snapshot"]

_SAMPLES = 8
_File = TypeVar("_File", BaseFile, LogFile, BaseFile | LogFile)


@dataclass(frozen=True)
class Snapshot:
    """What a write builds on, or a read shows.

    Attributes:
        table: The table.
        timeline: Its instants at one moment.
        columns: Those of an earlier moment, where a read is to show these; None for those of now.
    """

    table: Table
    timeline: Timeline
    columns: SchemaHistory | None = None
    _slices: dict[frozenset[str] | None, Sequence[FileSlice]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(cls, table: Table) -> Snapshot:
        """The table as it is now."""
        return cls(table, table.timeline())

    @cached_property
    def metadata(self) -> MetadataView | None:
        """What the table's metadata table says at this moment; None if the table keeps none.

        Raises:
            DamagedTable: It is not there, or its timeline cannot be read.
            UnsupportedTable: It is of a version that is not read here.
        """
        if not self.table.config.extra.get(table_keys.METADATA_PARTITIONS.name):
            return None
        found = MetadataTable.of(self.table.storage, self.table.config)
        return None if found is None else found.view(self.timeline)

    @cached_property
    def history(self) -> ColumnHistory | None:
        """How files have columns that ALTER TABLE changed; None where it changed none. See `SchemaHistory`."""
        return None if self.schema_history is None else self.schema_history.find_names()

    @cached_property
    def schema_history(self) -> SchemaHistory | None:
        """The columns since the first ALTER TABLE; None where there was none."""
        if self.columns is not None:
            return self.columns
        find = find_schema_history if self.table.storage.is_remote else read_schema_history
        found = find(self.table.storage, self.timeline)
        if found is None:
            return None
        return choose_history(self.table.config, found, self.table.schema(self.timeline))

    def tell_columns(self, schema: pa.Schema, *, instant: str) -> Mapping[str, str]:
        """See `tell_columns`; of a write begun at `instant`, after which the columns are `schema`."""
        history = self.schema_history
        if history is None:
            return {}
        told = tell_columns(history, schema, instant=instant, table_version=self.table.config.version)
        if self.timeline.layout.is_version_6 and {*schema.names} - {*history.newest.names}:
            self._refuse_planned(instant)
        return told

    def _refuse_planned(self, instant: str) -> None:
        """In version 6 a plan stays, and what is written for it has its time, which is before the new columns."""
        if planned := self.timeline.pending(("compaction",)):
            first = planned[0].requested
            message = (
                f"{instant} brings columns, and compaction {first} is planned, whose files would lack them: run it"
            )
            raise WriteAborted(f"{message} before", instant=instant)

    def past(self, *, as_of: str | None = None, as_of_requested: str | None = None) -> Snapshot:
        """The same with the columns of a moment, as JVM Hudi shows them, where ALTER TABLE changed some.

        Args:
            as_of: A completion time.
            as_of_requested: Or a requested one.
        """
        history = self.schema_history
        if history is None or not history.changes:
            return self
        changed = [one.number for one in history.versions if self._is_known(one.number, as_of, as_of_requested)]
        return replace(self, columns=history.until(max(changed, default=0)), _slices={})

    def _is_known(self, number: int, completed: str | None, requested: str | None) -> bool:
        """Whether the columns had been changed for the time `number` by a moment."""
        time = f"{number:017d}"
        change = self.timeline.get(time)
        if completed is not None and change is not None and change.completion is not None:
            return change.completion <= completed
        return time <= (requested or completed or time)

    @property
    def newest_columns(self) -> int | None:
        """When the columns were changed last, by their history; None where there is none."""
        return None if self.schema_history is None else self.schema_history.newest.number

    @property
    def has_record_index(self) -> bool:
        """Whether its metadata table told where each key lies when the table was loaded."""
        return self.table.config.has_record_index

    def base_files(self, partitions: Iterable[str] | None = None) -> list[BaseFile]:
        """Latest base file of each file group, of all partitions or of some."""
        return [piece.base for piece in self.file_slices(partitions) if piece.base is not None]

    def file_slices(self, partitions: Iterable[str] | None = None) -> Sequence[FileSlice]:
        """Newest slice of each file group, of all partitions or of some, listed once."""
        known = None if partitions is None else frozenset(partitions)
        if known not in self._slices:
            self._slices[known] = latest_file_slices(self.table.storage, self.timeline, partitions=known)
        return self._slices[known]

    @property
    def newest_files(self) -> Sequence[BaseFile | LogFile]:
        """Data files of the newest write that made any; none where the active timeline has no such write."""
        commits = read_commit_files(self.table.storage, self.timeline)
        made = (commits[requested].files.both for requested in sorted(commits, reverse=True))
        return next(filter(None, made), ())

    def list_late_logs(self, slices: Sequence[FileSlice]) -> Iterator[FileSlice]:
        """Of slices those that have logs which were begun before their base file was completed, with these alone.

        Whoever wrote such a log may have found its keys in the base file before.
        """
        mixed = [piece for piece in slices if piece.base is not None and piece.logs]
        files = DataFiles(tuple(piece.base for piece in mixed if piece.base), ())
        completions = find_completions(self.table.storage, self.timeline, files, exactly=True)
        for piece in mixed:
            if self._is_plain(piece.barrier):
                continue
            completed = completions.take(piece.barrier) or ""
            if late := tuple(log for log in piece.logs if log.instant < completed):
                yield replace(piece, base=None, logs=late)

    def _is_plain(self, barrier: str) -> bool:
        """Whether a write made a base file: then logs named by it, as in version 6, were begun after it was done."""
        made = self.timeline.get(barrier)
        return self.timeline.layout.is_version_6 and made is not None and made.action == "deltacommit"

    def place_logs(self, files: StagedFiles) -> StagedFiles:
        """The same, which know where logs belong if the table is of version 6; of the slices that were looked at."""
        if not self.timeline.layout.is_version_6 or not self.table.is_merge_on_read:
            return files
        looked_at = [piece for pieces in self._slices.values() for piece in pieces] or self.file_slices()
        planned = list_planned_barriers(self.table.storage, self.timeline)
        return replace(files, log_places=find_log_places(looked_at, planned))

    def data_files(self) -> list[BaseFile | LogFile]:
        """Every base and log file of the newest slices."""
        slices = self.file_slices()
        bases: list[BaseFile | LogFile] = [piece.base for piece in slices if piece.base is not None]
        return bases + [log for piece in slices for log in piece.logs]

    @cached_property
    def replaced_groups(self) -> dict[tuple[str, str], str]:
        """Requested time of the write that ended a file group, by (partition path, file id)."""
        return {
            group: instant.requested
            for instant in self.timeline.completed(("replacecommit",))
            for group in read_commit(
                self.table.storage, self.timeline, requested=instant.requested
            ).replaced_file_groups
        }

    def find_replaced(self, operation: Operation, partitions: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Ids of the file groups that end, for each partition that is overwritten; empty for one that has none yet.

        Args:
            operation: An insert_overwrite_table ends those of every partition.
            partitions: Those that the rows or the caller name.
        """
        if not operation.replaces:
            return {}
        named = sorted(set(partitions))
        replaced: dict[str, tuple[str, ...]] = dict.fromkeys(named, ())
        is_whole = operation is Operation.INSERT_OVERWRITE_TABLE
        for piece in self.file_slices(None if is_whole else named):
            replaced[piece.partition] = (*replaced.get(piece.partition, ()), piece.file_id)
        return replaced

    def list_ended(self, operation: Operation, partitions: Iterable[str]) -> Sequence[FileSlice]:
        """The newest slices of these file groups; for arguments see `find_replaced`."""
        if not operation.replaces:
            return ()
        is_whole = operation is Operation.INSERT_OVERWRITE_TABLE
        return self.file_slices(None if is_whole else partitions)

    @cached_property
    def schema(self) -> pa.Schema | None:
        """The user's columns as files have them; None while nobody has written any.

        Raises:
            UnsupportedTable: See `Table.writable_schema`.
        """
        return self.table.writable_schema(self.timeline, self.schema_history)

    @cached_property
    def shown_schema(self) -> pa.Schema | None:
        """The user's columns as readers see them: those that files lack and folders tell come last, as texts."""
        known = self.columns
        schema = self.table.schema(self.timeline) if known is None else known.newest.schema
        if schema is None:
            return None
        told = [name for name in self.table.config.dropped_fields if name not in schema.names]
        return pa.schema([*schema, *(pa.field(name, pa.string()) for name in told)])

    def merge_schema(self, incoming: pa.Schema) -> pa.Schema:
        """The columns after a write of `incoming`.

        Raises:
            BadInput: A column changed its type, or is missing where rows of some columns do not mean the others as they
                are.
        """
        known = self.schema if self.schema is not None else incoming
        left_out = [field for field in known if field.name not in incoming.names]
        fills = self.table.config.merge_rule.fills_nulls
        return merge_schemas(known, pa.schema([*incoming, *left_out]) if fills else incoming)

    @cached_property
    def planned_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of what a pending clustering takes: a write there would meet its plan."""
        pending = self.timeline.pending(("clustering", "replacecommit"))  # by either name, after versions
        paths = [self.timeline.layout.path(i.as_requested()) for i in pending]
        plans = (clustered_file_groups(self.table.storage.read(path) or b"", path) for path in paths)
        return frozenset(group for groups in plans for group in groups)

    @cached_property
    def compacting_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of what a pending compaction takes."""
        pending = self.timeline.pending(("compaction", "logcompaction"))
        paths = [self.timeline.layout.path(i.as_requested()) for i in pending]
        plans = (compacted_file_groups(self.table.storage.read(path) or b"", path) for path in paths)
        return frozenset(group for groups in plans for group in groups)

    @property
    def record_bytes(self) -> int | None:
        """What a row of the last commit that wrote base files takes on disk; None if that cannot be told.

        Skeletons have no whole rows.
        """
        for instant in reversed(self.timeline.completed_between("")):
            if instant.requested == METADATA_BOOTSTRAP:
                continue
            commit = read_commit(self.table.storage, self.timeline, requested=instant.requested)
            stats = [stat for stat in commit.stats if not stat.log_files]
            rows = sum(stat.num_writes for stat in stats)
            if rows:
                return max(1, sum(stat.file_size_bytes for stat in stats) // rows)
        return None

    def sample_keys(self, base_files: Sequence[BaseFile]) -> dict[BaseFile, str]:
        """A record key out of each of a few base files."""
        found = {file: self._read_key(file) for file in _sample(base_files)}
        return {file: key for file, key in found.items() if key is not None}

    def sample_log_keys(self, files: Sequence[BaseFile | LogFile]) -> dict[BaseFile | LogFile, str]:
        """The same of base and log files."""
        found = {file: self._read_key(file) for file in _sample(files)}
        return {file: key for file, key in found.items() if key is not None}

    def _read_key(self, file: BaseFile | LogFile) -> str | None:
        storage = self.table.storage
        if isinstance(file, BaseFile):
            return read_first_key(storage, file.path, virtual_keys=self.table.config.virtual_keys)
        takes = (lambda _: True) if self.timeline.layout.has_old_logs else None  # blocks of rollbacks have no keys
        entries = read_log(storage.read(file.path) or b"", file.path, takes=takes)
        return next((entry.rows.column(RECORD_KEY)[0].as_py() for entry in entries if entry.rows.num_rows), None)

    def prefixes_keys(self, *, value_only: bool | None = None) -> bool:
        """Whether record keys are written `name:value,…`: as the table's properties say, else as its rows have them.

        Args:
            value_only: What the caller's options say for a table that has no rows yet.

        Raises:
            UnsupportedTable: Neither tells, or the rows have keys of both kinds.
        """
        config = self.table.config
        if config.prefixes_keys is not None:
            return config.prefixes_keys
        found = {key.startswith(f"{config.record_key_fields[0]}:") for key in self._sample_any_keys()}
        if len(found) > 1:
            raise self._refuse_keys("has some as name:value and some as the bare value, so that rows are there twice")
        if found:
            return found.pop()
        is_complex = config.key_generator == COMPLEX
        if is_complex and config.version >= PREFIXED_SINCE:
            return True
        if not is_complex or value_only is None:
            raise self._refuse_keys("has no rows yet that show it")
        return not value_only

    def _sample_any_keys(self) -> list[str]:
        files = self.data_files() if self.table.is_merge_on_read else self.base_files()
        return list(filter(None, map(self._read_key, _sample(files))))

    def _refuse_keys(self, what: str) -> UnsupportedTable:
        fields, path = ",".join(self.table.config.record_key_fields), self.table.storage.base
        key, option = table_keys.COMPLEX_KEY_ENCODING.name, datasource_keys.COMPLEX_KEY_VALUE_ONLY.name
        kind = table_keys.KEY_GENERATOR_TYPE.name
        message = (
            f"how {path} writes keys of its one record key column {fields} cannot be told: releases of JVM Hudi differ,"
            f" {PROPERTIES_PATH} does not say it, and the table {what}. Repair the keys with JVM Hudi, or let it write"
            f" the first rows; or give {option} as its JVM writers do, or add {kind}, and {key} if that is COMPLEX, to"
            " the file"
        )
        return UnsupportedTable(message, path=path, key=key)


def _sample(files: Sequence[_File]) -> Sequence[_File]:
    return files[:: max(1, len(files) // _SAMPLES)][:_SAMPLES]
