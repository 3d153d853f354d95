"""Seeded histories of tables with a metadata table: writers, cleaners, compactors and restorers that die and sleep.

Nobody keeps the lock: at a stop point of one process others do whole pieces of work, or it dies. In the end the
metadata table names what is there, and every write that was told to be committed is on the timeline or was undone by a
restore.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from metadata_harness import MetadataHarness
from transaction_harness import Harness, HarnessClock, Killed, heartbeats_that_end, kill

from hudi_locks.errors import HudiLocksError
from hudi_locks.format import METADATA_FOLDER, Instant, LogFileName, RestorePlan, State
from hudi_locks.services import restoring
from hudi_locks.services.metadata_services import MetadataServices
from hudi_locks.services.restoring import Restorer
from hudi_locks.services.settings import ArchiveSettings, CleanSettings
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import latest_file_slices
from hudi_locks.timeline.heartbeat import WriterHeartbeat
from hudi_locks.transaction import StopPoint, TableCoordinator

HISTORIES = int(os.environ.get("HUDI_LOCKS_HISTORIES", "15"))
HOUR_S = 3_700.0
OPTIONS = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.histories


@dataclass
class History:
    """One table, and what happened to it."""

    kept: MetadataHarness
    rng: random.Random
    committed: set[str] = field(default_factory=set)
    trail: list[str] = field(default_factory=list)
    beating: list[list[WriterHeartbeat]] = field(default_factory=lambda: [[]])

    def play(self) -> None:
        for _ in range(self.rng.randint(4, 10)):
            self.act(depth=0)
            self.kept.clock.advance(self.rng.choice((0.002, 1.0, 1.0, 4.0, HOUR_S)))
        self.settle()

    def act(self, *, depth: int) -> None:
        name = self.rng.choice(("write", "write", "write", "serve", "serve", "clean", "restore"))
        trace = self.interrupt(name, depth)
        self.beating.append([])
        try:
            getattr(self, name)(trace)
        except Killed:
            for heartbeat in self.beating[-1]:
                heartbeat.pause()
            self.trail.append(f"{'  ' * depth}{name} died")
        except HudiLocksError as refused:
            self.trail.append(f"{'  ' * depth}{name} was refused: {refused}")
        else:
            self.trail.append(f"{'  ' * depth}{name} done")
        finally:
            self.beating.pop()

    def hear(self, patch: Patch) -> None:
        """Know whose heartbeats end when it dies."""
        start = WriterHeartbeat.start

        def remember(heartbeat: WriterHeartbeat) -> bool:
            self.beating[-1].append(heartbeat)
            return start(heartbeat)

        patch.setattr(WriterHeartbeat, "start", remember)

    def interrupt(self, name: str, depth: int) -> Callable[[StopPoint], None]:
        """At one stop point, or at none: others work, or it dies."""
        left = [self.rng.randint(1, 14)] if depth < 2 else []
        happens = self.rng.choice(("nothing", "death", "others", "others"))

        def trace(point: StopPoint) -> None:
            if not left:
                return
            left[0] -= 1
            if left[0]:
                return
            left.clear()
            self.trail.append(f"{'  ' * depth}{name} at {point.value}: {happens}")
            if happens == "death":
                kill()
            for _ in range(self.rng.randint(1, 3) if happens == "others" else 0):
                self.act(depth=depth + 1)
                self.kept.clock.advance(self.rng.choice((0.0, 1.0, HOUR_S)))

        return trace

    def write(self, trace: Any) -> None:
        tx = self.kept.open(trace=trace).begin("commit", "UPSERT")
        groups = self.rng.sample(("p/g-0", "p/g-1", "p/g-2"), self.rng.randint(1, 2))
        if tx.publish(self.kept.rewrite(tx, *groups)).is_committed:
            self.committed.add(tx.instant)

    def serve(self, trace: Any = None) -> None:
        MetadataServices(
            self.kept.open(trace=trace).coordinator,
            compact_commits=2,
            clean=CleanSettings.of(OPTIONS),
            archive=ArchiveSettings.of(OPTIONS),
        ).run()

    def clean(self, trace: Any = None) -> None:
        self.kept.cleaner(trace=trace, commits__retained=1).run()

    def restore(self, trace: Any) -> None:
        known = [one.requested for one in self.kept.timeline().completed(("commit",))][-2:]
        if known:
            Restorer(self.kept.open(trace=trace).coordinator).run(known[0])

    def settle(self) -> None:
        """What is left undone is done by those who come later."""
        self.kept.clock.advance(2 * HOUR_S)
        self.kept.open().roll_back_failed()
        for pending in self.kept.timeline().pending(("restore",)):
            Restorer(self.kept.open().coordinator).run(self.read_plan(pending.requested).savepoint or "")
        self.kept.open().roll_back_failed()
        self.clean()
        self.serve()

    def wrong(self) -> str:
        """What is not as it must be; empty if nothing."""
        timeline, storage = self.kept.timeline(), self.kept.storage
        plans = [self.read_plan(one.requested) for one in timeline.completed(("restore",))]
        undone = {requested for plan in plans for requested, _ in plan.instants}
        lost = {one for one in self.committed - undone if not timeline.is_completed(one)}
        if lost:
            return f"committed and gone: {sorted(lost)}"
        if timeline.pending() or self.kept.own_timeline().pending():
            return f"pending: {timeline.pending()} {self.kept.own_timeline().pending()}"
        times = [one.requested for one in self.kept.own_timeline().instants]
        if len(set(times)) < len(times):
            return f"two instants of the metadata table have one time: {times}"
        listed = self.kept.metadata_table.view(timeline).data_files(["p"])
        told = latest_file_slices(storage, timeline, partitions=["p"], listed=listed)
        there = latest_file_slices(storage, timeline, partitions=["p"])
        if told != there:
            return f"the metadata table tells {told}, and there is {there}"
        named = self.kept.metadata_table.view(timeline).files.get("p", {})
        missing = named.keys() - {entry.name for entry in storage.list("p")}
        return f"named in vain: {sorted(missing)}" if missing else self.find_strange_logs()

    def read_plan(self, requested: str) -> RestorePlan:
        path = self.kept.layout.path(Instant(requested, "restore", State.REQUESTED))
        return RestorePlan.decode(self.kept.storage.read(path) or b"", path)

    def find_strange_logs(self) -> str:
        if self.kept.version == 6:
            return ""  # logs are named by base files
        known = {one.requested for one in self.kept.own_timeline().completed()}
        names = [name for part in self.kept.parts for name in self.kept.names(f"{METADATA_FOLDER}/{part.value}")]
        logs = (log for log in map(LogFileName.parse, names) if log is not None)
        strange = {log.instant for log in logs if log.instant not in known and log.instant > min(known, default="")}
        return f"logs of nobody: {sorted(strange)}" if strange else ""


def play(seed: int, version: int | None = None) -> History:
    clock = HarnessClock()
    with pytest.MonkeyPatch.context() as patch, heartbeats_that_end(patch):
        kept = MetadataHarness.of(Harness(clock, MemoryStorage(clock)), version or 8 + seed % 2)
        history = History(kept, random.Random(seed))
        history.hear(patch)
        history.play()
    return history


@pytest.mark.parametrize("version", [6, None], ids=["6", "8 and 9"])
def test_whatever_happens_the_metadata_table_tells_what_is_there(version: int | None) -> None:
    for seed in range(HISTORIES * 2):
        history = play(seed, version)
        assert history.wrong() == "", f"seed {seed}:\n" + "\n".join(history.trail)


# ---- planted breaks: each drops one rule, and must be found (other rules have tests of their own) ----


def take_a_time_without_a_claim(patch: Patch) -> None:
    patch.setattr(TableCoordinator, "claim", skip_schedules(TableCoordinator.claim))


def skip_schedules(claim: Any) -> Any:
    def skip(self: Any, view: Any, asked: Any, *points: Any) -> bool:
        return True if asked.action == "compaction" else bool(claim(self, view, asked, *points))

    return skip


def list_before_the_last_claim_is_settled(patch: Patch) -> None:
    def look(self: Any) -> Any:
        return self._table.peek()

    patch.setattr(MetadataServices, "_look", look)


def say_nothing_of_a_restore(patch: Patch) -> None:
    patch.setattr(restoring, "carry_out_restore", lambda *_, **__: True)


def compact_what_may_be_rolled_back(patch: Patch) -> None:
    patch.setattr(MetadataServices, "_is_unsettled", lambda *_: False)


PLANTS: list[tuple[Callable[[Patch], None], int]] = [
    (take_a_time_without_a_claim, 20),
    (list_before_the_last_claim_is_settled, 18),
    (say_nothing_of_a_restore, 2),
    (compact_what_may_be_rolled_back, 36),
]


@pytest.mark.parametrize(("plant", "likely"), PLANTS)
def test_a_rule_that_is_dropped_is_found(plant: Callable[[Patch], None], likely: int, monkeypatch: Patch) -> None:
    """First by the seed that was found when this was written, then by others."""
    plant(monkeypatch)
    assert any(fails(seed) for seed in (likely, *range(400)))


def fails(seed: int) -> bool:
    try:
        return play(seed).wrong() != ""
    except HudiLocksError:
        return True
