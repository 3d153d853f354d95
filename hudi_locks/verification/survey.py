"""What several checks need to know of a table: its instants with their content, what is archived, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from hudi_locks.format import WRITE_ACTIONS, ArchiveRow, CleanMetadata, CleanPlan, CommitMetadata
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import DataFiles, Table, list_data_files, list_partitions
from hudi_locks.table.table import CommitFiles
from hudi_locks.timeline import Timeline
from hudi_locks.verification.report import Notebook

__all__ = ["Survey", "Write"]

_CLEAN: Final = "clean"


@dataclass(frozen=True)
class Write:
    """A completed write.

    Attributes:
        completion: When it was completed.
        metadata: What it says.
        path: Where that stands.
        is_active: Whether it is on the active timeline.
    """

    completion: str
    metadata: CommitMetadata
    path: str
    is_active: bool


@dataclass
class Survey:
    """One walk through a table. The timeline is read first, so that no file of a later commit can be missing.

    Attributes:
        table: The table.
        book: Where findings go.
        timeline: The active one.
        contents: What each file of the timeline holds, by path; without those that vanished meanwhile.
        archived: Rows of the history.
        writes: Completed writes, archived ones included, by requested time.
        files: Data files of all partitions, also of those that only commits name.
        partitions: Folders that are marked as partitions.
        pending: Requested times of what is pending.
        reads_values: Whether all values in base files are decoded.
        reads_keys: Whether record keys are, where the metadata table tells of each.
    """

    table: Table
    book: Notebook
    timeline: Timeline
    contents: Mapping[str, bytes] = field(default_factory=dict)
    archived: tuple[ArchiveRow, ...] = ()
    writes: dict[str, Write] = field(default_factory=dict)
    files: DataFiles = field(default_factory=lambda: DataFiles((), ()))
    partitions: frozenset[str] = frozenset()
    reads_values: bool = False
    reads_keys: bool = False

    @property
    def storage(self) -> Storage:
        """Of the table."""
        return self.table.storage

    @property
    def pending(self) -> frozenset[str]:
        """Requested times of what is under way."""
        return frozenset(instant.requested for instant in self.timeline.pending())

    def read_contents(self, names: Iterable[str]) -> None:
        """Read every file of the timeline."""
        folder = self.table.layout.folder
        paths = [f"{folder}/{name}" for name in names]
        read = zip(paths, map_in_threads(self.storage.read, paths), strict=True)
        self.contents = {path: data for path, data in read if data is not None}

    def gather_writes(self) -> None:
        """Decode what the completed writes say; what cannot be read was written down by the checks of those files."""
        for instant in self.timeline.completed(WRITE_ACTIONS):
            path = self.timeline.paths[instant]
            self._add(instant.requested, str(instant.completion), self.contents.get(path), path, is_active=True)
        for row in self.archived:
            if row.action in WRITE_ACTIONS:
                where = f"{self.table.layout.archive} ({row.action} {row.requested})"
                self._add(row.requested, row.completion, row.metadata, where, is_active=False)

    def list_files(self) -> None:
        """List the partitions, after all commits are known."""
        self.partitions = frozenset(list_partitions(self.storage))
        named = {partition for write in self.writes.values() for partition in write.metadata.partition_to_write_stats}
        self.files = list_data_files(self.storage, self.partitions | named)

    def completion(self, requested: str) -> str | None:
        """When a write was completed, as readers take it."""
        if (known := self.writes.get(requested)) is not None:
            return known.completion
        is_told = self.timeline.get(requested) is not None
        return requested if not is_told and self.timeline.is_completed(requested) else None

    def named_files(self) -> dict[str, CommitFiles]:
        """What each write names, by requested time."""
        return {requested: CommitFiles.of(write.metadata) for requested, write in self.writes.items()}

    def replaced_groups(self) -> frozenset[tuple[str, str]]:
        """File groups that writes have ended."""
        return frozenset(g for write in self.writes.values() for g in write.metadata.replaced_file_groups)

    def cleaned_paths(self) -> frozenset[str]:
        """Files that cleans have taken, or are about to take, by their plans or by what they say afterwards."""
        return frozenset(path for paths in self._list_cleaned() for path in paths)

    def planned_paths(self) -> frozenset[str]:
        """Files that cleans which are under way are about to take, or have just taken."""
        pending = self.timeline.pending((_CLEAN,))
        plans = (self.contents.get(self.table.layout.path(instant.as_requested())) for instant in pending)
        return frozenset(path for plan in plans for paths in _list_taken(plan, None) for path in paths)

    def _list_cleaned(self) -> Iterator[frozenset[str]]:
        layout = self.table.layout
        for instant in (one for one in self.timeline.instants if one.action == _CLEAN):
            done = self.contents.get(self.timeline.paths[instant]) if instant.is_completed else None
            yield from _list_taken(self.contents.get(layout.path(instant.as_requested())), done)
        for row in (row for row in self.archived if row.action == _CLEAN):
            yield from _list_taken(row.plan, row.metadata)

    def _add(self, requested: str, completion: str, data: bytes | None, path: str, *, is_active: bool) -> None:
        if data and requested not in self.writes:
            with Notebook().reading("", path, ""):
                metadata = CommitMetadata.decode(data, path)
                self.writes[requested] = Write(completion, metadata, path, is_active)


def _list_taken(plan: bytes | None, done: bytes | None) -> Iterator[frozenset[str]]:
    """What a clean was to take, and what it took, as far as that can be read."""
    with Notebook().reading(_CLEAN, "", ""):
        if plan:
            yield CleanPlan.decode(plan, _CLEAN).paths
    with Notebook().reading(_CLEAN, "", ""):
        if done:
            yield CleanMetadata.decode(done, _CLEAN).tried_paths
