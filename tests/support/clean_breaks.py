"""Rules of cleaning that are dropped on purpose, by what is left in their place; tests must find each."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_locks.services import retention
from hudi_locks.services.retention import choose_files

__all__ = ["judge_by_names", "take_pending_for_completed"]


def judge_by_names(patch: pytest.MonkeyPatch) -> None:
    """Completion times replaced by requested times."""

    def choose(files: Any, keep: Any, completion: Any) -> Any:
        return choose_files(files, keep, lambda requested: requested if completion(requested) else None)

    patch.setattr(retention, "choose_files", choose)


def take_pending_for_completed(patch: pytest.MonkeyPatch) -> None:
    """So that a base file which is not there for readers yet stands for the logs below it."""

    def choose(files: Any, keep: Any, completion: Any) -> Any:
        return choose_files(files, keep, lambda requested: completion(requested) or requested)

    patch.setattr(retention, "choose_files", choose)
