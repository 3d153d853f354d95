"""What a benchmark reports."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

__all__ = ["Figure", "measure_together", "print_figures", "save_figures"]


@dataclass(frozen=True)
class Figure:
    """One figure of ours beside that of one peer, from one run."""

    figure: str
    ours: float
    peer: str
    peer_value: float
    unit: str
    better: Literal["lower", "higher"]

    @property
    def ratio(self) -> float:
        return self.ours / self.peer_value if self.peer_value else math.nan

    def as_row(self) -> dict[str, Any]:
        return {
            "figure": self.figure,
            "ours": self.ours,
            "peer": self.peer,
            "peer_value": self.peer_value,
            "ratio": round(self.ratio, 3) if self.peer_value else None,
            "unit": self.unit,
            "better": self.better,
        }


def measure_together(actions: Mapping[str, Callable[[], None]], *, rounds: int, repeats: int) -> dict[str, float]:
    """Median microseconds of one call of each action.

    The actions take turns, `repeats` calls each, so that a slow moment of the machine meets all of them.
    """
    samples: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            start_s = time.perf_counter()
            for _ in range(repeats):
                action()
            samples[name].append((time.perf_counter() - start_s) / repeats * 1e6)
    return {name: round(statistics.median(found), 2) for name, found in samples.items()}


def print_figures(figures: Sequence[Figure]) -> None:
    table = Table()
    for name in ("figure", "ours", "peer", "peer's", "unit", "ratio", "better"):
        table.add_column(name, justify="right" if name in ("ours", "peer's", "ratio") else "left")
    for row in figures:
        values = (
            row.figure,
            f"{row.ours:g}",
            row.peer,
            f"{row.peer_value:g}",
            row.unit,
            f"{row.ratio:.2f}",
            row.better,
        )
        table.add_row(*values)
    Console(width=140).print(table)


def save_figures(figures: Sequence[Figure], path: Path) -> None:
    path.write_text(json.dumps([figure.as_row() for figure in figures], indent=1) + "\n")
