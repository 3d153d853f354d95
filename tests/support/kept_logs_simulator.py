"""A simulator of writers that block nobody; the table is compacted, cleaned, archived and swept meanwhile."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any

from logging_simulator import LoggingSimulator
from transaction_harness import write_file

from hudi_locks.errors import StorageError, WriteError
from hudi_locks.format import BaseFileName, CleanMetadata, CommitMetadata, LogFileName, WriteStat
from hudi_locks.services import TableServices
from hudi_locks.table import latest_file_slices
from hudi_locks.timeline import LAYOUT_2, Timeline
from hudi_locks.timeline.archive import list_archived_since
from hudi_locks.transaction import Outcome, Transaction

_EPOCH = "20230101000000000"
_KEEP = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "1",
}


class KeptLogsSimulator(LoggingSimulator):
    """Services that take every commit for old. What a clean says that it kept is what readers are promised."""

    max_steps = 60_000

    def __init__(self, rng: random.Random, **how: Any) -> None:
        super().__init__(rng, **how)
        self.misread: set[str] = set()
        self.lost_by_rust: set[str] = set()

    def writers(self, name: str, group: str, **how: Any) -> None:
        for number in range(5):
            self.writer(f"{name}.{number}", group, **how)

    def load(self, name: str, group: str, **how: Any) -> None:
        """Bulk insert a row: to a base file if nobody else has brought the file group yet, else to a log."""
        transactions = self.transactions(name, **how)
        with contextlib.suppress(StorageError, WriteError):
            tx = transactions.begin(self.action, "BULK_INSERT")
            self.begun[name] = tx.instant
            there = {piece.file_id for piece in latest_file_slices(tx.files.storage, tx.timeline)}
            metadata = self.write(tx, group, name) if group in there else self._make_base(tx, group, name)
            outcome = tx.publish(metadata).outcome  # it may meet whoever was faster
            self.outcomes[name] = self._resolve(transactions, tx.instant) if outcome is Outcome.UNKNOWN else outcome

    def _make_base(self, tx: Transaction, group: str, name: str) -> CommitMetadata:
        file_name = str(BaseFileName(group, tx.instant))
        ticket = write_file(tx.files, "p", file_name, json.dumps([name]).encode())
        return CommitMetadata.of([WriteStat("p", group, f"p/{file_name}", ticket=ticket)], "BULK_INSERT", schema="{}")

    def pioneers(self, name: str, bring: Callable[..., None], **how: Any) -> None:
        """The same process brings file groups that others bring too."""
        for number in range(4):
            bring(f"{name}.{number}", f"n{number}-0", **how)

    def serve(self, name: str, work: Callable[[TableServices], object], *, rounds: int = 3, **how: Any) -> None:
        services = TableServices(self.transactions(name, **how), _KEEP)
        for _ in range(rounds):
            process = self.mine()
            if process is not None:
                process.asleep_until = self.ticks + self.rng.choice((20, 60, 150))
                self.step("doze")
            with contextlib.suppress(StorageError, WriteError):
                work(services)

    def clean_up(self) -> None:
        """What services do once everybody is gone, until nothing is left to do."""
        self.recover()
        for work in (TableServices.clean, TableServices.archive, TableServices.sweep, TableServices.clean):
            self.serve("the last", work, rounds=1, all_dead=True)

    def note_deletion(self, path: str) -> None:
        process = self.mine()
        if process is not None and process.name.startswith("archiver") and path.startswith(f"{LAYOUT_2.folder}/2"):
            self.misread |= self._misread_by_jvm()
            self.lost_by_rust |= self._lost_by_rust()

    def _misread_by_jvm(self) -> set[str]:
        """Writes of which a JVM reader would think otherwise than the history at this step.

        It asks the history only for what is older than the first instant on the active timeline, whatever that is; and
        takes for committed what is older than the first completed write there and is not pending.
        """
        timeline = Timeline.load(self.files, LAYOUT_2)
        names = (BaseFileName.parse(e.name) or LogFileName.parse(e.name) for e in self.files.list("p"))
        times = {name.instant for name in names if name}
        done = {instant.requested for instant in timeline.completed()}
        archived = {row.requested for row in self.archived()}
        cursor = timeline.instants[0].requested if timeline.instants else ""
        first = min((i.requested for i in timeline.completed(("commit", "deltacommit"))), default="")
        timed = done | {requested for requested in archived if requested < cursor}
        pending = {instant.requested for instant in timeline.pending()}
        committed = done | {requested for requested in times - pending if requested < first}
        return times & ((done | archived) ^ (timed | (committed - archived)))

    def _lost_by_rust(self) -> set[str]:
        """Writes that are archived, and whose logs only a completion time puts on top of a base file."""
        timeline = Timeline.load(self.files, LAYOUT_2)
        slices = latest_file_slices(self.files, timeline)
        on_top = {log.instant for piece in slices for log in piece.logs if log.instant < piece.barrier}
        return {requested for requested in on_top if timeline.get(requested) is None}

    # ---- what must hold in the end ----
    def archived(self) -> list[Any]:
        return list_archived_since(self.files, LAYOUT_2, completed_after=_EPOCH)

    def completed(self, *actions: str) -> dict[str, str]:
        """Completion times of all that was completed, by requested time."""
        active = {i.requested: str(i.completion) for i in Timeline.load(self.files, LAYOUT_2).completed(actions)}
        return active | {i.requested: i.completion for i in self.archived() if i.action in actions}

    def written(self) -> dict[str, str]:
        """Of these the writes."""
        return self.completed("deltacommit")

    def done(self) -> list[str]:
        return sorted(self.completed("deltacommit"))

    def promised(self) -> str:
        """From this time on snapshots are whole."""
        timeline = Timeline.load(self.files, LAYOUT_2)
        paths = [timeline.paths[instant] for instant in timeline.completed(("clean",))]
        active = [self.files.read(path) or b"" for path in paths]
        archived = [row.metadata for row in self.archived() if row.action == "clean"]
        return max((CleanMetadata.decode(data, "clean").earliest for data in (*active, *archived)), default="")

    def deleted(self) -> int:
        """How many files cleans removed."""
        return sum(line.startswith("cleaning: delete p/") for line in self.trail)

    def _wrong_files(self) -> str:
        if misread := self.misread | self._misread_by_jvm():
            return f"JVM readers are wrong about {sorted(misread)}"
        if lost := self.lost_by_rust | self._lost_by_rust():
            return f"hudi-rs takes the logs of {sorted(lost)} for compacted"
        undone = {c.instant for c in self.claims() if c.kind.name in ("ROLLBACK", "VOID")}
        both = sorted(undone & set(self.done()))
        return f"{both} are completed and rolled back" if both else ""

    def _wrong_archive(self) -> str:
        """A data file whose write was never completed, once the start of the timeline is past it."""
        first = Timeline.load(self.files, LAYOUT_2).first_active or ""
        names = (BaseFileName.parse(e.name) or LogFileName.parse(e.name) for e in self.files.list("p"))
        known = self.completed("commit", "deltacommit")
        strays = sorted(name.instant for name in names if name and name.instant < first and name.instant not in known)
        return f"files of {strays} look completed" if strays else ""

    def _wrong_updates(self) -> str:
        if self.conflicts:
            return f"a write met another: {self.conflicts[0]}"
        timeline = Timeline.load(self.files, LAYOUT_2)
        names = {instant: name for name, instant in self.begun.items()}
        logged, promised = self.written(), self.promised()
        moments = {promised, *self.completed("commit", "deltacommit").values()}
        for moment in sorted(moment for moment in moments if moment >= promised):
            expected = sorted(names[requested] for requested, completion in logged.items() if completion <= moment)
            slices = latest_file_slices(self.files, timeline, as_of=moment)
            found = sorted(row for piece in slices for row in self._rows(piece))
            if found != expected:
                return f"at {moment} readers see {found}, and {expected} were written"
        return ""


_GROUPS = {"w0": "g-0", "w1": "g-0", "w2": "h-0"}


def play_kept_logs(seed: int, *, rng: random.Random | None = None) -> KeptLogsSimulator:
    """Two or three writers, two compactors, a cleaner, an archiver, a janitor, one that takes all for dead; no lock."""
    simulator = KeptLogsSimulator(
        rng or random.Random(seed), crash=(0.0, 0.002, 0.004)[seed % 3], lost=(0.0, 0.1)[seed % 2]
    )
    for number, (name, group) in enumerate(list(_GROUPS.items())[: 2 + seed % 2]):
        simulator.spawn(name, partial(simulator.writers, name, group, skew_ms=_skew(simulator)), may_crash=number == 0)
    for name in ("compactor", "other compactor"):
        simulator.spawn(name, partial(simulator.compactor, name, rounds=8, skew_ms=_skew(simulator)), may_crash=True)
    _spawn_services(simulator)
    if seed % 3 == 0:
        simulator.spawn("janitor", partial(simulator.serve, "janitor", TableServices.sweep))
    if seed % 4 == 1:
        simulator.spawn("undertaker", simulator.cleaner)
    simulator.run()
    simulator.clean_up()
    return simulator


def play_loaded_logs(seed: int) -> KeptLogsSimulator:
    """Two that bulk insert and a writer bring the same file groups; compactors and the other services beside them."""
    simulator = KeptLogsSimulator(random.Random(seed), crash=(0.0, 0.002)[seed % 2], lost=(0.0, 0.1)[seed % 3 == 2])
    for name, bring in (("l0", simulator.load), ("l1", simulator.load), ("w0", simulator.writer)):
        body = partial(simulator.pioneers, name, bring, skew_ms=_skew(simulator))
        simulator.spawn(name, body, may_crash=name == "l0")
    simulator.spawn("compactor", partial(simulator.compactor, "compactor", rounds=8), may_crash=True)
    _spawn_services(simulator)
    simulator.run()
    simulator.clean_up()
    return simulator


def _spawn_services(simulator: KeptLogsSimulator) -> None:
    services = {"cleaning": TableServices.clean, "archiver": TableServices.archive}
    for name, work in services.items():
        rounds = 8 if name == "cleaning" else 5
        how: dict[str, Any] = {"rounds": rounds, "all_dead": name == "archiver", "skew_ms": _skew(simulator)}
        simulator.spawn(name, partial(simulator.serve, name, work, **how), may_crash=True)


def _skew(simulator: KeptLogsSimulator) -> int:
    return simulator.rng.choice((0, 0, -40, 40))
