"""A timeline and its archive as the other layout has them: what a table needs to become one of another version.

Files are made beside those of the layout that is in use, and counted by nobody before the table says that it has the
other layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from hudi_locks.errors import DamagedTable
from hudi_locks.format import (
    FIRST_TIME,
    ArchiveRow,
    Instant,
    TimelineLayout,
    add_ms,
    clustered_file_groups,
    comparable_action,
    convert_metadata,
    decode_rows,
    epoch_ms,
    parse_instant_name,
)
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.timeline.history import ArchivedHistory
from hudi_locks.timeline.old_archive import FIRST_OLD_FILE, encode_old_archive, read_old_archive
from hudi_locks.timeline.timeline import PENDING_ENDINGS, Timeline, index_files

__all__ = ["ConvertedTimeline", "convert_timeline", "remove_timeline"]

_WRITES: Final = ("commit", "deltacommit", "replacecommit")
_CLUSTERING: Final = "clustering"
_REPLACE: Final = "replacecommit"
_BATCH: Final = 1_000
"""So many instants make a part of the history."""
_AT_ONCE: Final = 64
_MOST_PARTS: Final = 10
_VERSIONS: Final = 3


@dataclass(frozen=True)
class ConvertedFile:
    """A file of an instant.

    Attributes:
        completion: When the instant was completed that it completes; "" for one of a pending state.
        path: Relative to the base path.
        data: What it holds.
    """

    completion: str
    path: str
    data: bytes


@dataclass(frozen=True)
class ConvertedTimeline:
    """What a timeline is in another layout.

    Attributes:
        layout: That layout.
        files: Those of the active timeline; pending ones first, then by completion time.
        archived: The archived instants, the oldest first.
    """

    layout: TimelineLayout
    files: tuple[ConvertedFile, ...]
    archived: tuple[ArchiveRow, ...]

    def create(self, storage: Storage, *, is_wanted: Callable[[], bool]) -> bool:
        """Make the files, but those that are there; False if it was not wanted any more on the way.

        Raises:
            DamagedTable: What is there of the archive cannot be read.
            StorageError: The store failed; another call goes on.
        """
        storage.make_folder(self.layout.archive)
        if not is_wanted():
            return False
        self._add_to_archive(storage)
        for files in self._split():
            if not is_wanted():
                return False
            map_in_threads(lambda file: self._create(storage, file), files)
        return True

    def _create(self, storage: Storage, file: ConvertedFile) -> None:
        """In version 6 the time of a file says when it was completed; a store that gives its own keeps the order."""
        storage.create_if_absent(file.path, file.data)
        if file.completion and self.layout.is_version_6:
            storage.set_modified(file.path, epoch_ms(file.completion, self.layout.zone))

    def _split(self) -> Iterator[tuple[ConvertedFile, ...]]:
        """Those that may be made at the same time: in version 6 the order of files is that of completed writes."""
        free = [file for file in self.files if not self.layout.is_version_6 or not file.completion]
        yield from (tuple(free[at : at + _AT_ONCE]) for at in range(0, len(free), _AT_ONCE))
        yield from ((file,) for file in self.files[len(free) :])

    def _add_to_archive(self, storage: Storage) -> None:
        if self.layout.is_version_6:
            data = encode_old_archive(self.archived)
            if data:
                storage.create_if_absent(f"{self.layout.archive}/{FIRST_OLD_FILE}", data)
            return
        history = ArchivedHistory(storage, self.layout)
        for at in range(0, len(self.archived), _BATCH):
            history.add(list(self.archived[at : at + _BATCH]))
        history.compact(batch=_MOST_PARTS, keep_versions=_VERSIONS)


def convert_timeline(storage: Storage, timeline: Timeline, target: TimelineLayout) -> ConvertedTimeline:
    """Read a timeline that nobody changes meanwhile, and its archive. Makes nothing.

    Args:
        storage: Of the table.
        timeline: As it is now.
        target: Of the other layout.

    Raises:
        DamagedTable: A file cannot be read, or is gone.
        StorageError: The store failed.
    """
    index = index_files(storage, timeline.layout)
    names = [path for paths in index.values() for path in paths]
    contents = dict(zip(names, map_in_threads(storage.read, names), strict=True))
    completion = {(i.requested, i.action): _choose_completion(i, target) for i in timeline.completed()}
    made = [_convert(paths, contents, target, completion.get(key)) for key, paths in index.items()]
    files = sorted((file for files in made for file in files), key=lambda file: (file.completion, file.path))
    return ConvertedTimeline(target, tuple(files), _read_archive(storage, timeline))


def _choose_completion(instant: Instant, target: TimelineLayout) -> str:
    """Later than it was begun: a file's time, which says it in version 6, may be in whole seconds."""
    found = str(instant.completion)
    return found if target.is_version_6 else max(found, add_ms(instant.requested, 1))


def _convert(
    paths: tuple[str, ...], contents: Mapping[str, bytes | None], target: TimelineLayout, completion: str | None
) -> list[ConvertedFile]:
    """The files of one instant; where a clean or rollback was completed twice, the first of its completed files."""
    pending = [path for path in paths if path.endswith(PENDING_ENDINGS)]
    done = [path for path in paths if path not in pending][:1]
    is_clustering = any(_plans_clustering(path, contents[path]) for path in pending)
    found = []
    for path in (*pending, *done):
        data, instant = contents[path], parse_instant_name(path.rpartition("/")[2])
        if data is None or instant is None:
            raise DamagedTable(f"{path} is gone since the timeline was loaded: somebody else is at work", path=path)
        named = _rename(instant, completion, target, is_clustering=is_clustering)
        is_commit = named.action in _WRITES and not path.endswith(PENDING_ENDINGS[0])
        converted = convert_metadata(data, named.action, path, layout_version=target.version) if is_commit else data
        found.append(ConvertedFile(str(completion) if instant.is_completed else "", target.path(named), converted))
    return found


def _plans_clustering(path: str, data: bytes | None) -> bool:
    name = parse_instant_name(path.rpartition("/")[2])
    if name is None or not path.endswith(PENDING_ENDINGS[0]) or comparable_action(name.action) != _REPLACE:
        return False
    return bool(data) and bool(clustered_file_groups(data or b"", path))


def _rename(instant: Instant, completion: str | None, target: TimelineLayout, *, is_clustering: bool) -> Instant:
    """Version 6 calls a clustering that is planned or under way a replacecommit."""
    if instant.is_completed:
        return replace(instant, completion=completion)
    if target.is_version_6 and instant.action == _CLUSTERING:
        return replace(instant, action=_REPLACE)
    return replace(instant, action=_CLUSTERING) if not target.is_version_6 and is_clustering else instant


def _read_archive(storage: Storage, timeline: Timeline) -> tuple[ArchiveRow, ...]:
    """What is on the active timeline too, since an archiver died on the way, belongs there."""
    active = {(i.requested, i.action) for i in timeline.completed()}
    rows = _read_old(storage, timeline.layout) if timeline.layout.is_version_6 else _read_parts(storage, timeline)
    found = {(row.requested, row.action): row for row in rows if (row.requested, row.action) not in active}
    return tuple(row for _, row in sorted(found.items()))


def _read_old(storage: Storage, layout: TimelineLayout) -> Iterator[ArchiveRow]:
    for requested, completion, action, data in read_old_archive(storage, layout, archived_after=FIRST_TIME):
        yield ArchiveRow(requested, max(completion, add_ms(requested, 1)), action, data)


def _read_parts(storage: Storage, timeline: Timeline) -> Iterator[ArchiveRow]:
    folder = timeline.layout.archive
    for name in sorted(ArchivedHistory(storage, timeline.layout).read_manifest()[1]):
        path = f"{folder}/{name}"
        if (data := storage.read(path)) is None:
            raise DamagedTable(f"{path} is gone, and the archived timeline names it: bring the file back", path=path)
        yield from decode_rows(data, path)


def remove_timeline(storage: Storage, layout: TimelineLayout, *, is_wanted: Callable[[], bool]) -> int:
    """Remove the files of a layout that is not in use any more, and its archive; how many instants there were.

    Raises:
        StorageError: The store failed; another call goes on.
    """
    index = index_files(storage, layout)
    if not is_wanted():
        return 0
    storage.delete_all(path for paths in index.values() for path in paths)
    if layout.archive.startswith(f"{layout.folder}/") and not layout.is_version_6:
        storage.delete_folder(layout.folder)
    else:
        storage.delete_folder(layout.archive)
    return len(index)
