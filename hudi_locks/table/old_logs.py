"""Logs of version 6 as those meet them who take a write back: several writes may have appended to one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hudi_locks.format import LogFileName, choose_old_token
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, decode_blocks, encode_block
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table.log_rows import find_undone

__all__ = ["encode_rollback", "take_out_blocks"]

_ROLLBACK: Final = "0"


@dataclass(frozen=True)
class _Log:
    """A log, and the writes that it has blocks of, or takes out."""

    folder: str
    name: LogFileName
    writes: frozenset[str]
    undone: frozenset[str]

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}" if self.folder else str(self.name)


def encode_rollback(requested: str) -> bytes:
    """The block that takes out those of the write begun at `requested` (HoodieLogBlock's ROLLBACK_BLOCK)."""
    header = {
        BlockHeader.INSTANT_TIME: requested,
        BlockHeader.TARGET_INSTANT_TIME: requested,
        BlockHeader.COMMAND_TYPE: _ROLLBACK,
    }
    return encode_block(LogBlock(BlockType.COMMAND, header, b""))


def take_out_blocks(storage: Storage, folders: Iterable[str], requested: str) -> set[str]:
    """Take the write begun at `requested` out of the logs of some folders, inside the table lock.

    A log that has nothing else is deleted. Where it has more, one is added that takes its blocks out, as JVM Hudi does
    it. May be repeated.

    Args:
        storage: Of the table.
        folders: Relative to the base path.
        requested: Of a write that nobody can publish.

    Returns:
        Paths of the logs that were deleted.

    Raises:
        DamagedTable: A log cannot be read.
        StorageError: The store failed; another call goes on.
    """
    logs = [log for folder in folders for log in _read_folder(storage, folder)]
    alone = {log.path for log in logs if log.writes == {requested} and not log.undone}
    mixed = [log for log in logs if requested in log.writes and log.path not in alone]
    taken_out = {(log.folder, log.name.file_id) for log in logs if requested in log.undone}
    deleted = {path for path in sorted(alone) if storage.delete(path)}
    for folder, file_id in sorted({(log.folder, log.name.file_id) for log in mixed} - taken_out):
        above = [log.name for log in logs if (log.folder, log.name.file_id) == (folder, file_id)]
        storage.create_if_absent(f"{folder}/{_name_next(above, requested)}".lstrip("/"), encode_rollback(requested))
    return deleted


def _name_next(logs: Iterable[LogFileName], requested: str) -> LogFileName:
    last = max(logs, key=lambda name: (name.instant, name.version))
    return LogFileName(last.file_id, last.instant, last.version + 1, choose_old_token(requested))


def _read_folder(storage: Storage, folder: str) -> Iterator[_Log]:
    names = [name for text in storage.list_names(folder) if (name := LogFileName.parse(text)) is not None]
    yield from map_in_threads(lambda name: _read(storage, folder, name), names)


def _read(storage: Storage, folder: str, name: LogFileName) -> _Log:
    path = f"{folder}/{name}".lstrip("/")
    data = storage.read(path) or b""
    writes = frozenset(block.instant for block in decode_blocks(data, path) if block.kind is not BlockType.COMMAND)
    return _Log(folder, name, writes, find_undone(data, path))
