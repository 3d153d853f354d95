"""Both engines together, and where a history first goes wrong."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_locks_conformance.history.models import FENCED, OWNED, Model
from hudi_locks_conformance.history.overlaps import Overlap, find_violations
from hudi_locks_conformance.history.record import History
from hudi_locks_conformance.history.search import is_linearizable

__all__ = ["Judgement", "find_failing_prefix", "judge"]


@dataclass(frozen=True)
class Judgement:
    """What both engines say of a history.

    Attributes:
        holds: How many holds there were.
        overlaps: Those that do harm.
        linearizable: Whether one order explains it; None if the search gave up.
        model: By which model.
    """

    holds: int
    overlaps: tuple[Overlap, ...]
    linearizable: bool | None
    model: str

    @property
    def ok(self) -> bool | None:
        """Whether nothing is wrong; None if that is not known."""
        return False if self.overlaps else self.linearizable

    def __str__(self) -> str:
        return (
            f"{self.holds} holds, {len(self.overlaps)} overlaps, linearizable: {self.linearizable} (model {self.model})"
        )


def judge(history: History, model: Model | None = None) -> Judgement:
    """Judge by `model`; without one by `FENCED` if every hold has a token, else by `OWNED`."""
    chosen = model or _choose(history)
    verdict = is_linearizable(history, model=chosen)
    return Judgement(len(history.holds()), tuple(find_violations(history)), verdict, chosen.name)


def _choose(history: History) -> Model:
    granted = [one for one in history.operations if (one.f, one.type) == ("acquire", "ok")]
    return FENCED if granted and all(one.token is not None for one in granted) else OWNED


def find_failing_prefix(history: History, model: Model | None = None) -> History | None:
    """The shortest beginning of a history that is wrong already; None if all of it is right, or cannot be told.

    What is wrong stays wrong with whatever follows, so that halving finds it.
    """
    chosen = model or _choose(history)
    operations = history.operations

    def fails(length: int) -> bool:
        return judge(History(operations[:length]), chosen).ok is False

    if not fails(len(operations)):
        return None
    good, bad = 0, len(operations)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if fails(middle) else (middle, bad)
    return History(operations[:bad])
