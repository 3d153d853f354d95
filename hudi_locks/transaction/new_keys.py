"""Keys that a write inserts: two writers that saw neither's would both insert one, and the table have it twice."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

__all__ = ["NewKeys"]


class NewKeys(Protocol):
    """The record keys that a write inserts since its snapshot lacks them. Asked on the driver.

    JVM Hudi compares file groups alone, so that two upserts double a key that is new to both.
    """

    @property
    def partitions(self) -> frozenset[str]:
        """Partitions that get new keys."""

    def find_among(self, paths: Collection[str], instant: str) -> tuple[str, ...]:
        """Some of the keys that the completed `instant` wrote to its base files `paths` too; empty if there are none.

        Reads those files; the answer for an instant is remembered, since a completed instant does not change.
        """
