"""A simulator of writers whose table is cleaned, archived and swept by the product's own services while they write."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rows_simulator import RowsSimulator
from transaction_store import SimulatorLock

from hudi_locks.errors import StorageError, WriteError
from hudi_locks.format import WRITE_ACTIONS, BaseFileName, CommitMetadata, Instant
from hudi_locks.format.claim import FileGroupId
from hudi_locks.services import TableServices
from hudi_locks.storage import Storage
from hudi_locks.table import PARTITION_METADATA, FileSlice
from hudi_locks.timeline import LAYOUT_2, Timeline
from hudi_locks.timeline.archive import list_archived_since
from hudi_locks.transaction import ReadSet, Transaction

BASE = ("one", "two", "three", "four", "five")
"""Rows that are there before in one file group, each by a commit of its own."""
_EPOCH = "20230101000000000"
_SERVICES = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.timeline.compaction.batch.size": "3",
}


@dataclass(frozen=True)
class SimulatorKeys:
    """One key that a write looked for in vain."""

    simulator: ServicedSimulator
    key: str
    partitions: frozenset[str] = frozenset({"p"})

    def find_among(self, paths: Collection[str], instant: str) -> tuple[str, ...]:
        del instant  # a file that holds the key was made by whoever brought it, or after that
        return (self.key,) if self.key in self.simulator.rows_of(self.simulator.files, paths) else ()


def _append(name: str, rows: list[str]) -> list[str]:
    return [*rows, name]


class ServicedSimulator(RowsSimulator):
    """Rows are added, added unless they are there, and deleted, beside services that take every commit for old."""

    max_steps = 30_000

    def __init__(self, rng: random.Random, **how: Any) -> None:
        super().__init__(rng, **how)
        self.locks: SimulatorLock | None = None
        self.archived_paths: set[str] = set()
        self.misread: set[str] = set()
        self.effects: dict[str, Callable[[list[str]], list[str]]] = {"jvm": lambda rows: [*rows, "jvm"]}
        self.files.create_if_absent(f"p/{PARTITION_METADATA}", b"")

    def transactions(self, name: str, **how: Any) -> Any:
        return super().transactions(name, **{"locks": self.locks, **how})

    # ---- what processes do ----
    def add(self, name: str, share: float = 0.6) -> None:
        self.effects[name] = lambda rows: [*rows, name]
        self.append(name, share)

    def replace_all(self, name: str) -> None:
        self.effects[name] = lambda _: [name]
        self.overwrite(name)

    def keep(self, name: str, row: str) -> None:
        """Add `row` unless it is there: a write that may change nothing, since of what it found."""
        self.effects[name] = lambda rows: rows if row in rows else [*rows, row]
        self._rest_on(name, row, lambda tx, holder: () if holder else (self.put(tx, f"{name}-0", [row]),))

    def delete(self, name: str, row: str) -> None:
        """Take `row` out if it is there."""
        self.effects[name] = lambda rows: [other for other in rows if other != row]

        def take_out(tx: Transaction, holder: FileSlice | None) -> Iterable[Any]:
            rows = self.rows_of(tx.files.storage, holder.paths) if holder else []
            return (self.put(tx, holder.file_id, [other for other in rows if other != row]),) if holder else ()

        self._rest_on(name, row, take_out)

    def _rest_on(self, name: str, row: str, write: Callable[..., Iterable[Any]]) -> None:
        def work(tx: Transaction) -> tuple[CommitMetadata, ReadSet]:
            files = self.visible(tx.files.storage, tx.timeline)
            holder = next((f for f in files if row in self.rows_of(tx.files.storage, f.paths)), None)
            groups = frozenset({FileGroupId("p", holder.file_id)} if holder else ())
            reads = ReadSet(frozenset({"p"}), groups, None if holder else SimulatorKeys(self, row))
            return CommitMetadata.of(write(tx, holder), "UPSERT", schema="{}"), reads

        self.live(name, lambda transactions: transactions.begin("commit", "UPSERT"), work)

    def stream(self, name: str, writes: int) -> None:
        """Rows one after the other, so that there is something to archive while others are at work."""
        for number in range(writes):
            self.add(f"{name}{number}", share=0.3)

    def doze(self, ticks: Iterable[int]) -> None:
        """Sleep for as long as many commits of others take."""
        process = self.mine()
        if process is not None and ticks:
            process.asleep_until = self.ticks + self.rng.choice(tuple(ticks))
            self.step("doze")

    def note_deletion(self, path: str) -> None:
        process = self.mine()
        if process is not None and process.name.startswith("archiver") and path.startswith(f"{LAYOUT_2.folder}/2"):
            self.misread |= self._misread_by_jvm()
            self.archived_paths.add(path)

    def dream(self, name: str) -> None:
        """Begin before others and commit after them."""
        self.effects[name] = lambda rows: [*rows, name]

        def work(tx: Transaction) -> CommitMetadata:
            self.doze((300, 600, 1000))
            return CommitMetadata.of([self.put(tx, f"{name}-0", [name])], "INSERT", schema="{}")

        self.live(name, lambda transactions: transactions.begin("commit", "INSERT"), work)

    def serve(
        self, name: str, work: Callable[[TableServices], object], *, all_dead: bool = False, pauses: Iterable[int] = ()
    ) -> None:
        transactions = self.transactions(name, all_dead=all_dead, skew_ms=self.rng.choice((0, 0, -40, 40)))
        services = TableServices(transactions, _SERVICES)
        for _ in range(4 if pauses else 2):
            self.doze(pauses)
            with contextlib.suppress(StorageError, WriteError):
                work(services)

    def clean_up(self) -> None:
        """What services do once everybody is gone; all that was left undone is done then."""
        self.recover()
        for work in (TableServices.clean, TableServices.archive, TableServices.sweep, TableServices.clean):
            self.serve("the last", work, all_dead=True)

    # ---- the JVM's part: it looks at the table as ours do ----
    def read_slice(self, storage: Storage, timeline: Timeline, group: str) -> list[str]:
        files = [file for file in self.visible(storage, timeline) if file.file_id == group]
        self.doze((1, 1, 100, 300))
        return self.rows_of(storage, files[0].paths) if files else []

    def jvm_stream(self, lock: SimulatorLock, writes: int) -> None:
        for number in range(writes):
            name = f"jvm{number}"
            self.effects[name] = partial(_append, name)
            self.jvm_writer("one-0", lock, name=name)

    def may_write(self, instant: Instant) -> bool:
        """Nobody sweeps what a JVM task leaves that lives on for longer than archival waits, and here it waits not."""
        return self.files.exists(LAYOUT_2.path(instant.as_inflight()))

    def _archived_since(self, known: Timeline) -> bool:
        """It looks at what is active alone: our archiver leaves there what it may have to see."""
        del known
        return False

    # ---- what must hold in the end ----
    def archived(self) -> list[tuple[str, str]]:
        found = list_archived_since(self.files, LAYOUT_2, completed_after=_EPOCH)
        return [(i.completion, i.requested) for i in found if i.action in WRITE_ACTIONS]

    def completed(self) -> list[str]:
        """Requested times of all that was completed, in the order of completion."""
        active = Timeline.load(self.files, LAYOUT_2).completed(WRITE_ACTIONS)
        found = {*self.archived(), *((str(i.completion), i.requested) for i in active)}
        return [requested for _, requested in sorted(found)]

    def done(self) -> list[str]:
        return self.completed()

    def replay(self) -> list[str]:
        """The rows that are there if everything is done one after the other, in the order of completion."""
        names = {instant: name for name, instant in self.begun.items()}
        rows: list[str] = []
        for requested in self.completed():
            rows = self.effects.get(names[requested], list)(rows)
        return sorted(rows)

    def wrong(self) -> str:
        return super().wrong() or self._wrong_leftovers() or self._wrong_archive() or self._wrong_to_jvm()

    def _wrong_to_jvm(self) -> str:
        """What a JVM reader would have taken for committed, or not, at some step of an archiver."""
        return f"JVM readers are wrong about {sorted(self.misread)}" if self.misread else ""

    def _misread_by_jvm(self) -> set[str]:
        """Writes of which a JVM reader thinks otherwise than the history.

        It goes by the first completed one, except for what it sees pending.
        """
        timeline = Timeline.load(self.files, LAYOUT_2)
        done = {instant.requested for instant in timeline.completed(WRITE_ACTIONS)}
        pending = {instant.requested for instant in timeline.pending(WRITE_ACTIONS)}
        names = (BaseFileName.parse(entry.name) for entry in self.files.list("p"))
        times = {name.instant for name in names if name}
        seen = {time for time in times if time in done or (time < min(done, default="") and time not in pending)}
        return seen ^ (times & (done | {requested for _, requested in self.archived()}))

    def _wrong_archive(self) -> str:
        """An instant that is back on the timeline, whoever died."""
        back = sorted(path for path in self.archived_paths if self.files.exists(path))
        return f"{back} is back on the timeline" if back else ""

    def _wrong_leftovers(self) -> str:
        """Files and instants that nobody will ever remove; a plan of clustering waits for the next clusterer."""
        pending = Timeline.load(self.files, LAYOUT_2).pending()
        waiting = {instant.requested for instant in pending if instant.action == "clustering"}
        names = [BaseFileName.parse(entry.name) for entry in self.files.list("p")]
        if strays := {name.instant for name in names if name} - set(self.completed()) - waiting:
            return f"files of {sorted(strays)} are left, which were never completed"
        stuck = [f"{i.action} {i.requested}" for i in pending if i.requested not in waiting]
        return f"{stuck} are pending for ever" if stuck else ""


def spawn_disturbers(simulator: ServicedSimulator, seed: int) -> None:
    """Who replaces what others write, and who takes the living for dead, in some of the histories."""
    if seed % 4 == 1:
        simulator.spawn("overwriter", partial(simulator.replace_all, "overwriter"), may_crash=True)
    if seed % 5 == 2:
        simulator.spawn("clusterer", partial(simulator.cluster, "clusterer"), may_crash=True)
    if seed % 3 == 0:
        simulator.spawn("undertaker", simulator.cleaner)


def play_serviced(seed: int, *, rng: random.Random | None = None) -> ServicedSimulator:
    """Two to four writers, an archiver, a cleaner, a janitor and one that takes the living for dead; no lock at all."""
    simulator = ServicedSimulator(
        rng or random.Random(seed), crash=(0.0, 0.002, 0.005)[seed % 3], lost=(0.0, 0.1)[seed % 2]
    )
    lay_ground(simulator)
    _spawn_writers(simulator, seed)
    spawn_disturbers(simulator, seed)
    return finish(simulator)


def play_serviced_beside_jvm(seed: int, *, rng: random.Random | None = None) -> ServicedSimulator:
    """The same with a lock that works, beside a JVM writer that ignores claims, and its cleaner."""
    simulator = ServicedSimulator(rng or random.Random(seed), foreign=True, crash=(0.0, 0.002, 0.005)[seed % 3])
    simulator.locks = lock = SimulatorLock(simulator)
    lay_ground(simulator)
    _spawn_writers(simulator, seed)
    simulator.spawn("jvm", partial(simulator.jvm_writer, "one-0", lock))
    simulator.spawn("jvm cleaner", partial(simulator.jvm_cleaner, lock))
    return finish(simulator)


def play_long_lived(seed: int, *, rng: random.Random | None = None) -> ServicedSimulator:
    """Streams of commits beside writers that sleep through many of them; archivers that die are replaced. No lock."""
    simulator = ServicedSimulator(
        rng or random.Random(seed), crash=(0.0, 0.002, 0.005)[seed % 3], lost=(0.0, 0.1)[seed % 2]
    )
    lay_ground(simulator)
    for name in ("dreamer", "sleeper")[: 1 + seed % 2]:
        simulator.spawn(name, partial(simulator.dream, name), may_crash=seed % 7 == 0)
    for name in ("stream", "flow"):
        simulator.spawn(name, partial(simulator.stream, name, 4), may_crash=name == "flow")
    spawn_disturbers(simulator, seed)
    _spawn_archivers(simulator)
    return finish(simulator)


def play_long_lived_beside_jvm(seed: int, *, rng: random.Random | None = None) -> ServicedSimulator:
    """The same with a lock that works, beside a JVM writer of several commits, and its cleaner.

    Now and then our last claim is an old one, since the JVM writes alone.
    """
    simulator = ServicedSimulator(rng or random.Random(seed), foreign=True, crash=(0.0, 0.002, 0.005)[seed % 3])
    simulator.locks = lock = SimulatorLock(simulator)
    is_left_alone = seed % 4 == 3
    lay_ground(simulator)
    simulator.spawn("dreamer", partial(simulator.dream, "dreamer"))
    simulator.spawn("jvm", partial(simulator.jvm_stream, lock, 6 if is_left_alone else 4))
    simulator.spawn("jvm cleaner", partial(simulator.jvm_cleaner, lock))
    if not is_left_alone:
        simulator.spawn("stream", partial(simulator.stream, "stream", 3), may_crash=True)
    if is_left_alone or seed % 3:
        simulator.spawn("undertaker", partial(simulator.cleaner, locks=lock))
    _spawn_archivers(simulator, (300, 600) if is_left_alone else (50, 150, 300))
    return finish(simulator, cleans=not is_left_alone)


def play_readers(seed: int) -> ServicedSimulator:
    """Two writers that may change nothing, for what they find: one adds a row unless it is there, one takes it out."""
    simulator = ServicedSimulator(random.Random(seed))
    lay_ground(simulator)
    row = ("two", "new")[seed % 2]
    simulator.spawn("keeper", partial(simulator.keep, "keeper", row))
    simulator.spawn("deleter", partial(simulator.delete, "deleter", row))
    simulator.run()
    return simulator


def lay_ground(simulator: ServicedSimulator) -> None:
    lost, simulator.lost = simulator.lost, 0.0
    for name in BASE:
        simulator.add(name, share=1.0)
    simulator.lost = lost


def _spawn_writers(simulator: ServicedSimulator, seed: int) -> None:
    works = [
        ("first", partial(simulator.add, "first")),
        ("deleter", partial(simulator.delete, "deleter", ("two", "new")[seed % 2])),
        ("keeper", partial(simulator.keep, "keeper", ("two", "new")[seed // 2 % 2])),
        ("second", partial(simulator.add, "second")),
    ]
    for name, work in works[: simulator.rng.choice((2, 3, 3, 4))]:
        simulator.spawn(name, work, may_crash=name in ("first", "keeper"))


def _spawn_archivers(simulator: ServicedSimulator, pauses: Iterable[int] = (50, 150, 300)) -> None:
    work = partial(simulator.serve, "archiver", TableServices.archive, all_dead=True, pauses=pauses)
    for number in range(3):
        simulator.spawn(f"archiver{number}", work, may_crash=True, frailty=4.0)


def finish(simulator: ServicedSimulator, *, cleans: bool = True) -> ServicedSimulator:
    services = {"archiver": TableServices.archive, "cleaner": TableServices.clean, "janitor": TableServices.sweep}
    services = services if cleans else {}
    for name, work in services.items():
        simulator.spawn(name, partial(simulator.serve, name, work, all_dead=name == "archiver"), may_crash=True)
    simulator.run()
    simulator.clean_up()
    return simulator
