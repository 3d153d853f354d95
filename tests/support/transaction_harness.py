"""One table in memory on virtual time, with what JVM peers leave behind."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks.clock import ManualClock
from hudi_locks.errors import AcquireTimeout, LockLost, StorageError
from hudi_locks.format import (
    BaseFileName,
    CommitMetadata,
    Instant,
    IOType,
    LogFileName,
    State,
    WriteStat,
    decode_properties,
)
from hudi_locks.format.claim import Claim, claim_path, decode_claim
from hudi_locks.lock import Owner
from hudi_locks.markers import StagedFiles
from hudi_locks.storage import MemoryStorage, StagedFile, Storage
from hudi_locks.table import PROPERTIES_PATH
from hudi_locks.timeline import LAYOUT_2, Timeline, TimelineLayout, index_files
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER, WriterHeartbeat
from hudi_locks.transaction import Outcome, StopPoint, Transaction, Transactions


def write_staged(staged: StagedFile, data: bytes) -> None:
    """As a task does."""
    with staged.open() as out:
        out.write(data)


def write_file(files: StagedFiles, partition: str, name: str, data: bytes, *, io_type: IOType = IOType.CREATE) -> str:
    """Make a data file as a task does; its ticket."""
    staged = files.start(partition, name, io_type=io_type)
    write_staged(staged, data)
    return files.seal(staged)


def name_files(storage: Storage, stats: Iterable[WriteStat]) -> None:
    """As whoever settles the claim does."""
    for stat in stats:
        assert stat.path is None or storage.redeem(str(stat.ticket), stat.path)


def without_tickets(stats: Iterable[WriteStat]) -> list[WriteStat]:
    """What two attempts of one task have in common."""
    return [replace(stat, ticket=None) for stat in stats]


MODE, OPTIMISTIC = "hoodie.write.concurrency.mode", "OPTIMISTIC_CONCURRENCY_CONTROL"


class HarnessClock(ManualClock):
    """Virtual time that passes while somebody sleeps."""

    def sleep(self, duration_s: float) -> None:
        self.advance(duration_s)


def read_version(storage: Storage, layout: TimelineLayout) -> int:
    """Of a table, which need not have properties."""
    data = storage.read(PROPERTIES_PATH)
    properties = decode_properties(data or b"", PROPERTIES_PATH)
    return int(properties.get("hoodie.table.version") or {1: 6, 2: 8}[layout.version])


class OpenLock:
    """A lock that excludes nobody and never says so: several writers are meant, and only claims keep them apart."""

    token = None

    def lock(self) -> OpenLock:
        return self

    def verify(self) -> None:
        """It is held, as always."""

    def release(self) -> None:
        """Nobody waits for it."""


OPEN_LOCK = OpenLock()


@dataclass
class Harness:
    """One table in memory on virtual time, for plain tests: processes are Transactions objects of their own."""

    clock: ManualClock
    storage: MemoryStorage
    foreign: bool = False
    table_type: str = "COPY_ON_WRITE"
    layout: TimelineLayout = LAYOUT_2

    def open(self, *, trace: Any = None, storage: Any = None, locks: Any = OPEN_LOCK, **options: Any) -> Transactions:
        """One of several writers, as far as the options do not say otherwise."""
        extra = {} if self.foreign else {"hudi_locks.foreign_writers": "false"}
        version = read_version(self.storage, self.layout)
        config = SimpleNamespace(table_type=self.table_type, version=version, extra=extra)
        table: Any = SimpleNamespace(storage=storage or self.storage, layout=self.layout, config=config)
        given: dict[str, Any] = {"hoodie.time.generator.max_expected_clock_skew_ms": 0, MODE: OPTIMISTIC}
        given |= {name.replace("__", "."): value for name, value in options.items()}
        return Transactions(
            table, locks, options=given, clock=self.clock, owner=Owner("me", application="job"), trace=trace
        )

    def open_single(self, **options: Any) -> Transactions:
        """A single writer without a lock."""
        return self.open(**{"locks": None, MODE: "SINGLE_WRITER", **options})

    def log(self, tx: Transaction, *groups: str) -> CommitMetadata:
        """The same to logs."""
        stats = []
        for group in groups:
            name = str(LogFileName(group, tx.instant))
            ticket = write_file(tx.files, "p", name, b"rows")
            stats.append(WriteStat("p", group, f"p/{name}", log_version=1, ticket=ticket))
        return CommitMetadata.of(stats, "UPSERT", schema="{}")

    def write(self, tx: Transaction, *groups: str, partition: str = "p", data: bytes = b"rows") -> CommitMetadata:
        stats = []
        for group in groups:
            name = str(BaseFileName(group, tx.instant))
            ticket = write_file(tx.files, partition, name, data, io_type=IOType.MERGE)
            stats.append(WriteStat(partition, group, f"{partition}/{name}" if partition else name, ticket=ticket))
        return CommitMetadata.of(stats, "UPSERT", schema="{}")

    def commit(self, *groups: str) -> str:
        tx = self.open().begin("commit", "UPSERT")
        assert tx.publish(self.write(tx, *groups)).outcome is Outcome.COMMITTED
        return tx.instant

    def foreign_commit(self, requested: str, completion: str, *groups: str) -> None:
        """What a JVM writer leaves behind."""
        instant = Instant(requested, "commit", State.REQUESTED)
        stats = [WriteStat("p", group, f"p/{BaseFileName(group, requested)}") for group in groups]
        data = CommitMetadata.of(stats, "UPSERT", schema="{}").encode("commit", layout_version=self.layout.version)
        for stat in stats:
            self.storage.create_if_absent(str(stat.path), b"theirs")
        self.storage.create_if_absent(self.layout.path(instant), b"")
        self.storage.create_if_absent(self.layout.path(instant.as_inflight()), b"")
        self.storage.create_if_absent(self.layout.path(instant.as_completed(completion)), data)

    def archive(self, requested: str) -> None:
        """What an archiver does, in its order."""
        found = Timeline.load(self.storage, self.layout).get(requested)
        assert found is not None
        row = {"instantTime": [requested], "completionTime": [found.completion], "action": [found.action]}
        row["metadata"] = [self.storage.read(self.layout.path(found))]
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(row), sink)
        self.storage.replace(f"{self.layout.archive}/{requested}_{requested}_0.parquet", sink.getvalue().to_pybytes())
        for path in index_files(self.storage, self.layout)[(requested, found.action)]:
            self.storage.delete(path)

    def timeline(self) -> Timeline:
        return Timeline.load(self.storage, self.layout)

    def claims(self) -> list[Claim]:
        found: list[Claim] = []
        while (data := self.storage.read(claim_path(len(found) + 1))) is not None:
            found.append(decode_claim(data, len(found) + 1))
        return found

    def names(self, folder: str) -> list[str]:
        return [entry.name for entry in self.storage.list(folder)]


At = Callable[[StopPoint, Callable[[], object]], Any]


class Killed(BaseException):
    pass


def kill() -> None:
    raise Killed


def stop_at(point: StopPoint, action: Callable[[], object] = kill) -> Any:
    """A tracer that acts the first time a process comes to a point."""
    left = [action]

    def trace(reached: StopPoint) -> None:
        if reached is point and left:
            left.pop()()

    return trace


class FailingStorage(MemoryStorage):
    """Shares the files of another storage; fails when `fails(verb, path)` says so."""

    def __init__(self, files: MemoryStorage, fails: Callable[[str, str], bool]) -> None:
        super().__init__(files._clock)
        self._files = files._files
        self._fails = fails

    def create_if_absent(self, path: str, data: bytes) -> bool:
        if self._fails("create", path):
            raise StorageError(f"cannot create {path}: no space left on device", path=path)
        return super().create_if_absent(path, data)

    def touch(self, path: str) -> bool:
        if self._fails("touch", path):
            raise StorageError(f"cannot touch {path}", path=path)
        return super().touch(path)


class CountingStorage(MemoryStorage):
    """The files of a harness; counts what is asked of them from outside."""

    def __init__(self, files: MemoryStorage) -> None:
        super().__init__(files._clock)
        self._theirs = files
        self.calls: Counter[tuple[str, str]] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name not in _VERBS:
            return super().__getattribute__(name)
        theirs, calls = getattr(self._theirs, name), self.calls

        def count(*paths: Any, **how: Any) -> Any:
            calls[name, ", ".join([paths[0]] if isinstance(paths[0], str) else paths[0])] += 1
            return theirs(*paths, **how)

        return count

    @property
    def listings(self) -> int:
        return self.calls["list", LAYOUT_2.folder] + self.calls["list_names", LAYOUT_2.folder]


_VERBS = frozenset(name for name in vars(Storage) if not name.startswith("_")) - {"base", "capabilities", "now_ms"}


def move_elsewhere(storage: MemoryStorage) -> None:
    """Let all heartbeats be of processes on other machines, of which nobody here knows whether they live."""
    for entry in storage.list(HEARTBEAT_FOLDER):
        storage.replace(f"{HEARTBEAT_FOLDER}/{entry.name}", b"")


class Mortal:
    """A process on another machine that dies at a stop point, its heartbeat with it."""

    def __init__(self, harness: Any, at: At, point: StopPoint) -> None:
        self.is_dead = False
        self._files = harness.storage
        storage = FailingStorage(harness.storage, lambda verb, _: self.is_dead and verb == "touch")
        self.transactions = harness.open(storage=storage, trace=at(point, self.die))

    def die(self) -> None:
        self.is_dead = True
        move_elsewhere(self._files)
        raise Killed


class LosingLock:
    token = 7

    def __init__(self) -> None:
        self.is_lost, self.is_refused, self.holds = False, False, 0

    def lock(self) -> LosingLock:
        if self.is_refused:
            raise AcquireTimeout("somebody else has it")
        self.holds += 1
        return self

    def verify(self) -> None:
        if self.is_lost:
            raise LockLost("the lock is gone")

    def release(self) -> None:
        self.holds -= 1
        if self.is_lost:
            raise LockLost("the lock is gone")


@contextlib.contextmanager
def heartbeats_that_end(monkeypatch: Any) -> Iterator[None]:
    """Let every writer heartbeat that was started in the block end with it."""
    beating: list[WriterHeartbeat] = []
    start = WriterHeartbeat.start

    def remember(heartbeat: WriterHeartbeat) -> bool:
        beating.append(heartbeat)
        return start(heartbeat)

    monkeypatch.setattr(WriterHeartbeat, "start", remember)
    yield
    for heartbeat in beating:
        heartbeat.pause()
