"""A simulator of processes that share one table: each storage call is a step, and a seeded choice says who goes on."""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from transaction_harness import MODE, OPEN_LOCK, OPTIMISTIC, read_version, write_file
from transaction_store import Crashed, Process, SimulatorClock, SimulatorLock, SteppedStorage, in_turn

from hudi_locks.errors import StorageError, WriteError
from hudi_locks.format import BaseFileName, CommitMetadata, Instant, IOType, State, WriteStat, add_ms, format_time
from hudi_locks.format.claim import Claim, ClaimKind, claim_path, decode_claim
from hudi_locks.format.rollback import RollbackMetadata, RollbackPartition, RollbackPlan, RollbackRequest
from hudi_locks.lock import Owner
from hudi_locks.markers import staging_folder
from hudi_locks.storage import MemoryStorage, Storage
from hudi_locks.timeline import LAYOUT_2, Timeline, TimelineLayout
from hudi_locks.timeline.archive import is_archived
from hudi_locks.transaction import Conflict, Outcome, StopPoint, Transaction, Transactions
from hudi_locks.transaction.operations import drop_void

START_MS = 1_700_000_000_000
MAX_STEPS = 4_000


class Simulator:
    """Processes as threads of which one runs at a time, on virtual time that passes with each step."""

    max_steps = MAX_STEPS
    layout: TimelineLayout = LAYOUT_2
    table_type = "COPY_ON_WRITE"
    action = "commit"
    mode: ClassVar[Mapping[str, object]] = {MODE: OPTIMISTIC}

    def __init__(self, rng: random.Random, *, foreign: bool = False, crash: float = 0.0, lost: float = 0.0) -> None:
        self.rng = rng
        self.crash, self.lost = crash, lost
        self.stay = self.rng.choice((0.3, 0.6, 0.9))
        self.ticks = 0
        self.home = threading.get_ident()
        self.processes: list[Process] = []
        self.events: list[threading.Event] = []
        self.trail: list[str] = []
        self.errors: list[BaseException] = []
        self.main = threading.Semaphore(0)
        self.files = MemoryStorage(SimulatorClock(self))
        self.foreign = foreign
        self.completed_order: list[str] = []
        self.outcomes: dict[str, Outcome] = {}
        self.begun: dict[str, str] = {}
        self.conflicts: list[Conflict] = []
        self.lock_owner: Process | None = None

    def spawn(self, name: str, body: Callable[[], None], *, may_crash: bool = False, frailty: float = 1.0) -> Process:
        process = Process(name, may_crash=may_crash, frailty=frailty)
        self.processes.append(process)

        def run() -> None:
            process.go.acquire()
            process.ident = threading.get_ident()
            try:
                body()
            except BaseException as error:
                if not isinstance(error, Crashed):
                    self.errors.append(error)
            self._finish(process)

        threading.Thread(target=run, daemon=True, name=name).start()
        return process

    def run(self) -> None:
        with in_turn():
            self._choose(None).go.release()
            self.main.acquire()
        for event in self.events:
            event.set()
        if self.errors:
            raise self.errors[0]

    def step(self, label: str) -> None:
        process = self.mine()
        self.ticks += 1
        assert self.ticks < self.max_steps, "the history does not end"
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
        if process.may_crash and not process.is_crashed and self.rng.random() < self.crash * process.frailty:
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

    def note_deletion(self, path: str) -> None:
        """Called before a process deletes a file."""

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

    # ---- the product under simulation ----
    def open_store(self, *, all_dead: bool = False) -> SteppedStorage:
        """What a process sees of the shared files."""
        return SteppedStorage(self, all_dead=all_dead)

    def transactions(self, name: str, *, all_dead: bool = False, locks: Any = None, skew_ms: int = 0) -> Transactions:
        storage = self.open_store(all_dead=all_dead)
        extra = {} if self.foreign else {"hudi_locks.foreign_writers": "false"}
        config = SimpleNamespace(table_type=self.table_type, version=read_version(self.files, self.layout), extra=extra)
        table: Any = SimpleNamespace(storage=storage, layout=self.layout, config=config)
        options: dict[str, object] = {
            "hudi_locks.max_clock_drift_ms": 10**9,
            "hoodie.time.generator.max_expected_clock_skew_ms": 2,
            **self.mode,
        }
        clock = SimulatorClock(self, skew_ms=skew_ms)
        return Transactions(
            table, locks or OPEN_LOCK, options=options, clock=clock, owner=Owner(name), trace=self.linger
        )

    def writer(self, name: str, group: str, **how: Any) -> None:
        """Merge the newest slice of a file group with the own name, and publish."""
        transactions = self.transactions(name, **how)
        try:
            tx = transactions.begin(self.action, "UPSERT")
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
        result = tx.publish(metadata)
        self.conflicts += [result.conflict] if result.conflict else []
        outcome = result.outcome
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
        ticket = write_file(tx.files, "p", file_name, json.dumps([*before, name]).encode(), io_type=IOType.MERGE)
        return CommitMetadata.of([WriteStat("p", group, f"p/{file_name}", ticket=ticket)], "UPSERT", schema="{}")

    def read_slice(self, storage: Storage, timeline: Timeline, group: str) -> list[str]:
        done = {instant.requested for instant in timeline.completed()}
        names = [BaseFileName.parse(entry.name) for entry in storage.list("p")]
        mine = sorted((n for n in names if n and n.file_id == group), key=lambda n: n.instant, reverse=True)
        for name in mine:
            if name.instant in done or is_archived(self.files, self.layout, requested=name.instant):
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

    def archiver(self, *, lock: SimulatorLock | None = None) -> None:
        """Archives what is completed, in the order of the JVM: history, pending files, completed file."""
        storage = SteppedStorage(self)
        for _ in range(4):
            held = lock.lock() if lock else None
            for instant in Timeline.load(storage, self.layout).completed(("commit",)):
                self._archive(storage, instant, is_foreign=lock is not None)
            if held:
                held.release()

    def _archive(self, storage: Storage, instant: Instant, *, is_foreign: bool) -> None:
        sink = pa.BufferOutputStream()
        data = storage.read(self.layout.path(instant))
        row = {"instantTime": [instant.requested], "completionTime": [instant.completion], "action": ["commit"]}
        row["metadata"] = [data]
        pq.write_table(pa.table(row), sink)
        name = f"{instant.requested}_{instant.requested}_0.parquet"
        storage.create_if_absent(f"{self.layout.archive}/{name}", sink.getvalue().to_pybytes())
        for state in (State.INFLIGHT, State.REQUESTED):
            storage.delete(self.layout.path(Instant(instant.requested, "commit", state)))
        if not is_foreign:
            storage.delete_folder(staging_folder(instant.requested))
        storage.delete(self.layout.path(instant))

    # ---- a JVM writer, which knows nothing of claims ----
    def jvm_writer(self, group: str, lock: SimulatorLock, *, name: str = "jvm") -> None:
        storage = SteppedStorage(self)
        held = lock.lock()
        known = Timeline.load(storage, self.layout)
        instant = Instant(self._next_time(known), "commit", State.REQUESTED)
        storage.create_if_absent(self.layout.path(instant), b"")
        storage.create_if_absent(f".hoodie/.heartbeat/{instant.requested}", b"")
        held.release()
        storage.create_if_absent(self.layout.path(instant.as_inflight()), b"")
        before = self.read_slice(storage, known, group)
        if not self.may_write(instant):
            return
        path = f"p/{BaseFileName(group, instant.requested)}"
        storage.create_if_absent(path, json.dumps([*before, name]).encode())
        held = lock.lock()
        now = Timeline.load(storage, self.layout)
        news = {i.requested for i in now.completed(("commit",))} - {i.requested for i in known.completed()}
        if not news and not self._archived_since(known) and now.get(instant.requested):
            stat = WriteStat("p", group, path)
            data = CommitMetadata.of([stat], "UPSERT", schema="{}").encode("commit", layout_version=self.layout.version)
            storage.create_if_absent(self.layout.path(instant.as_completed(self._next_time(now))), data)
            self.begun[name] = instant.requested
            self.outcomes[name] = Outcome.COMMITTED
            self.files.delete(f".hoodie/.heartbeat/{instant.requested}")
        held.release()

    def may_write(self, instant: Instant) -> bool:
        """Whether a JVM writer makes its file now, though others may have taken it for dead."""
        del instant
        return True

    def _archived_since(self, known: Timeline) -> bool:
        return any(known.get(time) is None or not known.is_completed(time) for time in self.list_archived())

    def list_archived(self) -> set[str]:
        """Requested times of what is archived."""
        return {entry.name.split("_")[0] for entry in self.files.list(self.layout.archive)}

    def _next_time(self, known: Timeline) -> str:
        newest = known.newest_time()
        return max(format_time(self.now_ms()), add_ms(newest, 1) if newest else "")

    def jvm_cleaner(self, lock: SimulatorLock) -> None:
        """Rolls back, under the lock, pending instants of processes that have crashed."""
        storage = SteppedStorage(self)
        for _ in range(2):
            held = lock.lock()
            dead = {self.begun.get(p.name) for p in self.processes if p.is_crashed}
            for instant in Timeline.load(storage, self.layout).pending(("commit",)):
                if instant.requested in dead:
                    self._undo(storage, instant)
            held.release()

    def _undo(self, storage: Storage, instant: Instant) -> None:
        """In the order of the JVM: the rollback is in the timeline before anything of the write goes."""
        known = Timeline.load(storage, self.layout)
        rollback = Instant(self._next_time(known), "rollback", State.REQUESTED)
        files = [path for path, entry in storage.walk("p") if instant.requested in entry.name]
        plan = RollbackPlan.of(instant, (RollbackRequest("p", tuple(files)),))
        storage.create_if_absent(self.layout.path(rollback), plan.encode())
        storage.create_if_absent(self.layout.path(rollback.as_inflight()), b"")
        deleted = tuple(path for path in files if storage.delete(path))
        undone = ((instant.requested, instant.action),)
        told = RollbackMetadata(rollback.requested, 1, undone, {"p": RollbackPartition(deleted=deleted)})
        done = rollback.as_completed(add_ms(self._next_time(known), 1))
        storage.create_if_absent(self.layout.path(done), told.encode())
        for pending in (instant.as_inflight(), instant.as_requested()):
            storage.delete(self.layout.path(pending))
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
        active = [instant.requested for instant in Timeline.load(self.files, self.layout).completed((self.action,))]
        return sorted({*active, *self.list_archived()})

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
        active = {instant.requested for instant in Timeline.load(self.files, self.layout).completed(("commit",))}
        archived = self.list_archived()
        waiting = [p for p in self.processes if p.is_crashed and (self.foreign or p.name == "archiver")]
        return f"archived {active & archived} is back on the timeline" if active & archived and not waiting else ""

    def recover(self) -> None:
        """What the next writer does, once everybody is gone."""
        self.lost = 0.0
        for process in self.processes:
            process.is_done = True
        with in_turn():
            for _ in range(2):
                self.transactions("recovery", all_dead=True).roll_back_failed()
