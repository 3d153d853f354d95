"""What a failed check leaves for a later look: its history, and where that first goes wrong, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hudi_locks_conformance.history import History, draw_svg, draw_text, find_failing_prefix
from hudi_locks_conformance.runner import Outcome, Status

__all__ = ["Evidence", "save_evidence", "save_history"]

_WORTH_KEEPING: Final = frozenset({Status.FAIL, Status.ERROR, Status.UNKNOWN})


@dataclass(frozen=True)
class Evidence:
    """What was saved of one check.

    Attributes:
        path: The history, as JSON lines.
        text: The shortest beginning that is wrong, as text; empty if the engines find nothing wrong in it.
        svg: The same as a picture.
    """

    path: Path
    text: str = ""
    svg: str = ""


def save_evidence(outcomes: Sequence[Outcome], folder: Path, *, fenced: bool = True) -> dict[str, Evidence]:
    """Write the history of each check that is not in order and recorded one; what was saved, by id.

    Args:
        outcomes: Of a run.
        folder: Where to write.
        fenced: Whether the class claims tokens; they are left out otherwise, for they mean nothing.
    """
    kept = [outcome for outcome in outcomes if outcome.status in _WORTH_KEEPING and outcome.history.operations]
    histories = {one.check.id: one.history if fenced else one.history.without_tokens() for one in kept}
    return {name: save_history(history, folder / f"{name}.history") for name, history in histories.items()}


def save_history(history: History, stem: Path) -> Evidence:
    """Write `<stem>.jsonl`, and beside it `.txt` and `.svg` if the history is wrong."""
    path = stem.with_name(f"{stem.name}.jsonl")
    history.dump(path)
    prefix = find_failing_prefix(history)
    if prefix is None:
        return Evidence(path)
    evidence = Evidence(path, draw_text(prefix), draw_svg(prefix))
    path.with_suffix(".txt").write_text(evidence.text + "\n", encoding="utf-8")
    path.with_suffix(".svg").write_text(evidence.svg + "\n", encoding="utf-8")
    return evidence
