"""Which jobs met in conflicts, and what it cost: commits that met one before they were published tell it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hudi_locks.errors import DamagedTable
from hudi_locks.format import WRITE_ACTIONS, CommitMetadata
from hudi_locks.lock import name_job
from hudi_locks.storage import map_in_threads
from hudi_locks.table import Table, read_commit
from hudi_locks.transaction import Conflict

__all__ = ["ConflictSummary", "ConflictingJobs", "MetConflict", "describe_conflict", "list_conflicts", "note_conflicts"]

_NOTED: Final = "hudi_locks.conflicts"
"""Extra metadata of a commit."""
_EARLY: Final = "early"
_LATE: Final = "at publish"
_AVOIDED: Final = "rewritten"


@dataclass(frozen=True)
class MetConflict:
    """A conflict that a write met before it was committed.

    Attributes:
        instant: Requested time of the commit in the end.
        writer: Who made it.
        other: Requested time of the instant that was first.
        other_action: Its action.
        other_writer: Who made that, as far as known.
        partition: The first partition in question; None if the other concerns the whole table.
        found: `early`, before files were written, or `at publish`, and the attempt was thrown away; or `rewritten`,
            if only the files in question were written again.
        lost_ms: How long the attempt took that was thrown away, in milliseconds; 0 if none was.
    """

    instant: str
    writer: str
    other: str
    other_action: str
    other_writer: str
    partition: str | None
    found: str
    lost_ms: int


@dataclass(frozen=True)
class ConflictingJobs:
    """A job that gave way to another.

    Attributes:
        job: It, by the name of its application, else by its process.
        other_job: The one that was first.
        conflicts: How often they met.
        early: How many of those were found before any file was written.
        rewritten: How many cost the files in question alone.
        lost_ms: How long the attempts took that were thrown away, in milliseconds.
        last: Requested time of the newest commit that met the other.
    """

    job: str
    other_job: str
    conflicts: int
    early: int
    rewritten: int
    lost_ms: int
    last: str


@dataclass(frozen=True)
class ConflictSummary:
    """What the newest commits of a table met.

    Attributes:
        commits: How many were looked at.
        met: How many of them met a conflict.
        jobs: Which jobs they were of, the pair that lost most time first.
        conflicts: Each, in the order in which the commits were begun.
    """

    commits: int
    met: int
    jobs: tuple[ConflictingJobs, ...]
    conflicts: tuple[MetConflict, ...]


def describe_conflict(conflict: Conflict, *, lost_ms: int | None) -> dict[str, Any]:
    """What `note_conflicts` keeps of one; `lost_ms` None if no attempt was thrown away."""
    found = _AVOIDED if lost_ms is None else _EARLY if conflict.is_early else _LATE
    return {
        "other": conflict.other,
        "other_action": conflict.other_action,
        "other_writer": conflict.other_writer,
        "partition": conflict.partition,
        "found": found,
        "lost_ms": lost_ms or 0,
    }


def note_conflicts(metadata: CommitMetadata, met: Sequence[dict[str, Any]], writer: str) -> CommitMetadata:
    """The metadata of a commit, with the conflicts that its write met on the way."""
    return replace(metadata, extra={**metadata.extra, _NOTED: json.dumps({"writer": writer, "met": list(met)})})


def list_conflicts(table: Table, *, last: int) -> ConflictSummary:
    """What the newest completed writes of the active timeline met; writes that gave up for good left no commit.

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
    conflicts = tuple(one for of_commit in found for one in of_commit)
    return ConflictSummary(len(found), sum(map(bool, found)), tuple(_sum_up(conflicts)), conflicts)


def _decode(requested: str, commit: CommitMetadata) -> list[MetConflict]:
    text = commit.extra.get(_NOTED)
    if text is None:
        return []
    try:
        noted = json.loads(text)
        return [MetConflict(instant=requested, writer=noted["writer"], **one) for one in noted["met"]]
    except (ValueError, TypeError, KeyError) as error:
        message = f"{_NOTED} in the extra metadata of commit {requested} is not what a writer of this package writes"
        raise DamagedTable(message, instant=requested) from error


def _sum_up(conflicts: Iterable[MetConflict]) -> list[ConflictingJobs]:
    pairs: dict[tuple[str, str], list[MetConflict]] = {}
    for one in conflicts:
        pairs.setdefault((name_job(one.writer), name_job(one.other_writer)), []).append(one)
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
    )
