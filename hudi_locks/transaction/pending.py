"""What is under way beside a write: plans of table services, and writers that are still at work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from hudi_locks.format import CommitMetadata, Instant, State, clustered_file_groups
from hudi_locks.format.claim import Claim, ClaimKind, FileGroupId
from hudi_locks.format.compaction_plan import compacted_file_groups
from hudi_locks.markers import read_markers
from hudi_locks.storage import Storage
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.claims import ClaimLog
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER, find_alive
from hudi_locks.transaction.conflicts import ConcurrentOperation

__all__ = [
    "INGESTION",
    "earlier_operations",
    "find_plan",
    "find_planner",
    "find_publication",
    "living_operations",
    "planned_operations",
]

INGESTION: Final = ("commit", "deltacommit", "replacecommit")
"""Actions of writers, as opposed to those of table services."""
_COMPACTIONS: Final = ("compaction", "logcompaction")
_PLANNED: Final = ("clustering", "replacecommit", *_COMPACTIONS)
_WRITES: Final = ("commit", "deltacommit")


def planned_operations(storage: Storage, timeline: Timeline) -> Iterator[ConcurrentOperation]:
    """Pending table services and replacing writes, ours and the JVM's, with the file groups that they will change.

    The plan stands in the requested file also when the instant is inflight: the inflight file of a clustering is empty,
    and JVM Hudi up to 1.0.2, which reads that one, lets every write pass a clustering that has begun to run.

    Raises:
        DamagedTable: A plan is unreadable.
    """
    for instant in timeline.pending(_PLANNED):
        groups = frozenset(FileGroupId(*group) for group in _planned_groups(storage, timeline, instant))
        yield ConcurrentOperation(instant.requested, instant.action, None, False, groups)


def living_operations(storage: Storage, timeline: Timeline, *, limit_ms: int) -> Iterator[ConcurrentOperation]:
    """Inflight writes with a fresh heartbeat, and the file groups that they announced: by forecast, and by markers.

    Raises:
        DamagedTable: A forecast or a marker is unreadable.
    """
    inflight = {i.requested: i for i in timeline.pending(_WRITES) if i.state is State.INFLIGHT}
    for requested in sorted(find_alive(storage, inflight, limit_ms=limit_ms)) if inflight else ():
        instant = inflight[requested]
        markers = read_markers(storage, requested).names
        groups = {FileGroupId(marker.partition_path, marker.file_id) for marker in markers}
        groups |= {FileGroupId(*group) for group in _forecast(storage, timeline, instant)}
        yield ConcurrentOperation(requested, instant.action, None, False, frozenset(groups), writer="a writer at work")


def earlier_operations(
    storage: Storage, load_timeline: Callable[[], Timeline], *, this: ConcurrentOperation, limit_ms: int
) -> Iterator[ConcurrentOperation]:
    """Writes that began before `this` and are under way, or are just beginning: each may log to any file group.

    The heartbeats are listed first. A writer makes its own before it looks whether its time is free, and begins to be
    seen on the timeline after that: so whoever is in neither list will find the claim of `this`, and take a later time.
    """
    beats = [entry.name for entry in storage.list(HEARTBEAT_FOLDER) if entry.name < this.requested]
    alive = find_alive(storage, beats, limit_ms=limit_ms)
    timeline = load_timeline()
    begun = {i.requested for i in timeline.pending(INGESTION) if i.requested < this.requested}
    beginning = {time for time in alive if timeline.get(time) is None}
    for requested in sorted(begun | beginning):
        yield ConcurrentOperation(requested, "deltacommit", None, False, this.groups, writer="a writer at work")


def find_planner(log: ClaimLog, requested: str) -> str | None:
    """Who scheduled the instant, by its claim; None if it has none, as one of the JVM."""
    claim = find_plan(log, requested)
    return None if claim is None else claim.owner


def find_plan(log: ClaimLog, requested: str) -> Claim | None:
    """The claim by which the instant was scheduled."""
    return _find_claim(log, requested, ClaimKind.SCHEDULE)


def find_publication(log: ClaimLog, requested: str) -> Claim | None:
    """The claim by which the instant was published; None if it has none, as one of the JVM."""
    return _find_claim(log, requested, ClaimKind.PUBLISH)


def _find_claim(log: ClaimLog, requested: str, kind: ClaimKind) -> Claim | None:
    """Times grow along the log, so the search ends at the instant's own."""
    number = log.read_head().number
    while number and (claim := log.read(number)) is not None and claim.time >= requested:
        if claim.instant == requested and claim.kind is kind:
            return claim
        number -= 1
    return None


def _planned_groups(storage: Storage, timeline: Timeline, instant: Instant) -> frozenset[tuple[str, str]]:
    path = timeline.layout.path(instant.as_requested())
    data = storage.read(path) or b""
    if instant.action in _COMPACTIONS:
        return compacted_file_groups(data, path)
    planned = clustered_file_groups(data, path)
    return planned if planned or instant.state is State.REQUESTED else _forecast(storage, timeline, instant)


def _forecast(storage: Storage, timeline: Timeline, instant: Instant) -> frozenset[tuple[str, str]]:
    """What the JVM says in an inflight file; ours are empty."""
    path = timeline.paths[instant]
    return CommitMetadata.decode(storage.read(path) or b"", path, may_be_empty=True).written_file_groups
