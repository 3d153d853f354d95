"""What a commit wrote (Hudi's HoodieCommitMetadata and HoodieReplaceCommitMetadata)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from hudi_locks.errors import DamagedTable
from hudi_locks.format.avro import COMMIT_METADATA, REPLACE_COMMIT_METADATA, REQUESTED_REPLACE_METADATA
from hudi_locks.format.records import MAGIC, decode_record, encode_record, interpreting

__all__ = ["ALTER_SCHEMA", "ChangeLog", "CommitMetadata", "WriteStat", "convert_metadata", "encode_requested_replace"]

_SCHEMA: Final = "schema"
_REPLACE: Final = "replacecommit"
_EXTRA: Final = "extraMetadata"
_OVERWRITES_TABLE: Final = "INSERT_OVERWRITE_TABLE"
ALTER_SCHEMA: Final = "ALTER_SCHEMA"
"""Hudi's name of the operation of a commit that changes columns, and makes no files."""
_CONCERN_TABLE: Final = (_OVERWRITES_TABLE, ALTER_SCHEMA)
_OVERWRITES: Final = ("DELETE_PARTITION", "INSERT_OVERWRITE", _OVERWRITES_TABLE)


@dataclass(frozen=True)
class ChangeLog:
    """A file of change data, which says what a write changed in a file group (RFC-51).

    Attributes:
        path: Relative to the base path.
        size_bytes: Its size.
        ticket: As that of a `WriteStat`.
    """

    path: str
    size_bytes: int
    ticket: str | None = None


@dataclass(frozen=True)
class WriteStat:
    """One file that an instant wrote.

    Attributes:
        partition_path: Its partition; "" in an unpartitioned table.
        file_id: Its file group.
        path: Relative to the base path; None in the forecast that the JVM puts into an inflight file.
        prev_commit: Instant of the file it replaces; "null", the word, if there is none.
        num_writes: Rows in the file.
        num_inserts: Rows new to the table.
        num_update_writes: Rows that replaced an older version.
        num_deletes: Rows left out.
        file_size_bytes: Size of the file.
        total_write_bytes: Bytes written for it.
        prev_base_file: Name of the base file it replaces.
        log_version: Of a log file, else None, as all below.
        log_offset: Where this write begins in the log file.
        base_file: Name of the base file below the log file; "" for none.
        log_files: Names of the log files of the slice.
        ticket: Gives the file its name; None for one that has it already. The claim of the commit holds it, and its
            metadata does not.
        ranges: Those of its indexed columns, as `encode_ranges` tells them; None where no column is indexed. They go to
            the metadata table, and not to the commit's metadata.
        key_filter: The bloom filter in the footer of a base file, where the metadata table has filters too, to which it
            goes; None for one that holds every key.
        change_logs: What the file changed beside the one before, where the table has change data capture.
    """

    partition_path: str
    file_id: str
    path: str | None
    prev_commit: str = "null"
    num_writes: int = 0
    num_inserts: int = 0
    num_update_writes: int = 0
    num_deletes: int = 0
    file_size_bytes: int = 0
    total_write_bytes: int = 0
    prev_base_file: str | None = None
    log_version: int | None = None
    log_offset: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] | None = None
    ticket: str | None = None
    ranges: str | None = None
    key_filter: str | None = None
    change_logs: tuple[ChangeLog, ...] = ()


_STAT_NAMES: Final = {
    "partition_path": "partitionPath", "file_id": "fileId", "path": "path", "prev_commit": "prevCommit",
    "num_writes": "numWrites", "num_inserts": "numInserts", "num_update_writes": "numUpdateWrites",
    "num_deletes": "numDeletes", "file_size_bytes": "fileSizeInBytes", "total_write_bytes": "totalWriteBytes",
    "prev_base_file": "prevBaseFile", "log_version": "logVersion", "log_offset": "logOffset",
    "base_file": "baseFile", "log_files": "logFiles",
}  # fmt: skip
_ALWAYS_ZERO: Final = (
    "totalWriteErrors", "totalLogRecords", "totalUpdatedRecordsCompacted", "totalLogBlocks", "totalCorruptLogBlock",
    "totalRollbackBlocks", "totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted", "numUpdates",
)  # fmt: skip
_TOTALS: Final = (
    "totalPartitionsWritten", "totalFilesInsert", "totalFilesUpdate", "totalRecordsWritten", "totalRecordsDeleted",
    "totalInsertRecordsWritten", "totalUpdateRecordsWritten", "totalBytesWritten",
)  # fmt: skip
_CHANGE_LOGS: Final = "cdcStats"
_DEFAULTS: Final = {f.name: f.default for f in fields(WriteStat)}


@dataclass(frozen=True)
class CommitMetadata:
    """Content of a completed (or, as a forecast, inflight) commit, deltacommit or replacecommit.

    Attributes:
        partition_to_write_stats: The files written, by partition path.
        operation: In Hudi's spelling, such as UPSERT; None if unknown.
        extra: Free texts; `schema` is the Avro schema of the user's columns.
        replaced_file_ids: File groups that this instant hides, by partition path; for a replacecommit.
        compacted: Whether a compaction wrote it.
    """

    partition_to_write_stats: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict)
    operation: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    replaced_file_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    compacted: bool = False

    @classmethod
    def of(
        cls,
        stats: Iterable[WriteStat],
        operation: str,
        *,
        schema: str | None,
        extra: Mapping[str, str] | None = None,
        replaced_file_ids: Mapping[str, tuple[str, ...]] | None = None,
        compacted: bool = False,
    ) -> CommitMetadata:
        """The metadata of a write, from the stats of its tasks in any order; `schema` None if it knows no columns."""
        by_partition: dict[str, tuple[WriteStat, ...]] = {}
        for stat in sorted(stats, key=lambda stat: (stat.partition_path, stat.file_id, stat.path or "")):
            by_partition[stat.partition_path] = (*by_partition.get(stat.partition_path, ()), stat)
        known = {} if schema is None else {_SCHEMA: schema}
        return cls(by_partition, operation, {**(extra or {}), **known}, replaced_file_ids or {}, compacted)

    @property
    def schema(self) -> str | None:
        """The Avro schema of the user's columns, as JSON; None if the instant recorded none."""
        return self.extra.get(_SCHEMA) or None

    @property
    def stats(self) -> tuple[WriteStat, ...]:
        """All write stats."""
        return tuple(stat for group in self.partition_to_write_stats.values() for stat in group)

    def count_written(self) -> dict[str, int]:
        """What it wrote in all, under the names of JVM Hudi's metrics of a commit (HoodieMetrics)."""
        found = dict.fromkeys(_TOTALS, 0)
        found["totalPartitionsWritten"] = len(self.partition_to_write_stats)
        for stat in self.stats:
            found["totalFilesInsert" if stat.prev_commit == "null" else "totalFilesUpdate"] += 1
            found["totalRecordsWritten"] += stat.num_writes
            found["totalInsertRecordsWritten"] += stat.num_inserts
            found["totalUpdateRecordsWritten"] += stat.num_update_writes
            found["totalRecordsDeleted"] += stat.num_deletes
            found["totalBytesWritten"] += stat.total_write_bytes
        return found

    @property
    def change_logs(self) -> tuple[ChangeLog, ...]:
        """All change logs."""
        return tuple(log for stat in self.stats for log in stat.change_logs)

    @property
    def written_file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of each file group written; new files of a forecast have no id yet."""
        by_key = self.partition_to_write_stats.items()
        return frozenset((partition, stat.file_id) for partition, group in by_key for stat in group if stat.file_id)

    @property
    def based_file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of each file group that gets a base file which no compaction makes."""
        written = (stat for stat in self.stats if stat.path and stat.log_version is None and not self.compacted)
        return frozenset((stat.partition_path, stat.file_id) for stat in written)

    @property
    def replaced_file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of each file group replaced."""
        return frozenset((partition, file_id) for partition, ids in self.replaced_file_ids.items() for file_id in ids)

    @property
    def overwritten_partitions(self) -> frozenset[str]:
        """Partitions that the operation overwrites or deletes as a whole, those that were empty included."""
        if self.operation not in _OVERWRITES:
            return frozenset()
        return frozenset(self.replaced_file_ids) | frozenset(self.partition_to_write_stats)

    @property
    def overwrites_table(self) -> bool:
        """Whether it overwrites every partition, also those that it does not name, or changes their columns."""
        return self.operation in _CONCERN_TABLE

    @property
    def paths(self) -> frozenset[str]:
        """Every file of rows written, relative to the base path."""
        return frozenset(stat.path for stat in self.stats if stat.path)

    @property
    def tickets(self) -> dict[str, str]:
        """What gives these files their names, by path; see `WriteStat.ticket`."""
        files: tuple[WriteStat | ChangeLog, ...] = (*self.stats, *self.change_logs)
        return {file.path: file.ticket for file in files if file.path and file.ticket}

    def encode(self, action: str, *, layout_version: int) -> bytes:
        """The bytes of the instant's file: Avro in layout 2, JSON in layout 1. A replacecommit has a wider record."""
        return _encode(self._record(replacing=action == _REPLACE), action, layout_version=layout_version)

    @classmethod
    def decode(cls, data: bytes, path: str, *, may_be_empty: bool = False) -> CommitMetadata:
        """Read the content of an instant's file, Avro or JSON; unknown fields are passed over.

        Args:
            data: The bytes of the file.
            path: Its name, for the error.
            may_be_empty: Whether 0 bytes are legal, as for requested and inflight files; they give empty metadata.

        Raises:
            DamagedTable: The bytes are no commit metadata; it names `path`.
        """
        if may_be_empty and not data:
            return cls()
        record = decode_record(data, path) if data.startswith(MAGIC) else _decode_json(data, path)
        with interpreting("commit metadata", path):
            return cls._interpret(record)

    def _record(self, *, replacing: bool) -> dict[str, Any]:
        stats = self.partition_to_write_stats.items()
        record: dict[str, Any] = {
            "partitionToWriteStats": {partition: [_encode_stat(stat) for stat in group] for partition, group in stats},
            "compacted": self.compacted,
            "extraMetadata": dict(self.extra),
            "operationType": self.operation,
        }
        if replacing:
            record["partitionToReplaceFileIds"] = {key: list(ids) for key, ids in self.replaced_file_ids.items()}
        return record

    @classmethod
    def _interpret(cls, record: Mapping[str, Any]) -> CommitMetadata:
        stats = record["partitionToWriteStats"] or {}
        replaced = record.get("partitionToReplaceFileIds") or {}
        return cls(
            {key: tuple(_decode_stat(stat, key) for stat in group) for key, group in stats.items()},
            record.get("operationType"),
            {key: value for key, value in (record.get("extraMetadata") or {}).items() if value is not None},
            {key: tuple(ids) for key, ids in replaced.items()},
            bool(record.get("compacted")),
        )


def convert_metadata(data: bytes, action: str, path: str, *, layout_version: int) -> bytes:
    """What a completed or inflight file of a write holds, as the files of a layout hold it, without a loss.

    Args:
        data: Bytes of either layout.
        action: As the file's name has it.
        path: Its name, for the error.
        layout_version: That layout.

    Raises:
        DamagedTable: The bytes are no commit metadata; it names `path`.
    """
    is_avro = data.startswith(MAGIC)
    if not data or is_avro == (layout_version > 1):
        return data
    record = decode_record(data, path) if is_avro else _decode_json(data, path)
    with interpreting("commit metadata", path):
        texts = {key: value for key, value in (record.get(_EXTRA) or {}).items() if value is not None}
        return _encode({**record, _EXTRA: texts}, action, layout_version=layout_version)


def _encode(record: Mapping[str, Any], action: str, *, layout_version: int) -> bytes:
    if layout_version == 1:
        return json.dumps(record, indent=2, ensure_ascii=False).encode()
    return encode_record(REPLACE_COMMIT_METADATA if action == _REPLACE else COMMIT_METADATA, record)


def encode_requested_replace() -> bytes:
    """The content of `.replacecommit.requested` for a replacing write without clustering plan: all fields null."""
    return encode_record(REQUESTED_REPLACE_METADATA, {"version": 1})


def _decode_json(data: bytes, path: str) -> dict[str, Any]:
    try:
        record = json.loads(data)
    except (ValueError, RecursionError) as error:
        found = f"{len(data)} bytes that are" if data else "an empty file that is"
        raise DamagedTable(f"{path} holds {found} neither Avro nor JSON: {error}", path=path) from error
    if not isinstance(record, dict):
        raise DamagedTable(f"{path} holds no commit metadata but {type(record).__name__}", path=path)
    return record


def _encode_stat(stat: WriteStat) -> dict[str, Any]:
    known = {name: getattr(stat, attribute) for attribute, name in _STAT_NAMES.items()}
    known["logFiles"] = None if stat.log_files is None else list(stat.log_files)
    sizes = {log.path: log.size_bytes for log in stat.change_logs}
    return {**dict.fromkeys(_ALWAYS_ZERO, 0), **known, _CHANGE_LOGS: sizes or None}


def _decode_stat(record: Mapping[str, Any], partition: str) -> WriteStat:
    known: dict[str, Any] = {}
    for attribute, name in _STAT_NAMES.items():
        value = record.get(name)
        known[attribute] = _DEFAULTS.get(attribute) if value is None else value
    known |= {"partition_path": partition, "file_id": record.get("fileId") or "", "path": record.get("path")}
    known["log_files"] = None if known["log_files"] is None else tuple(known["log_files"])
    logs = tuple(ChangeLog(path, size) for path, size in (record.get(_CHANGE_LOGS) or {}).items())
    return WriteStat(**known, change_logs=logs)
