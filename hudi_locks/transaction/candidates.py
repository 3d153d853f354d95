"""What happened beside a write: claims since it began, and what foreign writers completed or planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hudi_locks.format import BaseFileName, CommitMetadata, Instant, clustered_file_groups
from hudi_locks.format.claim import Claim, ClaimKind, FileGroupId
from hudi_locks.storage import Storage
from hudi_locks.timeline import Timeline, read_instant
from hudi_locks.timeline.archive import ArchivedInstant
from hudi_locks.transaction.conflicts import ConcurrentOperation

__all__ = [
    "archived_operation",
    "claimed_operations",
    "completed_operation",
    "drop_void",
    "file_groups",
    "planned_operations",
    "this_operation",
]

_PLANNED = ("clustering", "replacecommit")


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
    """Operations of claims made since a write began, less those that its snapshot `known` shows as completed."""
    before = {instant.requested for instant in known.completed()}
    for claim in drop_void(claims):
        if claim.kind is not ClaimKind.ROLLBACK and claim.instant not in before:
            yield ConcurrentOperation(
                requested=claim.instant,
                action=claim.action,
                operation=None,
                is_completed=claim.kind is not ClaimKind.SCHEDULE,
                groups=claim.groups,
                paths=frozenset(_path(group, claim.instant) for group in claim.writes),
                covers_table=claim.kind is ClaimKind.RESTORE,
                completion_time=None if claim.kind is ClaimKind.SCHEDULE else claim.time,
                writer=claim.owner or "another writer",
            )


def completed_operation(storage: Storage, timeline: Timeline, instant: Instant) -> ConcurrentOperation:
    """A completed instant without a claim, from its metadata.

    Raises:
        DamagedTable: Its metadata is unreadable or gone.
    """
    data = read_instant(storage, timeline, instant=instant)
    metadata = CommitMetadata.decode(data, timeline.paths[instant])
    return _operation(instant.requested, instant.action, instant.completion, metadata)


def archived_operation(instant: ArchivedInstant) -> ConcurrentOperation:
    """An instant that was completed and archived while a write was under way.

    Raises:
        DamagedTable: Its metadata is unreadable.
    """
    metadata = CommitMetadata.decode(instant.metadata, f"archived {instant.action} {instant.requested}")
    return _operation(instant.requested, instant.action, instant.completion, metadata)


def planned_operations(storage: Storage, timeline: Timeline) -> Iterator[ConcurrentOperation]:
    """Pending instants of foreign writers that will replace file groups: clustering by its plan, others by forecast.

    Raises:
        DamagedTable: A plan is unreadable.
    """
    for instant in timeline.pending(_PLANNED):
        path = timeline.layout.path(instant.as_requested())
        groups = clustered_file_groups(storage.read(path) or b"", path)
        yield ConcurrentOperation(instant.requested, instant.action, None, False, frozenset(map(_group, groups)))


def this_operation(instant: str, action: str, metadata: CommitMetadata) -> ConcurrentOperation:
    """The write to be published."""
    return ConcurrentOperation(instant, action, metadata.operation, False, file_groups(metadata))


def file_groups(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """Every file group that an instant writes or replaces."""
    return frozenset(map(_group, metadata.written_file_groups | metadata.replaced_file_groups))


def _operation(requested: str, action: str, completion: str | None, metadata: CommitMetadata) -> ConcurrentOperation:
    operation = "COMPACT" if metadata.compacted else metadata.operation
    groups, paths = file_groups(metadata), metadata.paths
    return ConcurrentOperation(requested, action, operation, True, groups, paths, completion_time=completion)


def _path(group: FileGroupId, instant: str) -> str:
    """The file that a write of this package made: its name follows from file group and instant."""
    name = str(BaseFileName(group.file_id, instant))
    return f"{group.partition}/{name}" if group.partition else name


def _group(pair: tuple[str, str]) -> FileGroupId:
    return FileGroupId(*pair)
