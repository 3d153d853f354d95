"""A table on its storage: made, loaded, and asked for its timeline, its columns and what its commits say."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import pyarrow as pa

from hudi_locks.config import Options
from hudi_locks.errors import NotATable, TableExists
from hudi_locks.format import (
    WRITE_ACTIONS,
    CommitMetadata,
    Instant,
    WriteStat,
    arrow_schema,
    decode_properties,
    encode_properties,
)
from hudi_locks.storage import Storage, check_service, map_in_threads, refuse_unwritable
from hudi_locks.table.altered_columns import SchemaHistory, list_schema_files, read_schema_history
from hudi_locks.table.altered_writes import check_altered
from hudi_locks.table.bucket_counts import create_bucket_counts
from hudi_locks.table.config import PROPERTIES_PATH, TableConfig
from hudi_locks.table.data_files import BaseFile, DataFiles, LogFile
from hudi_locks.table.limits import check_creatable, check_folders, check_readable, check_writable
from hudi_locks.table.versions import read_current_properties, take_writer_options
from hudi_locks.table.zone import infer_zone
from hudi_locks.timeline import Timeline, TimelineLayout, read_instant
from hudi_locks.timeline.archive import find_archived_content, refuse_empty

__all__ = [
    "CommitFiles",
    "Table",
    "describe_properties",
    "read_commit",
    "read_commit_files",
    "read_completed",
    "remember_completed",
    "replace_properties_file",
]

_BACKUP_PATH: Final = f"{PROPERTIES_PATH}.backup"
_CHECKSUM_PATH: Final = ".hoodie/.hoodie.properties.crc"
_COMMENT: Final = "Properties of an Apache Hudi table"
_MOST: Final = 4_096
"""So many commits of a table are remembered at least, with the files that they name."""
_RECENT: Final = 8
"""And of so many all that they say."""
_TABLES: Final = 16
"""Of so many tables."""


@dataclass(frozen=True)
class Table:
    """A Hudi table. Unchangeable, so executors may get a copy where the storage may travel.

    Attributes:
        storage: Its files.
        config: Its lasting settings.
    """

    storage: Storage
    config: TableConfig

    @classmethod
    def create(cls, storage: Storage, config: TableConfig) -> Table:
        """Make an empty table. Of two creators at the same time one succeeds.

        The JVM cannot load a table whose timeline folder is missing, so it is there from the start.

        Raises:
            ConfigError: A table cannot have these settings.
            TableExists: There is one already.
            UnsupportedTable: The store does not keep what writers rest on.
        """
        config = config.declaring_merge_mode()
        check_creatable(config)
        refuse_unwritable(storage)
        if storage.exists(PROPERTIES_PATH) or storage.exists(_BACKUP_PATH):
            raise _taken(storage)
        check_service(storage)
        storage.make_folder(config.layout.archive)
        data = describe_properties(config.to_properties())
        if not storage.create_if_absent(PROPERTIES_PATH, data):
            raise _taken(storage)
        create_bucket_counts(storage, config)
        return cls.load(storage)

    @classmethod
    def load(cls, storage: Storage, *, zone: str | None = None, for_writing: bool = False) -> Table:
        """The table that is there.

        Args:
            storage: Its files.
            zone: Where `hoodie.table.timeline.timezone=LOCAL` is, as an IANA name or an offset such as UTC+01:00;
                without meaning for UTC tables. If it is not given, the files of the newest instants tell.
            for_writing: Whether it must be one that we can write.

        Raises:
            NotATable: There is none.
            DamagedTable: Its properties cannot be read, or name a folder of instants that is not there.
            UnsupportedTable: It is one that we cannot read, or not write; the message names the way out.
            ConfigError: There is no such zone.
        """
        path, data = PROPERTIES_PATH, storage.read(PROPERTIES_PATH)
        if data is None:
            path, data = _BACKUP_PATH, storage.read(_BACKUP_PATH)
        if data is None:
            message = (
                f"{storage.base} holds no Hudi table: {PROPERTIES_PATH} is not there; create one or check the path"
            )
            raise NotATable(message, path=storage.base)
        config = TableConfig.from_properties(decode_properties(data, path), path)
        if zone is None and config.timezone == "LOCAL":
            zone = infer_zone(storage, config.layout)
        config = config.in_zone(zone)
        (check_writable if for_writing else check_readable)(config, path)
        if for_writing:
            refuse_unwritable(storage)
        check_folders(storage, config, path)
        return cls(storage, config)

    def reload(self) -> Table:
        """The same table as its properties are now.

        Raises:
            TableError: It is of another version, so that what was read of it before says nothing.
        """
        read_current_properties(self.storage, self.config.version)
        return Table.load(self.storage, zone=self.config.zone)

    def with_writer_options(self, options: Options) -> Table:
        """See `take_writer_options`."""
        return replace(self, config=take_writer_options(self.config, options))

    def check_writable(self) -> None:
        """Whether what we write to it will be seen, and kept, by everybody.

        Raises:
            UnsupportedTable: It will not; the message names the way out.
        """
        check_writable(self.config)
        refuse_unwritable(self.storage)
        if list_schema_files(self.storage):
            timeline = self.timeline()
            self.writable_schema(timeline, read_schema_history(self.storage, timeline))

    @property
    def layout(self) -> TimelineLayout:
        """Where its instants live."""
        return self.config.layout

    @property
    def is_merge_on_read(self) -> bool:
        """Whether updates are appended to logs."""
        return self.config.table_type == "MERGE_ON_READ"

    @property
    def properties(self) -> Mapping[str, str]:
        """Its hoodie.properties."""
        return self.config.to_properties()

    def timeline(self) -> Timeline:
        """Its active timeline as it is now.

        Raises:
            DamagedTable: Something there looks like an instant and is none; or nothing is there though the claim log
                published a write.
            TableError: The table became one of another version since it was loaded, and has its timeline elsewhere.
        """
        timeline = Timeline.load(self.storage, self.layout)
        if not timeline.instants:
            read_current_properties(self.storage, self.config.version)
        refuse_empty(self.storage, timeline)
        return timeline

    def check_present(self) -> None:
        """Refuse to go on without the table's properties: without its folder a table looks empty.

        Raises:
            NotATable: They are gone.
        """
        if not (self.storage.exists(PROPERTIES_PATH) or self.storage.exists(_BACKUP_PATH)):
            base = self.storage.base
            message = f"{base} is gone: it held a Hudi table when it was loaded, and has no {PROPERTIES_PATH} now"
            raise NotATable(f"{message}; find out who removed it, or load another path", path=base)

    def schema(self, timeline: Timeline) -> pa.Schema | None:
        """The user's columns as the commit that completed last recorded them; None if no active commit did.

        Partition columns that files do not have are left out: JVM Hudi's clustering records them all the same.

        Raises:
            DamagedTable: That commit cannot be read.
        """
        for instant in reversed(timeline.completed_between("")):
            if recorded := read_commit(self.storage, timeline, requested=instant.requested).schema:
                schema, lacking = arrow_schema(recorded, timeline.paths[instant]), self.config.dropped_fields
                return pa.schema([field for field in schema if field.name not in lacking]) if lacking else schema
        return None

    def writable_schema(self, timeline: Timeline, history: SchemaHistory | None) -> pa.Schema | None:
        """The same for who writes files anew, with the history of columns that `timeline` shows.

        Raises:
            DamagedTable: That commit cannot be read.
            UnsupportedTable: See `check_altered`.
        """
        schema = self.schema(timeline)
        if history is not None:
            check_altered(self.storage, self.config, history, schema)
        return schema


def describe_properties(properties: Mapping[str, str]) -> bytes:
    """A properties file of a table."""
    return encode_properties(properties, _COMMENT)


def replace_properties_file(storage: Storage, data: bytes) -> None:
    """Write the properties file of a table anew.

    Raises:
        StorageError: The store failed.
    """
    storage.delete(_CHECKSUM_PATH)  # first: readers refuse a file whose checksum is another's
    storage.replace(PROPERTIES_PATH, data)


def read_commit(storage: Storage, timeline: Timeline, *, requested: str) -> CommitMetadata:
    """What a write on `timeline` wrote, or, while it is pending, the forecast that its inflight file holds.

    Raises:
        DamagedTable: Its file is gone or cannot be read.
        KeyError: The timeline has no such write.
    """
    instant = timeline.get(requested)
    if instant is None or instant.action not in WRITE_ACTIONS:
        raise KeyError(requested)
    if instant.is_completed:
        return read_completed(storage, timeline, instant=instant)
    data = read_instant(storage, timeline, instant=instant)
    return CommitMetadata.decode(data, timeline.paths[instant], may_be_empty=True)


def _taken(storage: Storage) -> TableExists:
    message = f"{storage.base} holds a Hudi table already; load it, or choose another path"
    return TableExists(message, path=storage.base)


@dataclass(frozen=True)
class CommitFiles:
    """What one write says of data files.

    Attributes:
        files: Those that it made; the size is what the file had at least, or for a base file exactly; 0 if not told.
        replaced: (partition path, file id) of each file group that it ended.
        schema: The user's columns in those files, as Avro JSON; None if it does not tell.
    """

    files: DataFiles
    replaced: frozenset[tuple[str, str]]
    schema: str | None = None

    @classmethod
    def of(cls, commit: CommitMetadata) -> CommitFiles:
        """What the metadata of a completed write names."""
        named = [(stat, stat.path.rpartition("/")[2]) for stat in commit.stats if stat.path]
        bases = [BaseFile.parse(stat.partition_path, name, stat.file_size_bytes) for stat, name in named]
        logs = [LogFile.parse(stat.partition_path, name, _find_end(stat)) for stat, name in named]
        changes = [(*log.path.rpartition("/")[::2], log.size_bytes) for log in commit.change_logs]
        change_logs = [LogFile.parse_change_log(*log) for log in changes]
        files = DataFiles(tuple(filter(None, bases)), tuple(filter(None, logs)), tuple(filter(None, change_logs)))
        schema = None if commit.schema is None else sys.intern(commit.schema)  # as a rule all commits have the same
        return cls(files, commit.replaced_file_groups, schema)


def read_commit_files(storage: Storage, timeline: Timeline) -> Mapping[str, CommitFiles]:
    """What the completed writes of the active timeline name, by requested time.

    Each is read once in a process, since it never changes. One that was undone since the timeline was
    loaded is left out, unless it was read before; of a table of version 6 one that was archived since, too.

    Raises:
        DamagedTable: A commit cannot be read.
    """
    writes = timeline.completed(WRITE_ACTIONS)
    return _find_memory(storage).read(storage, timeline, writes)


def read_completed(storage: Storage, timeline: Timeline, *, instant: Instant) -> CommitMetadata:
    """What a completed write says; the last few are remembered.

    Raises:
        DamagedTable: Its file is gone or cannot be read.
    """
    memory = _find_memory(storage)
    known = memory.recall(instant)
    if known is None:
        path = timeline.paths.get(instant) or timeline.layout.path(instant)
        known = CommitMetadata.decode(read_instant(storage, timeline, instant=instant), path)
        memory.remember(instant, known)
    return known


def remember_completed(storage: Storage, instant: Instant, data: bytes) -> None:
    """Spare this process reading back what it has just written.

    Args:
        storage: Of the table.
        instant: Completed.
        data: Content of its file.
    """
    _find_memory(storage).remember(instant, data)


class _Memory:
    """What was read of one table. Thread-safe: two that read the same at once read it twice."""

    def __init__(self) -> None:
        self._known: dict[Instant, CommitFiles] = {}
        self._recent: OrderedDict[Instant, CommitMetadata | bytes] = OrderedDict()
        self._lock = threading.Lock()

    def recall(self, write: Instant) -> CommitMetadata | None:
        """Of the last few all that they say."""
        with self._lock:
            known = self._recent.get(write)
        if not isinstance(known, bytes):
            return known
        decoded = CommitMetadata.decode(known, write.requested)
        self.remember(write, decoded)
        return decoded

    def remember(self, write: Instant, commit: CommitMetadata | bytes) -> None:
        """One more, decoded or not, and one less where there are many."""
        with self._lock:
            self._recent[write] = commit
            while len(self._recent) > _RECENT:
                self._recent.popitem(last=False)

    def read(self, storage: Storage, timeline: Timeline, writes: Iterable[Instant]) -> dict[str, CommitFiles]:
        """What each of `writes` names, by requested time."""
        wanted = tuple(writes)
        new = [write for write in wanted if write not in self._known]
        read = dict(zip(new, map_in_threads(partial(self._read, storage, timeline), new), strict=True))
        found = {**self._known, **{write: named for write, named in read.items() if named is not None}}
        asked = {write: found[write] for write in wanted if write in found}
        self._known = asked if len(found) > max(_MOST, 2 * len(asked)) else found
        return {write.requested: named for write, named in asked.items()}

    def _read(self, storage: Storage, timeline: Timeline, write: Instant) -> CommitFiles | None:
        commit = self.recall(write)
        if commit is None:
            path = timeline.paths.get(write) or timeline.layout.path(write)
            data = storage.read(path)
            if data is None:
                data = find_archived_content(storage, timeline.layout, instant=write)
            if data is None:
                return None
            commit = CommitMetadata.decode(data, path)
            self.remember(write, commit)
        return CommitFiles.of(commit)


_memories: OrderedDict[Hashable, _Memory] = OrderedDict()
_lock = threading.Lock()


def _find_memory(storage: Storage) -> _Memory:
    with _lock:
        memory = _memories.pop(storage.place, None) or _Memory()
        _memories[storage.place] = memory
        while len(_memories) > _TABLES:
            _memories.popitem(last=False)
        return memory


def _find_end(stat: WriteStat) -> int:
    """How long a log was once the write had appended to it."""
    return (stat.log_offset or 0) + stat.file_size_bytes
