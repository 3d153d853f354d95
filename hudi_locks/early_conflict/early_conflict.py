"""A conflict that was found before the files were written, and how a task tells its driver of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Final

from hudi_locks.errors import HoodieEarlyConflictDetectionException
from hudi_locks.format import interpreting
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import staging_folder
from hudi_locks.storage import Storage

__all__ = ["EarlyConflict", "find_reported", "report"]

_ADVICE: Final = "let it finish, then write again; writers of disjoint partitions or keys do not meet"


@dataclass(frozen=True)
class EarlyConflict:
    """Two writes of one file group, the younger of which gives up before it writes.

    Attributes:
        instant: Requested time of the one that gives up.
        group: The first file group in question.
        other: Requested time of the one that goes on, or has completed.
        kind: `marker` if the other announced a file, `commit` if it was completed meanwhile.
        owner: Who makes the other, as far as known.
        is_pending: Whether the other is under way.
    """

    instant: str
    group: FileGroupId
    other: str
    kind: str
    owner: str = ""
    is_pending: bool = True

    @property
    def advice(self) -> str:
        """What to do."""
        return _ADVICE

    def __str__(self) -> str:
        how = "is writing" if self.is_pending else "has written, since this write began,"
        where = f"file group {self.group.file_id} of partition {self.group.partition!r}"
        who = f"instant {self.other} of {self.owner or 'another writer'}"
        return f"instant {self.instant} gives up early: {who} {how} {where}. {self.advice[0].upper()}{self.advice[1:]}"

    def encode(self) -> bytes:
        """What `decode` reads, in another process."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, data: bytes) -> EarlyConflict:
        """What `encode` wrote."""
        found = cls(**json.loads(data))
        return replace(found, group=FileGroupId(*found.group))

    def error(self) -> HoodieEarlyConflictDetectionException:
        """The exception that says so."""
        return HoodieEarlyConflictDetectionException(
            str(self),
            instant=self.instant,
            partition=self.group.partition,
            file_id=self.group.file_id,
            other=self.other,
            other_writer=self.owner,
            other_is_pending=self.is_pending,
            kind=self.kind,
        )


def report(storage: Storage, conflict: EarlyConflict) -> None:
    """Leave word for the driver, so that it need not wait until the task has failed as often as it may.

    Raises:
        StorageError: The store failed.
    """
    storage.create_if_absent(_path(conflict.instant), conflict.encode())


def find_reported(storage: Storage, requested: str) -> EarlyConflict | None:
    """What a task of the write reported; None if there is nothing yet.

    Raises:
        DamagedTable: What is there cannot be read.
        StorageError: The store failed.
    """
    data = storage.read(_path(requested))
    if data is None:
        return None
    with interpreting("word of an early conflict", _path(requested)):
        return EarlyConflict.decode(data)


def _path(requested: str) -> str:
    """Among the staged files of the write: whoever ends it removes them."""
    return f"{staging_folder(requested)}/early-conflict.json"
