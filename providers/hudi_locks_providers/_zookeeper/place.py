"""Where in ZooKeeper's tree a lock lies."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from hudi_locks.errors import ConfigError
from hudi_locks.lock import LockScope
from hudi_locks_providers._wire.zookeeper import check_path

__all__ = ["NodePlace", "PlaceFinder"]

_PARTITIONS: Final = 1_024


@dataclass(frozen=True)
class NodePlace:
    """The node under which contenders for one lock stand in line.

    Attributes:
        folder: Its full path, the chroot included.
        parents: Paths of the nodes above it, outermost first, without the chroot's.
        shared: How many of the parents belong to the table and not to a partition.
        is_group: Whether it is a file group's: a node that is removed once nobody needs it.
    """

    folder: str
    parents: tuple[str, ...]
    shared: int
    is_group: bool

    @property
    def partition_nodes(self) -> tuple[str, ...]:
        """Nodes between the base path and a file group's, outermost first."""
        return self.parents[self.shared :]


class PlaceFinder:
    """Finds the places of one table's locks.

    Args:
        chroot: In front of everything; empty for none.
        base_path: As in `hoodie.write.lock.zookeeper.base_path`.
        lock_key: Node of the table's lock below it; may have several parts.

    Raises:
        ConfigError: The two make no path that ZooKeeper accepts.
    """

    def __init__(self, chroot: str, base_path: str, lock_key: str) -> None:
        self._chroot = chroot
        self._base_path = base_path
        self.base = f"{chroot}{base_path}".rstrip("/")
        path = f"{base_path}/{lock_key}"
        _check(path, f"the lock's path {path!r}")
        parents = self._split(path)[:-1]
        self.table = NodePlace(chroot + path, parents, len(parents), is_group=False)
        self._find_partition = functools.lru_cache(maxsize=_PARTITIONS)(self._make_partition)

    def find(self, scope: LockScope) -> NodePlace:
        """The place of `scope`: a file group's is where JVM writers with direct markers have it.

        Raises:
            ConfigError: Partition and file id make no path, or one that means another lock too.
        """
        if scope.is_table:
            return self.table
        file_id = scope.file_id or ""
        if "/" in file_id:
            raise ConfigError(f"{scope}: the file id {file_id!r} has a slash, which ids have not", scope=scope)
        above, parents = self._find_partition(scope.partition or "")
        _check(f"/{file_id}", f"the file id of {scope}")
        folder = f"{above}/{file_id}"
        if folder == self.table.folder:
            raise ConfigError(f"the lock on {scope} would be the table's own, {folder}", scope=scope)
        return NodePlace(folder, parents, self._base_path.count("/"), is_group=True)

    def _make_partition(self, partition: str) -> tuple[str, tuple[str, ...]]:
        """Full path of a partition's node, and it with all above it: the same for all of its file groups."""
        path = f"{self._base_path}/{partition}" if partition else self._base_path
        _check(path, f"the path {path!r} of partition {partition!r}")
        return self._chroot + path, self._split(path)

    def _split(self, path: str) -> tuple[str, ...]:
        parts = path.split("/")
        return tuple(self._chroot + "/".join(parts[:end]) for end in range(2, len(parts) + 1))


def _check(path: str, what: str) -> None:
    wrong = check_path(path)
    if wrong:
        raise ConfigError(f"{what} {wrong}: as in Hudi, base_path begins with a slash and no part is empty", path=path)
