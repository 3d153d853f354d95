"""What a commit of the table changes in its metadata table (Hudi's HoodieTableMetadataUtil and its metadata writer).

All bytes follow from what the commit wrote, so whoever repeats the work makes the same files under the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final

from hudi_locks.format import CommitMetadata, LogFileName, WriteStat
from hudi_locks.format.hfile import encode_hfile
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, encode_block
from hudi_locks.format.metadata_keys import (
    ALL_PARTITIONS,
    column_stats_key,
    group_number,
    partition_key,
    partition_stats_key,
)
from hudi_locks.format.metadata_record import (
    FileEntry,
    MetadataRecord,
    RecordKind,
    encode_metadata_record,
    merge_metadata_records,
)
from hudi_locks.format.metadata_schema import SCHEMA_TEXTS
from hudi_locks.metadata_table.metadata_table import METADATA_FOLDER, MetadataPartition
from hudi_locks.metadata_table.statistics import ColumnRange, describe_range

__all__ = ["DeltaCommit", "plan_delta_commit"]

_OPERATION: Final = "UPSERT_PREPPED"
_Records = Mapping[str, MetadataRecord]
Ranges = Mapping[str, Mapping[str, ColumnRange]]


@dataclass(frozen=True)
class DeltaCommit:
    """A delta commit of the metadata table.

    Attributes:
        requested: Its requested time, which is that of the table's commit.
        logs: Content of its logs by their paths, relative to the base path of the table.
        metadata: What its completed file says.
    """

    requested: str
    logs: Mapping[str, bytes]
    metadata: CommitMetadata


def plan_delta_commit(
    requested: str,
    written: CommitMetadata,
    ranges: Ranges,
    *,
    groups: Mapping[MetadataPartition, tuple[str, ...]],
    version: int,
) -> DeltaCommit:
    """What a commit that wrote `written` changes. Replaced file groups stay until they are cleaned.

    Args:
        requested: Of the commit.
        written: What it wrote.
        ranges: By the path of each written file those of its indexed columns, all of them: one that is missing would
            leave the range of its partition too narrow.
        groups: Ids of the file groups of each part that the metadata table keeps, in the order of their names.
        version: Of the metadata table.
    """
    kept = {
        MetadataPartition.FILES: _list_files(written.stats),
        MetadataPartition.COLUMN_STATS: _describe_files(written.stats, ranges, version),
        MetadataPartition.PARTITION_STATS: _describe_partitions(written.stats, ranges, version),
    }
    made = [
        (partition, group, _encode_log(requested, records, version), len(records))
        for partition, ids in groups.items()
        for group, records in _spread(kept[partition], ids).items()
    ]
    logs = {_log_path(partition, group, requested): data for partition, group, data, _ in made}
    stats = [_describe_log(requested, partition, group, len(data), count) for partition, group, data, count in made]
    return DeltaCommit(requested, logs, CommitMetadata.of(stats, _OPERATION, schema=SCHEMA_TEXTS[version]))


def _list_files(stats: Iterable[WriteStat]) -> _Records:
    """The files of each partition by name, and the partitions that were touched."""
    found: dict[str, dict[str, FileEntry]] = {}
    for stat in stats:
        entries = found.setdefault(partition_key(stat.partition_path), {})
        if stat.path:
            name = stat.path.rpartition("/")[2]
            entries[name] = FileEntry(max(stat.file_size_bytes, entries.get(name, FileEntry(0)).size))
    touched = MetadataRecord(RecordKind.PARTITIONS, dict.fromkeys(found, FileEntry(0)))
    records = {key: MetadataRecord(RecordKind.FILES, entries) for key, entries in found.items()}
    return {ALL_PARTITIONS: touched, **records} if records else {}


def _describe_files(stats: Iterable[WriteStat], ranges: Ranges, version: int) -> _Records:
    records = {}
    for stat in stats:
        name = (stat.path or "").rpartition("/")[2]
        for column, found in ranges.get(stat.path or "", {}).items():
            told = describe_range(found, column, file_name=name, version=version)
            key = column_stats_key(column, stat.partition_path, name)
            records[key] = MetadataRecord(RecordKind.COLUMN_STATS, statistics=told)
    return records


def _describe_partitions(stats: Iterable[WriteStat], ranges: Ranges, version: int) -> _Records:
    """Not tight: they widen what is known of the partition's other files."""
    by_key: dict[str, list[MetadataRecord]] = {}
    for stat in stats:
        name = partition_key(stat.partition_path)
        for column, found in ranges.get(stat.path or "", {}).items():
            told = describe_range(found, column, file_name=name, version=version)
            record = MetadataRecord(RecordKind.PARTITION_STATS, statistics=told)
            by_key.setdefault(partition_stats_key(column, stat.partition_path), []).append(record)
    return {key: reduce(merge_metadata_records, records) for key, records in by_key.items()}


def _spread(records: _Records, ids: tuple[str, ...]) -> dict[str, _Records]:
    """The records of each file group that has some."""
    spread: dict[str, dict[str, MetadataRecord]] = {}
    for key, record in records.items():
        spread.setdefault(ids[group_number(key, len(ids))], {})[key] = record
    return dict(sorted(spread.items()))


def _encode_log(requested: str, records: _Records, version: int) -> bytes:
    entries = sorted((key.encode(), encode_metadata_record(record, version)) for key, record in records.items())
    header = {BlockHeader.INSTANT_TIME: requested, BlockHeader.SCHEMA: SCHEMA_TEXTS[version]}
    return encode_block(LogBlock(BlockType.HFILE, header, encode_hfile(entries)))


def _log_path(partition: MetadataPartition, group: str, requested: str) -> str:
    return f"{METADATA_FOLDER}/{partition.value}/{LogFileName(group, requested)}"


def _describe_log(requested: str, partition: MetadataPartition, group: str, size: int, records: int) -> WriteStat:
    name = str(LogFileName(group, requested))
    return WriteStat(
        partition.value,
        group,
        f"{partition.value}/{name}",
        prev_commit=requested,
        num_writes=records,
        num_update_writes=records,
        file_size_bytes=size,
        total_write_bytes=size,
        log_version=1,
        log_offset=0,
        base_file="",
        log_files=(name,),
    )
