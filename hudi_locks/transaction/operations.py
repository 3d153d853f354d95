"""What happens beside a write: completed instants, plans of table services, and writers that are still at work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from hudi_locks.format import (
    ALTER_SCHEMA,
    WRITE_ACTIONS,
    BaseFileName,
    CommitMetadata,
    Instant,
    LogFileName,
    State,
    clustered_file_groups,
)
from hudi_locks.format.claim import Claim, ClaimKind, FileGroupId
from hudi_locks.format.compaction_plan import compacted_file_groups
from hudi_locks.markers import read_markers
from hudi_locks.storage import Storage
from hudi_locks.timeline import Timeline, read_instant
from hudi_locks.timeline.archive import ArchivedInstant
from hudi_locks.timeline.claims import ClaimLog
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER, find_alive
from hudi_locks.transaction.conflicts import ConcurrentOperation, ReadSet

__all__ = [
    "INGESTION",
    "altering_operations",
    "archived_operations",
    "claimed_operations",
    "completed_operation",
    "drop_void",
    "earlier_operations",
    "file_groups",
    "find_plan",
    "find_planner",
    "find_publication",
    "list_pending_writes",
    "living_operations",
    "planned_operations",
    "this_operation",
]

INGESTION: Final = ("commit", "deltacommit", "replacecommit")
"""Actions of writers, as opposed to those of table services."""
_COMPACTIONS: Final = ("compaction", "logcompaction")
_CLUSTERING: Final = "clustering"
_REPLACE: Final = "replacecommit"
_PLANNED: Final = (_CLUSTERING, _REPLACE, *_COMPACTIONS)
_WRITES: Final = ("commit", "deltacommit")


def drop_void(claims: Iterable[Claim]) -> list[Claim]:
    """The claims that count: no VOID, and no PUBLISH that the VOID after it takes back."""
    kept: list[Claim] = []
    for claim in claims:
        if claim.kind is not ClaimKind.VOID:
            kept.append(claim)
        elif kept and kept[-1].instant == claim.instant and kept[-1].kind is ClaimKind.PUBLISH:
            kept.pop()
    return kept


def claimed_operations(claims: Iterable[Claim], known: Timeline) -> Iterator[ConcurrentOperation]:
    """What claims decided since a write began, less what its snapshot `known` shows as completed.

    Plans are left out: the timeline shows which of them are still to be carried out.
    """
    for claim in drop_void(claims):
        before = known.get(claim.instant)
        if before is not None and before.is_completed:
            continue
        if claim.kind is ClaimKind.PUBLISH or claim.covers_table:
            alters = claim.overwrites_table and claim.action in _WRITES
            yield ConcurrentOperation(
                requested=claim.instant,
                action=claim.action,
                operation=ALTER_SCHEMA if alters else None,
                is_completed=True,
                groups=claim.groups,
                paths=frozenset(_path(group, claim) for group in claim.writes),
                covers_table=claim.covers_table or alters,
                completion_time=claim.time,
                writer=claim.owner or "another writer",
                overwrites=claim.overwrites,
                overwrites_table=claim.overwrites_table,
            )


def completed_operation(storage: Storage, timeline: Timeline, instant: Instant) -> ConcurrentOperation:
    """A completed instant without a claim, from its metadata.

    Raises:
        DamagedTable: Its metadata is unreadable or gone.
    """
    data = read_instant(storage, timeline, instant=instant)
    metadata = CommitMetadata.decode(data, timeline.paths[instant])
    return _operation(instant, metadata)


def archived_operations(
    found: Iterable[ArchivedInstant],
    known: Timeline,
    *,
    archived: frozenset[str],
    claimed: frozenset[str] = frozenset(),
) -> list[ConcurrentOperation]:
    """Writes that were completed and archived since a snapshot.

    Args:
        found: The archive, listed after the timeline on which is decided.
        known: The snapshot.
        archived: What was in the archive before it was taken.
        claimed: What claims tell of.

    Raises:
        DamagedTable: Metadata is unreadable.
    """
    before = (
        claimed | {i.requested for i in known.completed()} | {time for time in archived if known.is_completed(time)}
    )
    return [_archived_operation(i) for i in found if i.action in WRITE_ACTIONS and i.requested not in before]


def this_operation(instant: Instant, metadata: CommitMetadata, *, reads: ReadSet) -> ConcurrentOperation:
    """The write to be published, which rests on `reads`."""
    known = _operation(instant, metadata)
    return replace(
        known,
        is_completed=False,
        paths=frozenset(),
        completion_time=None,
        reads=reads.partitions,
        read_groups=reads.groups,
    )


def file_groups(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """Every file group that an instant writes or replaces."""
    return frozenset(map(_group, metadata.written_file_groups | metadata.replaced_file_groups))


def list_pending_writes(storage: Storage, timeline: Timeline) -> list[Instant]:
    """Pending instants of writers. In version 6 a clustering has their action too, and its plan tells it apart.

    Raises:
        DamagedTable: A plan is unreadable.
    """
    pending = timeline.pending(INGESTION)
    if not timeline.layout.is_version_6:
        return list(pending)
    return [i for i in pending if i.action != _REPLACE or not _clustered_groups(storage, timeline, i)]


def planned_operations(storage: Storage, timeline: Timeline) -> Iterator[ConcurrentOperation]:
    """Pending table services and replacing writes, ours and the JVM's, with the file groups that they will change.

    The plan stands in the requested file also when the instant is inflight: the inflight file of a clustering is empty,
    and JVM Hudi up to 1.0.2, which reads that one, lets every write pass a clustering that has begun to run.

    Raises:
        DamagedTable: A plan is unreadable.
    """
    for instant in timeline.pending(_PLANNED):
        action, found = _read_plan(storage, timeline, instant)
        yield ConcurrentOperation(instant.requested, action, None, False, frozenset(map(_group, found)))


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


def altering_operations(storage: Storage, timeline: Timeline, *, beside: str) -> Iterator[ConcurrentOperation]:
    """ALTER TABLE statements of JVM Hudi that are under way: files begun after one would be read by its columns.

    Args:
        storage: Of the table.
        timeline: As it is now.
        beside: The write that asks, which is passed over.

    Raises:
        DamagedTable: An inflight file is unreadable.
    """
    for instant in timeline.pending(_WRITES):
        if instant.state is State.INFLIGHT and instant.requested != beside:
            path = timeline.paths[instant]
            found = CommitMetadata.decode(storage.read(path) or b"", path, may_be_empty=True)
            if found.operation == ALTER_SCHEMA:
                what = (instant.requested, instant.action, ALTER_SCHEMA)
                yield ConcurrentOperation(*what, is_completed=False, groups=frozenset(), covers_table=True)


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


def _operation(instant: Instant | ArchivedInstant, metadata: CommitMetadata) -> ConcurrentOperation:
    return ConcurrentOperation(
        instant.requested,
        instant.action,
        "COMPACT" if metadata.compacted and metadata.operation != "LOG_COMPACT" else metadata.operation,
        is_completed=True,
        groups=file_groups(metadata),
        based_groups=frozenset(map(_group, metadata.based_file_groups)),
        paths=metadata.paths,
        covers_table=metadata.operation == ALTER_SCHEMA,
        completion_time=instant.completion,
        overwrites=metadata.overwritten_partitions,
        overwrites_table=metadata.overwrites_table,
    )


def _archived_operation(instant: ArchivedInstant) -> ConcurrentOperation:
    metadata = CommitMetadata.decode(instant.metadata, f"archived {instant.action} {instant.requested}")
    return _operation(instant, metadata)


def _path(group: FileGroupId, claim: Claim) -> str:
    """The file that a write of this package made, of several logs the first: its name follows from the claim."""
    kind = LogFileName if claim.action == "deltacommit" else BaseFileName
    name = str(kind(group.file_id, claim.instant))
    return f"{group.partition}/{name}" if group.partition else name


def _group(pair: tuple[str, str]) -> FileGroupId:
    return FileGroupId(*pair)


def _find_claim(log: ClaimLog, requested: str, kind: ClaimKind) -> Claim | None:
    """Times grow along the log, so the search ends at the instant's own."""
    number = log.read_head().number
    while number and (claim := log.read(number)) is not None and claim.time >= requested:
        if claim.instant == requested and claim.kind is kind:
            return claim
        number -= 1
    return None


def _read_plan(storage: Storage, timeline: Timeline, instant: Instant) -> tuple[str, frozenset[tuple[str, str]]]:
    """What is to be done, and the file groups that it will change; a clustering is called so in version 6 too."""
    if instant.action in _COMPACTIONS:
        path = timeline.layout.path(instant.as_requested())
        return instant.action, compacted_file_groups(storage.read(path) or b"", path)
    planned = _clustered_groups(storage, timeline, instant)
    if planned:
        return _CLUSTERING, planned
    is_begun = instant.state is not State.REQUESTED
    return instant.action, _forecast(storage, timeline, instant) if is_begun else planned


def _clustered_groups(storage: Storage, timeline: Timeline, instant: Instant) -> frozenset[tuple[str, str]]:
    path = timeline.layout.path(instant.as_requested())
    return clustered_file_groups(storage.read(path) or b"", path)


def _forecast(storage: Storage, timeline: Timeline, instant: Instant) -> frozenset[tuple[str, str]]:
    """What the JVM says in an inflight file; ours are empty."""
    path = timeline.paths[instant]
    return CommitMetadata.decode(storage.read(path) or b"", path, may_be_empty=True).written_file_groups
