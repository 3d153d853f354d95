"""A table's instants, as one listing of the timeline folder shows them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Final

from hudi_locks.errors import DamagedTable
from hudi_locks.format import WRITE_ACTIONS, Instant, State, TimelineLayout, comparable_action, parse_instant_name
from hudi_locks.storage import Entry, Storage

__all__ = [
    "PENDING_ENDINGS",
    "Timeline",
    "TimelineReader",
    "create_instant",
    "delete_instant",
    "find_completion",
    "index_files",
    "is_unfinished",
]

PENDING_ENDINGS: Final = (".requested", ".inflight")
"""How names of files end by which an instant is not completed."""
_MANY: Final = 2
"""So many files cost as much to look at one by one as together."""
_FEW: Final = 100
"""When files of more instants are gone, as after archival, all names are looked at anew."""
_SAVEPOINT: Final = "savepoint"
_ROLLBACK: Final = "rollback"
_MAY_END_TWICE: Final = ("clean", "rollback", "savepoint")
"""JVM cleaners go on with each other's pending work without a look whether it is done; of these, either will do."""
_ORDER: Final = attrgetter("requested", "action", "state")
_REQUESTED: Final = attrgetter("requested")
_COMPLETION: Final = attrgetter("completion")
_COMPLETION_ORDER: Final = attrgetter("completion", "requested")


@dataclass(frozen=True)
class Timeline:
    """An unchangeable snapshot of the active timeline; load another to see what happened since.

    Attributes:
        layout: Where it was loaded from.
        instants: Each instant once, in its latest state, ordered by requested time.
        paths: File of each instant, relative to the base path.
        reserved: A time that somebody has taken for an instant which need not be among these; None if not known.
    """

    layout: TimelineLayout
    instants: tuple[Instant, ...]
    paths: Mapping[Instant, str] = field(default_factory=dict, repr=False, compare=False)
    reserved: str | None = field(default=None, repr=False, compare=False)

    @classmethod
    def load(cls, storage: Storage, layout: TimelineLayout) -> Timeline:
        """List the timeline folder once.

        Raises:
            DamagedTable: A file there looks like an instant and is none, or an instant is completed twice.
            StorageError: The store failed.
        """
        return TimelineReader(storage, layout).load()

    def completed(self, actions: Iterable[str] | None = None) -> tuple[Instant, ...]:
        """Completed instants by requested time, of `actions` (as their completed files say it) or of all."""
        return _select(self._completed, actions)

    def pending(self, actions: Iterable[str] | None = None) -> tuple[Instant, ...]:
        """Requested and inflight instants by requested time, of `actions` or of all."""
        return _select(self._pending, actions)

    @cached_property
    def _completed(self) -> tuple[Instant, ...]:
        return tuple(i for i in self.instants if i.state is State.COMPLETED)

    @cached_property
    def _pending(self) -> tuple[Instant, ...]:
        return tuple(i for i in self.instants if i.state is not State.COMPLETED)

    def get(self, requested: str) -> Instant | None:
        """The instant begun at `requested`, in its latest state; None if it is not on the active timeline.

        A savepoint, which has the requested time of the write that it keeps, is none of its own here. Where JVM
        writers of differing clocks gave one time to a write and to a clean or a rollback, this is the write.
        """
        return self._by_time.get(requested)

    @cached_property
    def _by_time(self) -> Mapping[str, Instant]:
        others = (i for i in self.instants if i.action not in WRITE_ACTIONS and i.action != _SAVEPOINT)
        writes = _select(self.instants, WRITE_ACTIONS)
        return {instant.requested: instant for instant in (*others, *writes)}

    def newest_time(self) -> str | None:
        """The latest of all requested and completion times, and of the reserved one; None for an empty timeline."""
        return max(filter(None, (self._newest_time, self.reserved)), default=None)

    def newest_ordering_time(self, limit: str) -> str | None:
        """The same without what orders no data and has a time after `limit`: rollbacks, and the reserved time."""
        times = [time for i in self.instants for time in (i.requested, i.completion) if time and _orders(i, limit)]
        return max((*times, *(time for time in (self.reserved,) if time and time <= limit)), default=None)

    @cached_property
    def _newest_time(self) -> str | None:
        begun = self.instants[-1].requested if self.instants else None
        return max(filter(None, (begun, *map(_COMPLETION, self._completed))), default=None)

    @cached_property
    def first_active(self) -> str | None:
        """Requested time of the first write on the active timeline: what is older is archived, thus completed.

        A savepointed write may have been left behind by the archive, so it counts only where all are savepointed.
        """
        return _find_first(self.instants, self.savepoints)

    @cached_property
    def savepoints(self) -> frozenset[str]:
        """Requested times of the writes that a completed savepoint keeps."""
        return frozenset(i.requested for i in self.completed((_SAVEPOINT,)))

    def is_completed(self, requested: str) -> bool:
        """Whether readers take the files of this instant for committed: it is completed here, or archived."""
        instant = self.get(requested)
        if instant is not None:
            return instant.is_completed
        return self.first_active is not None and requested < self.first_active

    def completed_between(self, begin: str, end: str | None = None) -> tuple[Instant, ...]:
        """Completed writes with begin < completion time <= end, ordered by completion time."""
        if not begin and end is None:
            return self._by_completion
        writes = (i for i in self.completed(WRITE_ACTIONS) if i.completion and begin < i.completion)
        inside = (i for i in writes if end is None or str(i.completion) <= end)
        return tuple(sorted(inside, key=_COMPLETION_ORDER))

    @cached_property
    def _by_completion(self) -> tuple[Instant, ...]:
        """Mostly the order in which they were begun, which sorts fast."""
        return tuple(sorted(self.completed(WRITE_ACTIONS), key=_COMPLETION_ORDER))

    def completed_since(self, before: Timeline) -> tuple[Instant, ...]:
        """Writes that are completed here and were not on `before`, by requested time."""
        new = self._completed_times - before._completed_times if before.instants is not self.instants else ()
        first = bisect_left(self._completed, min(new), key=_REQUESTED) if new else len(self._completed)
        return _select(tuple(i for i in self._completed[first:] if i.requested in new), WRITE_ACTIONS)

    @cached_property
    def _completed_times(self) -> frozenset[str]:
        return frozenset(map(_REQUESTED, self._completed))

    def completing(self, writes: Sequence[Instant]) -> Timeline:
        """This timeline once `writes` are completed, each of which it shows as pending or not at all.

        What was derived of this one is not derived anew but carried over, so that next to nothing depends on how many
        instants there are.
        """
        if not writes:
            return self
        begun = [found for write in writes if (found := self.get(write.requested))]
        paths = {**self.paths, **{write: self.layout.path(write) for write in writes}}
        for instant in begun:
            del paths[instant]
        after = Timeline(self.layout, _exchange(self.instants, begun, writes), paths)
        after.__dict__.update(self._carry_over(begun, writes))
        return after

    def reserving(self, requested: str) -> Timeline:
        """This timeline, and that somebody has taken the time `requested`, if that is later than all others."""
        if requested <= (self.newest_time() or ""):
            return self
        after = copy(self)  # with what was derived
        object.__setattr__(after, "reserved", requested)
        return after

    def _carry_over(self, begun: list[Instant], writes: Sequence[Instant]) -> dict[str, object]:
        """What is known of this timeline, by name, as it is after `writes`: only what was asked for before."""
        known = self.__dict__
        carried: dict[str, object] = {name: known[name] for name in ("savepoints",) if name in known}
        if "_completed" in known:
            carried["_completed"] = _exchange(self._completed, (), writes)
        if "_pending" in known:
            carried["_pending"] = _exchange(self._pending, begun, ())
        if "_by_time" in known:
            carried["_by_time"] = {**self._by_time, **{write.requested: write for write in writes}}
        if "_newest_time" in known:
            carried["_newest_time"] = max(filter(None, (self._newest_time, *map(_COMPLETION, writes))))
        if "_completed_times" in known:
            carried["_completed_times"] = self._completed_times.union(map(_REQUESTED, writes))
        if "_by_completion" in known:
            carried["_by_completion"] = _add_in_order(self._by_completion, _select(tuple(writes), WRITE_ACTIONS))
        return carried


class TimelineReader:
    """Loads one table's timeline again and again, and looks only at what is new since the last time. Thread-safe."""

    def __init__(self, storage: Storage, layout: TimelineLayout) -> None:
        self._storage = storage
        self._layout = layout
        self._seen = _Seen(frozenset(), {}, Timeline(layout, ()))

    def load(self) -> Timeline:
        """See `Timeline.load`."""
        while (found := self._look()) is None:  # an archiver was faster: what it took is not to look pending
            self._seen = _Seen(frozenset(), {}, Timeline(self._layout, ()))
        self._seen = found
        return found.timeline

    def _look(self) -> _Seen | None:
        """What is there now; None if a completed file is gone again whose time was still to be told."""
        seen, names = self._seen, frozenset(self._storage.list_names(self._layout.folder))
        new = names - seen.names
        if len(names) - len(new) < len(seen.names):
            seen, new = self._forget(seen, names)
        elif not new:
            return seen
        return self._add(seen, names, new)

    def _forget(self, seen: _Seen, names: frozenset[str]) -> tuple[_Seen, frozenset[str]]:
        """What was seen less the instants of which a file is gone, and the names to look at then."""
        gone = (_parse(name, self._layout.folder) for name in seen.names - names)
        times = frozenset(instant.requested for instant in gone if instant is not None)
        if len(times) > _FEW:
            return _Seen(frozenset(), {}, Timeline(self._layout, ())), names
        kept = {key: found for key, found in seen.latest.items() if key[0] not in times}
        instants = tuple(instant for instant in seen.timeline.instants if instant.requested not in times)
        paths = {instant: path for instant, path in seen.timeline.paths.items() if instant.requested not in times}
        left = frozenset(name for name in names if name.startswith(tuple(times))) if times else frozenset()
        return _Seen(names - left, kept, Timeline(self._layout, instants, paths)), left | (names - seen.names)

    def _add(self, seen: _Seen, names: frozenset[str], new: frozenset[str]) -> _Seen | None:
        latest, instants, paths = dict(seen.latest), list(seen.timeline.instants), dict(seen.timeline.paths)
        interpreted = list(_interpret_all(self._storage, self._layout, names=sorted(new)))
        if len(interpreted) < sum(_parse(name, self._layout.folder) is not None for name in new):
            return None
        for found in interpreted:
            key = (found[0].requested, comparable_action(found[0].action))
            before = latest.get(key)
            latest[key] = now = _later(before, found)
            if before is not None:
                del instants[_find_place(instants, before[0])]
                del paths[before[0]]
            instants.insert(_find_place(instants, now[0]), now[0])
            paths[now[0]] = now[1]
        return _Seen(names, latest, Timeline(self._layout, tuple(instants), paths))


def _orders(instant: Instant, limit: str) -> bool:
    return instant.action != _ROLLBACK or instant.requested <= limit


def _find_place(instants: list[Instant], instant: Instant) -> int:
    """Where it is, or belongs; mostly at the end."""
    order, last = _ORDER(instant), _ORDER(instants[-1]) if instants else ()
    if last <= order:
        return len(instants) - (last == order)
    return bisect_left(instants, order, key=_ORDER)


def _exchange(instants: tuple[Instant, ...], gone: Iterable[Instant], new: Iterable[Instant]) -> tuple[Instant, ...]:
    """`instants` in their order, with those of `new` in place of those that are `gone`."""
    kept = list(instants)
    for instant in gone:
        del kept[_find_place(kept, instant)]
    for instant in new:
        kept.insert(_find_place(kept, instant), instant)
    return tuple(kept)


def _add_in_order(instants: tuple[Instant, ...], new: Iterable[Instant]) -> tuple[Instant, ...]:
    found = list(instants)
    for instant in new:
        insort(found, instant, key=_COMPLETION_ORDER)
    return tuple(found)


@dataclass(frozen=True)
class _Seen:
    names: frozenset[str]
    latest: Mapping[tuple[str, str], tuple[Instant, str]]
    timeline: Timeline


def _select(instants: tuple[Instant, ...], actions: Iterable[str] | None) -> tuple[Instant, ...]:
    if actions is None or not instants:
        return instants
    wanted = frozenset(actions)
    return tuple(i for i in instants if i.action in wanted)


def _find_first(instants: Iterable[Instant], savepoints: frozenset[str]) -> str | None:
    writes = [instant.requested for instant in instants if instant.action in WRITE_ACTIONS]
    return next((time for time in writes if time not in savepoints), writes[-1] if writes else None)


def _interpret_all(storage: Storage, layout: TimelineLayout, *, names: Iterable[str]) -> Iterator[tuple[Instant, str]]:
    """Every file of the timeline: the instant in the state that it stands for, and its path."""
    parsed = {name: instant for name in names if (instant := _parse(name, layout.folder)) is not None}
    untimed = [name for name, one in parsed.items() if one.is_completed and one.completion is None]
    files = _find_files(storage, layout, untimed)
    for name, instant in parsed.items():
        path = f"{layout.folder}/{name}"
        if not instant.is_completed or instant.completion is not None:
            yield instant, path
        elif (file := files.get(name)) is not None:
            yield replace(instant, completion=find_completion(instant, file, layout)), path


def _find_files(storage: Storage, layout: TimelineLayout, names: list[str]) -> Mapping[str, Entry]:
    """Those of these that are there; of many by one listing."""
    if len(names) > _MANY:
        return {entry.name: entry for entry in storage.list(layout.folder)}
    found = ((name, storage.stat(f"{layout.folder}/{name}")) for name in names)
    return {name: entry for name, entry in found if entry is not None}


def find_completion(instant: Instant, file: Entry, layout: TimelineLayout) -> str:
    """When an instant was completed whose name does not tell it: when its file was written.

    In version 6, where all are such, not before it was begun: a store may keep times of files in whole seconds.
    """
    written = layout.time(file.modified_ms)
    return max(written, instant.requested) if layout.is_version_6 else written


_parse = lru_cache(maxsize=65_536)(parse_instant_name)
"""Each load of a timeline meets the names of the one before."""


def _later(known: tuple[Instant, str] | None, found: tuple[Instant, str]) -> tuple[Instant, str]:
    if known is None:
        return found
    if known[0].state is found[0].state is State.COMPLETED:
        if found[0].action in _MAY_END_TWICE:
            return min(known, found, key=lambda pair: pair[0].completion or "")
        message = f"instant {known[0].requested} is completed twice, by {known[1]} and {found[1]}; one is a stranger's"
        raise DamagedTable(message, path=found[1], other=known[1], requested=known[0].requested)
    return max(known, found, key=lambda pair: pair[0].state)


def index_files(storage: Storage, layout: TimelineLayout) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Every file of each instant by (requested time, action as completed), the earlier states first."""
    found: dict[tuple[str, str], list[tuple[State, str]]] = {}
    for instant, path in _interpret_all(storage, layout, names=storage.list_names(layout.folder)):
        key = (instant.requested, comparable_action(instant.action))
        found.setdefault(key, []).append((instant.state, path))
    return {key: tuple(path for _, path in sorted(files)) for key, files in found.items()}


def is_unfinished(storage: Storage, layout: TimelineLayout, *, instant: Instant, but_for: str = "") -> bool:
    """Whether an instant is inflight and nobody completed it, but for one who made the file `but_for`."""
    files = index_files(storage, layout).get((instant.requested, comparable_action(instant.action)), ())
    completed = [path for path in files if not path.endswith(PENDING_ENDINGS) and path != but_for]
    return layout.path(instant.as_inflight()) in files and not completed


def create_instant(storage: Storage, layout: TimelineLayout, *, instant: Instant, data: bytes = b"") -> bool:
    """Make the file of `instant` in its state, whole or not at all; False if it is there already.

    It does not look at earlier states: whoever completes an instant looks first whether its inflight file is there. An
    empty requested file is brought to the disk with the inflight file, which lies beside it: before that nothing is
    written which a power failure could leave.
    """
    is_announced_only = instant.state is State.REQUESTED and not data
    create = storage.create_transient if is_announced_only else storage.create_if_absent
    return create(layout.path(instant), data)


def delete_instant(storage: Storage, layout: TimelineLayout, *, instant: Instant) -> bool:
    """Remove the file of `instant` in its state; False if it was not there."""
    return storage.delete(layout.path(instant))
