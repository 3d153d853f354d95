"""What the result of a write rests on beside the file groups that it changes: it must be unchanged at the publish."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from hudi_locks.format.claim import FileGroupId

__all__ = ["AbsentKeys", "ReadSet"]


class AbsentKeys(Protocol):
    """The record keys that a write looked for in vain: it inserts them, or has nothing to delete. Asked on the driver.

    JVM Hudi compares file groups alone, so that two upserts double a key that is new to both, and a delete leaves a row
    that was inserted beside it.
    """

    @property
    def partitions(self) -> frozenset[str]:
        """Partitions where they were looked for."""

    def find_among(self, paths: Collection[str], instant: str) -> tuple[str, ...]:
        """Some of the keys that the completed `instant` wrote to its base files `paths`; empty if there are none.

        Reads those files; the answer for an instant is remembered, since a completed instant does not change.
        """


@dataclass(frozen=True)
class ReadSet:
    """What a write looked at and what it found there.

    Attributes:
        partitions: Where it looked record keys up: none of them may have been overwritten as a whole.
        groups: File groups that held some of its keys, or, with a bucket index, would have to: none may have been
            changed or replaced. Those that it changes itself need not be among them.
        absent_keys: Keys that are nowhere: nobody may have brought one of them. None where doubled keys are nobody's
            concern, as in an insert.
    """

    partitions: frozenset[str] = frozenset()
    groups: frozenset[FileGroupId] = frozenset()
    absent_keys: AbsentKeys | None = None
