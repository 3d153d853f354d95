"""A simulator of writers whose files are named by tickets: on stores with folders and without, where requests are late.

Each write has two files, and stages more than it claims. Tickets vanish, and files that were superseded are cleaned. A
request to name or cancel a file may get no answer, and may land long after others have decided about the write.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

from transaction_harness import write_file
from transaction_simulator import Simulator
from transaction_store import SimulatorLock, SteppedFile, SteppedStorage

from hudi_locks.errors import StorageError, WriteError
from hudi_locks.format import BaseFileName, CommitMetadata, WriteStat, find_writer
from hudi_locks.format.claim import ClaimKind, decode_tickets
from hudi_locks.markers import StagedFiles, staging_folder
from hudi_locks.storage import MemoryStorage, StagedFile
from hudi_locks.timeline import LAYOUT_2, Timeline
from hudi_locks.transaction import Transaction

_STALE = "of an attempt that does not count"
_DELAYS = (1, 10, 40, 100, 200, 400)


class TicketStore(SteppedStorage):
    """A process's view of the shared files, in which naming and cancelling may get no answer, or a late one."""

    _simulator: TicketsSimulator

    def stage(self, target: str, *, instant: str) -> StagedFile:
        made = self._simulator.files.stage(target, instant=instant)
        return RecordedFile(self._simulator, made)

    def move_if_absent(self, source: str, target: str) -> bool:
        assert self.capabilities.ended_folders, "a store without folders renames nothing"
        return super().move_if_absent(source, target)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Where completed files are made at their names, that may come late too; beside a JVM that is not safe."""
        is_late = path.endswith(".commit") and not self.capabilities.ended_folders and not self._simulator.foreign
        if not is_late:
            return super().create_if_absent(path, data)
        self._simulator.step(f"create {path}")
        return bool(self._send(f"create {path}", partial(self._create, path, data)))

    def redeem(self, ticket: str, target: str) -> bool:
        self._simulator.step(f"redeem {target}")
        return bool(self._send(f"redeem {target}", partial(self._simulator.files.redeem, ticket, target)))

    def cancel(self, ticket: str, target: str) -> None:
        self._simulator.step(f"cancel {target}")
        self._send(f"cancel {target}", partial(self._simulator.files.cancel, ticket, target))

    def cancel_staged(self, instants: Collection[str]) -> None:
        """Without folders a listing of what is staged may lack it."""
        if self.capabilities.ended_folders or self._simulator.rng.random() < 0.5:
            super().cancel_staged(instants)

    def _send(self, label: str, request: Callable[[], Any]) -> Any:
        simulator = self._simulator
        if simulator.mine() is None or simulator.rng.random() >= simulator.unanswered:
            return request()
        fate = simulator.rng.choice(("answer", "late", "late", "never"))
        simulator.trail.append(f"  the answer to {label} is lost ({fate})")
        if fate == "answer":
            request()
        if fate == "late":
            simulator.spawn("late request", partial(self._arrive, label, request))
        raise StorageError(f"no answer to {label}", path=label)

    def _arrive(self, label: str, request: Callable[[], Any]) -> None:
        for _ in range(self._simulator.rng.choice(_DELAYS)):
            self._simulator.step("a request is under way")
        self._simulator.trail.append(f"late: {label}")
        request()


class RecordedFile(SteppedFile):
    """Tells the simulator which ticket it got."""

    _simulator: TicketsSimulator

    def seal(self) -> str:
        ticket = super().seal()
        self._simulator.staged.append((ticket, self.target))
        return ticket


class TicketsSimulator(Simulator):
    """Writers of two files each."""

    max_steps = 12_000

    def __init__(self, rng: random.Random, *, unanswered: float, has_folders: bool = True, **how: Any) -> None:
        super().__init__(rng, **how)
        self.unanswered = unanswered
        self.staged: list[tuple[str, str]] = []
        self.cleaned: set[str] = set()
        if not has_folders:
            self.files.capabilities = replace(MemoryStorage.capabilities, ended_folders=False)

    def open_store(self, *, all_dead: bool = False) -> SteppedStorage:
        return TicketStore(self, all_dead=all_dead)

    def write(self, tx: Transaction, group: str, name: str) -> CommitMetadata:
        before = self.read_slice(tx.files.storage, tx.timeline, group)
        groups = (group, f"beside-{group}")
        stats = [self._attempt(tx, one, [*before, name]) for one in groups]
        if self.rng.random() < 0.5:
            self._attempt(tx, group, [_STALE])  # a speculative attempt that came second
        if self.rng.random() < 0.5:
            self._attempt(tx, f"moved-{group}", [_STALE])  # its rows went elsewhere in another attempt
        if self.rng.random() < 0.5 and self.mine() is not None:
            self.spawn("late task", partial(self._attempt_late, tx.files, f"moved-{group}"))
        return CommitMetadata.of(stats, "UPSERT", schema="{}")

    def _attempt(self, tx: Transaction, group: str, rows: list[str]) -> WriteStat:
        file_name = str(BaseFileName(group, tx.instant))
        ticket = write_file(tx.files, "p", file_name, json.dumps(rows).encode())
        return WriteStat("p", group, f"p/{file_name}", ticket=ticket)

    def _attempt_late(self, files: StagedFiles, group: str) -> None:
        for _ in range(self.rng.choice(_DELAYS)):
            self.step("a task hangs")
        with contextlib.suppress(StorageError, WriteError):
            write_file(files, "p", str(BaseFileName(group, files.requested)), json.dumps([_STALE]).encode())

    # ---- who disturbs ----
    def thief(self) -> None:
        """Lets tickets vanish, as a sweep does that errs, or the store after a week; most likely those of a claim."""
        for _ in range(self.rng.choice((2, 4, 8))):
            for _ in range(self.rng.choice((5, 20, 60))):
                self.step("time passes")
            if left := self._choose_tickets():
                ticket = self.rng.choice(left)
                self.trail.append(f"thief: the ticket of {dict(self.staged)[ticket]} vanishes")
                self.files.delete(staging_folder(ticket))

    def _choose_tickets(self) -> list[str]:
        left = [ticket for ticket, _ in self.staged if self.files.exists(staging_folder(ticket))]
        claimed = [ticket for ticket in left if ticket in self._claimed().values()]
        return claimed or left

    def vacuum(self) -> None:
        """Removes files of completed writes, as if later ones had replaced their file groups."""
        for _ in range(8):
            for _ in range(self.rng.choice((5, 20, 60))):
                self.step("time passes")
            done = [instant.requested for instant in Timeline.load(self.files, LAYOUT_2).completed(("commit",))]
            for path in [path for path, _ in self.files.walk("p") if find_writer(path) in done and "/beside-" in path]:
                self.trail.append(f"vacuum: removes {path}")
                self.cleaned.add(path)
                self.files.delete(path)

    # ---- what must hold in the end ----
    def wrong(self) -> str:
        return self._wrong_names() or super().wrong()

    def _wrong_names(self) -> str:
        named = self._claimed()
        present = {f"p/{entry.name}" for entry in self.files.list("p")}
        ours = {instant for name, instant in self.begun.items() if "jvm" not in name}
        done = set(self.done())
        for path in sorted(present):
            writer = find_writer(path)
            if path in self.cleaned:
                return f"{path} was cleaned, and is back"
            if writer in ours and writer not in done:
                return f"{path} is there, and its write is undone"
            if writer in ours and path not in named:
                return f"{path} is there, and no claim names it"
            if _STALE in json.loads(self.files.read(path) or b"[]"):
                return f"{path} has the rows {_STALE}"
        for path in named:
            if find_writer(path) in done and path not in present.union(self.cleaned):
                return f"{path} is of a completed write, and gone"
        return ""

    def _claimed(self) -> dict[str, str]:
        """Every ticket that a PUBLISH has, by the path."""
        found: dict[str, str] = {}
        for claim in self.claims():
            if claim.kind is ClaimKind.PUBLISH and claim.tickets is not None:
                found |= decode_tickets(claim.tickets.data or b"", claim)
        return found

    def content(self, requested: str) -> tuple[str, list[str]] | None:
        for path, _ in self.files.walk("p"):
            name = BaseFileName.parse(path.removeprefix("p/"))
            if name and name.instant == requested and not name.file_id.startswith(("beside-", "moved-")):
                return name.file_id, json.loads(self.files.read(path) or b"[]")
        return None


def play_tickets(seed: int, *, rng: random.Random | None = None, has_folders: bool = True) -> TicketsSimulator:
    """Two or three writers without a lock, one that takes the living for dead, a helper, a thief, a vacuum."""
    simulator = TicketsSimulator(
        rng or random.Random(seed),
        has_folders=has_folders,
        crash=(0.0, 0.004, 0.01)[seed % 3],
        lost=(0.0, 0.1, 0.2)[seed % 3] if seed % 2 else 0.0,
        unanswered=(0.0, 0.2, 0.5)[seed % 3],
    )
    for number in range(simulator.rng.choice((2, 3, 3))):
        group = ("g-0", "g-0", "h-0")[number]
        simulator.spawn(f"w{number}", partial(simulator.writer, f"w{number}", group), may_crash=True)
    if seed % 4 == 0:
        simulator.spawn("cleaner", simulator.cleaner, may_crash=True)
    for name in ("helper", "other helper"):
        simulator.spawn(name, simulator.helper)
    if seed % 3:
        simulator.spawn("thief", simulator.thief)
    simulator.spawn("vacuum", simulator.vacuum)
    if seed % 5 == 0 and has_folders:
        simulator.spawn("archiver", simulator.archiver)
    simulator.run()
    simulator.recover()
    return simulator


def play_object_tickets(seed: int, *, rng: random.Random | None = None) -> TicketsSimulator:
    """The same on a store without folders, where nothing is renamed."""
    return play_tickets(seed, rng=rng, has_folders=False)


def play_tickets_beside_jvm(seed: int, *, rng: random.Random | None = None) -> TicketsSimulator:
    """Writers that crash, and a JVM that writes, and rolls back what is dead; the lock works. Folders or none."""
    simulator = TicketsSimulator(
        rng or random.Random(seed),
        has_folders=seed % 2 == 0,
        foreign=True,
        crash=(0.002, 0.01, 0.02)[seed % 3],
        unanswered=(0.0, 0.5)[seed % 2],
    )
    lock = SimulatorLock(simulator)
    for name in ("w0", "w1"):
        simulator.spawn(name, partial(simulator.writer, name, "g-0", locks=lock), may_crash=True)
    for name in ("jvm", "other jvm", "third jvm"):
        simulator.spawn(name, partial(simulator.jvm_writer, "g-0", lock, name=name))
    simulator.spawn("jvm cleaner", partial(simulator.jvm_cleaner, lock))
    if seed % 3:
        simulator.spawn("thief", simulator.thief)
    simulator.run()
    simulator.recover()
    return simulator
