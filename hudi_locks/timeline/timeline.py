"""A table's instants, as one listing of the timeline folder shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from hudi_locks.errors import DamagedTable
from hudi_locks.format import WRITE_ACTIONS, Instant, State, comparable_action, parse_instant_name
from hudi_locks.storage import Entry, Storage
from hudi_locks.timeline.layout import TimelineLayout

__all__ = ["Timeline", "create_instant", "delete_instant", "read_instant"]


@dataclass(frozen=True)
class Timeline:
    """An unchangeable snapshot of the active timeline; load another to see what happened since.

    Attributes:
        layout: Where it was loaded from.
        instants: Each instant once, in its latest state, ordered by requested time.
        paths: File of each instant, relative to the base path.
    """

    layout: TimelineLayout
    instants: tuple[Instant, ...]
    paths: Mapping[Instant, str] = field(default_factory=dict, repr=False, compare=False)
    _by_time: Mapping[str, Instant] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_time", {instant.requested: instant for instant in self.instants})

    @classmethod
    def load(cls, storage: Storage, layout: TimelineLayout) -> Timeline:
        """List the timeline folder once.

        Raises:
            DamagedTable: A file there looks like an instant and is none, or an instant is completed twice.
            StorageError: The store failed.
        """
        latest: dict[tuple[str, str], tuple[Instant, str]] = {}
        for entry in storage.list(layout.folder):
            if not entry.is_folder and (instant := _interpret(entry, layout)):
                key = (instant.requested, comparable_action(instant.action))
                latest[key] = _later(latest.get(key), (instant, f"{layout.folder}/{entry.name}"))
        paths = dict(latest.values())
        return cls(layout, tuple(sorted(paths)), paths)

    def completed(self, actions: Iterable[str] | None = None) -> tuple[Instant, ...]:
        """Completed instants by requested time, of `actions` (as their completed files say it) or of all."""
        wanted = None if actions is None else frozenset(actions)
        return tuple(i for i in self.instants if i.is_completed and (wanted is None or i.action in wanted))

    def pending(self, actions: Iterable[str] | None = None) -> tuple[Instant, ...]:
        """Requested and inflight instants by requested time, of `actions` or of all."""
        wanted = None if actions is None else frozenset(actions)
        return tuple(i for i in self.instants if not i.is_completed and (wanted is None or i.action in wanted))

    def get(self, requested: str) -> Instant | None:
        """The instant begun at `requested`, in its latest state; None if it is not on the active timeline."""
        return self._by_time.get(requested)

    def newest_time(self) -> str | None:
        """The latest of all requested and completion times; None for an empty timeline."""
        times = [time for i in self.instants for time in (i.requested, i.completion) if time]
        return max(times, default=None)

    @property
    def first_active(self) -> str | None:
        """Requested time of the first write on the active timeline: what is older is archived, thus completed."""
        return next((i.requested for i in self.instants if i.action in WRITE_ACTIONS), None)

    def is_completed(self, requested: str) -> bool:
        """Whether readers take the files of this instant for committed: it is completed here, or archived."""
        instant = self.get(requested)
        if instant is not None:
            return instant.is_completed
        return self.first_active is not None and requested < self.first_active

    def completed_between(self, begin: str, end: str | None = None) -> tuple[Instant, ...]:
        """Completed writes with begin < completion time <= end, ordered by completion time."""
        writes = [i for i in self.completed(WRITE_ACTIONS) if i.completion and begin < i.completion]
        inside = [i for i in writes if end is None or str(i.completion) <= end]
        return tuple(sorted(inside, key=lambda i: (i.completion or "", i.requested)))


def _interpret(entry: Entry, layout: TimelineLayout) -> Instant | None:
    instant = parse_instant_name(entry.name, layout.folder)
    if instant is not None and instant.is_completed and instant.completion is None:
        return replace(instant, completion=layout.time(entry.modified_ms))
    return instant


def _later(known: tuple[Instant, str] | None, found: tuple[Instant, str]) -> tuple[Instant, str]:
    if known is None:
        return found
    if known[0].state is found[0].state is State.COMPLETED:
        message = f"instant {known[0].requested} is completed twice, by {known[1]} and {found[1]}; one is a stranger's"
        raise DamagedTable(message, path=found[1], other=known[1], requested=known[0].requested)
    return max(known, found, key=lambda pair: pair[0].state)


def create_instant(storage: Storage, layout: TimelineLayout, *, instant: Instant, data: bytes = b"") -> bool:
    """Make the file of `instant` in its state, whole or not at all; False if it is there already.

    It does not look at earlier states: whoever completes an instant looks first whether its inflight file is there.
    """
    return storage.create_if_absent(layout.path(instant), data)


def delete_instant(storage: Storage, layout: TimelineLayout, *, instant: Instant) -> bool:
    """Remove the file of `instant` in its state; False if it was not there."""
    return storage.delete(layout.path(instant))


def read_instant(storage: Storage, timeline: Timeline, *, instant: Instant) -> bytes:
    """The content of the file that `timeline` shows for `instant`; b"" for an empty one.

    Raises:
        DamagedTable: The file is gone since the timeline was loaded; load it again.
    """
    path = timeline.paths.get(instant) or timeline.layout.path(instant)
    data = storage.read(path)
    if data is None:
        raise DamagedTable(f"{path} is gone: archived, rolled back or removed since the timeline was loaded", path=path)
    return data
