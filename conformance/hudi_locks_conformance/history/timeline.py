"""A history as text: time runs down, each process has a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hudi_locks_conformance.history.record import History, Operation

__all__ = ["MOST_EVENTS", "draw_text"]

MOST_EVENTS: Final = 24
"""How many events a picture shows, the last ones."""
_WIDTH: Final = 24
_BAR: Final = "┃ "
_ENDINGS: Final = {"invoke": "…", "ok": "", "fail": " refused", "info": " unknown"}
_MS: Final = 1e6


def draw_text(history: History, last: int = MOST_EVENTS) -> str:
    """The last events of a history, one a line; a bar stands beside whoever holds the lock."""
    operations = history.operations
    shown = operations[-last:]
    columns = list(dict.fromkeys(one.process for one in shown))
    holding = _follow(set(), operations[: -len(shown)] if shown else ())
    head = "".join(f"{name[: _WIDTH - 2]:{_WIDTH}}" for name in columns)
    lines = [f"{'ms':>12}  {head}".rstrip()]
    if len(shown) < len(operations):
        lines.append(f"{'':12}  ({len(operations) - len(shown)} events before)")
    for one in shown:
        before = set(holding)
        holding = _follow(holding, [one])
        lines.append(_draw_row(one, columns, held=before | holding, since_ns=shown[0].t_ns))
    if lines[1:]:
        lines[-1] += f"  ◀ {'two holders' if len(holding) > 1 else 'this cannot be'}"
    return "\n".join(lines)


def _follow(holding: set[str], operations: Sequence[Operation]) -> set[str]:
    """Who holds after these events, if `holding` did before."""
    now = set(holding)
    for one in operations:
        if (one.f, one.type) == ("acquire", "ok"):
            now.add(one.process)
        elif (one.f, one.type) in (("release", "invoke"), ("check", "fail")):
            now.discard(one.process)
    return now


def _draw_row(one: Operation, columns: list[str], *, held: set[str], since_ns: int) -> str:
    token = "" if one.token is None else f" #{one.token}"
    said = f"{one.f}{token}{_ENDINGS.get(one.type, one.type)}"
    cells = [(_BAR if name in held else "") + (said if name == one.process else "") for name in columns]
    row = "".join(f"{cell[: _WIDTH - 1]:{_WIDTH}}" for cell in cells)
    return f"{(one.t_ns - since_ns) / _MS:12.3f}  {row}".rstrip()
