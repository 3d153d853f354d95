"""Which file group each row goes to: values that travel from the driver to the tasks."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hudi_locks.format import bucket_file_id, fixed_bucket_file_id
from hudi_locks.format.claim import FileGroupId
from hudi_locks.table import BaseFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hudi_locks.transaction import AbsentKeys

__all__ = [
    "FOUND",
    "GROUP",
    "MOVED",
    "RESERVED",
    "BucketGroups",
    "FileGroup",
    "FixedBuckets",
    "Groups",
    "ListedGroups",
    "Placement",
    "Regrouped",
]

RESERVED: Final = "_hudi_locks_"
"""How columns begin that exist while a write runs; no column of a table does."""
GROUP: Final = f"{RESERVED}group"
"""Column that names a row's file group within its partition: a bucket number or a file id."""
MOVED: Final = f"{RESERVED}moved"
"""Column that says of a row that it only takes its key out of a file group, as one that moves or a merge deletes; not
there where no row does."""
FOUND: Final = f"{RESERVED}found"
"""Column with the id of the file group that holds a row's key; null for a key that is new to its partition."""


@dataclass(frozen=True)
class FileGroup:
    """A file group that a task writes to.

    Attributes:
        partition: Partition path.
        file_id: Its id.
        base: Its latest base file at the snapshot that the write builds on; None for a new group.
        is_logged: Whether its rows go to a log; else to a base file.
    """

    partition: str
    file_id: str
    base: BaseFile | None = None
    is_logged: bool = False


class Groups(ABC):
    """Resolves what stands in the GROUP column. Picklable; used by tasks."""

    @abstractmethod
    def find(self, partition: str, group: Any) -> FileGroup:
        """The file group of rows with this partition path and GROUP value; the same for every attempt of a task."""


@dataclass(frozen=True)
class ListedGroups(Groups):
    """File groups that the driver chose, by id; an id without a base file is new.

    Attributes:
        bases: Latest base files by (partition path, file id).
        logged: Ids of those whose rows go to logs.
    """

    bases: Mapping[tuple[str, str], BaseFile]
    logged: frozenset[str] = frozenset()

    def find(self, partition: str, group: Any) -> FileGroup:
        """See `Groups.find`."""
        file_id = str(group)
        return FileGroup(partition, file_id, self.bases.get((partition, file_id)), file_id in self.logged)


@dataclass(frozen=True)
class BucketGroups(Groups):
    """File groups of a bucket index, by bucket.

    Attributes:
        known: Those that are there by (partition path, bucket).
        seed: Makes the ids of new file groups, so that every attempt of a task makes the same.
    """

    known: Mapping[tuple[str, int], FileGroup]
    seed: uuid.UUID

    def find(self, partition: str, group: Any) -> FileGroup:
        """See `Groups.find`."""
        known = self.known.get((partition, int(group)))
        return known or FileGroup(partition, bucket_file_id(int(group), self.seed, partition=partition))


@dataclass(frozen=True)
class FixedBuckets(Groups):
    """File groups whose ids follow from their buckets alone (RFC-66), so that nobody needs to know which there are.

    Attributes:
        known: Those that are there by (partition path, bucket), for a write that treats new ones in another way.
    """

    known: Mapping[tuple[str, int], FileGroup] = field(default_factory=dict)

    def find(self, partition: str, group: Any) -> FileGroup:
        """See `Groups.find`."""
        known = self.known.get((partition, int(group)))
        return known or FileGroup(partition, fixed_bucket_file_id(int(group)))


@dataclass(frozen=True)
class Placement:
    """Rows with their GROUP column, and what it means.

    Attributes:
        rows: The input with GROUP.
        groups: Resolves it.
        expected_groups: About how many file groups the rows touch, for the number of tasks; None where the rows of
            each are in one task already.
        absent_keys: The keys of the input that no file group has, if it matters that nobody brings them.
        read_groups: The file groups that have others, as far as the index looked; tasks name what they look at.
        assigned: All rows, with FOUND, and under GROUP what they are written to, or null; None if no key was looked up.
        has_own_paths: Whether rows may be written under another partition path than their columns give them.
    """

    rows: DataFrame
    groups: Groups
    expected_groups: int | None
    absent_keys: AbsentKeys | None = None
    read_groups: frozenset[FileGroupId] = frozenset()
    assigned: DataFrame | None = None
    has_own_paths: bool = False


@dataclass(frozen=True)
class Regrouped:
    """What is to be written again.

    Attributes:
        placement: Of the rows that are, on the later snapshot; what it says of keys concerns all rows of the write.
        touched: File groups whose files, as far as the write made some, are outdated.
        bases: The newest files of those that were there before the write.
    """

    placement: Placement
    touched: frozenset[FileGroupId]
    bases: tuple[BaseFile, ...]
