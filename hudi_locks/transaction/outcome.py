"""What becomes of a publish."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from hudi_locks.errors import OutcomeUnknown, WriteAborted, WriteConflict
from hudi_locks.format.claim import FileGroupId

__all__ = ["Conflict", "Outcome", "PublishResult"]


class Outcome(enum.Enum):
    """The three answers of a publish."""

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
        other_age_ms: How long ago it was decided, ms; None if it is still pending.
        advice: What to do.
        columns: Columns that both changed in different ways, if that is the conflict.
        keys: Some of the record keys that both insert, if that is the conflict.
    """

    instant: str
    groups: tuple[FileGroupId, ...]
    other: str
    other_action: str
    other_writer: str
    other_age_ms: int | None
    advice: str
    columns: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def partition(self) -> str | None:
        """Partition of the first file group in question."""
        return self.groups[0].partition if self.groups else None

    @property
    def file_id(self) -> str | None:
        """Id of the first file group in question."""
        return self.groups[0].file_id if self.groups else None

    def __str__(self) -> str:
        more = f" and {len(self.groups) - 1} more" if len(self.groups) > 1 else ""
        where = f"file group {self.file_id} of partition {self.partition!r}{more}" if self.groups else "the whole table"
        where = f"column {', '.join(self.columns)}" if self.columns else where
        where = f"record key {', '.join(map(repr, self.keys))}" if self.keys else where
        when = "is pending" if self.other_age_ms is None else f"came first, {self.other_age_ms / 1000:.1f} s ago"
        who = f"{self.other_action} {self.other} of {self.other_writer}"
        return f"instant {self.instant} and {who} both change {where}; the other {when}. {self.advice}"


@dataclass(frozen=True)
class PublishResult:
    """What became of a publish.

    Attributes:
        instant: Requested time of the instant.
        outcome: COMMITTED: readers see it, for good. ABORTED: nobody will ever see it. UNKNOWN: ask `resolve`.
        completion_time: Of a committed instant.
        conflict: Why it was aborted, if another instant was the reason.
        reason: Why it was aborted or is unknown, in words; "" if committed.
        lock_held_ms: How long the table lock was held for it.
        lock_wait_ms: How long it waited for the lock.
        warnings: What went wrong without touching the outcome, for a person.
    """

    instant: str
    outcome: Outcome
    completion_time: str | None = None
    conflict: Conflict | None = None
    reason: str = ""
    lock_held_ms: int = 0
    lock_wait_ms: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def is_committed(self) -> bool:
        """Whether readers see it, for good."""
        return self.outcome is Outcome.COMMITTED

    def raise_unless_committed(self) -> PublishResult:
        """This result, if it is committed.

        Raises:
            WriteConflict: Another writer was first, with instant, partition, file_id, groups, other, other_action,
                other_writer, other_age_ms and advice as facts.
            WriteAborted: It was aborted for another reason.
            OutcomeUnknown: The store did not say; its fact `instant` is what `resolve` takes.
        """
        if self.outcome is Outcome.UNKNOWN:
            message = f"it is not known whether instant {self.instant} was published: {self.reason}; ask resolve later"
            raise OutcomeUnknown(message, instant=self.instant, reason=self.reason)
        if self.conflict is not None and not self.is_committed:
            raise WriteConflict(str(self.conflict), **_facts_of(self.conflict))
        if self.outcome is Outcome.ABORTED:
            raise WriteAborted(f"instant {self.instant} was aborted: {self.reason}", instant=self.instant)
        return self


def _facts_of(conflict: Conflict) -> dict[str, object]:
    names = (
        "instant", "partition", "file_id", "groups", "other", "other_action", "other_writer", "other_age_ms", "advice",
        "columns", "keys",
    )  # fmt: skip
    return {name: getattr(conflict, name) for name in names}
