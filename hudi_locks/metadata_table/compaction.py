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
from hudi_locks.metadata_table.metadata_table import MetadataView
from hudi_locks.metadata_table.record_files import choose_blocks, merge_base_file
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import FileSlice, LogFile

__all__ = ["base_file_path", "compact", "plan_compaction"]

_OPERATION: Final = "COMPACT"


def plan_compaction(view: MetadataView, *, below: str | None = None) -> CompactionPlan:
    """All logs of completed delta commits, of every file group that has some.

    Args:
        view: Of the metadata table.
        below: In version 6, once the compaction is on the timeline, its requested time: later logs are named by it.

    Raises:
        DamagedTable: A partition has no file group.
    """
    parts = view.table.parts
    listed = zip(parts, map_in_threads(view.list_slices, parts), strict=True)
    found = [(part.value, piece) for part, slices in listed for piece in slices]
    pieces = [(part, piece if below is None else piece.below(below)) for part, piece in found]
    return CompactionPlan(tuple(piece.plan(part) for part, piece in pieces if piece.logs))


def compact(view: MetadataView, requested: str, plan: CompactionPlan) -> CommitMetadata:
    """Make the base files of a plan under their names, where these are not taken yet.

    Args:
        view: Of the metadata table.
        requested: Requested time of the compaction.
        plan: Its plan.

    Returns:
        What its completed file says.

    Raises:
        DamagedTable: A file of the plan is gone, or cannot be read.
        StorageError: The store failed; another call goes on.
    """
    stats = map_in_threads(lambda operation: _carry_out(view, requested, operation), plan.groups)
    return CommitMetadata.of(stats, _OPERATION, schema=SCHEMA_TEXTS[view.table.version], compacted=True)


def base_file_path(requested: str, partition: str, file_id: str) -> str:
    """Where the base file of a file group comes to lie, relative to the base path of the table."""
    return f"{METADATA_FOLDER}/{partition}/{BaseFileName(file_id, requested, extension='hfile')}"


def _carry_out(view: MetadataView, requested: str, operation: CompactionOperation) -> WriteStat:
    storage, folder = view.table.storage, f"{METADATA_FOLDER}/{operation.partition}"
    logs = map_in_threads(lambda name: _read(storage, f"{folder}/{name}"), operation.log_names)
    base = _read(storage, f"{folder}/{operation.base_name}") if operation.base_name else None
    takes = choose_blocks(storage, _as_slice(view, folder, operation))
    data = merge_base_file(base, logs, version=view.table.version, takes=takes)
    path = base_file_path(requested, operation.partition, operation.file_id)
    if not storage.create_if_absent(path, data):
        _, data = _read(storage, path)  # another release of zlib may have packed it in more or fewer bytes
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


def _as_slice(view: MetadataView, folder: str, operation: CompactionOperation) -> FileSlice:
    """Its logs alone; in version 6 with what of their blocks counts."""
    logs = filter(None, (LogFile.parse(folder, name, 0) for name in operation.log_names))
    return FileSlice(folder, operation.file_id, operation.base_instant, logs=tuple(logs), blocks=view.blocks)


def _read(storage: Storage, path: str) -> tuple[str, bytes]:
    data = storage.read(path)
    if data is None:
        raise DamagedTable(f"{path} is gone, and the metadata table's next base file is to hold it", path=path)
    return path, data
