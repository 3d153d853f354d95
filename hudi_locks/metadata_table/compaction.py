"""What a compaction of the metadata table merges, and the base files that it makes (Hudi's HoodieCompactor there).

Plan and base files follow from what was completed, so whoever carries out a plan makes the same files.
"""

from __future__ import annotations

from typing import Final

from hudi_locks.errors import DamagedTable
from hudi_locks.format import (
    METADATA_FOLDER,
    BaseFileName,
    CommitMetadata,
    CompactionOperation,
    CompactionPlan,
    WriteStat,
)
from hudi_locks.format.hfile import HFile
from hudi_locks.format.metadata_schema import SCHEMA_TEXTS
from hudi_locks.metadata_table.metadata_table import MetadataTable, MetadataView
from hudi_locks.metadata_table.record_files import merge_base_file
from hudi_locks.storage import Storage, map_in_threads

__all__ = ["base_file_path", "compact", "plan_compaction"]

_OPERATION: Final = "COMPACT"


def plan_compaction(view: MetadataView) -> CompactionPlan:
    """All logs of completed delta commits, of every file group that has some.

    Raises:
        DamagedTable: A partition has no file group.
    """
    parts = view.table.parts
    listed = zip(parts, map_in_threads(view.list_slices, parts), strict=True)
    return CompactionPlan(tuple(piece.plan(part.value) for part, slices in listed for piece in slices if piece.logs))


def compact(table: MetadataTable, requested: str, plan: CompactionPlan) -> CommitMetadata:
    """Make the base files of a plan under their names, where these are not taken yet.

    Args:
        table: The metadata table.
        requested: Requested time of the compaction.
        plan: Its plan.

    Returns:
        What its completed file says.

    Raises:
        DamagedTable: A file of the plan is gone, or cannot be read.
        StorageError: The store failed; another call goes on.
    """
    stats = map_in_threads(lambda operation: _carry_out(table, requested, operation), plan.groups)
    return CommitMetadata.of(stats, _OPERATION, schema=SCHEMA_TEXTS[table.version], compacted=True)


def base_file_path(requested: str, partition: str, file_id: str) -> str:
    """Where the base file of a file group comes to lie, relative to the base path of the table."""
    return f"{METADATA_FOLDER}/{partition}/{BaseFileName(file_id, requested, extension='hfile')}"


def _carry_out(table: MetadataTable, requested: str, operation: CompactionOperation) -> WriteStat:
    folder = f"{METADATA_FOLDER}/{operation.partition}"
    logs = map_in_threads(lambda name: _read(table.storage, f"{folder}/{name}"), operation.log_names)
    base = _read(table.storage, f"{folder}/{operation.base_name}") if operation.base_name else None
    data = merge_base_file(base, logs, version=table.version)
    path = base_file_path(requested, operation.partition, operation.file_id)
    if not table.storage.create_if_absent(path, data):
        _, data = _read(table.storage, path)  # another release of zlib may have packed it in more or fewer bytes
    count = HFile(data, path).count
    return WriteStat(
        operation.partition,
        operation.file_id,
        path.removeprefix(f"{METADATA_FOLDER}/"),
        prev_commit=operation.base_instant if base is not None else "null",
        num_writes=count,
        num_update_writes=count,
        file_size_bytes=len(data),
        total_write_bytes=len(data),
        prev_base_file=operation.base_name or None,
    )


def _read(storage: Storage, path: str) -> tuple[str, bytes]:
    data = storage.read(path)
    if data is None:
        raise DamagedTable(f"{path} is gone, and the metadata table's next base file is to hold it", path=path)
    return path, data
