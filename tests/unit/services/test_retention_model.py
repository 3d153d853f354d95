"""Whatever the history: no clean removes what a retained commit, a running write or a savepoint shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_locks.clock import ManualClock
from hudi_locks.format import BaseFileName, CommitMetadata, Instant, SavepointMetadata, State, WriteStat, format_time
from hudi_locks.services import CleanSettings
from hudi_locks.services.retention import CleanPlanner
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import PARTITION_METADATA
from hudi_locks.timeline import LAYOUT_2, Timeline, create_instant

START_MS = 1_790_000_000_000
GROUPS = ("a-0", "b-0", "c-0")
Snapshot = frozenset[tuple[str, int]]
"""(file id, number of the write that made the slice)."""


def at(tick: int) -> str:
    return format_time(START_MS + tick)


@dataclass
class Write:
    begun: int
    sees: Snapshot
    groups: frozenset[str]
    replaces: frozenset[str]
    ended: int | None = None
    is_aborted: bool = False


@dataclass
class History:
    """Writes of one partition that conflict as the product's do; the plain model of what is shown when."""

    writes: list[Write] = field(default_factory=list)
    savepoints: dict[int, Snapshot] = field(default_factory=dict)
    tick: int = 0

    def shown(self, *, completed: int | None = None, requested: int | None = None) -> Snapshot:
        done = [w for w in self.writes if w.ended is not None]
        if completed is not None:
            done = [w for w in done if w.ended is not None and w.ended <= completed]
        if requested is not None:
            done = [w for w in done if w.begun <= requested]
        newest = {group: w.begun for w in sorted(done, key=lambda w: w.begun) for group in w.groups}
        gone = {group for w in done for group in w.replaces}
        return frozenset((group, begun) for group, begun in newest.items() if group not in gone)

    def begin(self, groups: frozenset[str], replaces: frozenset[str]) -> None:
        self.tick += 1
        live = {group for group, _ in self.shown(completed=self.tick)}
        gone = {group for w in self.writes for group in w.replaces if not w.is_aborted}
        made = frozenset({f"n{self.tick}-0"}) if replaces & live else groups - gone
        self.writes.append(Write(self.tick, self.shown(completed=self.tick), made, replaces & live))

    def end(self, choice: int) -> None:
        open_writes = [w for w in self.writes if w.ended is None and not w.is_aborted]
        if not open_writes:
            return
        self.tick += 1
        write = open_writes[choice % len(open_writes)]
        later = [w for w in self.writes if w.ended is not None and w.ended > write.begun]
        if any((w.groups | w.replaces) & (write.groups | write.replaces) for w in later):
            write.is_aborted = True
        else:
            write.ended = self.tick

    def save(self, choice: int) -> None:
        done = [w for w in self.writes if w.ended is not None]
        if done:
            begun = done[choice % len(done)].begun
            self.savepoints[begun] = self.shown(requested=begun)


events: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.just("begin"), st.frozensets(st.sampled_from(GROUPS), min_size=1), st.just(frozenset())),
    st.tuples(st.just("begin"), st.just(frozenset()), st.frozensets(st.sampled_from(GROUPS), min_size=1, max_size=1)),
    st.tuples(st.just("end"), st.integers(0, 5)),
    st.tuples(st.just("end"), st.integers(0, 5)),
)


@st.composite
def histories(draw: st.DrawFn) -> History:
    history = History()
    for event in draw(st.lists(events, min_size=6, max_size=40)):
        getattr(history, event[0])(*event[1:])
    for choice in draw(st.lists(st.integers(0, 9), max_size=1)):
        history.save(choice)
    return history


def lay_out(history: History) -> MemoryStorage:
    storage = MemoryStorage(ManualClock(START_MS))
    storage.replace(f"p/{PARTITION_METADATA}", b"")
    for write in history.writes:
        if not write.is_aborted:
            _put(storage, write)
    for begun, kept in history.savepoints.items():
        files = {"p": tuple(str(BaseFileName(group, at(made))) for group, made in kept)}
        data = SavepointMetadata("me", 0, "", files).encode()
        create_instant(storage, LAYOUT_2, instant=Instant(at(begun), "savepoint", State.COMPLETED, at(999)), data=data)
    return storage


def _put(storage: MemoryStorage, write: Write) -> None:
    action = "replacecommit" if write.replaces else "commit"
    instant = Instant(at(write.begun), action, State.REQUESTED)
    create_instant(storage, LAYOUT_2, instant=instant)
    create_instant(storage, LAYOUT_2, instant=instant.as_inflight())
    stats = [
        WriteStat("p", group, f"p/{BaseFileName(group, at(write.begun))}", prev_commit="20200101000000000")
        for group in write.groups
    ]
    for stat in stats:
        storage.replace(str(stat.path), b"")
    if write.ended is not None:
        replaced = {"p": tuple(write.replaces)} if write.replaces else {}
        metadata = CommitMetadata.of(stats, "UPSERT", schema="{}", replaced_file_ids=replaced)
        data = metadata.encode(action, layout_version=2)
        create_instant(storage, LAYOUT_2, instant=instant.as_completed(at(write.ended)), data=data)


def clean(history: History, options: dict[str, object], *, everywhere: bool) -> set[tuple[str, int]]:
    """What is left after a clean: (file id, tick)."""
    storage = lay_out(history)
    timeline = Timeline.load(storage, LAYOUT_2)
    planner = CleanPlanner(storage, CleanSettings.of(options), oldest_shown=at(max(0, history.tick - 6)))
    plan = planner.plan(timeline, everywhere=everywhere)
    gone = {path.rsplit("/", 1)[-1] for paths in (plan.files if plan else {}).values() for path in paths}
    by_time = {at(write.begun): write.begun for write in history.writes}
    names = [BaseFileName.parse(entry.name) for entry in storage.list("p") if entry.name not in gone]
    return {(name.file_id, by_time[name.instant]) for name in names if name}


def always_kept(history: History) -> set[tuple[str, int]]:
    running = [w for w in history.writes if w.ended is None and not w.is_aborted]
    shown = [history.shown(), *(w.sees for w in running), *history.savepoints.values()]
    return {slice_ for snapshot in shown for slice_ in snapshot}


@pytest.mark.histories
@settings(max_examples=40)
@given(histories(), st.integers(1, 3), st.booleans())
def test_what_the_retained_commits_show_stays(history: History, retained: int, everywhere: bool) -> None:
    left = clean(history, {"hoodie.clean.commits.retained": retained}, everywhere=everywhere)
    done = sorted(w.begun for w in history.writes if w.ended is not None)
    first = done[-retained:][0] if done else 0
    shown = [history.shown(requested=begun) for begun in done[-retained:]]
    shown += [history.shown(completed=tick) for tick in range(first, history.tick + 1)]
    assert always_kept(history) <= left
    assert {slice_ for snapshot in shown for slice_ in snapshot} <= left


@pytest.mark.histories
@settings(max_examples=40)
@given(histories(), st.booleans())
def test_what_the_last_hours_showed_stays(history: History, everywhere: bool) -> None:
    options: dict[str, object] = {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS"}
    left = clean(history, options, everywhere=everywhere)
    ticks = range(max(0, history.tick - 6), history.tick + 1)
    assert always_kept(history) <= left
    assert {slice_ for tick in ticks for slice_ in history.shown(completed=tick)} <= left


@pytest.mark.histories
@settings(max_examples=40)
@given(histories(), st.integers(1, 3), st.booleans())
def test_the_last_versions_stay(history: History, retained: int, everywhere: bool) -> None:
    options: dict[str, object] = {
        "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.clean.fileversions.retained": retained,
    }
    left = clean(history, options, everywhere=everywhere)
    live = {group for group, _ in history.shown()}
    done = sorted((w for w in history.writes if w.ended is not None), key=lambda w: w.begun)
    versions = {group: [w.begun for w in done if group in w.groups][-retained:] for group in live}
    assert always_kept(history) <= left
    assert {(group, begun) for group, kept in versions.items() for begun in kept} <= left
