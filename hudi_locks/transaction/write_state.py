"""A write under way, whether others took its writer for dead, and what becomes of its publish."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hudi_locks.errors import HoodieEarlyConflictDetectionException, OutcomeUnknown, WriteAborted, WriteConflict
from hudi_locks.format import Instant, State
from hudi_locks.format.claim import Claim, ClaimKind, FileGroupId
from hudi_locks.metadata_table import Indexed
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.heartbeat import WriterHeartbeat, heartbeat_path
from hudi_locks.transaction.context import TableContext

__all__ = ["INFLIGHT_GONE", "Conflict", "Outcome", "PublishResult", "WriteState", "describe_rollback", "find_loss"]

INFLIGHT_GONE: Final = "the inflight file is gone: another process rolled the instant back"


@dataclass(frozen=True)
class WriteState:
    """A write that was begun.

    Attributes:
        instant: Inflight.
        timeline: The snapshot that it builds on.
        claim_head: Number of the last claim before that snapshot.
        heartbeat: Beats until the write ends.
        lock_wait_ms: How long its begin waited for the table lock.
        lock_held_ms: How long its begin held it.
        archived: Instants that had left the timeline before the snapshot was taken, as far as it may matter.
        mark: What its inflight file must hold at the publish; None if that does not matter.
        indexed: What the metadata table is to be told; None if there is no metadata table.
        attempt: Where a plan may be run again, number of the last claim before this attempt; else 0.
    """

    instant: Instant
    timeline: Timeline
    claim_head: int
    heartbeat: WriterHeartbeat
    lock_wait_ms: int = 0
    lock_held_ms: int = 0
    archived: frozenset[str] = frozenset()
    mark: bytes | None = None
    indexed: Indexed | None = None
    attempt: int = 0

    @property
    def own_since(self) -> int:
        """Claims after this number that are about the instant decide about this write."""
        return max(self.claim_head, self.attempt)

    @property
    def requested(self) -> str:
        """The requested time of its instant."""
        return self.instant.requested

    @property
    def lost_because(self) -> str:
        """Why others may take the writer for dead, as far as its heartbeat knows; "" while they see it alive."""
        beat = self.heartbeat
        return beat.lost_because or ("" if beat.is_fresh else "the heartbeat was not renewed in time")


def describe_rollback(claim: Claim) -> str:
    """What a claim that rolled an instant back says to its writer."""
    return f"{claim.owner or 'another writer'} rolled the instant back by claim {claim.number}"


def find_loss(context: TableContext, state: WriteState) -> str:
    """Why a write cannot be published any more, by a look at the claim log and its files; "" if it may be.

    Whoever takes a writer for dead may remove what it reads. Its heartbeat tells it only at the next beat, and not at
    all after a pause in which its clock stood still, as that of a suspended machine does.

    Raises:
        DamagedTable: The claim log is unreadable.
        StorageError: The store failed.
    """
    claims = context.log.since(state.own_since, context.log.read_head())
    own = next((claim for claim in reversed(claims) if claim.instant == state.requested), None)
    if own is not None:
        return "" if own.kind is ClaimKind.PUBLISH else describe_rollback(own)
    if reason := state.lost_because:
        return reason
    if not context.storage.exists(context.path(state.instant, State.INFLIGHT)):
        return INFLIGHT_GONE
    beat = heartbeat_path(state.requested)
    return "" if context.storage.exists(beat) else f"{beat} was removed"


class Outcome(enum.Enum):
    """The three answers of a publish.

    COMMITTED: it has its place in the order of completion, for good; a restore may have undone it since.
    ABORTED: nobody will ever see it. UNKNOWN: the store did not say.
    """

    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class Conflict:
    """Two instants that change one file group without having seen each other.

    Attributes:
        instant: The one that is refused.
        groups: The file groups in question, at least one unless the other concerns the whole table.
        other: Requested time of the instant that was first.
        other_action: Its action.
        other_writer: Who made it, as far as known.
        other_age_ms: How long ago it was completed, or begun if it is pending, ms.
        advice: What to do.
        columns: Columns that both changed in different ways, if that is the conflict.
        keys: Some of the record keys that both insert, if that is the conflict.
        partitions: Where those keys are.
        other_is_pending: Whether the other is planned or under way, and not completed.
        overwritten: Partitions that one of them overwrites or deletes as a whole, if that is the conflict.
        is_early: Whether it was found before the files were written.
        is_read: Whether the refused one changes none of the file groups, but decided by what it found there.
    """

    instant: str
    groups: tuple[FileGroupId, ...]
    other: str
    other_action: str
    other_writer: str
    other_age_ms: int
    advice: str
    columns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    other_is_pending: bool = False
    overwritten: tuple[str, ...] = ()
    is_read: bool = False
    is_early: bool = False

    @property
    def partition(self) -> str | None:
        """The first partition in question."""
        named = (*(group.partition for group in self.groups), *self.partitions, *self.overwritten)
        return named[0] if named else None

    @property
    def file_id(self) -> str | None:
        """Id of the first file group in question."""
        return self.groups[0].file_id if self.groups else None

    def __str__(self) -> str:
        how = "was begun {:.1f} s ago and is not finished" if self.other_is_pending else "came first, {:.1f} s ago"
        who = f"{self.other_action} {self.other} of {self.other_writer}"
        when = how.format(self.other_age_ms / 1000)
        if self.is_read:
            what = f"{who} changed {self._where()}, which decided what instant {self.instant} writes"
        else:
            what = f"instant {self.instant} and {who} both change {self._where()}"
        return f"{what}; the other {when}. {self.advice}"

    def _where(self) -> str:
        if self.keys:
            return f"record key {', '.join(map(repr, self.keys))} of partition {self.partition!r}"
        if self.columns:
            return f"column {', '.join(self.columns)}"
        if self.overwritten:
            named = f"partition {self.overwritten[0]!r}{_count_more(self.overwritten)}"
            return f"{named}, which one of them overwrites or deletes as a whole"
        if not self.groups:
            return "the whole table"
        return f"file group {self.file_id} of partition {self.partition!r}{_count_more(self.groups)}"


def _count_more(things: Sequence[object]) -> str:
    return f" and {len(things) - 1} more" if len(things) > 1 else ""


@dataclass(frozen=True)
class PublishResult:
    """What became of a publish.

    Attributes:
        instant: Requested time of the instant.
        outcome: COMMITTED: readers see it, for good. ABORTED: nobody will ever see it. UNKNOWN: ask `resolve`.
        completion_time: Of a committed instant.
        conflict: Why it was aborted, if another instant was the reason.
        reason: Why it was aborted or is unknown, in words; "" if committed.
        lock_held_ms: How long the table lock was held for the publish.
        lock_wait_ms: How long the publish waited for the lock.
        begin_held_ms: How long the table lock was held when the write was begun.
        begin_wait_ms: How long its begin waited for the lock.
        warnings: What went wrong without touching the outcome, for a person.
    """

    instant: str
    outcome: Outcome
    completion_time: str | None = None
    conflict: Conflict | None = None
    reason: str = ""
    lock_held_ms: int = 0
    lock_wait_ms: int = 0
    begin_held_ms: int = 0
    begin_wait_ms: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def is_committed(self) -> bool:
        """Whether readers see it, for good."""
        return self.outcome is Outcome.COMMITTED

    def raise_unless_committed(self) -> PublishResult:
        """This result, if it is committed.

        Raises:
            HoodieEarlyConflictDetectionException: The same, found before the files were written; with kind (`marker` or
                `commit`) besides.
            WriteConflict: Another writer was first, with instant, partition, file_id, groups, other, other_action,
                other_writer, other_age_ms, other_is_pending and advice as facts.
            WriteAborted: It was aborted for another reason.
            OutcomeUnknown: The store did not say; its fact `instant` is what `resolve` takes.
        """
        if self.outcome is Outcome.UNKNOWN:
            message = f"it is not known whether instant {self.instant} was published: {self.reason}; ask resolve later"
            raise OutcomeUnknown(message, instant=self.instant, reason=self.reason)
        if self.conflict is not None and not self.is_committed:
            kind = HoodieEarlyConflictDetectionException if self.conflict.is_early else WriteConflict
            raise kind(str(self.conflict), **_facts_of(self.conflict))
        if self.outcome is Outcome.ABORTED:
            raise WriteAborted(f"instant {self.instant} was aborted: {self.reason}", instant=self.instant)
        return self


def _facts_of(conflict: Conflict) -> dict[str, object]:
    names = (
        "instant", "partition", "file_id", "groups", "other", "other_action", "other_writer", "other_age_ms", "advice",
        "columns", "keys", "partitions", "overwritten", "other_is_pending", "is_read",
    )  # fmt: skip
    kind = {"kind": "marker" if conflict.other_is_pending else "commit"} if conflict.is_early else {}
    return {**{name: getattr(conflict, name) for name in names}, **kind}
