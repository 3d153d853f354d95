"""A table's metadata table: which files it names, and what it says of their values (HoodieBackedTableMetadata).

It is a merge-on-read table of its own below `.hoodie/metadata`. Its records lie in HFiles, a file group for each share
of the keys. A commit of the table is a delta commit of the metadata table with the same requested time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from hudi_locks.config import table_keys
from hudi_locks.errors import DamagedTable, UnsupportedTable
from hudi_locks.format import (
    METADATA_FOLDER,
    LogPlace,
    MetadataPartition,
    TimelineLayout,
    decode_properties,
)
from hudi_locks.format.key_groups import KeyGroups
from hudi_locks.format.metadata_keys import ALL_PARTITIONS, NO_PARTITION, group_number
from hudi_locks.format.metadata_record import MetadataRecord, merge_metadata_records
from hudi_locks.format.records import interpreting
from hudi_locks.metadata_table.record_files import choose_blocks, read_stored
from hudi_locks.metadata_table.record_groups import INDEXES_PATH, find_record_groups, is_partitioned
from hudi_locks.metadata_table.shape import Indexed, MetadataShape
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import (
    DataFiles,
    FileSlice,
    TableConfig,
    find_completions,
    list_data_files,
    slice_file_groups,
)
from hudi_locks.table.data_files import BlockScope, join_planned
from hudi_locks.table.old_logs import find_log_places, list_planned_barriers
from hudi_locks.timeline import Timeline

__all__ = [
    "INDEXES_PATH",
    "METADATA_LAYOUT",
    "OLD_METADATA_LAYOUT",
    "OWN_PROPERTIES",
    "MetadataTable",
    "MetadataView",
]

OWN_PROPERTIES: Final = f"{METADATA_FOLDER}/.hoodie/hoodie.properties"
"""Of the metadata table itself."""
_TIMELINE: Final = f"{METADATA_FOLDER}/.hoodie/timeline"
METADATA_LAYOUT: Final = TimelineLayout(2, _TIMELINE, f"{_TIMELINE}/history")
"""Of the metadata table's own timeline."""
OLD_METADATA_LAYOUT: Final = TimelineLayout(1, f"{METADATA_FOLDER}/.hoodie", f"{METADATA_FOLDER}/.hoodie/archived")
"""Of that of a metadata table of version 6."""
_OLD_VERSION: Final = 6
_VERSIONS: Final = ("6", "8", "9")
_REMEDY: Final = "make it anew with hudi-locks metadata rebuild, with the lock options of the table's writers"


@dataclass(frozen=True)
class MetadataTable:
    """The metadata table of one table. Reading it changes nothing. Runs anywhere.

    Attributes:
        storage: Of the table.
        names: Names of its partitions that are whole, those of kinds that are not read here among them.
        version: Of its records.
        table_version: Of the table.
    """

    storage: Storage
    names: frozenset[str]
    version: int
    table_version: int

    @classmethod
    def of(cls, storage: Storage, config: TableConfig) -> MetadataTable | None:
        """The metadata table of a table; None if readers are not to go by one.

        Raises:
            UnsupportedTable: It is of a version that is not read here.
            DamagedTable: The table says that it has one, and it is not there or cannot be read.
        """
        names = config.metadata_parts
        if MetadataPartition.FILES.value not in names:
            return None
        data = storage.read(OWN_PROPERTIES)
        if data is None:
            message = f"{OWN_PROPERTIES} is not there, and the table says that it keeps a metadata table: {_REMEDY}"
            raise DamagedTable(message, path=OWN_PROPERTIES)
        key = table_keys.TABLE_VERSION.name
        if (version := decode_properties(data, OWN_PROPERTIES).get(key, "")) not in _VERSIONS:
            message = f"{OWN_PROPERTIES} has {key}={version}, and metadata tables of version 6, 8 and 9 are read"
            raise UnsupportedTable(message, key=key, value=version)
        return cls(storage, names, int(version), config.version)

    @property
    def layout(self) -> TimelineLayout:
        """Of its own timeline."""
        return OLD_METADATA_LAYOUT if self.version == _OLD_VERSION else METADATA_LAYOUT

    @property
    def parts(self) -> tuple[MetadataPartition, ...]:
        """Those of its partitions that are read here."""
        return tuple(part for part in MetadataPartition if part.value in self.names)

    @cached_property
    def indexed_columns(self) -> tuple[str, ...]:
        """Columns of which it keeps statistics, as first read; none if it keeps no statistics.

        Raises:
            DamagedTable: The list of them is not there, or cannot be read.
        """
        if MetadataPartition.COLUMN_STATS.value not in self.names:
            return ()
        data = self.storage.read(INDEXES_PATH)
        if data is None and self.version == _OLD_VERSION:
            raise _refuse_part(MetadataPartition.COLUMN_STATS.value, "without saying of which columns")
        with interpreting("definition of the indexed columns", INDEXES_PATH):
            told = json.loads(data or b"")["indexDefinitions"][MetadataPartition.COLUMN_STATS.value]["sourceFields"]
            return tuple(str(name) for name in told)

    def refuse_unwritable(self) -> None:
        """Whether all of its parts can be kept up to date here.

        Raises:
            UnsupportedTable: One cannot, or its version is not the table's; the message names it, and the way out.
        """
        known = {part.value for part in MetadataPartition}
        if strange := sorted(self.names - known):
            message = (
                f"the metadata table has the part {', '.join(strange)}, which this package does not keep up to date:"
                f" drop it with hudi-locks metadata drop --part {strange[0]}"
            )
            raise UnsupportedTable(message, parts=strange)
        if MetadataPartition.PARTITION_STATS.value in self.names and not self.indexed_columns:
            message = (
                "the metadata table keeps statistics of partitions and none of files, so that it is not known of which"
                " columns: drop it with hudi-locks metadata drop"
            )
            raise UnsupportedTable(message, parts=sorted(self.names))
        if self.version != self.table_version:
            message = (
                f"the metadata table is of version {self.version} and the table of {self.table_version}: upgrade it"
                " with JVM Hudi, or drop it with hudi-locks metadata drop"
            )
            raise UnsupportedTable(message, version=self.version, table_version=self.table_version)

    def describe_indexed(self, *, fresh: int = 1) -> Indexed:
        """What the tasks of a write must report; raises as `refuse_unwritable` does.

        Args:
            fresh: How many file groups a partition gets that is new to a record index by partition.
        """
        self.refuse_unwritable()
        has_filters = MetadataPartition.BLOOM_FILTERS.value in self.names
        groups, places = self._list_key_groups(fresh)
        return Indexed(self.indexed_columns, groups, has_filters, places)

    def _list_key_groups(self, fresh: int) -> tuple[KeyGroups, Mapping[str, LogPlace]]:
        part = MetadataPartition.RECORD_INDEX.value
        if part not in self.names:
            return KeyGroups(), {}
        listed = list_data_files(self.storage, [f"{METADATA_FOLDER}/{part}"])
        groups = find_record_groups(self.storage, listed, self.layout, fresh=fresh)
        if not groups:
            path = f"{METADATA_FOLDER}/{part}"
            raise DamagedTable(f"{path} holds no file group of the metadata table: {_REMEDY}", path=path)
        if self.version != _OLD_VERSION:
            return groups, {}
        if groups.is_partitioned:
            raise _refuse_part(part, "with file groups of each partition in version 6")
        return groups, self._find_key_places(listed)

    def _find_key_places(self, listed: DataFiles) -> dict[str, LogPlace]:
        """By names alone: whoever publishes looks again whether a log still lies on the newest base file."""
        blocks = BlockScope(names_bases=True, writes=frozenset())
        sliced = slice_file_groups(listed.bases, listed.logs, lambda requested: requested, blocks=blocks)
        planned = self.list_planned(Timeline.load(self.storage, self.layout))
        places = find_log_places((pieces[0] for pieces in sliced.values()), planned)
        return {file_id: place for (_, file_id), place in places.items()}

    def list_planned(self, own: Timeline) -> dict[tuple[str, str], str]:
        """Requested time of the compaction that is planned for a file group, in version 6, on its own timeline."""
        if self.version != _OLD_VERSION:
            return {}
        planned = list_planned_barriers(self.storage, own)
        return {(f"{METADATA_FOLDER}/{part}", file_id): time for (part, file_id), time in planned.items()}

    def describe(self, timeline: Timeline) -> MetadataShape:
        """What the next delta commit must know of it, asked while nobody else changes it.

        Args:
            timeline: See `view`.

        Raises:
            DamagedTable: See `view`, `indexed_columns` and `MetadataView.list_groups`.
        """
        return self.view(timeline).describe()

    def view(self, timeline: Timeline) -> MetadataView:
        """What it says at the time of `timeline`, and perhaps of what was completed since.

        Args:
            timeline: Of the table, loaded before: what is pending there does not count here.

        Raises:
            DamagedTable: Its timeline cannot be read.
        """
        return MetadataView(self, timeline, Timeline.load(self.storage, self.layout))

    def view_now(self, load: Callable[[], Timeline]) -> MetadataView:
        """The same of a timeline that is loaded later than that of the metadata table.

        All that is told then was begun before `load` was called: what it shows as pending does not count.
        """
        own = Timeline.load(self.storage, self.layout)
        return MetadataView(self, load(), own)


def _refuse_part(part: str, what: str) -> UnsupportedTable:
    message = (
        f"the metadata table has the part {part} {what}, which this package does not keep up to date: drop it with"
        f" hudi-locks metadata drop --part {part}"
    )
    return UnsupportedTable(message, parts=[part])


@dataclass(frozen=True)
class MetadataView:
    """What a metadata table says at one moment.

    Attributes:
        table: The metadata table.
        timeline: Of the table that it belongs to.
        own_timeline: Of the metadata table itself.
    """

    table: MetadataTable
    timeline: Timeline
    own_timeline: Timeline

    @cached_property
    def files(self) -> dict[str, dict[str, int]]:
        """Size of each file by its name, by partition path; also of partitions that have none.

        Raises:
            DamagedTable: The records cannot be read, or lack a partition that they name.
        """
        records = self.read(MetadataPartition.FILES)
        named = records.pop(ALL_PARTITIONS, None)
        found = {
            "" if key == NO_PARTITION else key: {n: e.size for n, e in record.files.items() if not e.is_deleted}
            for key, record in records.items()
        }
        listed = set() if named is None else {name for name, entry in named.files.items() if not entry.is_deleted}
        return {("" if name == NO_PARTITION else name): {} for name in listed} | found

    def data_files(self, partitions: Iterable[str] | None = None) -> DataFiles:
        """What a listing of partitions would show, of completed writes; other files have no place in it.

        Args:
            partitions: Only these; all if None.

        Raises:
            DamagedTable: See `files`.
        """
        wanted = self.files if partitions is None else {path: self.files.get(path, {}) for path in partitions}
        return DataFiles.of((path, name, size) for path, names in wanted.items() for name, size in names.items())

    def read(self, partition: MetadataPartition, *, keys: Iterable[str] | None = None) -> dict[str, MetadataRecord]:
        """The records of one of its partitions, by key.

        Args:
            partition: Which.
            keys: Only these; all if None. File groups in which none of them can be are not read.

        Raises:
            DamagedTable: A file group is gone, or a file of it cannot be read.
            UnsupportedTable: A log holds what JVM Hudi does not write there.
        """
        slices = self.list_slices(partition)
        wanted = None if keys is None else frozenset(keys)
        if wanted is not None:
            numbers = {group_number(key, len(slices)) for key in wanted} if slices else set()
            slices = [piece for number, piece in enumerate(slices) if number in numbers]
        found = map_in_threads(lambda piece: self._merge(piece, wanted), slices)
        return {key: record for records in found for key, record in records.items()}

    def describe(self) -> MetadataShape:
        """See `MetadataTable.describe`."""
        table = self.table
        slices = dict(zip(table.parts, map_in_threads(self.list_slices, table.parts), strict=True))
        groups = {part: tuple(piece.file_id for piece in pieces) for part, pieces in slices.items()}
        newest = self.own_timeline.newest_time() or ""
        return MetadataShape(table.version, groups, table.indexed_columns, newest, self._find_places(slices))

    def _find_places(self, slices: Mapping[MetadataPartition, Sequence[FileSlice]]) -> dict[str, LogPlace]:
        """A log is named by what is below it in version 6, and comes after those that have the same name."""
        if self.table.version != _OLD_VERSION:
            return {}
        places = find_log_places((piece for pieces in slices.values() for piece in pieces), self._planned)
        return {file_id: place for (_, file_id), place in places.items()}

    def list_groups(self, partition: MetadataPartition) -> tuple[str, ...]:
        """Ids of the file groups of one of its partitions, in the order over which keys are spread.

        Raises:
            DamagedTable: There is none.
        """
        return tuple(piece.file_id for piece in self.list_slices(partition))

    def list_slices(self, partition: MetadataPartition) -> list[FileSlice]:
        """The newest slice of each file group of one of its partitions, in the order over which keys are spread.

        Raises:
            DamagedTable: There is none.
        """
        listed = list_data_files(self.table.storage, [f"{METADATA_FOLDER}/{partition.value}"])
        completion = find_completions(self.table.storage, self.own_timeline, listed, exactly=False).take
        planned = frozenset(self._planned.values())
        counted = listed.where(lambda file: self._counts(file.instant, completion(file.instant)))
        above = tuple(log for log in listed.logs if log.instant in planned)
        shown = replace(counted, logs=tuple(sorted({*counted.logs, *above})))
        groups = slice_file_groups(shown.bases, shown.logs, completion, planned=self._planned, blocks=self.blocks)
        if not groups and not (partition is MetadataPartition.RECORD_INDEX and is_partitioned(self.table.storage)):
            path = f"{METADATA_FOLDER}/{partition.value}"
            raise DamagedTable(f"{path} holds no file group of the metadata table: {_REMEDY}", path=path)
        return [join_planned(slices) if self.blocks else slices[0] for _, slices in sorted(groups.items())]

    @cached_property
    def blocks(self) -> BlockScope | None:
        """Of version 6: its logs hold blocks of several delta commits, of which each is completed or not."""
        if self.table.version != _OLD_VERSION:
            return None
        own = self.own_timeline
        done = (one.requested for one in own.completed())
        writes = frozenset(time for time in done if self._counts(time, time))
        return BlockScope(True, writes, own.first_active or "", None, frozenset(self._planned.values()))

    @cached_property
    def _planned(self) -> dict[tuple[str, str], str]:
        """Requested time of the compaction that is planned for a file group of a metadata table of version 6."""
        return self.table.list_planned(self.own_timeline)

    def _counts(self, requested: str, completion: str | None) -> bool:
        """Whether what an instant wrote is to be read: it is completed here, and not pending in the table."""
        pending = self.timeline.get(requested)
        return completion is not None and (pending is None or pending.is_completed)

    def _merge(self, piece: FileSlice, keys: frozenset[str] | None) -> dict[str, MetadataRecord]:
        merged: dict[str, MetadataRecord] = {}
        takes = choose_blocks(self.table.storage, piece)
        for changes in map_in_threads(
            lambda path: read_stored(self.table.storage, path, keys, takes.get(path)), piece.paths
        ):
            for key, record in changes:
                if record is None:
                    merged.pop(key, None)
                else:
                    merged[key] = merge_metadata_records(merged.get(key), record)
        return merged
