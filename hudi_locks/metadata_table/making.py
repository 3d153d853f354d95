"""A metadata table that is made of what its table has (Hudi's HoodieBackedTableMetadataWriter, its initialization).

As JVM Hudi makes it: a base file of each file group that has records, and a delta commit of each part, with times that
are before all others. In version 6 these are the time of the last instant of the table and three digits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from hudi_locks.config import table_keys
from hudi_locks.format import (
    METADATA_FOLDER,
    CommitMetadata,
    Instant,
    MetadataPartition,
    State,
    WriteStat,
    add_ms,
    encode_properties,
)
from hudi_locks.format.hfile import HFile
from hudi_locks.format.metadata_schema import SCHEMA_TEXTS
from hudi_locks.metadata_table.compaction import base_file_path
from hudi_locks.metadata_table.delta_commit import log_path, plan_delta_commit
from hudi_locks.metadata_table.key_places import KeyPlaces
from hudi_locks.metadata_table.metadata_table import (
    INDEXES_PATH,
    METADATA_LAYOUT,
    OLD_METADATA_LAYOUT,
    OWN_PROPERTIES,
)
from hudi_locks.metadata_table.record_files import merge_base_file
from hudi_locks.metadata_table.record_index import encode_empty_log
from hudi_locks.metadata_table.shape import MetadataShape
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import TableConfig, create_partition_metadata
from hudi_locks.timeline import TimelineLayout, create_instant

__all__ = ["is_defined", "make_metadata_table"]

_OPERATION: Final = "BULK_INSERT_PREPPED"
_GROUPS: Final = {
    MetadataPartition.FILES: ("files", 1),
    MetadataPartition.COLUMN_STATS: ("col-stats", 2),
    MetadataPartition.PARTITION_STATS: ("partition-stats", 1),
    MetadataPartition.RECORD_INDEX: ("record-index", 0),
}
"""How the ids of the file groups of each part begin, and how many there are; those of keys say it themselves."""
_VERSION_6: Final = 6
_VERSION_9: Final = 9
_OLD_SUFFIX: Final = 10
"""Behind the time of an instant of the table, in version 6: of the first part that is made, and counted on."""
_NO_INSTANT: Final = "0" * 14
_KEY_THREADS: Final = 2
"""So many base files of a record index are in memory at a time."""
_ALWAYS: Final = {
    "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.populate.meta.fields": "false",
    "hoodie.table.base.file.format": "HFILE",
    "hoodie.table.recordkey.fields": "key",
    "hoodie.table.type": "MERGE_ON_READ",
}
_OLD_FIXED: Final = {
    **_ALWAYS,
    "hoodie.archivelog.folder": "archived",
    "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    "hoodie.timeline.layout.version": "1",
}
_FIXED: Final = {
    **_ALWAYS,
    "hoodie.archivelog.folder": "history",
    "hoodie.record.merge.mode": "CUSTOM",
    "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
    "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
    "hoodie.timeline.history.path": "history",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
}


@dataclass(frozen=True)
class _Group:
    """One file group, and what makes the base file that goes into it; none without records."""

    part: MetadataPartition
    file_id: str
    requested: str
    encode: Callable[[], bytes | None]

    @property
    def base_path(self) -> str:
        return base_file_path(self.requested, self.part.value, self.file_id)


@dataclass(frozen=True)
class _Content:
    """All that a metadata table is made of."""

    written: CommitMetadata
    columns: tuple[str, ...]
    keys: KeyPlaces | None
    version: int

    def list_parts(self, config: TableConfig) -> tuple[MetadataPartition, ...]:
        """Of a table without partition columns, or of version 6, no statistics of partitions, as JVM Hudi has it."""
        parts = [MetadataPartition.FILES]
        if self.columns:
            parts.append(MetadataPartition.COLUMN_STATS)
        if self.columns and config.partition_fields and config.version > _VERSION_6:
            parts.append(MetadataPartition.PARTITION_STATS)
        if self.keys is not None:
            parts.append(MetadataPartition.RECORD_INDEX)
        return tuple(parts)

    def list_groups(self, part: MetadataPartition, requested: str) -> list[_Group]:
        begin, size = _GROUPS[part]
        if part is MetadataPartition.RECORD_INDEX and self.keys is not None:
            owners, encode = self.keys.owners, self.keys.encode
            return [_Group(part, owner.group, requested, partial(encode, owner, self.version)) for owner in owners]
        ids = tuple(f"{begin}-{one:04}-0" for one in range(size))
        shape = MetadataShape(self.version, {part: ids}, self.columns)
        logs = plan_delta_commit(requested, self.written, shape).logs
        paths = {one: log_path(part, one, requested) for one in ids}
        return [_Group(part, one, requested, partial(self._merge, path, logs.get(path))) for one, path in paths.items()]

    def _merge(self, path: str, log: bytes | None) -> bytes | None:
        return None if log is None else merge_base_file(None, [(path, log)], version=self.version)


def make_metadata_table(
    storage: Storage,
    config: TableConfig,
    written: CommitMetadata,
    *,
    columns: Sequence[str],
    completed: str,
    last: str = "",
    keys: KeyPlaces | None = None,
) -> tuple[MetadataPartition, ...]:
    """Make all files of a metadata table in an empty folder. Nobody goes by them until the table names them.

    Args:
        storage: Of the table.
        config: Of the table.
        written: Every file of the table, with the ranges of each column.
        columns: Those of which there are to be statistics; none for a metadata table that has files alone.
        completed: When it counts as made.
        last: Requested time of the last instant of the table, which names those of a metadata table of version 6.
        keys: Of all rows, for a record index, each once; None for none.

    Returns:
        The parts that it has.

    Raises:
        StorageError: The store failed.
    """
    content = _Content(written, tuple(columns), keys, config.version)
    parts = content.list_parts(config)
    layout = OLD_METADATA_LAYOUT if config.version == _VERSION_6 else METADATA_LAYOUT
    storage.make_folder(layout.archive)
    storage.replace(OWN_PROPERTIES, _describe(config))
    if is_defined(parts, config.version):
        storage.replace(INDEXES_PATH, _define(parts, content, config.version))
    for number, part in enumerate(parts):
        time = f"{last or _NO_INSTANT}{_OLD_SUFFIX + number:03}" if layout.is_version_6 else f"{number:017}"
        _make_part(storage, part, content, layout=layout, times=(time, add_ms(completed, number)))
    return parts


def is_defined(parts: Collection[MetadataPartition], version: int) -> bool:
    """Whether there is a file that says what the indexes of these parts are about."""
    return MetadataPartition.COLUMN_STATS in parts or (len(parts) > 1 and version > _VERSION_6)


def _make_part(
    storage: Storage, part: MetadataPartition, content: _Content, *, layout: TimelineLayout, times: tuple[str, str]
) -> None:
    requested, completed = times
    begun = Instant(requested, "deltacommit", State.REQUESTED)
    groups = content.list_groups(part, begun.requested)
    for state in (begun, begun.as_inflight()):
        create_instant(storage, layout, instant=state)
    create_partition_metadata(storage, f"{METADATA_FOLDER}/{part.value}", instant=begun.requested)
    threads = _KEY_THREADS if part is MetadataPartition.RECORD_INDEX else len(groups)
    made = map_in_threads(lambda group: _make_group(storage, group, content.version), groups, threads=threads)
    metadata = CommitMetadata.of([one for one in made if one], _OPERATION, schema=SCHEMA_TEXTS[content.version])
    done = begun.as_inflight().as_completed(completed)
    storage.replace(layout.path(done), metadata.encode("deltacommit", layout_version=layout.version))


def _make_group(storage: Storage, group: _Group, version: int) -> WriteStat | None:
    path = log_path(group.part, group.file_id, group.requested)
    storage.replace(path, encode_empty_log(group.requested, group.part, version))
    data = group.encode()
    if data is None:
        return None
    storage.replace(group.base_path, data)
    rows = HFile(data, group.base_path).count
    relative = group.base_path.removeprefix(f"{METADATA_FOLDER}/")
    return WriteStat(
        group.part.value,
        group.file_id,
        relative,
        num_writes=rows,
        num_inserts=rows,
        file_size_bytes=len(data),
        total_write_bytes=len(data),
    )


def _describe(config: TableConfig) -> bytes:
    own_config = replace(config, name=f"{config.name}_metadata", database="")
    own = {
        table_keys.TABLE_NAME.name: own_config.name,
        table_keys.TABLE_VERSION.name: str(config.version),
        table_keys.TABLE_CHECKSUM.name: str(own_config.checksum),
    }
    if config.version == _VERSION_6:
        return encode_properties({**_OLD_FIXED, **own}, "Properties of a metadata table of Apache Hudi")
    own[table_keys.INITIAL_VERSION.name] = str(config.version)
    return encode_properties({**_FIXED, **own}, "Properties of a metadata table of Apache Hudi")


def _define(parts: Sequence[MetadataPartition], content: _Content, version: int) -> bytes:
    """Of each index what it is about, as JVM Hudi tells it: of a record index of the table from version 9 on."""
    defined: dict[str, dict[str, Any]] = {}
    is_partitioned = content.keys is not None and content.keys.groups.is_partitioned
    if MetadataPartition.RECORD_INDEX in parts and (is_partitioned or version >= _VERSION_9):
        name = MetadataPartition.RECORD_INDEX.value
        defined[name] = {"indexName": name, "indexType": name, "indexFunction": "", "sourceFields": []}
        defined[name] |= {"indexOptions": {"isPartitioned": str(is_partitioned).lower()}, "version": "V1"}
    if MetadataPartition.COLUMN_STATS in parts:
        name = MetadataPartition.COLUMN_STATS.value
        defined[name] = dict.fromkeys(("indexName", "indexType", "indexFunction"), name)
        defined[name] |= {"sourceFields": list(content.columns), "indexOptions": {}}
        defined[name] |= {"version": "V2"} if version >= _VERSION_9 else {}
    return json.dumps({"indexDefinitions": defined}, indent=2).encode()
