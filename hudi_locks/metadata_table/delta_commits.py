"""Delta commits of the metadata table as files: how they are begun, completed and taken back, by anybody and again.

The metadata table has a timeline of its own, and no claims. A delta commit is decided by the claim of the table's
instant that has its requested time. It is completed before that instant is, and taken back before that one is rolled
back: readers pass over a delta commit whose instant is pending in the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from hudi_locks.format import (
    METADATA_FOLDER,
    CommitMetadata,
    CompactionPlan,
    Instant,
    LogFileName,
    State,
    WriteStat,
    find_metadata_writer,
    parse_instant_name,
)
from hudi_locks.metadata_table.delta_commit import DeltaCommit
from hudi_locks.metadata_table.metadata_table import METADATA_LAYOUT
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table.old_logs import find_blocks
from hudi_locks.timeline import PENDING_ENDINGS, Timeline, TimelineLayout, create_instant, index_files

__all__ = ["DeltaCommits", "find_last_commit", "find_last_compaction"]

_ACTION: Final = "deltacommit"
_COMPACTION: Final = ("commit", "compaction")


@dataclass(frozen=True)
class DeltaCommits:
    """Those of one table. Every step may be repeated by anybody, and be paused anywhere.

    Attributes:
        storage: Of the table.
        layout: Of the metadata table's own timeline.
    """

    storage: Storage
    layout: TimelineLayout = METADATA_LAYOUT

    def last_compaction(self) -> str:
        """Requested time of the last compaction of the metadata table that is completed; "" if there is none."""
        return find_last_compaction(self._load())

    def make_logs(self, commit: DeltaCommit) -> None:
        """Make the logs of a delta commit that was begun under their names, where these are not taken yet."""
        map_in_threads(lambda path: self.storage.create_if_absent(path, commit.logs[path]), commit.logs)

    def stage(self, commit: DeltaCommit) -> dict[str, str]:
        """Upload the logs, which nobody sees; the ticket of each by its path.

        Raises:
            StorageError: The store failed; a sweep removes what was staged.
        """
        return dict(map_in_threads(lambda path: (path, self._stage(path, commit)), commit.logs))

    def _stage(self, path: str, commit: DeltaCommit) -> str:
        staged = self.storage.stage(path, instant=commit.requested)
        with staged.open() as file:
            file.write(commit.logs[path])
        return staged.seal()

    def begin(self, requested: str, logs: Iterable[str] = ()) -> list[str]:
        """Put a delta commit on the timeline, pending: a JVM writer that finds it so takes its logs away with it.

        Args:
            requested: Its requested time.
            logs: Paths of the logs that it will have.

        Returns:
            Paths of the files that this call made.
        """
        begun = Instant(requested, _ACTION, State.REQUESTED)
        forecast = self._forecast(logs) if self.layout.is_version_6 else b""
        instants = ((begun, b""), (begun.as_inflight(), forecast))
        made = [one for one, data in instants if create_instant(self.storage, self.layout, instant=one, data=data)]
        return [self.layout.path(one) for one in made]

    def _forecast(self, logs: Iterable[str]) -> bytes:
        """The file groups that a delta commit adds logs to: in version 6 a JVM writer finds these by it alone."""
        named = ((path.split("/")[-2], LogFileName.parse(path.rpartition("/")[2])) for path in sorted(logs))
        stats = [WriteStat(part, log.file_id, None, prev_commit=log.instant) for part, log in named if log is not None]
        return CommitMetadata.of(stats, "UPSERT", schema=None).encode(_ACTION, layout_version=self.layout.version)

    def complete(self, name: str, content: bytes, *, logs: Collection[str]) -> list[str] | None:
        """Complete what was begun, whose logs have their names.

        Args:
            name: Of the completed file, which tells requested and completion time.
            content: Of it.
            logs: Paths of the logs.

        Returns:
            Path of the completed file if this call made it; empty if it was there. None if it cannot be completed: a
            JVM writer rolled it back, or compacted the metadata table at a later time, so that its logs would count
            as compacted.
        """
        completed = parse_instant_name(name)
        if completed is None or not completed.is_completed:
            raise ValueError(f"{name} is no completed instant")
        timeline = self._load()
        found = timeline.get(completed.requested)
        if found is not None and found.is_completed:
            return []
        if any(self._leaves_out(one, completed, logs) for one in _list_compactions(timeline)):
            return None
        path = self.layout.path(completed)
        is_made = self.storage.create_if_absent(path, content)
        pending = self.layout.path(replace(completed, state=State.INFLIGHT, completion=None))
        if all(map_in_threads(self.storage.exists, [pending, *logs])):
            return [path] if is_made else []
        if is_made:
            self.storage.delete(path)
        return None

    def _leaves_out(self, compaction: Instant, completed: Instant, logs: Collection[str]) -> bool:
        """Whether the logs of a delta commit would count as compacted, and are not."""
        if not self.layout.is_version_6:
            return compaction.requested >= (completed.completion or "")
        names = {path: LogFileName.parse(path.rpartition("/")[2]) for path in logs}
        below = {name.file_id for name in names.values() if name is not None and name.instant < compaction.requested}
        return bool(below & self._list_compacted(compaction))

    def _list_compacted(self, compaction: Instant) -> set[str]:
        path = self.layout.path(Instant(compaction.requested, "compaction", State.REQUESTED))
        return {group.file_id for group in CompactionPlan.decode(self.storage.read(path) or b"", path).groups}

    def remove(self, made: Iterable[str]) -> None:
        """Remove files of an instant that `begin` and `complete` made too late, and leave its logs to others."""
        for path in sorted(made, key=_by_state):
            self.storage.delete(path)

    def take_back(self, requested: str, logs: Iterable[str] = ()) -> set[str]:
        """Take back whatever the metadata table has of an instant that is being rolled back, a JVM writer's too.

        Args:
            requested: Of the instant.
            logs: Paths of logs that may have got their names.

        Returns:
            Paths of the logs that were removed.
        """
        files = [sorted(paths, key=_by_state) for paths in self._find(requested)]
        completed = [path for paths in files for path in paths if _by_state(path) == 0]
        for path in completed:  # first: a delta commit without its logs would be one that says nothing
            self.storage.delete(path)
        removed = self._remove_logs(requested, logs, is_begun=bool(files))
        for path in (path for paths in files for path in paths if path not in completed):
            self.storage.delete(path)
        return removed

    def _remove_logs(self, requested: str, logs: Iterable[str], *, is_begun: bool) -> set[str]:
        """Where names do not tell the write, the logs are read: JVM writers append to one that is there."""
        if self.layout.is_version_6:
            found = find_blocks(self.storage, self._list_folders(), requested)
            found.take_out(self.storage)
            return {path for path in sorted(found.alone | found.undone) if self.storage.delete(path)}
        named = {*logs, *(self._list_logs(requested) if is_begun else ())}
        return {path for path in sorted(named) if self.storage.delete(path)}

    def _find(self, requested: str) -> list[tuple[str, ...]]:
        found = index_files(self.storage, self.layout)
        return [paths for (time, _), paths in found.items() if time == requested]

    def _list_logs(self, requested: str) -> Iterator[str]:
        for folder in self._list_folders():
            paths = (f"{folder}/{name}" for name in self.storage.list_names(folder))
            yield from (path for path in paths if find_metadata_writer(path) == requested)

    def _list_folders(self) -> Iterator[str]:
        for folder in self.storage.list(METADATA_FOLDER):
            if folder.is_folder and not folder.name.startswith("."):
                yield f"{METADATA_FOLDER}/{folder.name}"

    def _load(self) -> Timeline:
        return Timeline.load(self.storage, self.layout)


def find_last_compaction(timeline: Timeline) -> str:
    """The same, on the timeline of a metadata table."""
    return max((one.requested for one in timeline.completed(("commit",))), default="")


def find_last_commit(timeline: Timeline) -> str:
    """Requested time of the last delta commit on the timeline of a metadata table that is completed; "" if none is."""
    return max((one.requested for one in timeline.completed((_ACTION,))), default="")


def _list_compactions(timeline: Timeline) -> list[Instant]:
    return [instant for instant in timeline.instants if instant.action in _COMPACTION]


def _by_state(path: str) -> int:
    """The completed file goes first, the requested one last."""
    return path.endswith(PENDING_ENDINGS) + path.endswith(".requested")
