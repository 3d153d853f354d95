"""Making the metadata table of a table that has none, or making it anew, so that readers go by it from then on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from hudi_locks.config import Options, datasource_keys, service_keys, table_keys
from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.format import CommitMetadata, MetadataPartition, WriteStat
from hudi_locks.format.column_range import ColumnRange, ValueKind, encode_ranges
from hudi_locks.format.instant import BOOTSTRAPS
from hudi_locks.metadata_table import (
    INDEXES_PATH,
    KeyPlaces,
    KeySpread,
    choose_columns,
    is_defined,
    is_partitioned,
    make_metadata_table,
    measure_file,
    read_keys,
)
from hudi_locks.services.metadata_properties import (
    NAMED,
    list_named,
    read_properties,
    refuse_pending,
    remove_metadata_table,
    replace_properties,
)
from hudi_locks.storage import map_in_threads
from hudi_locks.table import (
    BaseFile,
    FileSlice,
    LogFile,
    Table,
    TableConfig,
    find_completions,
    latest_file_slices,
    list_data_files,
    refuse_altered,
)
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import StopPoint, TableCoordinator

__all__ = [
    "PARTITIONED_SINCE",
    "RECORD_INDEXES",
    "MetadataMade",
    "MetadataMaker",
    "ask_for_record_index",
    "refuse_partitions_of",
]

RECORD_INDEXES: Final = (service_keys.RECORD_INDEX_ENABLE, service_keys.PARTITION_INDEX_ENABLE)
"""What asks for a record index: of the whole table, and by partition."""

_ACTION: Final = "indexing"
_ALTERED: Final = (
    "A metadata table has ranges of columns under the names of their time, so that filters would miss rows of such a"
    " table: leave it without one, or copy the rows to a new table"
)
_KEYS: Final = MetadataPartition.RECORD_INDEX.value
_RANGES: Final = MetadataPartition.COLUMN_STATS.value
PARTITIONED_SINCE: Final = 9
"""Table version whose releases know a record index by partition."""
_File = BaseFile | LogFile


@dataclass(frozen=True)
class MetadataMade:
    """What was made.

    Attributes:
        parts: Names of its parts.
        files: How many data files it names.
        columns: Those of which it keeps statistics.
        left_out: Those of which it keeps none, since some file has values of another type, as before it was widened.
        lost: Names of parts that were there before and are not made here, such as a secondary index.
        keys: How many record keys its record index has; None without one.
    """

    parts: tuple[str, ...]
    files: int
    columns: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    keys: int | None = None


class MetadataMaker:
    """Makes the metadata table of one table, as JVM Hudi makes it for a table that has rows already.

    Files are measured before the lock is taken, and inside it those that came since; so are their keys read, if it gets
    a record index. Then the table names the metadata table, and a claim says so. Where somebody else claimed since the
    files were listed, it is taken away again and made anew: so a write that did not know of it is in it, and every
    later one knows.

    Args:
        coordinator: With the writers.
        options: Hudi's keys; they say whether it gets a record index, and ranges of which columns. One that is made
            anew has a record index if it had one.

    Attributes:
        spread: Over how many file groups that is spread.
    """

    def __init__(self, coordinator: TableCoordinator, options: Mapping[str, object] = MappingProxyType({})) -> None:
        self._table = coordinator
        given = Options(options)
        self._given = given
        whole, by_partition = (given.get_value(key) for key in RECORD_INDEXES)
        self._indexes_keys = whole or by_partition
        self.spread: KeySpread = _read_spread(given, is_partitioned=by_partition)
        self._keys: dict[FileSlice, pa.Array] = {}
        self._storage = coordinator.storage
        self._columns: Mapping[str, ValueKind] = {}
        self._measures_columns = True
        self._known: dict[str, Mapping[str, ColumnRange] | None] = {}
        self._removed: frozenset[str] = frozenset()

    def run(self, *, anew: bool = False) -> MetadataMade | None:
        """Make it.

        Args:
            anew: Whether one that is there is deleted first, with all parts that it has.

        Returns:
            None if there is one, and it was not to be made anew.

        Raises:
            AcquireTimeout: The table lock could not be had.
            DamagedTable: A data file cannot be read.
            StorageError: The store failed; another call goes on.
            ConfigError: The options name a column of which there is no range.
            TableError: Something is under way.
            UnsupportedTable: Writers of the table do not look whether it has one; or a log cannot be read here; or a
                key is in more than one row, and there is to be a record index.
        """
        self._refuse_writers_that_do_not_look()
        if not anew and self._is_named():
            return None
        self._keep_record_index()
        self._measures_columns = self._given.get_value(service_keys.COLUMN_STATS_ENABLE) and (
            not self._table.layout.is_version_6 or _RANGES in list_named(read_properties(self._storage))
        )
        timeline, config = self._table.peek().timeline, self._read_config()
        if self._indexes_keys and self.spread.is_partitioned:
            refuse_partitions_of(config.version)
        files, _ = self._measure(timeline, config)
        self._read_keys(timeline, config, files)
        with self._table.hold():
            while True:
                view = self._table.look()
                refuse_pending(self._storage, view.timeline, "make the metadata table")
                if not anew and self._is_named():
                    return None
                made = self._make(view.timeline)
                if self._table.note(view, _ACTION):
                    return made
                anew = True

    def _refuse_writers_that_do_not_look(self) -> None:
        if self._table.expects_foreign_writers() or self._table.keeps_metadata:
            return
        message = (
            "with hudi_locks.foreign_writers=false the writers of a table look once, when they load it, whether it has"
            " a metadata table: set that property of the table to true, start its writers anew, and make the metadata"
            " table then; with it, the property may be false again"
        )
        raise UnsupportedTable(message, path=self._storage.base)

    def _is_named(self) -> bool:
        known = read_properties(self._storage)
        return any(known.get(key, "").strip() for key in NAMED)

    def _keep_record_index(self) -> None:
        """One that is there is made anew, of its kind unless the options name one."""
        if not self._indexes_keys and _KEYS in list_named(read_properties(self._storage)):
            self._indexes_keys = True
            self.spread = _read_spread(self._given, is_partitioned=is_partitioned(self._storage))

    def _read_config(self) -> TableConfig:
        return TableConfig.from_properties(read_properties(self._storage))

    def _make(self, timeline: Timeline) -> MetadataMade:
        config = self._read_config()
        files, columns = self._measure(timeline, config)
        keys = self._read_keys(timeline, config, files)
        self._removed |= frozenset(remove_metadata_table(self._storage))
        found = {file: self._known[file.path] for file in files}
        there = {file: ranges for file, ranges in found.items() if ranges is not None}
        whole = [name for name in columns if all(name in ranges for ranges in there.values() if ranges)]
        stats = [_describe(file, ranges, whole) for file, ranges in there.items()]
        parts = make_metadata_table(
            self._storage,
            config,
            CommitMetadata.of(stats, "UPSERT", schema=None),
            columns=whole,
            completed=self._table.later_than(timeline.newest_time()),
            last=max((one.requested for one in timeline.completed()), default=""),
            keys=keys,
        )
        self._table.trace(StopPoint.SERVICE_STAGED)
        self._name(parts)
        self._table.trace(StopPoint.SERVICE_PLANNED)
        left_out = tuple(name for name in columns if name not in whole)
        names = tuple(part.value for part in parts)
        lost = tuple(sorted(self._removed.difference(names)))
        return MetadataMade(names, len(there), tuple(whole), left_out, lost, None if keys is None else keys.count)

    def _measure(self, timeline: Timeline, config: TableConfig) -> tuple[list[_File], Mapping[str, ValueKind]]:
        """The files of completed writes and the columns to measure; the ranges of both are known then."""
        refuse_altered(self._storage, timeline, advice=_ALTERED)
        schema = Table(self._storage, config).schema(timeline)
        is_measured = schema is not None and self._measures_columns
        columns = self._choose_columns(schema, config) if is_measured else {}
        if columns != self._columns:
            self._columns, self._known = columns, {}
        listed = list_data_files(self._storage)
        completion = find_completions(self._storage, timeline, listed, exactly=False).take
        files = [file for file in listed.every if completion(file.instant) is not None]
        self._known.update((log.path, {}) for log in listed.change_logs)
        new = [file for file in files if file.path not in self._known]
        is_mixed = self._table.layout.has_old_logs
        found = map_in_threads(lambda file: measure_file(self._storage, file, columns, is_mixed=is_mixed), new)
        self._known.update(zip((file.path for file in new), found, strict=True))
        return files, columns

    def _choose_columns(self, schema: pa.Schema, config: TableConfig) -> Mapping[str, ValueKind]:
        """Those that the options name, else the first of the table."""
        key, most = service_keys.COLUMN_STATS_COLUMNS, self._given.get_value(service_keys.COLUMN_STATS_MOST)
        names = [name.strip() for name in self._given.get_value(key).split(",") if name.strip()]
        known = choose_columns(schema, version=config.version, names=names, most=most)
        if lacking := [name for name in names if name not in known]:
            message = f"{key.name} names {lacking[0]}, which is no column of {self._storage.base} that has a range"
            raise ConfigError(f"{message}: leave it out", key=key.name, column=lacking[0])
        return known

    def _read_keys(self, timeline: Timeline, config: TableConfig, files: Sequence[_File]) -> KeyPlaces | None:
        """Those of all rows; None if there is to be no record index. What was read before is not read again."""
        if not self._indexes_keys:
            return None
        slices = latest_file_slices(self._storage, timeline)
        self._refuse_bootstrapped(slices)
        schema = Table(self._storage, config).schema(timeline) or pa.schema([])
        new = [piece for piece in slices if piece not in self._keys]
        found = map_in_threads(lambda piece: read_keys(self._storage, piece, schema, config.merge_rule), new)
        self._keys.update(zip(new, found, strict=True))
        keys = tuple(self._keys[piece] for piece in slices)
        counts = dict.fromkeys(sorted({file.partition for file in files}), 0)
        for piece, known in zip(slices, keys, strict=True):
            counts[piece.partition] = counts.get(piece.partition, 0) + len(known)
        places = KeyPlaces(slices, keys, self.spread.choose(counts))
        places.refuse_doubles()
        return places

    def _refuse_bootstrapped(self, slices: Sequence[FileSlice]) -> None:
        """A record index tells since when a key lies where it does, and JVM Hudi takes that of a bootstrap for none."""
        old = next((piece.base.path for piece in slices if piece.base and piece.base.instant in BOOTSTRAPS), None)
        if old is not None:
            message = (
                f"no record index can be made: {old} is of the bootstrap of the table, whose time JVM Hudi cannot read"
                " out of one; cluster the table first, so that all its files are written anew, or go without"
            )
            raise UnsupportedTable(message, path=old)

    def _name(self, parts: Sequence[MetadataPartition]) -> None:
        def change(known: Mapping[str, str]) -> dict[str, str]:
            told = {name: value for name, value in known.items() if name != table_keys.METADATA_ENABLE.name}
            told[table_keys.METADATA_PARTITIONS.name] = ",".join(sorted(part.value for part in parts))
            told[table_keys.METADATA_PARTITIONS_INFLIGHT.name] = ""
            is_told = is_defined(parts, self._read_config().version)
            return told | ({table_keys.INDEX_DEFINITIONS.name: INDEXES_PATH} if is_told else {})

        replace_properties(self._storage, change)


def refuse_partitions_of(version: int) -> None:
    """Whether the releases that write this table version know a record index by partition.

    Release 1.0.2 takes the file groups of one for those of an index of the whole table.

    Raises:
        UnsupportedTable: They do not.
    """
    if version < PARTITIONED_SINCE:
        key = service_keys.PARTITION_INDEX_ENABLE.name
        message = (
            f"{key}=true makes a record index by partition, and releases that write tables of version {version} do not"
            f" know that kind: make the table with {datasource_keys.WRITE_TABLE_VERSION.name}={PARTITIONED_SINCE}, or"
            f" upgrade it with hudi-locks upgrade --to {PARTITIONED_SINCE}, or set {key}=false"
        )
        raise UnsupportedTable(message, key=key, version=version)


def ask_for_record_index(*, by_partition: bool) -> dict[str, str]:
    """Options that ask for a record index of a kind, whatever others say."""
    whole, parts = (key.name for key in RECORD_INDEXES)
    return {parts: "true"} if by_partition else {whole: "true", parts: "false"}


def _read_spread(given: Options, *, is_partitioned: bool) -> KeySpread:
    """As Hudi names the limits of each kind of record index."""
    least, most = (
        (service_keys.PARTITION_INDEX_LEAST_GROUPS, service_keys.PARTITION_INDEX_MOST_GROUPS)
        if is_partitioned
        else (service_keys.RECORD_INDEX_LEAST_GROUPS, service_keys.RECORD_INDEX_MOST_GROUPS)
    )
    return KeySpread(given.get_value(least), given.get_value(most), is_partitioned)


def _describe(file: _File, ranges: Mapping[str, ColumnRange], columns: Sequence[str]) -> WriteStat:
    told = encode_ranges({name: ranges[name] for name in columns}) if ranges else None
    return WriteStat(file.partition, file.file_id, file.path, file_size_bytes=file.size, ranges=told)
