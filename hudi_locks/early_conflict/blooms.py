"""Bloom filters of what a write announces: a reader skips writes that certainly do not touch its file groups (RFC-56).

They lie among the staged files of the write, where no JVM reader looks, and go with them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Set
from typing import Final

from hudi_locks.early_conflict.context import DetectionContext
from hudi_locks.early_conflict.strategy import SimpleDirectMarkerBased
from hudi_locks.format.bloom import BloomFilter
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import staging_folder

__all__ = ["BloomDirectMarkerBased", "find_possible", "write_bloom"]

_FOLDER: Final = "blooms"


def write_bloom(context: DetectionContext, groups: Iterable[FileGroupId]) -> None:
    """Note file groups that are about to be announced; durable when it returns, before their markers are there."""
    bloom = BloomFilter.of(_encode(context.key_of(group)) for group in groups)
    context.storage.create_if_absent(f"{_folder(context.requested)}/{uuid.uuid4().hex}", bloom.encode())


def find_possible(context: DetectionContext, other: str, keys: Set[FileGroupId]) -> frozenset[FileGroupId]:
    """Those of `keys` that `other` may have announced: all of them if it leaves no filters, as a JVM writer.

    A filter that cannot be read, or is being removed, counts as one that holds everything.
    """
    folder = _folder(other)
    names = context.storage.list_names(folder)
    if not names:
        return frozenset(keys)
    possible: set[FileGroupId] = set()
    for name in names:
        bloom = BloomFilter.decode(context.storage.read(f"{folder}/{name}"))
        possible |= keys if bloom is None else {key for key in keys if _encode(key) in bloom}
    return frozenset(possible)


class BloomDirectMarkerBased(SimpleDirectMarkerBased):
    """Reads the filters of an earlier writer first, and its markers only where they may hold something (RFC-56)."""

    def look_at(self, other: str, keys: Set[FileGroupId]) -> frozenset[FileGroupId]:
        """See `SimpleDirectMarkerBased.look_at`."""
        possible = find_possible(self.context, other, keys)
        return super().look_at(other, possible) if possible else frozenset()

    def announce(self, groups: Iterable[FileGroupId]) -> None:
        """See `EarlyConflictDetectionStrategy.announce`."""
        write_bloom(self.context, groups)


def _folder(requested: str) -> str:
    return f"{staging_folder(requested)}/{_FOLDER}"


def _encode(key: FileGroupId) -> bytes:
    return f"{key.partition}/{key.file_id}".encode()
