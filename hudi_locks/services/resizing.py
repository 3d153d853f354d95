"""Which buckets of a partition are split and merged: JVM Hudi's plan for consistent hashing.

A file group above one threshold becomes two, each with half of its hashes; neighbours up to another become one. Others
are left as they are, or, where rows are sorted, written anew.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hudi_locks.format.consistent_hashing import HashRing
from hudi_locks.format.ring_change import RingChange, RingNode
from hudi_locks.services.resize_settings import ResizeSettings
from hudi_locks.table import FileSlice

__all__ = ["Resize", "plan_resizes"]


@dataclass(frozen=True)
class Resize:
    """File groups whose rows go to new ones together.

    Attributes:
        slices: What they hold, in the order of their nodes.
        change: What becomes of the nodes.
    """

    slices: tuple[FileSlice, ...]
    change: RingChange


@dataclass
class _Merging:
    """Finds neighbours that become one node, while there are nodes to spare.

    Attributes:
        sizes: Of the file groups that may be taken, by the place of their node.
        nodes: How many the ring has.
        limit_bytes: Larger ones are not taken.
        spare: How many nodes may go.
        taken: Places that were.
    """

    sizes: Mapping[int, int]
    nodes: int
    limit_bytes: int
    spare: int
    taken: set[int] = field(default_factory=set)

    def find(self) -> list[tuple[int, ...]]:
        """Runs of two and more places; the first node of the ring follows the last."""
        runs = [self._extend(node) for node in sorted(self.sizes)]
        return [run for run in runs if len(run) > 1]

    def _extend(self, node: int) -> tuple[int, ...]:
        if not self._may_take(node):
            return ()
        run, total = [node], self.sizes[node]
        for step in (-1, 1):
            while (found := (run[0 if step < 0 else -1] + step) % self.nodes) not in run:
                if not (self.spare and total <= self.limit_bytes and self._may_take(found)):
                    break
                run.insert(0 if step < 0 else len(run), found)
                total += self.sizes[found]
                self.spare -= 1
        self.taken.update(run if len(run) > 1 else ())
        return tuple(run)

    def _may_take(self, node: int) -> bool:
        return node not in self.taken and self.sizes.get(node, self.limit_bytes + 1) <= self.limit_bytes


def plan_resizes(
    ring: HashRing, slices: Sequence[FileSlice], settings: ResizeSettings, *, partition: str, sorts: bool
) -> list[Resize]:
    """What is to become of a partition.

    Args:
        ring: Of the partition.
        slices: Of file groups that the ring names, and that no other plan has.
        settings: The thresholds.
        partition: Its path.
        sorts: Whether file groups that stay what they are get new files, too.
    """
    by_node = {ring.file_ids.index(piece.file_id): piece for piece in slices}
    splits = _find_splits(ring, by_node, settings)
    left = {node: _measure(piece) for node, piece in by_node.items() if node not in splits}
    spare = len(ring.values) - settings.least_buckets + len(splits)
    merges = _Merging(left, len(ring.values), settings.merge_bytes, max(spare, 0)).find()
    merged = {node for run in merges for node in run}
    runs = [*merges, *((node,) for node in sorted(left) if sorts and node not in merged)]
    changed: dict[tuple[int, ...], list[RingNode]] = {
        (node,): [RingNode(middle, _new_id())] for node, middle in sorted(splits.items())
    }
    changed |= {run: [RingNode(ring.values[node]) for node in run[:-1]] for run in runs}
    return [
        Resize(
            tuple(by_node[node] for node in run), RingChange(partition, ring.number, (*nodes, _renew(ring, run[-1])))
        )
        for run, nodes in changed.items()
    ]


def _renew(ring: HashRing, node: int) -> RingNode:
    """The node with a new file group."""
    return RingNode(ring.values[node], _new_id())


def _find_splits(ring: HashRing, by_node: Mapping[int, FileSlice], settings: ResizeSettings) -> dict[int, int]:
    """Places of the nodes that are cut, the largest first as long as there may be more, and where."""
    large = [node for node, piece in by_node.items() if _measure(piece) > settings.split_bytes]
    middles = {node: ring.find_middle(node) for node in sorted(large, key=lambda node: -_measure(by_node[node]))}
    found = [(node, middle) for node, middle in middles.items() if middle is not None]
    return dict(found[: max(settings.most_buckets - len(ring.values), 0)])


def _measure(piece: FileSlice) -> int:
    """All its files, as JVM Hudi counts here."""
    return sum(file.size for file in (piece.base, *piece.logs) if file is not None)


def _new_id() -> str:
    return f"{uuid.uuid4()}-0"
