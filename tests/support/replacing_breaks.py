"""Rules about replaced file groups that are dropped on purpose; tests must find each."""

from __future__ import annotations

import pytest

from hudi_locks.format.claim import Claim
from hudi_locks.transaction import SimpleConcurrentFileWrites

__all__ = ["forget_what_is_replaced", "let_clustering_win_always"]


def forget_what_is_replaced(patch: pytest.MonkeyPatch) -> None:
    """A claim tells the file groups that it writes alone."""
    patch.setattr(Claim, "groups", property(lambda claim: claim.writes))


def let_clustering_win_always(patch: pytest.MonkeyPatch) -> None:
    """A clustering meets nobody, and a planned one meets no write."""
    is_candidate = SimpleConcurrentFileWrites.is_candidate
    patch.setattr(
        SimpleConcurrentFileWrites,
        "is_candidate",
        lambda self, this, other: not this.is_service and other.is_completed and is_candidate(self, this, other),
    )
