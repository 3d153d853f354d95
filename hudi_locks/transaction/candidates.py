"""What was completed beside a write: claims since it began, and what foreign writers did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hudi_locks.format import WRITE_ACTIONS, BaseFileName, CommitMetadata, Instant, LogFileName
from hudi_locks.format.claim import Claim, ClaimKind, FileGroupId
from hudi_locks.storage import Storage
from hudi_locks.timeline import Timeline, read_instant
from hudi_locks.timeline.archive import ArchivedInstant
from hudi_locks.transaction.conflicts import ConcurrentOperation
from hudi_locks.transaction.read_set import ReadSet

__all__ = [
    "archived_operations",
    "claimed_operations",
    "completed_operation",
    "drop_void",
    "file_groups",
    "this_operation",
]


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
        if claim.kind in (ClaimKind.PUBLISH, ClaimKind.RESTORE):
            yield ConcurrentOperation(
                requested=claim.instant,
                action=claim.action,
                operation=None,
                is_completed=True,
                groups=claim.groups,
                paths=frozenset(_path(group, claim) for group in claim.writes),
                covers_table=claim.kind is ClaimKind.RESTORE,
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


def _operation(instant: Instant | ArchivedInstant, metadata: CommitMetadata) -> ConcurrentOperation:
    return ConcurrentOperation(
        instant.requested,
        instant.action,
        "COMPACT" if metadata.compacted and metadata.operation != "LOG_COMPACT" else metadata.operation,
        is_completed=True,
        groups=file_groups(metadata),
        paths=metadata.paths,
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
