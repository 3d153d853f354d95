"""Which jobs met in conflicts, and what it cost.

Commits that met one before they were published tell it. A write or table service that gave up leaves no commit, so it
leaves a record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hudi_locks.errors import DamagedTable, StorageError
from hudi_locks.format import WRITE_ACTIONS, CommitMetadata
from hudi_locks.format.claim import PRIVATE_FOLDER
from hudi_locks.lock import name_job
from hudi_locks.redaction import open_log
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import Table, read_commit
from hudi_locks.transaction import Conflict

__all__ = [
    "ConflictSummary",
    "ConflictingJobs",
    "MetConflict",
    "describe_conflict",
    "leave_conflicts",
    "list_conflicts",
    "list_left",
    "note_conflicts",
]

_log = open_log(__name__)
_NOTED: Final = "hudi_locks.conflicts"
"""Extra metadata of a commit."""
_EARLY: Final = "early"
_LATE: Final = "at publish"
_AVOIDED: Final = "rewritten"
_LEFT_FOLDER: Final = f"{PRIVATE_FOLDER}/conflicts"
_MOST_LEFT: Final = 200
"""Records that a table keeps of what gave up."""


@dataclass(frozen=True)
class MetConflict:
    """A conflict that a write or table service met before it was committed, or gave up.

    Attributes:
        instant: Requested time of the commit in the end; of the last attempt of a write that gave up.
        writer: Who made it.
        other: Requested time of the instant that was first.
        other_action: Its action.
        other_writer: Who made that, as far as known.
        partition: The first partition in question; None if the other concerns the whole table.
        found: `early`, before files were written, or `at publish`, and the attempt was thrown away; or `rewritten`,
            if only the files in question were written again.
        lost_ms: How long the attempt took that was thrown away, in milliseconds; 0 if none was.
        file_id: The first file group in question; None if the other concerns partitions or the whole table.
        met_ms: When the attempt ended that met it, in milliseconds since the epoch; None if it was rewritten.
        gave_up: Whether it was never committed; the plan of a clustering was taken back.
        service: Which table service met it, as `clustering`; None for a write.
    """

    instant: str
    writer: str
    other: str
    other_action: str
    other_writer: str
    partition: str | None
    found: str
    lost_ms: int
    file_id: str | None = None
    met_ms: int | None = None
    gave_up: bool = False
    service: str | None = None

    @property
    def job(self) -> str:
        """What is counted as one: the application, and which table service of it."""
        job = name_job(self.writer)
        return f"{job} ({self.service})" if self.service else job

    @property
    def ending(self) -> str:
        """That it gave up, and which table service; empty if it went on."""
        return f"{self.service or ''} gave up".lstrip() if self.gave_up else ""


@dataclass(frozen=True)
class ConflictingJobs:
    """A job that gave way to another.

    Attributes:
        job: It, by the name of its application, else by its process; with the table service that gave way, if one did.
        other_job: The one that was first.
        conflicts: How often they met.
        early: How many of those were found before any file was written.
        rewritten: How many cost the files in question alone.
        lost_ms: How long the attempts took that were thrown away, in milliseconds.
        last: Requested time of the newest write or table service that met the other.
        given_up: How many were of those that gave up.
    """

    job: str
    other_job: str
    conflicts: int
    early: int
    rewritten: int
    lost_ms: int
    last: str
    given_up: int


@dataclass(frozen=True)
class ConflictSummary:
    """What the newest commits of a table met, and what gave up since the first of them.

    Attributes:
        commits: How many were looked at.
        met: How many of them met a conflict.
        given_up: How many writes and table services met one and gave up.
        jobs: Which jobs they were of, the pair that lost most time first.
        conflicts: Each, in the order in which those were begun that met them.
    """

    commits: int
    met: int
    given_up: int
    jobs: tuple[ConflictingJobs, ...]
    conflicts: tuple[MetConflict, ...]


def describe_conflict(conflict: Conflict, *, lost_ms: int | None, met_ms: int | None = None) -> dict[str, Any]:
    """What `note_conflicts` keeps of one; `lost_ms` None if no attempt was thrown away."""
    found = _AVOIDED if lost_ms is None else _EARLY if conflict.is_early else _LATE
    return {
        "other": conflict.other,
        "other_action": conflict.other_action,
        "other_writer": conflict.other_writer,
        "partition": conflict.partition,
        "found": found,
        "lost_ms": lost_ms or 0,
        "file_id": conflict.file_id,
        "met_ms": met_ms,
    }


def note_conflicts(metadata: CommitMetadata, met: Sequence[dict[str, Any]], writer: str) -> CommitMetadata:
    """The metadata of a commit, with the conflicts that its write met on the way."""
    return replace(metadata, extra={**metadata.extra, _NOTED: _encode(met, writer=writer)})


def leave_conflicts(
    storage: Storage, instant: str, *, met: Sequence[dict[str, Any]], writer: str, service: str | None = None
) -> None:
    """Keep the conflicts of a write or table service that gave up, in place of the oldest record if there are many.

    Args:
        storage: Of the table.
        instant: Requested time of its last attempt.
        met: See `describe_conflict`.
        writer: Who gave up. That the record cannot be kept is warned about.
        service: Which table service of theirs it was, as `clustering`; None for a write.
    """
    named = {"service": service} if service else {}
    try:
        storage.create_transient(f"{_LEFT_FOLDER}/{instant}.json", _encode(met, writer=writer, **named).encode())
        old = list_left(storage)[:-_MOST_LEFT]
        storage.delete_all([f"{_LEFT_FOLDER}/{one}.json" for one in old])
    except StorageError as error:
        _log.warning("that %s %s gave up after a conflict could not be noted: %s", service or "write", instant, error)


def list_left(storage: Storage) -> list[str]:
    """Requested times of what gave up and left a record, the oldest first.

    Raises:
        StorageError: The store failed.
    """
    return sorted(name.removesuffix(".json") for name in storage.list_names(_LEFT_FOLDER) if name.endswith(".json"))


def list_conflicts(table: Table, *, last: int) -> ConflictSummary:
    """What the newest completed writes of the active timeline met, and what gave up since.

    Args:
        table: The table.
        last: At most so many writes.

    Raises:
        DamagedTable: The timeline or a commit cannot be read.
        StorageError: The store failed.
    """
    timeline = table.timeline()
    requested = [instant.requested for instant in timeline.completed(WRITE_ACTIONS)][-last:]
    commits = map_in_threads(lambda one: read_commit(table.storage, timeline, requested=one), requested)
    found = [_decode(one, commit) for one, commit in zip(requested, commits, strict=True)]
    since = requested[0] if len(requested) == last else ""
    left = map_in_threads(
        lambda one: _read_left(table.storage, one), [i for i in list_left(table.storage) if i >= since]
    )
    writes = sorted((one for one in (*found, *left) if one), key=lambda met: met[0].instant)
    conflicts = tuple(one for of_write in writes for one in of_write)
    counts = (sum(map(bool, found)), sum(map(bool, left)))
    return ConflictSummary(len(found), *counts, tuple(_sum_up(conflicts)), conflicts)


def _encode(met: Sequence[dict[str, Any]], **named: str) -> str:
    return json.dumps({**named, "met": list(met)})


def _decode(requested: str, commit: CommitMetadata) -> list[MetConflict]:
    text = commit.extra.get(_NOTED)
    try:
        return [] if text is None else _parse(text, requested)
    except (ValueError, TypeError, KeyError) as error:
        message = f"{_NOTED} in the extra metadata of commit {requested} is not what a writer of this package writes"
        raise DamagedTable(message, instant=requested) from error


def _parse(text: str | bytes, instant: str, *, gave_up: bool = False) -> list[MetConflict]:
    noted = json.loads(text)
    common = {"instant": instant, "writer": noted["writer"], "gave_up": gave_up, "service": noted.get("service")}
    return [MetConflict(**common, **one) for one in noted["met"]]


def _read_left(storage: Storage, instant: str) -> list[MetConflict]:
    """Nothing of a record that is gone meanwhile, or was not kept whole in a power failure."""
    path = f"{_LEFT_FOLDER}/{instant}.json"
    data = storage.read(path)
    try:
        return [] if data is None else _parse(data, instant, gave_up=True)
    except (ValueError, TypeError, KeyError):
        _log.warning("%s is no record of what gave up after a conflict; remove it", path)
        return []


def _sum_up(conflicts: Iterable[MetConflict]) -> list[ConflictingJobs]:
    pairs: dict[tuple[str, str], list[MetConflict]] = {}
    for one in conflicts:
        pairs.setdefault((one.job, name_job(one.other_writer)), []).append(one)
    jobs = [_add_up(job, other, met) for (job, other), met in pairs.items()]
    return sorted(jobs, key=lambda pair: (-pair.lost_ms, -pair.conflicts, pair.job, pair.other_job))


def _add_up(job: str, other_job: str, met: Sequence[MetConflict]) -> ConflictingJobs:
    return ConflictingJobs(
        job,
        other_job,
        len(met),
        early=sum(one.found == _EARLY for one in met),
        rewritten=sum(one.found == _AVOIDED for one in met),
        lost_ms=sum(one.lost_ms for one in met),
        last=max(one.instant for one in met),
        given_up=sum(one.gave_up for one in met),
    )
