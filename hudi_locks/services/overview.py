"""What a table is and how it does, at one moment. Changes nothing, and takes no lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hudi_locks.config import Options, file_keys, index_keys, write_keys
from hudi_locks.format import epoch_ms
from hudi_locks.markers import MARKER_FOLDER
from hudi_locks.table import FileSlice, Table, TableConfig, latest_file_slices
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.claims import find_last_claim
from hudi_locks.timeline.heartbeat import find_alive, name_writer

__all__ = ["FileCounts", "PendingInstant", "TableOverview", "TableSettings", "list_pending", "look_over"]

_NOT_TOLD: Final = ""


@dataclass(frozen=True)
class TableSettings:
    """What a table was made with.

    Attributes:
        name: Its name.
        table_type: COPY_ON_WRITE or MERGE_ON_READ.
        version: Of its format.
        record_key: Columns of the record key.
        partitioned_by: Columns that name folders.
        ordering: Columns that decide between rows of one key.
        key_generator: How keys and folders are made, in Hudi's word.
        merge_mode: How rows of one key are merged.
        index: Index that it was made with; "" if it does not say.
        metadata_parts: Parts of its metadata table; none without one.
        change_logs: What its change logs say of a row; "" if writes leave none.
    """

    name: str
    table_type: str
    version: int
    record_key: tuple[str, ...]
    partitioned_by: tuple[str, ...]
    ordering: tuple[str, ...]
    key_generator: str
    merge_mode: str
    index: str
    metadata_parts: tuple[str, ...]
    change_logs: str

    @classmethod
    def of(cls, config: TableConfig) -> TableSettings:
        """Those that its properties tell."""
        return cls(
            config.name,
            config.table_type,
            config.version,
            record_key=config.record_key_fields,
            partitioned_by=config.partition_fields,
            ordering=config.ordering_fields,
            key_generator=config.key_generator,
            merge_mode=config.merge_mode,
            index=config.extra.get(index_keys.INDEX_TYPE.name, _NOT_TOLD),
            metadata_parts=tuple(sorted(config.metadata_parts)),
            change_logs=config.change_log_mode or _NOT_TOLD,
        )


@dataclass(frozen=True)
class FileCounts:
    """Of the files that the newest snapshot shows.

    Attributes:
        partitions: How many have files.
        file_groups: How many there are.
        base_bytes: Size of their base files together.
        small_files: How many base files are small enough to take up new rows.
        logs: Log files on top of them.
        log_bytes: Their size.
    """

    partitions: int
    file_groups: int
    base_bytes: int
    small_files: int
    logs: int
    log_bytes: int

    @classmethod
    def of(cls, slices: Sequence[FileSlice], *, small_bytes: int) -> FileCounts:
        """Count them; a base file below `small_bytes` is small."""
        bases = [piece.base.size for piece in slices if piece.base is not None]
        logs = [log.size for piece in slices for log in piece.logs]
        small = sum(size < small_bytes for size in bases)
        return cls(len({piece.partition for piece in slices}), len(slices), sum(bases), small, len(logs), sum(logs))


@dataclass(frozen=True)
class PendingInstant:
    """An instant that is not completed.

    Attributes:
        requested: Its requested time.
        action: As its file says it.
        state: REQUESTED or INFLIGHT.
        age_ms: Since it was begun, in milliseconds by the store's clock.
        heartbeat_age_ms: Since its writer's last sign of life; None if that is too long ago, or there is none.
        writer: Who it is; "" if nothing tells.
    """

    requested: str
    action: str
    state: str
    age_ms: int
    heartbeat_age_ms: int | None
    writer: str


@dataclass(frozen=True)
class TableOverview:
    """A table at one moment.

    Attributes:
        path: Its base path.
        settings: What it was made with.
        columns: Names of the user's columns, as files have them.
        files: Those of its newest snapshot.
        instants: How many are on the active timeline.
        last_completed_ms: When the newest write became visible, in milliseconds since the epoch; None if none did.
        pending: What is under way, or was left behind.
        savepoints: Requested times of the writes that savepoints keep.
        marker_folders: How many instants have markers.
        claims: How many entries the claim log has; 0 if only JVM writers wrote.
    """

    path: str
    settings: TableSettings
    columns: tuple[str, ...]
    files: FileCounts
    instants: int
    last_completed_ms: int | None
    pending: tuple[PendingInstant, ...]
    savepoints: tuple[str, ...]
    marker_folders: int
    claims: int


def look_over(table: Table, options: Mapping[str, object] | None = None) -> TableOverview:
    """Look at a table.

    Args:
        table: The table.
        options: Hudi's keys: up to which size a base file is small, and how long a writer may be silent.

    Raises:
        ConfigError: An option cannot be used.
        DamagedTable: A file of its newest snapshot is gone, or a commit cannot be read.
        StorageError: The store failed.
    """
    timeline, storage, given = table.timeline(), table.storage, Options(options or {})
    slices, schema = latest_file_slices(storage, timeline), table.schema(timeline)
    completed = timeline.completed_between("")
    return TableOverview(
        storage.base,
        TableSettings.of(table.config),
        columns=() if schema is None else tuple(schema.names),
        files=FileCounts.of(slices, small_bytes=given.get_value(file_keys.PARQUET_SMALL_FILE_LIMIT)),
        instants=len(timeline.instants),
        last_completed_ms=epoch_ms(str(completed[-1].completion), table.layout.zone) if completed else None,
        pending=list_pending(table, timeline, given),
        savepoints=tuple(sorted(timeline.savepoints)),
        marker_folders=len(storage.list_names(MARKER_FOLDER)),
        claims=find_last_claim(storage),
    )


def list_pending(table: Table, timeline: Timeline, options: Options) -> tuple[PendingInstant, ...]:
    """What is not completed, with the last sign of life of its writer; the options say how long one may be silent.

    Raises:
        StorageError: The store failed.
    """
    storage, pending = table.storage, timeline.pending()
    if not pending:
        return ()
    interval_ms = options.get_value(write_keys.HEARTBEAT_INTERVAL_IN_MS)
    limit_ms = interval_ms * options.get_value(write_keys.HEARTBEAT_TOLERABLE_MISSES)
    alive = find_alive(storage, [instant.requested for instant in pending], limit_ms=limit_ms)
    now_ms = storage.now_ms()
    return tuple(
        PendingInstant(
            instant.requested,
            instant.action,
            instant.state.name,
            age_ms=max(0, now_ms - epoch_ms(instant.requested, table.layout.zone)),
            heartbeat_age_ms=alive.get(instant.requested),
            writer=name_writer(storage, instant.requested),
        )
        for instant in pending
    )
