"""What a failed check leaves for a later look."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hudi_locks_conformance.runner import Outcome, Status

__all__ = ["save_evidence"]

_WORTH_KEEPING: Final = frozenset({Status.FAIL, Status.ERROR, Status.UNKNOWN})


def save_evidence(outcomes: Sequence[Outcome], folder: Path) -> dict[str, Path]:
    """Write the history of each check that is not in order and recorded one; where each lies, by id."""
    saved: dict[str, Path] = {}
    for outcome in outcomes:
        if outcome.status in _WORTH_KEEPING and outcome.history.operations:
            saved[outcome.check.id] = folder / f"{outcome.check.id}.history.jsonl"
            outcome.history.dump(saved[outcome.check.id])
    return saved
