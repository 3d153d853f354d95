"""What a run consists of, and how long it may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["COVERAGE", "Plan", "read_plan"]

COVERAGE: Final = "coverage"
"""The part that tells what the others ran."""

_BUDGETS: Final = Path(__file__).with_name("budgets.ini")
_TOTAL: Final = ("minutes", "side_by_side")


@dataclass(frozen=True)
class Plan:
    """One kind of run.

    Attributes:
        kind: A section of budgets.ini.
        minutes: The budget of the whole.
        side_by_side: How many parts run at once.
        parts: The budget of each part in minutes, in the order of their start.
    """

    kind: str
    minutes: float
    side_by_side: int
    parts: Mapping[str, float]


def read_plan(kind: str, only: Sequence[str] = (), *, measured: bool = False) -> Plan:
    """The plan of that name.

    Args:
        kind: A section of budgets.ini.
        only: Parts to choose from it; all if empty. One that it lacks is a tox environment without a budget.
        measured: Whether the part follows that tells what the others ran of the product.
    """
    found = ConfigParser()
    found.read_string(_BUDGETS.read_text(encoding="utf-8"))
    section = found[kind]
    budgets = {part: float(section[part]) for part in section if part not in _TOTAL}
    chosen = [*(only or budgets), *([COVERAGE] if measured else [])]
    parts = {part: budgets.get(part, float("inf")) for part in chosen}
    return Plan(kind, float(section["minutes"]), int(section["side_by_side"]), parts)
