"""One history of a merge-on-read table: writes that overlap, compactions and services, an event after the other."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from compaction_harness import CompactionHarness
from hypothesis import strategies as st
from service_harness import ServiceHarness
from transaction_harness import HarnessClock, name_files

from hudi_locks.format import WRITE_ACTIONS, CommitMetadata
from hudi_locks.storage import MemoryStorage
from hudi_locks.transaction import Transaction

GROUPS = tuple(f"{bucket:08d}-0000-0000-0000-000000000000-0" for bucket in range(2))
Event = tuple[str, int]

NAMES = (*["begin"] * 4, *["end"] * 6, "fail", "plan", "merge", *["compact"] * 3, *["clean"] * 2)
events: st.SearchStrategy[list[Event]] = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 5)), min_size=8, max_size=45
)


@dataclass
class LogHistory:
    """Plays events, and knows what was written and what each clean promised.

    Attributes:
        options: Of the cleaner, without their prefix.
        since: From this time on every snapshot must be whole.
    """

    options: dict[str, Any]
    since: str = ""
    open_writes: list[tuple[Transaction, CommitMetadata]] = field(default_factory=list)
    groups: dict[str, frozenset[str]] = field(default_factory=dict)
    completed: dict[str, str] = field(default_factory=dict)
    moments: list[str] = field(default_factory=list)
    deleted: int = 0

    def __post_init__(self) -> None:
        clock = HarnessClock()
        self.at = CompactionHarness.at(ServiceHarness(clock, MemoryStorage(clock)))
        self.compaction = self.at.compaction()

    def play(self, played: list[Event]) -> LogHistory:
        for name, choice in played:
            getattr(self, name)(choice)
            self.at.harness.clock.advance(0.01)
        return self

    def play_at_random(self, seed: int, count: int) -> LogHistory:
        rng = random.Random(seed)
        return self.play([(rng.choice(NAMES), rng.randrange(6)) for _ in range(count)])

    # ---- events ----
    def begin(self, choice: int) -> None:
        groups = GROUPS[:1] if choice % 3 else GROUPS
        tx = self.at.begin()
        self.groups[tx.instant] = frozenset(groups)
        self._open(tx, self.at.log(tx, *groups))

    def end(self, choice: int) -> None:
        if self.open_writes:
            tx, draft = self.open_writes.pop(choice % len(self.open_writes))
            completion = str(tx.publish(draft).completion_time)
            self.completed |= {tx.instant: completion} if tx.instant in self.groups else {}
            self.moments.append(completion)

    def fail(self, choice: int) -> None:
        if self.open_writes:
            tx, draft = self.open_writes.pop(choice % len(self.open_writes))
            for stat in draft.stats:
                self.at.harness.storage.delete(str(stat.path))
            tx.abort("it failed")

    def _open(self, tx: Transaction, draft: CommitMetadata) -> None:
        """A write under way that has named its files, as a JVM writer does, or one that died while it was published."""
        name_files(self.at.harness.storage, draft.stats)
        self.open_writes.append((tx, draft))

    def plan(self, _: int) -> None:
        self.compaction.schedule()

    def compact(self, _: int) -> None:
        self.compaction.schedule()
        done = self.at.run(self.compaction)
        self.moments += [str(done.completion_time)] if done else []

    def merge(self, _: int) -> None:
        """A compaction that has made its base files and is not done."""
        if (taken := self.compaction.take()) is not None:
            self._open(taken[0], self.at.merge(*taken))

    def clean(self, choice: int) -> None:
        promised = self._promise()
        done = self.at.harness.cleaner(**self.options).run(everywhere=choice % 2 == 0)
        self.deleted += done.deleted
        self.since = max(self.since, promised) if done.instants else self.since

    def _promise(self) -> str:
        """The last commits, as the documentation has it, and what a write or plan under way has read."""
        timeline = self.at.harness.timeline()
        pending = [instant.requested for instant in timeline.pending(WRITE_ACTIONS)]
        done = [instant.requested for instant in timeline.completed(WRITE_ACTIONS)]
        kept = self.options.get("commits__retained")
        newest = done[-kept:][:1] if kept else [str(timeline.newest_time())]
        return min([*newest, *pending], default="")

    # ---- what must hold ----
    def wrong(self) -> str:
        """At each time that was promised readers see every write that was completed by then, once."""
        now = str(self.at.harness.timeline().newest_time())
        for moment in sorted({*self.moments, self.since, now}):
            if moment < self.since:
                continue
            found = {group: sorted(rows) for group, rows in self.at.seen(as_of=moment).items() if rows}
            if found != (expected := self._expect(moment)):
                return f"at {moment} readers see {found}, and {expected} were written"
        return ""

    def is_whole(self, moment: str) -> bool:
        """Whether readers see every write that was completed by then, once."""
        found = {group: sorted(rows) for group, rows in self.at.seen(as_of=moment).items() if rows}
        return found == self._expect(moment)

    def _expect(self, moment: str) -> dict[str, list[str]]:
        done = sorted(requested for requested, completion in self.completed.items() if completion <= moment)
        found = {group: [requested for requested in done if group in self.groups[requested]] for group in GROUPS}
        return {group: rows for group, rows in found.items() if rows}
