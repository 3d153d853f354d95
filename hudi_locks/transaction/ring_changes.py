"""Rings of a consistent hashing index that a clustering leaves: made before its claim, removed where it is undone.

Nobody takes a ring for one before its clustering is completed. Made later, it would be missing where a process dies in
between, and keys would go to file groups that are replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_locks.format import ClusteringPlan, Instant
from hudi_locks.format.ring_change import RingChange
from hudi_locks.table.hash_rings import change_hash_rings, has_hash_rings, remove_hash_rings
from hudi_locks.timeline import Timeline
from hudi_locks.transaction.context import TableContext

__all__ = ["keep_rings", "take_back_rings"]

_ACTIONS: Final = ("clustering", "replacecommit")


def keep_rings(context: TableContext, instant: Instant, timeline: Timeline) -> None:
    """Make the rings that the plan of a clustering asks for.

    Args:
        context: Of its process.
        instant: Of the clustering.
        timeline: On which its publish is decided.

    Raises:
        DamagedTable: The plan or a ring cannot be read.
        StorageError: The store failed.
        WriteAborted: A ring is not the one that the plan was made from.
    """
    if changes := _read_changes(context, instant):
        change_hash_rings(context.storage, timeline, changes, instant=instant.requested)


def take_back_rings(context: TableContext, requested: str, action: str) -> None:
    """Remove what `keep_rings` made for an instant that is undone.

    Raises:
        StorageError: The store failed.
    """
    if action in _ACTIONS and has_hash_rings(context.storage):
        remove_hash_rings(context.storage, requested)


def _read_changes(context: TableContext, instant: Instant) -> Mapping[str, tuple[RingChange, ...]]:
    path = context.layout.path(instant.as_requested())
    plan = ClusteringPlan.decode(context.storage.read(path) or b"", path)
    return {} if plan is None else plan.ring_changes
