"""A world of processes that share one table: each storage call is a step, and a seeded choice says who goes on."""

from __future__ import annotations

import contextlib
import io
import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_locks.clock import Clock, ManualClock
from hudi_locks.errors import StorageError, WriteError
from hudi_locks.format import BaseFileName, CommitMetadata, Instant, IOType, State, WriteStat, add_ms, format_time
from hudi_locks.format.claim import Claim, ClaimKind, claim_path, decode_claim
from hudi_locks.lock import Owner
from hudi_locks.storage import Entry, MemoryStorage, Storage
from hudi_locks.timeline import LAYOUT_2, Timeline
from hudi_locks.timeline.archive import is_archived
from hudi_locks.timeline.heartbeat import WriterHeartbeat
from hudi_locks.transaction import Outcome, StopPoint, Transaction, Transactions
from hudi_locks.transaction.candidates import drop_void

START_MS = 1_700_000_000_000
MAX_STEPS = 4_000


class Crashed(BaseException):
    """The process is gone: none of its later steps has an effect."""


@dataclass
class Process:
    name: str
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    asleep_until: int = 0
    may_crash: bool = False
    is_crashed: bool = False
    is_done: bool = False
    ident: int | None = None


class World:
    """Processes as threads of which one runs at a time, on virtual time that passes with each step."""

    def __init__(self, seed: int, *, foreign: bool = False, crash: float = 0.0, lost: float = 0.0) -> None:
        self.rng = random.Random(seed)
        self.crash, self.lost = crash, lost
        self.stay = self.rng.choice((0.3, 0.6, 0.9))
        self.ticks = 0
        self.processes: list[Process] = []
        self.events: list[threading.Event] = []
        self.trail: list[str] = []
        self.errors: list[BaseException] = []
        self.main = threading.Semaphore(0)
        self.files = MemoryStorage(WorldClock(self))
        self.foreign = foreign
        self.completed_order: list[str] = []
        self.outcomes: dict[str, Outcome] = {}
        self.begun: dict[str, str] = {}
        self.lock_owner: Process | None = None

    def spawn(self, name: str, body: Callable[[], None], *, may_crash: bool = False) -> Process:
        process = Process(name, may_crash=may_crash)
        self.processes.append(process)

        def run() -> None:
            process.go.acquire()
            process.ident = threading.get_ident()
            try:
                body()
            except Crashed:
                pass
            except BaseException as error:
                self.errors.append(error)
            self._finish(process)

        threading.Thread(target=run, daemon=True, name=name).start()
        return process

    def run(self) -> None:
        self._choose(None).go.release()
        self.main.acquire()
        for event in self.events:
            event.set()
        if self.errors:
            raise self.errors[0]

    def step(self, label: str) -> None:
        process = self.mine()
        self.ticks += 1
        assert self.ticks < MAX_STEPS, "the history does not end"
        if process is None:
            return
        self._maybe_stop(process)
        following = self._choose(process)
        if following is not process:
            following.go.release()
            process.go.acquire()
        if process.is_crashed:
            raise Crashed
        self.trail.append(f"{process.name}: {label}")

    def mine(self) -> Process | None:
        ident = threading.get_ident()
        return next((p for p in self.processes if p.ident == ident and not p.is_done), None)

    def _maybe_stop(self, process: Process) -> None:
        if process.may_crash and not process.is_crashed and self.rng.random() < self.crash:
            process.is_crashed = True
        if process.is_crashed:
            self.trail.append(f"{process.name} is dead")
            if self.lock_owner is process:
                self.lock_owner = None
            raise Crashed
        if self.rng.random() < 0.04:
            process.asleep_until = self.ticks + self.rng.choice((20, 60, 200))

    def linger(self, point: StopPoint) -> None:
        """Processes like to stop for long, or to die, at the named points."""
        process = self.mine()
        if process is None:
            return
        if process.may_crash and point is StopPoint.PUBLISH_CLAIMED and self.rng.random() < 10 * self.crash:
            process.is_crashed = True
        if self.rng.random() < 0.15:
            process.asleep_until = self.ticks + self.rng.choice((30, 100))
        self.step(point.value)

    def _choose(self, process: Process | None) -> Process:
        alive = [p for p in self.processes if not p.is_done]
        awake = [p for p in alive if p.asleep_until <= self.ticks] or [min(alive, key=lambda p: p.asleep_until)]
        if process in awake and self.rng.random() < self.stay:
            return process
        return self.rng.choice(awake)

    def _finish(self, process: Process) -> None:
        process.is_done = True
        if any(not p.is_done for p in self.processes):
            self._choose(None).go.release()
        else:
            self.main.release()

    # ---- the product in this world ----
    def transactions(self, name: str, *, all_dead: bool = False, locks: Any = None, skew_ms: int = 0) -> Transactions:
        storage = SteppedStorage(self, all_dead=all_dead)
        extra = {} if self.foreign else {"hudi_locks.foreign_writers": "false"}
        config = SimpleNamespace(table_type="COPY_ON_WRITE", extra=extra)
        table: Any = SimpleNamespace(storage=storage, layout=LAYOUT_2, config=config)
        options = {"hudi_locks.max_clock_drift_ms": 10**9, "hoodie.time.generator.max_expected_clock_skew_ms": 2}
        clock = WorldClock(self, skew_ms=skew_ms)
        return Transactions(table, locks, options=options, clock=clock, owner=Owner(name), trace=self.linger)

    def writer(self, name: str, group: str, **how: Any) -> None:
        """Merge the newest slice of a file group with the own name, and publish."""
        transactions = self.transactions(name, **how)
        try:
            tx = transactions.begin("commit", "UPSERT")
        except StorageError:
            return
        self.begun[name] = tx.instant
        try:
            metadata = self.write(tx, group, name)
        except WriteError:
            tx.abort("a task was rolled back")
            self.outcomes[name] = Outcome.ABORTED
            return
        except StorageError:
            return
        outcome = tx.publish(metadata).outcome
        if outcome is Outcome.UNKNOWN:
            outcome = self._resolve(transactions, tx.instant)
        self.outcomes[name] = outcome

    def _resolve(self, transactions: Transactions, instant: str) -> Outcome:
        try:
            return transactions.resolve(instant)
        except StorageError:
            return Outcome.UNKNOWN

    def write(self, tx: Transaction, group: str, name: str) -> CommitMetadata:
        storage = tx.files.storage
        before = self.read_slice(storage, tx.timeline, group)
        file_name = str(BaseFileName(group, tx.instant))
        staged = tx.files.start("p", file_name, io_type=IOType.MERGE)
        storage.replace(staged.path, json.dumps([*before, name]).encode())
        tx.files.finish(staged)
        return CommitMetadata.of([WriteStat("p", group, f"p/{file_name}")], "UPSERT", schema="{}")

    def read_slice(self, storage: Storage, timeline: Timeline, group: str) -> list[str]:
        done = {instant.requested for instant in timeline.completed()}
        names = [BaseFileName.parse(entry.name) for entry in storage.list("p")]
        mine = sorted((n for n in names if n and n.file_id == group), key=lambda n: n.instant, reverse=True)
        for name in mine:
            if name.instant in done or is_archived(self.files, LAYOUT_2, requested=name.instant):
                found: list[str] = json.loads(storage.read(f"p/{name}") or b"[]")
                return found
        return []

    def cleaner(self, name: str = "cleaner", **how: Any) -> None:
        """Takes everybody for dead."""
        try:
            self.transactions(name, all_dead=True, **how).roll_back_failed()
        except StorageError:
            return

    def helper(self, **how: Any) -> None:
        """Rolls forward whatever it finds, at any moment."""
        transactions = self.transactions("helper", **how)
        for _ in range(3):
            with contextlib.suppress(StorageError):
                transactions.roll_back_failed()

    def archiver(self, *, lock: WorldLock | None = None) -> None:
        """Archives what is completed, in the order of the JVM: history, pending files, completed file."""
        storage = SteppedStorage(self)
        for _ in range(4):
            held = lock.lock() if lock else None
            for instant in Timeline.load(storage, LAYOUT_2).completed(("commit",)):
                self._archive(storage, instant)
            if held:
                held.release()

    def _archive(self, storage: Storage, instant: Instant) -> None:
        sink = pa.BufferOutputStream()
        data = storage.read(LAYOUT_2.path(instant))
        row = {"instantTime": [instant.requested], "completionTime": [instant.completion], "action": ["commit"]}
        row["metadata"] = [data]
        pq.write_table(pa.table(row), sink)
        name = f"{instant.requested}_{instant.requested}_0.parquet"
        storage.create_if_absent(f"{LAYOUT_2.archive}/{name}", sink.getvalue().to_pybytes())
        for state in (State.INFLIGHT, State.REQUESTED):
            storage.delete(LAYOUT_2.path(Instant(instant.requested, "commit", state)))
        storage.delete(LAYOUT_2.path(instant))

    # ---- a JVM writer, which knows nothing of claims ----
    def jvm_writer(self, group: str, lock: WorldLock) -> None:
        storage = SteppedStorage(self)
        held = lock.lock()
        known = Timeline.load(storage, LAYOUT_2)
        instant = Instant(self._next_time(known), "commit", State.REQUESTED)
        storage.create_if_absent(LAYOUT_2.path(instant), b"")
        storage.create_if_absent(f".hoodie/.heartbeat/{instant.requested}", b"")
        held.release()
        storage.create_if_absent(LAYOUT_2.path(instant.as_inflight()), b"")
        before = self.read_slice(storage, known, group)
        path = f"p/{BaseFileName(group, instant.requested)}"
        storage.create_if_absent(path, json.dumps([*before, "jvm"]).encode())
        held = lock.lock()
        now = Timeline.load(storage, LAYOUT_2)
        news = {i.requested for i in now.completed(("commit",))} - {i.requested for i in known.completed()}
        if not news and not self._archived_since(known) and now.get(instant.requested):
            stat = WriteStat("p", group, path)
            data = CommitMetadata.of([stat], "UPSERT", schema="{}").encode("commit", layout_version=2)
            storage.create_if_absent(LAYOUT_2.path(instant.as_completed(self._next_time(now))), data)
            self.begun["jvm"] = instant.requested
            self.outcomes["jvm"] = Outcome.COMMITTED
        held.release()

    def _archived_since(self, known: Timeline) -> bool:
        names = [entry.name.split("_")[0] for entry in self.files.list(LAYOUT_2.archive)]
        return any(known.get(name) is None or not known.is_completed(name) for name in names)

    def _next_time(self, known: Timeline) -> str:
        newest = known.newest_time()
        return max(format_time(self.now_ms()), add_ms(newest, 1) if newest else "")

    def jvm_cleaner(self, lock: WorldLock) -> None:
        """Rolls back, under the lock, pending instants of processes that have crashed."""
        storage = SteppedStorage(self)
        for _ in range(2):
            held = lock.lock()
            dead = {self.begun.get(p.name) for p in self.processes if p.is_crashed}
            for instant in Timeline.load(storage, LAYOUT_2).pending(("commit",)):
                if instant.requested in dead:
                    self._undo(storage, instant)
            held.release()

    def _undo(self, storage: Storage, instant: Instant) -> None:
        for path, entry in storage.walk("p"):
            if instant.requested in entry.name:
                storage.delete(path)
        storage.delete(LAYOUT_2.path(instant.as_inflight()))
        storage.delete(LAYOUT_2.path(instant.as_requested()))
        storage.delete_folder(f".hoodie/.temp/{instant.requested}")

    def now_ms(self) -> int:
        return START_MS + self.ticks

    # ---- what must hold in the end ----
    def claims(self) -> list[Claim]:
        found: list[Claim] = []
        while (data := self.files.read(claim_path(len(found) + 1))) is not None:
            found.append(decode_claim(data, len(found) + 1))
        return found

    def done(self) -> list[str]:
        active = [instant.requested for instant in Timeline.load(self.files, LAYOUT_2).completed(("commit",))]
        archived = [entry.name.split("_")[0] for entry in self.files.list(LAYOUT_2.archive)]
        return sorted({*active, *archived})

    def content(self, requested: str) -> tuple[str, list[str]] | None:
        for entry in self.files.list("p"):
            name = BaseFileName.parse(entry.name)
            if name and name.instant == requested:
                return name.file_id, json.loads(self.files.read(f"p/{entry.name}") or b"[]")
        return None

    def wrong(self) -> str:
        """What is wrong with the table after the history; "" if all holds."""
        checks = (self._wrong_files, self._wrong_updates, self._wrong_answers, self._wrong_order, self._wrong_archive)
        return next((found for check in checks if (found := check())), "")

    def _wrong_files(self) -> str:
        undone = {c.instant for c in self.claims() if c.kind in (ClaimKind.ROLLBACK, ClaimKind.VOID)}
        for requested in self.done():
            if self.content(requested) is None:
                return f"{requested} is completed, its file is gone"
            if requested in undone:
                return f"{requested} is completed and rolled back"
        return ""

    def _wrong_updates(self) -> str:
        names = {instant: name for name, instant in self.begun.items()}
        done = [(names[t], *found) for t in self.done() if (found := self.content(t)) and t in names]
        for place, (name, group, content) in enumerate(done):
            for other, other_group, _ in done[:place]:
                if other_group == group and other not in content:
                    return f"lost update: {name} is newer than {other}, and does not hold its rows"
        return ""

    def _wrong_answers(self) -> str:
        done = set(self.done())
        for name, outcome in self.outcomes.items():
            if outcome is Outcome.COMMITTED and self.begun[name] not in done:
                return f"{name} was told COMMITTED, and is not"
            if outcome is Outcome.ABORTED and self.begun[name] in done:
                return f"{name} was told ABORTED, and is completed"
            if outcome is Outcome.ABORTED and self.begun[name] in self._counted():
                return f"{name} was told ABORTED, and its claim counts"
        return ""

    def _counted(self) -> list[str]:
        return [claim.instant for claim in drop_void(self.claims()) if claim.kind is ClaimKind.PUBLISH]

    def _wrong_order(self) -> str:
        first = list(dict.fromkeys(self.completed_order))
        counted = self._counted()
        if not self.foreign and first != [requested for requested in counted if requested in first]:
            return f"completed files appeared in the order {first}, claimed in {counted}"
        return ""

    def _wrong_archive(self) -> str:
        active = {instant.requested for instant in Timeline.load(self.files, LAYOUT_2).completed(("commit",))}
        archived = {entry.name.split("_")[0] for entry in self.files.list(LAYOUT_2.archive)}
        waiting = [p for p in self.processes if p.is_crashed]
        return f"archived {active & archived} is back on the timeline" if active & archived and not waiting else ""

    def recover(self) -> None:
        """What the next writer does, once everybody is gone."""
        self.lost = 0.0
        for process in self.processes:
            process.is_done = True
        for _ in range(2):
            self.transactions("recovery", all_dead=True).roll_back_failed()


class WorldClock(Clock):
    """Passes with the steps; a process may be off by `skew_ms`. Other threads (heartbeats) sleep until the end."""

    def __init__(self, world: World, *, skew_ms: int = 0) -> None:
        self._world, self._skew_ms = world, skew_ms

    def monotonic(self) -> float:
        return self._world.ticks / 1000

    def wall_ms(self) -> int:
        return self._world.now_ms() + self._skew_ms

    def wait(self, event: threading.Event, timeout_s: float | None) -> bool:
        if self._world.mine() is None:
            self._world.events.append(event)
            return event.wait()
        self._world.ticks += round((timeout_s or 0) * 1000)
        self._world.step("sleep")
        return event.is_set()


class WorldLock:
    """A lock that works, and is freed when its holder crashes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.token = None

    def lock(self) -> WorldLock:
        self._world.step("lock")
        while self._world.lock_owner is not None:
            mine = self._world.mine()
            assert mine is not None
            mine.asleep_until = self._world.ticks + 10
            self._world.step("wait for the lock")
        self._world.lock_owner = self._world.mine()
        return self

    def verify(self) -> None:
        assert self._world.lock_owner is self._world.mine()

    def release(self) -> None:
        if self._world.lock_owner is self._world.mine():
            self._world.lock_owner = None


class SteppedStorage(Storage):
    """A process's view of the shared files: every call is a step; a claim's answer may be lost, and land late."""

    def __init__(self, world: World, *, all_dead: bool = False) -> None:
        self.base = world.files.base
        self._world, self._all_dead = world, all_dead

    def list(self, folder: str) -> list[Entry]:
        self._world.step(f"list {folder}")
        return self._world.files.list(folder)

    def read(self, path: str) -> bytes | None:
        self._world.step(f"read {path}")
        return self._world.files.read(path)

    def stat(self, path: str) -> Entry | None:
        self._world.step(f"stat {path}")
        return self._world.files.stat(path)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        self._world.step(f"create {path}")
        if "/claims/" in path and self._world.rng.random() < self._world.lost:
            self._lose(path, data)
        made = self._create(path, data) if self._world.rng.random() > self._world.lost / 8 else None
        self._fail_sometimes(path)
        if made is None:
            raise StorageError(f"no answer for {path}", path=path)
        return made

    def replace(self, path: str, data: bytes) -> None:
        self._world.step(f"replace {path}")
        self._world.files.replace(path, data)

    def touch(self, path: str) -> bool:
        self._world.step(f"touch {path}")
        return self._world.files.touch(path)

    def move_if_absent(self, source: str, target: str) -> bool:
        self._world.step(f"move {target}")
        return self._world.files.move_if_absent(source, target)

    def delete(self, path: str) -> bool:
        self._world.step(f"delete {path}")
        self._fail_sometimes(path)
        return self._world.files.delete(path)

    def delete_folder(self, folder: str) -> None:
        self._world.step(f"delete {folder}/")
        self._world.files.delete_folder(folder)

    def native(self, path: str) -> str:
        return self._world.files.native(path)

    def now_ms(self) -> int:
        return self._world.now_ms() + (3_600_000 if self._all_dead else 0)

    def _fail_sometimes(self, path: str) -> None:
        if self._world.mine() is not None and self._world.rng.random() < self._world.lost / 16:
            self._world.trail.append(f"  the answer to {path} is lost")
            raise StorageError(f"no answer for {path}", path=path)

    def _create(self, path: str, data: bytes) -> bool:
        made = self._world.files.create_if_absent(path, data)
        if made and path.endswith(".commit") and path.startswith(LAYOUT_2.folder):
            self._world.completed_order.append(path.rsplit("/", 1)[-1].split("_")[0])
        return made

    def _lose(self, path: str, data: bytes) -> None:
        fate = self._world.rng.choice(("answer", "late", "late", "never"))
        self._world.trail.append(f"  the answer to {path} is lost ({fate})")
        if fate == "answer":
            self._create(path, data)
        if fate == "late":
            self._world.spawn("late request", partial(self._land, path, data))
        raise StorageError(f"no answer for {path}", path=path)

    def _land(self, path: str, data: bytes) -> None:
        for _ in range(self._world.rng.choice((1, 10, 40))):
            self._world.step("a request is under way")
        self._create(path, data)


Histories = Callable[..., World]


def play_native(seed: int, *, writers: Mapping[str, str] | None = None) -> World:
    """Two or three writers, a cleaner that takes the living for dead, a helper, an archiver; no lock at all."""
    world = World(seed, crash=(0.0, 0.004, 0.01)[seed % 3], lost=(0.0, 0.1, 0.3)[seed % 3])
    for number, (name, group) in enumerate((writers or {"w0": "g-0", "w1": "g-0", "w2": "h-0"}).items()):
        skew_ms = world.rng.choice((0, 0, -40, 40))
        world.spawn(name, partial(world.writer, name, group, skew_ms=skew_ms), may_crash=number < 2)
    world.spawn("cleaner", world.cleaner, may_crash=True)
    if seed % 2:
        world.spawn("helper", world.helper)
    if seed % 3 == 0:
        world.spawn("archiver", world.archiver)
    world.run()
    world.recover()
    return world


def play_mixed(seed: int) -> World:
    """Two writers that crash, a JVM writer, cleaner and archiver that ignore claims; the lock works."""
    world = World(seed, foreign=True, crash=(0.002, 0.01, 0.02)[seed % 3])
    lock = WorldLock(world)
    for name in ("w0", "w1"):
        world.spawn(name, partial(world.writer, name, "g-0", locks=lock), may_crash=True)
    world.spawn("jvm", partial(world.jvm_writer, "g-0", lock))
    world.spawn("jvm cleaner", partial(world.jvm_cleaner, lock))
    world.spawn("archiver", partial(world.archiver, lock=lock))
    world.run()
    world.recover()
    return world


@pytest.fixture
def native() -> Histories:
    return play_native


@pytest.fixture
def mixed() -> Histories:
    return play_mixed


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


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    clock = DeskClock()
    beating: list[WriterHeartbeat] = []
    start = WriterHeartbeat.start

    def remember(heartbeat: WriterHeartbeat) -> bool:
        beating.append(heartbeat)
        return start(heartbeat)

    monkeypatch.setattr(WriterHeartbeat, "start", remember)
    yield Desk(clock, MemoryStorage(clock))
    for heartbeat in beating:
        heartbeat.pause()


@pytest.fixture
def at() -> Callable[[StopPoint, Callable[[], object]], Any]:
    """A tracer that does something once, when a writer comes to a stop point."""

    def make(point: StopPoint, action: Callable[[], object]) -> Any:
        left = [action]

        def trace(reached: StopPoint) -> None:
            if reached is point and left:
                left.pop()()

        return trace

    return make


@pytest.fixture
def clustering_plan() -> Callable[..., bytes]:
    """The plan of a JVM clustering, with the fields that matter."""
    piece: dict[str, Any] = {"type": "record", "name": "HoodieSliceInfo", "fields": []}
    piece["fields"] = [
        {"name": "partitionPath", "type": ["null", "string"]},
        {"name": "fileId", "type": ["null", "string"]},
    ]
    group: dict[str, Any] = {"type": "record", "name": "HoodieClusteringGroup"}
    group["fields"] = [{"name": "slices", "type": ["null", {"type": "array", "items": piece}]}]
    plan: dict[str, Any] = {"type": "record", "name": "HoodieClusteringPlan"}
    plan["fields"] = [{"name": "inputGroups", "type": ["null", {"type": "array", "items": group}]}]
    schema: dict[str, Any] = {"type": "record", "name": "HoodieRequestedReplaceMetadata"}
    schema["fields"] = [{"name": "clusteringPlan", "type": ["null", plan]}]

    def encode(*groups: tuple[str, str]) -> bytes:
        slices = [{"partitionPath": partition, "fileId": file_id} for partition, file_id in groups]
        sink = io.BytesIO()
        fastavro.writer(sink, schema, [{"clusteringPlan": {"inputGroups": [{"slices": slices}]}}])
        return sink.getvalue()

    return encode
