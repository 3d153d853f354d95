"""The files that hold rows, as a listing of the partitions shows them, whether their writes were completed or not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final

from hudi_locks.format import BaseFileName, CompactionOperation, LogFileName
from hudi_locks.format.instant import METADATA_BOOTSTRAP
from hudi_locks.storage import Entry, Storage
from hudi_locks.table.partition_path import PARTITION_METADATA

__all__ = [
    "BaseFile",
    "BlockScope",
    "Completion",
    "DataFiles",
    "FileSlice",
    "LogFile",
    "join_planned",
    "list_base_files",
    "list_data_files",
    "list_partitions",
    "slice_file_group",
    "slice_file_groups",
]

_HOODIE: Final = ".hoodie"


@dataclass(frozen=True, order=True)
class BaseFile:
    """A base file that readers see.

    Attributes:
        partition: Partition path; "" in an unpartitioned table.
        file_id: Its file group.
        instant: Requested time of the write that made it.
        path: Relative to the base path.
        size: Bytes.
    """

    partition: str
    file_id: str
    instant: str
    path: str
    size: int

    @property
    def is_skeleton(self) -> bool:
        """Whether it has meta columns alone, and the other columns of its rows lie in a file of a source."""
        return self.instant == METADATA_BOOTSTRAP

    @classmethod
    def parse(cls, partition: str, name: str, size: int) -> BaseFile | None:
        """The base file of this name in a partition; None if it is none."""
        found = BaseFileName.parse(name)
        return None if found is None else cls(partition, found.file_id, found.instant, _join(partition, name), size)


@dataclass(frozen=True, order=True)
class LogFile:
    """A log file, or one of change data; the order is that in which readers apply the logs of a slice.

    Attributes:
        partition: Partition path; "" in an unpartitioned table.
        file_id: Its file group.
        instant: Requested time of the delta commit that made it.
        version: Counts the logs of one write in one file group.
        write_token: Task, stage and attempt.
        path: Relative to the base path.
        size: Bytes.
    """

    partition: str
    file_id: str
    instant: str
    version: int
    write_token: str
    path: str = field(compare=False)
    size: int = field(compare=False)

    @classmethod
    def parse(cls, partition: str, name: str, size: int) -> LogFile | None:
        """The log file of this name in a partition; None if it is none, or one of change data."""
        return cls._parse(partition, name, size, is_cdc=False)

    @classmethod
    def parse_change_log(cls, partition: str, name: str, size: int) -> LogFile | None:
        """The file of change data of this name in a partition; None if it is none."""
        return cls._parse(partition, name, size, is_cdc=True)

    @classmethod
    def _parse(cls, partition: str, name: str, size: int, *, is_cdc: bool) -> LogFile | None:
        found = LogFileName.parse(name)
        if found is None or found.is_cdc is not is_cdc:
            return None
        return cls(
            partition, found.file_id, found.instant, found.version, found.write_token, _join(partition, name), size
        )


@dataclass(frozen=True)
class DataFiles:
    """Files of some partitions, each kind in order.

    Attributes:
        bases: Base files.
        logs: Logs that are merged with them.
        change_logs: Files of change data, which no snapshot needs.
    """

    bases: tuple[BaseFile, ...] = ()
    logs: tuple[LogFile, ...] = ()
    change_logs: tuple[LogFile, ...] = ()

    @classmethod
    def of(cls, named: Iterable[tuple[str, str, int]]) -> DataFiles:
        """Those of some files that are such by their names, each given by partition path, name and size."""
        listed = tuple(named)
        bases = sorted(filter(None, (BaseFile.parse(*file) for file in listed)))
        logs = sorted(filter(None, (LogFile.parse(*file) for file in listed)))
        change_logs = sorted(filter(None, (LogFile.parse_change_log(*file) for file in listed)))
        return cls(tuple(bases), tuple(logs), tuple(change_logs))

    def where(self, is_wanted: Callable[[BaseFile | LogFile], bool]) -> DataFiles:
        """Some of them."""
        return DataFiles(
            tuple(filter(is_wanted, self.bases)),
            tuple(filter(is_wanted, self.logs)),
            tuple(filter(is_wanted, self.change_logs)),
        )

    @property
    def both(self) -> tuple[BaseFile | LogFile, ...]:
        """Those that hold rows, base files first."""
        return (*self.bases, *self.logs)

    @property
    def every(self) -> tuple[BaseFile | LogFile, ...]:
        """All of them."""
        return (*self.both, *self.change_logs)


def list_partitions(storage: Storage) -> tuple[str, ...]:
    """Partition paths in order: every folder that is marked as a partition; "" if the table itself is."""
    return tuple(sorted(folder for folder, _ in _walk(storage)))


def _walk(storage: Storage) -> Iterator[tuple[str, Sequence[Entry]]]:
    """Every partition with what is in it, each folder listed once."""
    level = [""]
    while level:
        listed = zip(level, storage.list_each(level), strict=True)
        level = []
        for folder, entries in listed:
            if any(entry.name.startswith(PARTITION_METADATA) for entry in entries):
                yield folder, entries
            else:
                level += [_join(folder, e.name) for e in entries if e.is_folder and e.name != _HOODIE]


def list_base_files(storage: Storage, partitions: Iterable[str]) -> list[BaseFile]:
    """Every base file in these partitions, in order, whether its write was completed or not."""
    return list(list_data_files(storage, partitions).bases)


def list_data_files(storage: Storage, partitions: Iterable[str] | None = None) -> DataFiles:
    """Every base and log file in these partitions; in all of them if None."""
    if partitions is None:
        listed = list(_walk(storage))
    else:
        folders = sorted(set(partitions))
        listed = list(zip(folders, storage.list_each(folders), strict=True))
    return DataFiles.of((folder, e.name, e.size) for folder, entries in listed for e in entries if not e.is_folder)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


Completion = Callable[[str], "str | None"]
"""Completion time of a write by its requested time; None while it is pending."""


@dataclass(frozen=True)
class BlockScope:
    """Which blocks of logs a reader takes, of a table that is of version 6, or was.

    Such a log is named by the base file below it, or by the compaction that is to make that. Several writes may have
    appended to it, of which each block names its own (Hudi's BaseHoodieLogRecordReader).

    Attributes:
        names_bases: Whether every log is named so; of a table that was upgraded later logs are not.
        writes: Requested times of completed writes on the active timeline.
        archived: Earlier writes were completed; "" if there is none.
        until: Of these only those that were begun at this time or before; all if None.
        compactions: Requested times of compactions that are planned or under way.
    """

    names_bases: bool
    writes: frozenset[str]
    archived: str = ""
    until: str | None = None
    compactions: frozenset[str] = frozenset()

    def choose(self, log: LogFile, undone: Collection[str]) -> Callable[[str], bool]:
        """Whether the blocks of a write in this log count, but for the writes that a later log takes back."""
        return lambda requested: requested not in undone and (requested == log.instant or self._takes(requested))

    def _takes(self, requested: str) -> bool:
        return requested in self.writes or (requested < self.archived and requested <= (self.until or requested))

    def takes_log(self, log: LogFile) -> bool:
        """Whether a log whose base file is not there yet may have such blocks."""
        return log.instant in self.compactions and log.instant <= (self.until or log.instant)


@dataclass(frozen=True)
class FileSlice:
    """A base file and what was written on top of it.

    Attributes:
        partition: Partition path.
        file_id: Its file group.
        barrier: Requested time of the base file, or of the compaction that is to make it, else of the first log.
        base: The base file; None while there is none.
        logs: Logs in the order in which they are applied.
        blocks: What counts of the logs; None where each is of one write, as of a table that was never of version 6.
    """

    partition: str
    file_id: str
    barrier: str
    base: BaseFile | None = None
    logs: tuple[LogFile, ...] = ()
    blocks: BlockScope | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Of its files, relative to the base path."""
        bases = () if self.base is None else (self.base.path,)
        return (*bases, *(log.path for log in self.logs))

    @property
    def is_plain(self) -> bool:
        """Whether its rows are those of one file as they are there: it has no logs, and its base file is whole."""
        return not self.logs and not (self.base is not None and self.base.is_skeleton)

    def below(self, planned: str) -> FileSlice:
        """Without the logs that are named by a compaction planned at that time, as in version 6, or by a later one."""
        return replace(self, logs=tuple(log for log in self.logs if log.instant < planned))

    def plan(self, partition: str) -> CompactionOperation:
        """The operation of a compaction that merges its files, for a plan that calls its partition so."""
        names = tuple(log.path.rpartition("/")[2] for log in self.logs)
        base = "" if self.base is None else self.base.path.rpartition("/")[2]
        size = sum(log.size for log in self.logs)
        return CompactionOperation(partition, self.file_id, self.barrier, base, names, size)


def slice_file_group(
    bases: Iterable[BaseFile],
    logs: Iterable[LogFile],
    completion: Completion,
    *,
    planned: str | None = None,
    blocks: BlockScope | None = None,
) -> list[FileSlice]:
    """The slices of one file group, the newest first.

    Where the completion of a write equals a barrier, its log belongs to that barrier's slice, as in Hudi; the RFC has
    it the other way. Times that we give are never equal. A log whose write is pending belongs to the newest slice.

    Args:
        bases: Its base files.
        logs: Its log files, in any order.
        completion: When their writes completed.
        planned: Requested time of a compaction that is planned and not completed.
        blocks: Given for a table that is of version 6, or was.
    """
    ordered = sorted(logs)
    slices = {file.instant: FileSlice(file.partition, file.file_id, file.instant, file) for file in bases}
    if planned is not None and (slices or ordered) and planned not in slices:
        some = next(iter(slices.values()), None) or ordered[0]
        slices[planned] = FileSlice(some.partition, some.file_id, planned)
    for log in ordered:
        by_name = blocks is not None and blocks.names_bases
        barrier = log.instant if by_name else _find_barrier(log, slices, completion(log.instant))
        known = slices.get(barrier) or FileSlice(log.partition, log.file_id, barrier)
        slices[barrier] = replace(known, logs=(*known.logs, log), blocks=blocks)
    return sorted(slices.values(), key=attrgetter("barrier"), reverse=True)


def _find_barrier(log: LogFile, slices: Mapping[str, FileSlice], completed: str | None) -> str:
    if not slices:
        return log.instant
    if completed is None:
        return max(slices)
    return max((barrier for barrier in slices if barrier <= completed), default=log.instant)


def slice_file_groups(
    bases: Iterable[BaseFile],
    logs: Iterable[LogFile],
    completion: Completion,
    *,
    planned: Mapping[tuple[str, str], str] | None = None,
    blocks: BlockScope | None = None,
) -> dict[tuple[str, str], list[FileSlice]]:
    """`slice_file_group` for many, by (partition path, file id) in order.

    Args:
        bases: Base files of all of them.
        logs: Log files of all of them.
        completion: When their writes completed.
        planned: Requested time of the compaction that is planned, by file group.
        blocks: See `slice_file_group`.
    """
    files: dict[tuple[str, str], tuple[list[BaseFile], list[LogFile]]] = {}
    for base in bases:
        files.setdefault((base.partition, base.file_id), ([], []))[0].append(base)
    for log in logs:
        files.setdefault((log.partition, log.file_id), ([], []))[1].append(log)
    plans = planned or {}
    return {
        group: slice_file_group(*files[group], completion, planned=plans.get(group), blocks=blocks)
        for group in sorted(files)
    }


def join_planned(slices: list[FileSlice]) -> FileSlice:
    """What a reader merges: the newest slice, together with the one before while its base file is only planned."""
    newest, *older = slices
    if newest.base is not None or not older:
        return newest
    return replace(older[0], logs=(*older[0].logs, *newest.logs), blocks=newest.blocks)
