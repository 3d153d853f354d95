"""Whose markers count: writes that were begun before this one and are alive."""

from __future__ import annotations

from hudi_locks.early_conflict.scene import Scene
from hudi_locks.markers import MARKER_FOLDER
from hudi_locks.timeline.heartbeat import select_alive

__all__ = ["find_candidates"]


def find_candidates(scene: Scene, *, later: bool = False) -> tuple[str, ...]:
    """Requested times of the writes whose markers may be in the way, by one listing and one look at each heartbeat.

    A write gives way to those that were begun before it, so that of two one goes on. What was completed on its own
    snapshot is none, though its markers may still be there; table services are none; nor is one without a fresh
    heartbeat, which will be rolled back. A completed write is one as long as its heartbeat is there: it has changed
    what this write did not see.

    Args:
        scene: The write.
        later: Whether to name those that were begun after it instead.

    Raises:
        StorageError: The store failed.
    """
    names = scene.storage.list_names(MARKER_FOLDER)
    own = scene.requested.lower()
    passed_over = scene.known | scene.exempt
    others = [name for name in names if name.lower() != own and name not in passed_over]
    chosen = sorted(name for name in others if (name.lower() > own) is later)
    return select_alive(scene.storage, chosen, limit_ms=scene.heartbeat_limit_ms)
