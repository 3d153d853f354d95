"""One table in memory on virtual time, with what JVM peers leave behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks.clock import ManualClock
from hudi_locks.errors import AcquireTimeout, LockLost, StorageError
from hudi_locks.format import BaseFileName, CommitMetadata, Instant, IOType, State, WriteStat
from hudi_locks.format.claim import Claim, claim_path, decode_claim
from hudi_locks.lock import Owner
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_2, Timeline
from hudi_locks.transaction import Outcome, StopPoint, Transaction, Transactions


class DeskClock(ManualClock):
    """Virtual time that passes while somebody sleeps."""

    def sleep(self, duration_s: float) -> None:
        self.advance(duration_s)


@dataclass
class Desk:
    """One table in memory on virtual time, for plain tests: processes are Transactions objects of their own."""

    clock: ManualClock
    storage: MemoryStorage
    foreign: bool = False
    table_type: str = "COPY_ON_WRITE"

    def open(self, *, trace: Any = None, storage: Any = None, locks: Any = None, **options: Any) -> Transactions:
        extra = {} if self.foreign else {"hudi_locks.foreign_writers": "false"}
        config = SimpleNamespace(table_type=self.table_type, extra=extra)
        table: Any = SimpleNamespace(storage=storage or self.storage, layout=LAYOUT_2, config=config)
        given = {"hoodie.time.generator.max_expected_clock_skew_ms": 0}
        given |= {name.replace("__", "."): value for name, value in options.items()}
        return Transactions(
            table, locks, options=given, clock=self.clock, owner=Owner("me", application="job"), trace=trace
        )

    def write(self, tx: Transaction, *groups: str, partition: str = "p") -> CommitMetadata:
        stats = []
        for group in groups:
            name = str(BaseFileName(group, tx.instant))
            staged = tx.files.start(partition, name, io_type=IOType.MERGE)
            self.storage.replace(staged.path, b"rows")
            assert tx.files.finish(staged)
            stats.append(WriteStat(partition, group, f"{partition}/{name}" if partition else name))
        return CommitMetadata.of(stats, "UPSERT", schema="{}")

    def commit(self, *groups: str) -> str:
        tx = self.open().begin("commit", "UPSERT")
        assert tx.publish(self.write(tx, *groups)).outcome is Outcome.COMMITTED
        return tx.instant

    def foreign_commit(self, requested: str, completion: str, *groups: str) -> None:
        """What a JVM writer leaves behind."""
        instant = Instant(requested, "commit", State.REQUESTED)
        stats = [WriteStat("p", group, f"p/{BaseFileName(group, requested)}") for group in groups]
        data = CommitMetadata.of(stats, "UPSERT", schema="{}").encode("commit", layout_version=2)
        for stat in stats:
            self.storage.create_if_absent(str(stat.path), b"theirs")
        self.storage.create_if_absent(LAYOUT_2.path(instant), b"")
        self.storage.create_if_absent(LAYOUT_2.path(instant.as_inflight()), b"")
        self.storage.create_if_absent(LAYOUT_2.path(instant.as_completed(completion)), data)

    def archive(self, requested: str) -> None:
        """What an archiver does, in its order."""
        found = Timeline.load(self.storage, LAYOUT_2).get(requested)
        assert found is not None
        row = {"instantTime": [requested], "completionTime": [found.completion], "action": [found.action]}
        row["metadata"] = [self.storage.read(LAYOUT_2.path(found))]
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(row), sink)
        self.storage.replace(f"{LAYOUT_2.archive}/{requested}_{requested}_0.parquet", sink.getvalue().to_pybytes())
        for state in (State.INFLIGHT, State.REQUESTED):
            self.storage.delete(LAYOUT_2.path(Instant(requested, "commit", state)))
        self.storage.delete(LAYOUT_2.path(found))

    def timeline(self) -> Timeline:
        return Timeline.load(self.storage, LAYOUT_2)

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


class Mortal:
    """A process that dies at a stop point, its heartbeat with it."""

    def __init__(self, desk: Any, at: At, point: StopPoint) -> None:
        self.is_dead = False
        storage = FailingStorage(desk.storage, lambda verb, _: self.is_dead and verb == "touch")
        self.transactions = desk.open(storage=storage, trace=at(point, self.die))

    def die(self) -> None:
        self.is_dead = True
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
