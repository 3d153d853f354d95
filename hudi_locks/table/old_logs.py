"""Logs of version 6: named by the base file below them, and perhaps with blocks of several writes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import CompactionPlan, LogFileName, LogPlace, choose_old_token
from hudi_locks.format.log_block import BlockType, decode_blocks
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table.data_files import FileSlice
from hudi_locks.table.log_rows import encode_rollback, find_undone
from hudi_locks.timeline import Timeline

__all__ = ["WriteBlocks", "find_blocks", "find_log_places", "list_planned_barriers", "list_undone_logs"]

_Group = tuple[str, str]


def list_planned_barriers(storage: Storage, timeline: Timeline) -> dict[_Group, str]:
    """Requested time of the compaction that is planned or under way, by (partition path, file id).

    Raises:
        DamagedTable: A plan cannot be read.
    """
    found = {}
    for instant in timeline.pending(("compaction",)):
        path = timeline.layout.path(instant.as_requested())
        plan = CompactionPlan.decode(storage.read(path) or b"", path)
        found.update(dict.fromkeys(plan.file_groups, instant.requested))
    return found


def find_log_places(slices: Iterable[FileSlice], planned: Mapping[_Group, str]) -> dict[_Group, LogPlace]:
    """Where the next log of each file group belongs: above what is below it now, and behind the logs that are there.

    Args:
        slices: The newest of each, as readers merge them.
        planned: See `list_planned_barriers`.
    """
    places = {}
    for piece in slices:
        group = piece.partition, piece.file_id
        barrier = planned.get(group, piece.barrier)
        above = (log.version for log in piece.logs if log.instant == barrier)
        places[group] = LogPlace(barrier, 1 + max(above, default=0))
    return places


@dataclass(frozen=True)
class _Log:
    """A log, and the writes that it has blocks of, or takes out."""

    folder: str
    name: LogFileName
    writes: frozenset[str]
    undone: frozenset[str]

    @property
    def path(self) -> str:
        return _join(self.folder, self.name)

    @property
    def group(self) -> tuple[str, str]:
        return self.folder, self.name.file_id


@dataclass(frozen=True)
class WriteBlocks:
    """What logs have of one write.

    Attributes:
        requested: Of the write.
        alone: Paths of logs that have nothing else.
        undone: The same of logs whose blocks a JVM writer took out: its metadata table may name them.
        mixed: Logs that have more, and the log that would take its blocks out of them.
    """

    requested: str
    alone: frozenset[str]
    undone: frozenset[str]
    mixed: Mapping[str, str]

    def refuse_mixed(self) -> None:
        """Whether all of it can be removed with its files.

        Raises:
            UnsupportedTable: A JVM writer appended to a log, as it does on HDFS.
        """
        for path in self.mixed:
            message = (
                f"{path} has blocks of the write {self.requested}, which is to be rolled back, and of others: let a JVM"
                " writer of the table roll it back, which adds a block that takes them out"
            )
            raise UnsupportedTable(message, path=path, instant=self.requested)

    def take_out(self, storage: Storage) -> None:
        """Add a log with a block that takes the write out of each that has more, as JVM Hudi does it."""
        for path in sorted(set(self.mixed.values())):
            storage.create_if_absent(path, encode_rollback(self.requested))


def find_blocks(storage: Storage, folders: Iterable[str], requested: str) -> WriteBlocks:
    """What the logs of some folders have of the write begun at `requested`, read inside the lock.

    Args:
        storage: Of the table.
        folders: Relative to the base path.
        requested: Of the write.

    Raises:
        DamagedTable: A log cannot be read.
        StorageError: The store failed.
    """
    logs = [log for folder in folders for log in _read_folder(storage, folder)]
    taken_out = {log.group for log in logs if requested in log.undone}
    own = [log for log in logs if log.writes == {requested} and not log.undone]
    alone, undone = (frozenset(log.path for log in own if (log.group in taken_out) is told) for told in (False, True))
    left = [log for log in logs if requested in log.writes and log.group not in taken_out and log.path not in alone]
    return WriteBlocks(requested, alone, undone, {log.path: _place_next(logs, log.group, requested) for log in left})


def list_undone_logs(
    storage: Storage, folders: Iterable[str], undone: Collection[str], *, is_kept: Callable[[str], bool]
) -> dict[str, frozenset[str]]:
    """Logs that go when a table goes back to a time before some writes, read inside the lock.

    Those that are named by a base file of these writes, those that have nothing but their blocks, and those that take
    such blocks out.

    Args:
        storage: Of the table.
        folders: Relative to the base path.
        undone: Requested times of the writes.
        is_kept: Whether a write, by its requested time, stays.

    Returns:
        Paths by the requested time of the oldest write that a log has something of: once that is undone, nobody reads
        the log.

    Raises:
        DamagedTable: A log cannot be read.
        StorageError: The store failed.
        UnsupportedTable: Something that stays lies in such a log, or would lie on nothing.
    """
    found: dict[str, set[str]] = {requested: set() for requested in undone}
    for log in (log for folder in folders for log in _read_folder(storage, folder)):
        touched = (log.writes | log.undone).intersection(undone)
        if not touched and log.name.instant not in undone:
            continue
        others = log.undone.difference(undone) if log.name.instant not in undone else ()
        _refuse_kept(log, [*filter(is_kept, log.writes), *others])
        found[min(touched, default=log.name.instant)].add(log.path)
    return {requested: frozenset(paths) for requested, paths in found.items()}


def _refuse_kept(log: _Log, kept: Iterable[str]) -> None:
    for requested in kept:
        message = (
            f"{log.path} would go with the writes that are undone, and tells of {requested}, which stays: a JVM writer"
            " added to a log that was there, or did not see a plan of compaction; let a JVM job restore the table, or"
            " go back to an earlier savepoint"
        )
        raise UnsupportedTable(message, path=log.path, instant=requested)


def _place_next(logs: Iterable[_Log], group: _Group, requested: str) -> str:
    last = max((log.name for log in logs if log.group == group), key=lambda name: (name.instant, name.version))
    return _join(group[0], LogFileName(last.file_id, last.instant, last.version + 1, choose_old_token(requested)))


def _read_folder(storage: Storage, folder: str) -> Iterator[_Log]:
    names = [name for text in storage.list_names(folder) if (name := LogFileName.parse(text)) is not None]
    yield from map_in_threads(lambda name: _read(storage, folder, name), names)


def _read(storage: Storage, folder: str, name: LogFileName) -> _Log:
    path = _join(folder, name)
    data = storage.read(path) or b""
    writes = frozenset(block.instant for block in decode_blocks(data, path) if block.kind is not BlockType.COMMAND)
    return _Log(folder, name, writes, find_undone(data, path))


def _join(folder: str, name: LogFileName) -> str:
    return f"{folder}/{name}".lstrip("/")
