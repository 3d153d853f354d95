"""What an instant of the table changes in its metadata table (Hudi's HoodieTableMetadataUtil and its metadata writer).

All bytes follow from what the instant did, so whoever repeats the work makes the same files under the same names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Final

import pyarrow as pa

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import (
    META_COLUMNS,
    METADATA_FOLDER,
    BaseFileName,
    CommitMetadata,
    LogFileName,
    MetadataPartition,
    WriteStat,
    arrow_schema,
)
from hudi_locks.format.column_range import ColumnRange, decode_ranges
from hudi_locks.format.hfile_writer import encode_hfile
from hudi_locks.format.key_filter import EVERY_KEY, KEY_FILTER_TYPE
from hudi_locks.format.metadata_keys import (
    ALL_PARTITIONS,
    bloom_filter_key,
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
from hudi_locks.metadata_table.metadata_table import MetadataView
from hudi_locks.metadata_table.record_files import encode_log
from hudi_locks.metadata_table.shape import MetadataShape
from hudi_locks.metadata_table.statistics import describe_range, has_room
from hudi_locks.table.value_ranges import find_kind

__all__ = [
    "DeltaCommit",
    "describe_log",
    "list_indexed",
    "log_path",
    "metadata_path",
    "plan_clean",
    "plan_delta_commit",
    "plan_restore",
]

_OPERATION: Final = "UPSERT_PREPPED"
_Records = Mapping[str, MetadataRecord]
_Gone = Mapping[MetadataPartition, Sequence[str]]
Ranges = Mapping[str, Mapping[str, ColumnRange]]


@dataclass(frozen=True)
class DeltaCommit:
    """A delta commit of the metadata table.

    Attributes:
        requested: Its requested time, which is that of the table's instant.
        logs: Content of its logs by their paths, relative to the base path of the table.
        metadata: What its completed file says.
    """

    requested: str
    logs: Mapping[str, bytes]
    metadata: CommitMetadata


def plan_delta_commit(requested: str, written: CommitMetadata, shape: MetadataShape) -> DeltaCommit:
    """What a commit that wrote `written` changes. Replaced file groups stay until they are cleaned.

    Args:
        requested: Of the commit.
        written: What it wrote, with the ranges of each file.
        shape: Of the metadata table.

    Raises:
        UnsupportedTable: A file has values in an indexed column of which its task told no range. Without it the range
            of the partition would be too narrow, and hide rows from filters.
    """
    columns = shape.columns
    if written.schema is not None:
        columns = list_indexed(columns, arrow_schema(written.schema, requested), version=shape.version)
    ranges = {stat.path: _read_ranges(stat, columns) for stat in written.stats if stat.path}
    changed = {
        MetadataPartition.FILES: _list_files(written.stats),
        MetadataPartition.COLUMN_STATS: _describe_files(written.stats, ranges, shape.version),
        MetadataPartition.PARTITION_STATS: _describe_partitions(written.stats, ranges, shape.version),
        MetadataPartition.BLOOM_FILTERS: _filter_files(requested, written.stats),
    }
    return _make(requested, changed, {}, shape)


def plan_clean(requested: str, deleted: Mapping[str, Sequence[str]], shape: MetadataShape) -> DeltaCommit:
    """What a clean changes that removed files of these names, by partition path.

    Ranges of partitions stay as they are: wider than they have to be.
    """
    files, gone = _take_out(deleted, shape)
    return _make(requested, {MetadataPartition.FILES: files}, gone, shape)


def plan_restore(requested: str, there: Mapping[str, Collection[str]], view: MetadataView) -> DeltaCommit:
    """What going back in time changes, once the files of the undone writes are removed.

    Ranges of partitions are widened to what all files hold that are left: JVM Hudi makes them narrower when rows
    change, and the older rows are back.

    Args:
        requested: Of the restore.
        there: Names of the files that are left, by partition path.
        view: What the metadata table says.

    Raises:
        DamagedTable: It cannot be read.
    """
    shape = view.describe()
    missing = {path: [name for name in names if name not in there.get(path, ())] for path, names in view.files.items()}
    files, gone = _take_out(missing, shape)
    changed = {MetadataPartition.FILES: files, MetadataPartition.PARTITION_STATS: _unite_partitions(there, view)}
    return _make(requested, changed, gone, shape)


def _take_out(deleted: Mapping[str, Sequence[str]], shape: MetadataShape) -> tuple[_Records, _Gone]:
    """Records without these files, and the keys of what is known of them, which go."""
    touched = {partition: names for partition, names in deleted.items() if names}
    files = {
        partition_key(partition): MetadataRecord(
            RecordKind.FILES, {name: FileEntry(0, is_deleted=True) for name in names}
        )
        for partition, names in touched.items()
    }
    named = MetadataRecord(RecordKind.PARTITIONS, dict.fromkeys(files, FileEntry(0)))
    each = [(partition, name) for partition, names in touched.items() for name in names]
    gone = {
        MetadataPartition.COLUMN_STATS: [column_stats_key(column, *one) for one in each for column in shape.columns],
        MetadataPartition.BLOOM_FILTERS: [bloom_filter_key(*one) for one in each if BaseFileName.parse(one[1])],
    }
    return ({ALL_PARTITIONS: named, **files} if files else {}), gone


def _unite_partitions(there: Mapping[str, Collection[str]], view: MetadataView) -> _Records:
    if MetadataPartition.PARTITION_STATS.value not in view.table.names:
        return {}
    known = view.read(MetadataPartition.COLUMN_STATS)
    found: dict[str, MetadataRecord] = {}
    for column, (partition, names) in product(view.table.indexed_columns, there.items()):
        records = [known[key] for name in names if (key := column_stats_key(column, partition, name)) in known]
        if records:
            told = [_of_partition(record, partition_key(partition)) for record in records]
            found[partition_stats_key(column, partition)] = reduce(merge_metadata_records, told)
    return found


def _of_partition(record: MetadataRecord, name: str) -> MetadataRecord:
    """Not tight: it widens what is known."""
    told = record.statistics and replace(record.statistics, name=name, is_tight=False)
    return MetadataRecord(RecordKind.PARTITION_STATS, statistics=told)


def list_indexed(columns: Iterable[str], schema: pa.Schema, *, version: int) -> tuple[str, ...]:
    """Those of the indexed columns of which there are statistics, by the types that a write has.

    Hudi keeps none of lists, maps and structs, and in tables of version 8 none of decimals that its records have no
    room for.

    Args:
        columns: Names in the table's list.
        schema: Of the user's columns.
        version: Of the metadata table.

    Raises:
        UnsupportedTable: One is of a type of which it is not known here what Hudi keeps.
    """
    found = []
    for name in columns:
        field = _find_field(name, schema)
        if field is None or pa.types.is_nested(field.type):
            continue
        kind = find_kind(field.type)
        if kind is None:
            message = (
                f"the metadata table keeps statistics of {name}, which is {field.type} here, and this package does not"
                " know those: leave it out of the indexed columns with JVM Hudi, or turn the metadata table off with"
                " hudi-locks metadata drop"
            )
            raise UnsupportedTable(message, columns=[name], type=str(field.type))
        if has_room(kind, version):
            found.append(name)
    return tuple(found)


def _find_field(name: str, schema: pa.Schema) -> pa.Field | None:
    """Of a column; one inside a struct counts by its own name, with dots, for what it is."""
    if name in META_COLUMNS:
        return pa.field(name, pa.string())
    root = name.partition(".")[0]
    if root not in schema.names:
        return None
    return schema.field(name) if name in schema.names else pa.field(name, pa.null())


def _read_ranges(stat: WriteStat, columns: Sequence[str]) -> Mapping[str, ColumnRange]:
    found = decode_ranges(stat.ranges) if stat.ranges else {}
    lacking = [column for column in columns if column not in found]
    if lacking and stat.num_writes:
        message = (
            f"the metadata table keeps statistics of {', '.join(lacking)}, of which nothing is known in {stat.path}:"
            " leave them out of its indexed columns, or drop the metadata table with hudi-locks metadata drop"
        )
        raise UnsupportedTable(message, columns=lacking, path=stat.path)
    return {column: found[column] for column in columns if column in found}


def _make(
    requested: str,
    changed: Mapping[MetadataPartition, _Records],
    gone: _Gone,
    shape: MetadataShape,
) -> DeltaCommit:
    made = []
    for part, ids in shape.groups.items():
        for group, (records, keys) in _spread(changed.get(part, {}), gone.get(part, ()), ids).items():
            data = _encode_log(requested, part, records, keys, shape.version)
            made.append((part, group, data, len(records) + len(keys)))
    names = {group: shape.name_log(group, requested) for _, group, _, _ in made}
    logs = {metadata_path(part, names[group]): data for part, group, data, _ in made}
    stats = [describe_log(part, names[group], len(data), count) for part, group, data, count in made]
    return DeltaCommit(requested, logs, CommitMetadata.of(stats, _OPERATION, schema=SCHEMA_TEXTS[shape.version]))


def _list_files(stats: Iterable[WriteStat]) -> _Records:
    """The files of each partition by name, and the partitions that were touched."""
    found: dict[str, dict[str, FileEntry]] = {}
    for stat in stats:
        entries = found.setdefault(partition_key(stat.partition_path), {})
        if stat.path:
            name = stat.path.rpartition("/")[2]
            entries[name] = FileEntry(max(stat.file_size_bytes, entries.get(name, FileEntry(0)).size))
        entries |= {log.path.rpartition("/")[2]: FileEntry(log.size_bytes) for log in stat.change_logs}
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


def _filter_files(requested: str, stats: Iterable[WriteStat]) -> _Records:
    """The same filter for each base file as its footer has."""
    records = {}
    for stat in stats:
        if stat.path and stat.log_version is None:
            key = bloom_filter_key(stat.partition_path, stat.path.rpartition("/")[2])
            text = (stat.key_filter or EVERY_KEY).encode()
            told = {"type": KEY_FILTER_TYPE, "timestamp": requested, "bloomFilter": text, "isDeleted": False}
            records[key] = MetadataRecord(RecordKind.BLOOM_FILTER, other=told)
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


def _spread(
    records: _Records, gone: Sequence[str], ids: tuple[str, ...]
) -> dict[str, tuple[dict[str, MetadataRecord], list[str]]]:
    """The records, and the keys that go, of each file group that has some."""
    spread: dict[str, tuple[dict[str, MetadataRecord], list[str]]] = {}
    for key, record in records.items():
        spread.setdefault(ids[group_number(key, len(ids))], ({}, []))[0][key] = record
    for key in gone:
        spread.setdefault(ids[group_number(key, len(ids))], ({}, []))[1].append(key)
    return dict(sorted(spread.items()))


def _encode_log(requested: str, part: MetadataPartition, records: _Records, gone: Sequence[str], version: int) -> bytes:
    entries = sorted((key.encode(), encode_metadata_record(record, version)) for key, record in records.items())
    keys = pa.array(sorted(gone), pa.string())
    return encode_log(requested, part, encode_hfile(entries) if entries else b"", keys, version=version)


def log_path(partition: MetadataPartition, group: str, requested: str) -> str:
    """Where the log of a delta commit in a file group comes to lie, relative to the base path of the table."""
    return metadata_path(partition, LogFileName(group, requested))


def metadata_path(partition: MetadataPartition, name: LogFileName) -> str:
    """Where a log of the metadata table comes to lie, relative to the base path of the table."""
    return f"{METADATA_FOLDER}/{partition.value}/{name}"


def describe_log(partition: MetadataPartition, log: LogFileName, size: int, records: int) -> WriteStat:
    """The write stat of a log of so many bytes and records."""
    return WriteStat(
        partition.value,
        log.file_id,
        f"{partition.value}/{log}",
        prev_commit=log.instant,
        num_writes=records,
        num_update_writes=records,
        file_size_bytes=size,
        total_write_bytes=size,
        log_version=log.version,
        log_offset=0,
        base_file="",
        log_files=(str(log),),
    )
