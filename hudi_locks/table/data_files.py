"""The files that hold rows, as a listing of the partitions shows them, whether their writes were completed or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from hudi_locks.format import BaseFileName, LogFileName
from hudi_locks.storage import Entry, Storage, map_in_threads
from hudi_locks.table.partition_path import PARTITION_METADATA

__all__ = ["BaseFile", "DataFiles", "LogFile", "list_base_files", "list_data_files", "list_partitions"]

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

    @classmethod
    def parse(cls, partition: str, name: str, size: int) -> BaseFile | None:
        """The base file of this name in a partition; None if it is none."""
        found = BaseFileName.parse(name)
        return None if found is None else cls(partition, found.file_id, found.instant, _join(partition, name), size)


@dataclass(frozen=True, order=True)
class LogFile:
    """A log file; the order is that in which readers apply the logs of a slice.

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
        found = LogFileName.parse(name)
        if found is None or found.is_cdc:
            return None
        return cls(
            partition, found.file_id, found.instant, found.version, found.write_token, _join(partition, name), size
        )


@dataclass(frozen=True)
class DataFiles:
    """Base and log files of some partitions, each in order."""

    bases: tuple[BaseFile, ...]
    logs: tuple[LogFile, ...]

    @property
    def both(self) -> tuple[BaseFile | LogFile, ...]:
        """All of them, base files first."""
        return (*self.bases, *self.logs)


def list_partitions(storage: Storage) -> tuple[str, ...]:
    """Partition paths in order: every folder that is marked as a partition; "" if the table itself is."""
    found: list[str] = []
    level = [""]
    while level:
        listed = zip(level, map_in_threads(storage.list, level), strict=True)
        level = []
        for folder, entries in listed:
            if any(entry.name.startswith(PARTITION_METADATA) for entry in entries):
                found.append(folder)
            else:
                level += [_join(folder, e.name) for e in entries if e.is_folder and e.name != _HOODIE]
    return tuple(sorted(found))


def list_base_files(storage: Storage, partitions: Iterable[str]) -> list[BaseFile]:
    """Every base file in these partitions, in order, whether its write was completed or not."""
    return list(list_data_files(storage, partitions).bases)


def list_data_files(storage: Storage, partitions: Iterable[str]) -> DataFiles:
    """Every base and log file in these partitions."""
    folders = sorted(set(partitions))
    listed = list(zip(folders, map_in_threads(storage.list, folders), strict=True))
    bases = sorted(file for folder, entries in listed for file in _base_files(folder, entries))
    return DataFiles(tuple(bases), tuple(sorted(file for folder, entries in listed for file in _logs(folder, entries))))


def _base_files(partition: str, entries: Iterable[Entry]) -> Iterator[BaseFile]:
    named = (BaseFile.parse(partition, entry.name, entry.size) for entry in entries if not entry.is_folder)
    return filter(None, named)


def _logs(folder: str, entries: Iterable[Entry]) -> Iterator[LogFile]:
    named = (LogFile.parse(folder, entry.name, entry.size) for entry in entries if not entry.is_folder)
    return filter(None, named)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
