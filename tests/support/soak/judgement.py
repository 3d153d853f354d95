"""Holds a table against what its timeline, its writers and other readers say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from hudi_locks.format import Instant
from hudi_locks.format.claim import PRIVATE_FOLDER
from hudi_locks.markers import MARKER_FOLDER, staging_folder
from hudi_locks.storage import Storage, open_storage
from hudi_locks.table import Table, latest_base_files, list_base_files, list_partitions, read_commit
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.claims import STAGED_FOLDER
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER
from hudi_locks.verification import verify_table
from soak.deeds import KEPT_UNDER, Row, draw_deed, replay
from soak.running import Told
from soak.stores import Store
from soak.writing import read_rows

__all__ = ["Readers", "Verdict", "age_leftovers", "compare_readers", "judge", "read_ours"]

_WRITES: Final = ("commit", "replacecommit")
_SHOWN: Final = 5
_SWEPT: Final = (HEARTBEAT_FOLDER, f"{PRIVATE_FOLDER}/tmp", staging_folder("").rstrip("/"), STAGED_FOLDER)
Readers = Mapping[str, Callable[[str], Sequence[Row]]]
"""By name, each with the way to get all rows of the table at a path."""


@dataclass(frozen=True)
class Verdict:
    """What was found.

    Attributes:
        commits: How many writes the timeline has.
        rows: Those of the replay, which the table must have.
        kinds: How many of each kind of deed.
        differences: Whatever is not as it should be, in words; empty if all is well.
    """

    commits: int = 0
    rows: tuple[Row, ...] = field(default=(), repr=False)
    kinds: Mapping[str, int] = field(default_factory=dict)
    differences: tuple[str, ...] = ()


def age_leftovers(store: Store) -> None:
    """As if hours had passed since the last writer: the janitor leaves young leftovers of nobody known alone."""
    storage = store.open()
    for folder in _SWEPT:
        for path, _ in storage.walk(folder):
            store.set_old(path)


def read_ours(path: str, options: Mapping[str, str] = MappingProxyType({})) -> list[Row]:
    """The rows as this package lists the files of the snapshot."""
    table = Table.load(open_storage(path, options))
    files = latest_base_files(table.storage, table.timeline())
    return [row for file in files for row in read_rows(table.storage, file.path)]


def judge(store: Store, told: Told, readers: Readers, *, beside_jvm: bool = False) -> Verdict:
    """Look at a table after the janitor.

    Args:
        store: Where it lies.
        told: By the writers.
        readers: By name; each gives all rows.
        beside_jvm: See `draw_deed`.
    """
    table = Table.load(store.open())
    timeline = table.timeline()
    done = sorted(timeline.completed(_WRITES), key=lambda instant: instant.completion or "")
    names = [read_commit(table.storage, timeline, requested=i.requested).extra.get(KEPT_UNDER, "") for i in done]
    deeds = [draw_deed(name, beside_jvm=beside_jvm) for name in names if name]
    expected = replay(deeds)
    differences = [
        *_check_names(names, told),
        *_check_words(done, told),
        *_find_strays(table, timeline),
        *(f"{upload} is left over" for upload in store.list_uploads()),
        *_find_damages(table.storage),
        *compare_readers(store.path, expected, readers),
    ]
    kinds = Counter(deed.kind.value for deed in deeds)
    return Verdict(len(done), tuple(expected), kinds, tuple(differences))


def _check_names(names: Sequence[str], told: Told) -> Iterator[str]:
    if unnamed := names.count(""):
        yield f"{unnamed} commits name no deed"
    yield from (f"{name} was committed {times} times" for name, times in Counter(names).items() if name and times > 1)
    yield from (f"{name} was called committed, and no commit names it" for name in sorted(told.done - set(names)))


def _check_words(done: Sequence[Instant], told: Told) -> Iterator[str]:
    """What writers were told must be so."""
    completions = {instant.requested: instant.completion for instant in done}
    for instant, completion in sorted(told.committed.items()):
        if instant not in completions:
            yield f"{instant} was called committed, and the timeline lacks it"
        elif completion is not None and completion != completions[instant]:
            yield f"{instant} was said to complete at {completion}, and did at {completions[instant]}"
    undead = sorted(told.aborted & completions.keys())
    yield from (f"{instant} was called aborted, and is completed" for instant in undead)
    if len(set(completions.values())) < len(completions):
        yield "two commits have one completion time"


def _find_strays(table: Table, timeline: Timeline) -> Iterator[str]:
    """What is left of writes that nobody will finish."""
    storage = table.storage
    yield from (f"{instant} is still pending" for instant in timeline.pending())
    for folder in (MARKER_FOLDER, *_SWEPT[:-1]):
        yield from (f"{folder}/{entry.name} is left over" for entry in storage.list(folder))
    yield from (f"what {instant} staged is left over" for instant in sorted(storage.list_staged()))
    if len(staged := storage.list(STAGED_FOLDER)) > 1:
        yield f"{len(staged)} contents of claims are left over"
    written = timeline.completed(_WRITES)
    commits = {i.requested: read_commit(storage, timeline, requested=i.requested) for i in written}
    for file in list_base_files(storage, list_partitions(storage)):
        commit = commits.get(file.instant)
        if commit is None or file.path not in commit.paths:
            yield f"{file.path} belongs to no commit"


def _find_damages(storage: Storage) -> Iterator[str]:
    """What `hudi-locks verify` has to say."""
    yield from (str(damage) for damage in verify_table(storage).damages[:_SHOWN])


def compare_readers(path: str, expected: Sequence[Row], readers: Readers) -> list[str]:
    """Where readers of the table at `path` differ from the rows that it must have, in words."""
    return [line for name, read in readers.items() for line in _compare(name, expected, read(path))]


def _compare(name: str, expected: Sequence[Row], found: Sequence[Row]) -> Iterator[str]:
    want, have = Counter(expected), Counter(found)
    if want == have:
        return
    missing, extra = want - have, have - want
    yield f"{name}: {missing.total()} rows of the replay are missing, {extra.total()} are too much, of {len(expected)}"
    yield from (f"{name}: missing {row}" for row in sorted(missing)[:_SHOWN])
    yield from (f"{name}: too much {row}" for row in sorted(extra)[:_SHOWN])
