"""Commits of a small table in memory, with files of known sizes, and what a reader asks of its storage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hudi_locks.clock import ManualClock
from hudi_locks.format import (
    BaseFileName,
    CleanMetadata,
    CleanPartition,
    CommitMetadata,
    Instant,
    LogFileName,
    State,
    WriteStat,
)
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import Table, TableConfig, create_partition_metadata, latest_file_slices
from hudi_locks.timeline import create_instant

__all__ = ["PARTITION", "CountingStorage", "Writes", "made_in", "time"]

PARTITION = "p=1"


def time(n: int) -> str:
    return f"202611210000{n:05d}"


class CountingStorage(MemoryStorage):
    """Counts reads, and lets something happen after a folder was listed."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.reads: list[str] = []
        self.after_list: dict[str, Callable[[], object]] = {}

    def read(self, path: str) -> bytes | None:
        self.reads.append(path)
        return super().read(path)

    def list(self, folder: str) -> list:  # type: ignore[type-arg]
        act = self.after_list.pop(folder, None)
        if act is not None:
            act()
        return super().list(folder)


@dataclass
class Writes:
    """Commits of a table in memory, each with the sizes of its files."""

    table: Table
    storage: CountingStorage

    def put(
        self,
        n: int,
        *groups: str,
        logs: tuple[str, ...] = (),
        action: str = "commit",
        ends: tuple[str, ...] = (),
        completion: int | None = None,
    ) -> list[str]:
        names = [str(BaseFileName(group, time(n))) for group in groups]
        names += [str(LogFileName(group, time(n))) for group in logs]
        stats = []
        for group, name in zip((*groups, *logs), names, strict=True):
            path = f"{PARTITION}/{name}"
            self.storage.replace(path, b"0123456789")
            version = 1 if name.startswith(".") else None
            stats.append(WriteStat(PARTITION, group, path, file_size_bytes=10, log_version=version, log_offset=0))
        replaced = {PARTITION: ends} if ends else None
        commit = CommitMetadata.of(stats, "UPSERT", schema="{}", replaced_file_ids=replaced)
        done = n + 1 if completion is None else completion
        instant = Instant(time(n), action, State.COMPLETED, time(done))
        assert create_instant(
            self.storage, self.table.layout, instant=instant, data=commit.encode(action, layout_version=2)
        )
        return [str(stat.path) for stat in stats]

    def clean(self, n: int, *paths: str) -> None:
        names = tuple(path.rpartition("/")[2] for path in paths)
        done = CleanMetadata(time(n), 1, "", "", "K", {PARTITION: CleanPartition(names)})
        instant = Instant(time(n), "clean", State.COMPLETED, time(n + 1))
        create_instant(self.storage, self.table.layout, instant=instant, data=done.encode())
        for path in paths:
            self.storage.delete(path)

    def slices(self, **limits: str) -> tuple[object, ...]:
        return latest_file_slices(self.storage, self.table.timeline(), **limits)  # type: ignore[arg-type]

    def begin(self, n: int, action: str = "commit") -> None:
        create_instant(self.storage, self.table.layout, instant=Instant(time(n), action, State.INFLIGHT))


def made_in(storage: CountingStorage) -> Writes:
    table = Table.create(storage, TableConfig("t", ("id",), ("p",), hive_style=True))
    create_partition_metadata(storage, PARTITION, instant=time(1))
    return Writes(table, storage)
