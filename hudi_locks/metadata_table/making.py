"""A metadata table that is made of what its table has (Hudi's HoodieBackedTableMetadataWriter, its initialization).

As JVM Hudi makes it: a base file of each file group that has records, and a delta commit of each part, with times that
are before all others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, encode_block
from hudi_locks.format.log_deletes import encode_deletes_again
from hudi_locks.format.metadata_schema import SCHEMA_TEXTS
from hudi_locks.metadata_table.compaction import base_file_path
from hudi_locks.metadata_table.delta_commit import log_path, plan_delta_commit
from hudi_locks.metadata_table.metadata_table import INDEXES_PATH, METADATA_LAYOUT, OWN_PROPERTIES, MetadataShape
from hudi_locks.metadata_table.record_files import merge_base_file
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import TableConfig, create_partition_metadata
from hudi_locks.timeline import create_instant

__all__ = ["make_metadata_table"]

_OPERATION: Final = "BULK_INSERT_PREPPED"
_GROUPS: Final = {
    MetadataPartition.FILES: ("files", 1),
    MetadataPartition.COLUMN_STATS: ("col-stats", 2),
    MetadataPartition.PARTITION_STATS: ("partition-stats", 1),
}
"""How the ids of the file groups of each part begin, and how many there are unless JVM Hudi is told otherwise."""
_FIXED: Final = {
    "hoodie.archivelog.folder": "history",
    "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.populate.meta.fields": "false",
    "hoodie.record.merge.mode": "CUSTOM",
    "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
    "hoodie.table.base.file.format": "HFILE",
    "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
    "hoodie.table.recordkey.fields": "key",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.timeline.history.path": "history",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.path": "timeline",
}


@dataclass(frozen=True)
class _Group:
    """One file group and what goes into it."""

    part: MetadataPartition
    file_id: str
    requested: str
    log: bytes | None

    @property
    def base_path(self) -> str:
        return base_file_path(self.requested, self.part.value, self.file_id)


def make_metadata_table(
    storage: Storage, config: TableConfig, written: CommitMetadata, *, columns: Sequence[str], completed: str
) -> tuple[MetadataPartition, ...]:
    """Make all files of a metadata table in an empty folder. Nobody goes by them until the table names them.

    Args:
        storage: Of the table.
        config: Of the table.
        written: Every file of the table, with the ranges of each column.
        columns: Those of which there are to be statistics; none for a metadata table that has files alone.
        completed: When it counts as made.

    Returns:
        The parts that it has.

    Raises:
        StorageError: The store failed.
    """
    parts = _list_parts(config, columns)
    storage.make_folder(METADATA_LAYOUT.archive)
    storage.replace(OWN_PROPERTIES, _describe(config))
    if columns:
        storage.replace(INDEXES_PATH, _name_columns(columns, config.version))
    for number, part in enumerate(parts):
        _make_part(storage, part, written, columns=columns, version=config.version, times=(number, completed))
    return parts


def _list_parts(config: TableConfig, columns: Sequence[str]) -> tuple[MetadataPartition, ...]:
    """A table without partition columns has no statistics of partitions, as JVM Hudi has it."""
    if not columns:
        return (MetadataPartition.FILES,)
    return tuple(part for part in _GROUPS if config.partition_fields or part is not MetadataPartition.PARTITION_STATS)


def _make_part(
    storage: Storage,
    part: MetadataPartition,
    written: CommitMetadata,
    *,
    columns: Sequence[str],
    version: int,
    times: tuple[int, str],
) -> None:
    number, completed = times
    begun = Instant(f"{number:017}", "deltacommit", State.REQUESTED)
    begin, size = _GROUPS[part]
    ids = tuple(f"{begin}-{one:04}-0" for one in range(size))
    shape = MetadataShape(version, {part: ids}, tuple(columns))
    logs = plan_delta_commit(begun.requested, written, shape).logs
    groups = [_Group(part, one, begun.requested, logs.get(log_path(part, one, begun.requested))) for one in ids]
    for state in (begun, begun.as_inflight()):
        create_instant(storage, METADATA_LAYOUT, instant=state)
    create_partition_metadata(storage, f"{METADATA_FOLDER}/{part.value}", instant=begun.requested)
    stats = [stat for stat in map_in_threads(lambda group: _make_group(storage, group, version), groups) if stat]
    content = CommitMetadata.of(stats, _OPERATION, schema=SCHEMA_TEXTS[version])
    done = begun.as_inflight().as_completed(add_ms(completed, number))
    storage.replace(METADATA_LAYOUT.path(done), content.encode("deltacommit", layout_version=METADATA_LAYOUT.version))


def _make_group(storage: Storage, group: _Group, version: int) -> WriteStat | None:
    """The log says nothing, and that the file group is there though it may have no records."""
    path = log_path(group.part, group.file_id, group.requested)
    storage.replace(path, _encode_nothing(group, version))
    if group.log is None:
        return None
    data = merge_base_file(None, [(path, group.log)], version=version)
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


def _encode_nothing(group: _Group, version: int) -> bytes:
    header = {BlockHeader.INSTANT_TIME: group.requested, BlockHeader.SCHEMA: SCHEMA_TEXTS[version]}
    return encode_block(LogBlock(BlockType.DELETE, header, encode_deletes_again([], group.part.value)))


def _describe(config: TableConfig) -> bytes:
    own_config = replace(config, name=f"{config.name}_metadata", database="")
    own = {
        table_keys.TABLE_NAME.name: own_config.name,
        table_keys.TABLE_VERSION.name: str(config.version),
        table_keys.INITIAL_VERSION.name: str(config.version),
        table_keys.TABLE_CHECKSUM.name: str(own_config.checksum),
    }
    return encode_properties({**_FIXED, **own}, "Properties of a metadata table of Apache Hudi")


def _name_columns(columns: Sequence[str], version: int) -> bytes:
    name = MetadataPartition.COLUMN_STATS.value
    told: dict[str, Any] = dict.fromkeys(("indexName", "indexType", "indexFunction"), name)
    told |= {"sourceFields": list(columns), "indexOptions": {}}
    if version >= 9:
        told["version"] = "V2"
    return json.dumps({"indexDefinitions": {name: told}}, indent=2).encode()
