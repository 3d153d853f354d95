"""What a group of a clustering plan does to the ring of its partition, as JVM Hudi writes it beside the group."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["RING_STRATEGY", "RingChange", "RingNode"]

RING_STRATEGY: Final = "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
"""What runs such a plan in JVM Hudi."""
_PARTITION: Final = "clustering.group.partition"
_NODES: Final = "clustering.group.child.node"
_NUMBER: Final = "clustering.group.sequence.no"
_REPLACE: Final = "REPLACE"
_DELETE: Final = "DELETE"


@dataclass(frozen=True)
class RingNode:
    """A node that a clustering leaves, or takes out.

    Attributes:
        value: The greatest hash that belongs to it.
        file_id: Its new file group; "" where it goes, and its keys belong to the next node.
    """

    value: int
    file_id: str = ""


@dataclass(frozen=True)
class RingChange:
    """How one ring becomes the next, as far as one group of a plan does it.

    Attributes:
        partition: Path of the partition.
        number: Of the ring that changes (Hudi's seqNo).
        nodes: Those that are new, or go.
    """

    partition: str
    number: int
    nodes: tuple[RingNode, ...]

    @property
    def file_ids(self) -> frozenset[str]:
        """The file groups that are new."""
        return frozenset(node.file_id for node in self.nodes if node.file_id)

    def encode(self) -> dict[str, str]:
        """As it stands in the extra metadata of the group."""
        nodes = [
            {
                "value": node.value,
                "fileIdPrefix": node.file_id.removesuffix("-0") or None,
                "tag": _REPLACE if node.file_id else _DELETE,
            }
            for node in self.nodes
        ]
        return {_NUMBER: str(self.number), _NODES: json.dumps(nodes, indent=2), _PARTITION: self.partition}

    @classmethod
    def decode(cls, extra: Mapping[str, str]) -> RingChange | None:
        """Read the extra metadata of a group; None where it says nothing of a ring.

        Raises:
            ValueError: It is malformed.
        """
        if _NODES not in extra:
            return None
        nodes = tuple(map(_decode_node, json.loads(extra[_NODES])))
        return cls(extra[_PARTITION], int(extra[_NUMBER]), nodes)


def _decode_node(node: Mapping[str, str]) -> RingNode:
    if node["tag"] not in (_REPLACE, _DELETE):
        raise ValueError(f"a node of a clustering is tagged {node['tag']!r}")
    return RingNode(int(node["value"]), f"{node['fileIdPrefix']}-0" if node["tag"] == _REPLACE else "")
