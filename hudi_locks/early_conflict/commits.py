"""What was completed since the write began: its markers are gone, and its files are there (RFC-56, "check commit")."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_locks.early_conflict.scene import Scene
from hudi_locks.format import WRITE_ACTIONS
from hudi_locks.format.claim import FileGroupId
from hudi_locks.table import read_commit
from hudi_locks.timeline import Timeline

__all__ = ["find_completed"]


def find_completed(scene: Scene) -> Iterator[tuple[str, frozenset[FileGroupId]]]:
    """Each write that was completed since the snapshot, and the file groups that it wrote or replaced.

    The JVM looks at what was written alone, so that a file group that clustering replaced passes its check. Compactions
    and log compactions are passed over: what is logged beside them is no conflict, or one that the publish alone tells.

    Raises:
        DamagedTable: A commit is unreadable: it may hide a conflict.
        StorageError: The store failed.
    """
    timeline = Timeline.load(scene.storage, scene.layout)
    for instant in timeline.completed(WRITE_ACTIONS):
        if instant.requested not in scene.known and instant.requested != scene.requested:
            commit = read_commit(scene.storage, timeline, requested=instant.requested)
            groups = commit.written_file_groups | commit.replaced_file_groups
            if not commit.compacted:
                yield instant.requested, frozenset(FileGroupId(*group) for group in groups)
