"""A check: one demand on a lock provider, with an id that never changes."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hudi_locks import Capability

if TYPE_CHECKING:
    from hudi_locks_conformance.bench import Bench

__all__ = [
    "CHECKS",
    "LADDER",
    "OWN_CHECKS",
    "Check",
    "Inapplicable",
    "Late",
    "Level",
    "Mode",
    "NotRun",
    "Stuck",
    "Violation",
    "check",
]


class Level(enum.IntEnum):
    """What a provider is asked for: a ladder from CORE to INTEROP, each rung with all below it.

    EXTRA stands beside the ladder: good to have, and no condition of safety. To ask for it asks for FENCING too, and
    not for INTEROP, which needs a JVM.
    """

    CORE = 1
    LEASE = 2
    FENCING = 3
    INTEROP = 4
    EXTRA = 5

    @property
    def word(self) -> str:
        """As people type it."""
        return self.name.lower()

    @property
    def contents(self) -> frozenset[Level]:
        """The levels whose checks are asked for at this one."""
        return frozenset(level for level in Level if level <= self) - ({Level.INTEROP} - {self})


LADDER: Final = (Level.CORE, Level.LEASE, Level.FENCING, Level.INTEROP)
"""The levels that a badge may name, from the bottom."""


class Mode(enum.Enum):
    """Where the time of a check comes from, on a provider that keeps virtual time."""

    VIRTUAL = "V"
    CONDITION = "C"
    REAL = "R"
    FORCED = "I"


class Violation(AssertionError):
    """The provider does not do what the check demands."""


class Late(Violation):
    """The provider took longer than it may, of real time: a busy machine may be the reason too."""


class Stuck(Late):
    """A call did not come back, and goes on on a thread that nobody can end."""


class Inapplicable(Exception):  # an outcome, not an error
    """The demand has no meaning for the provider, as its hooks say."""


class NotRun(Exception):  # an outcome, not an error
    """The check cannot be judged here; says what is missing."""


@dataclass(frozen=True)
class Check:
    """One demand.

    Attributes:
        id: Group letter and number, with a small letter where one demand has several parts.
        name: In words, joined by hyphens.
        demand: One sentence: what must hold.
        why: One sentence: what goes wrong on a table otherwise.
        level: From which level on it is asked.
        mode: Where its time comes from.
        needs: Capabilities without whose claim it is unsupported.
        beyond_process: Whether it is about providers that exclude more than threads.
        run: Judges; raises `Violation` or `NotRun`.
    """

    id: str
    name: str
    demand: str
    why: str
    level: Level
    mode: Mode
    needs: frozenset[Capability]
    beyond_process: bool
    run: Callable[[Bench], None]

    @property
    def group(self) -> str:
        """The letter of its group."""
        return self.id[0]

    @property
    def number(self) -> str:
        """Its number within the group."""
        return self.id[1:].rstrip("abcdefgh")


CHECKS: Final[dict[str, Check]] = {}
"""All checks of the kit, by id, in the order of their groups."""
OWN_CHECKS: Final[dict[str, dict[str, Check]]] = {}
"""Checks that others declared, by the name of their module, and by id."""
_OWN_ID: Final = re.compile("X[1-9][0-9]*[a-h]?")
_PACKAGE: Final = __name__.partition(".")[0]


def check(
    id: str,  # noqa: A002  # the word of the list
    name: str,
    *,
    why: str,
    level: Level = Level.CORE,
    mode: Mode = Mode.CONDITION,
    needs: Iterable[Capability] = (),
    beyond_process: bool = False,
) -> Callable[[Callable[[Bench], None]], Callable[[Bench], None]]:
    """Declare the decorated function a check; its docstring is the demand.

    Yours belong to group X: `X1`, `X2`, `X2a`. See `load_checks` for how a run takes them along.

    Raises:
        ValueError: The id is not free for it, or the function has no docstring.
    """

    def declare(run: Callable[[Bench], None]) -> Callable[[Bench], None]:
        demand = " ".join((run.__doc__ or "").split())
        made = Check(id, name, demand, why, level, mode, frozenset(needs), beyond_process, run)
        _find_place(made)[id] = made
        return run

    return declare


def _find_place(made: Check) -> dict[str, Check]:
    module = made.run.__module__
    if module.partition(".")[0] == _PACKAGE:
        return CHECKS
    own = OWN_CHECKS.setdefault(module, {})
    if not _OWN_ID.fullmatch(made.id):
        raise ValueError(f"{module}: a check of your own is called X1, X2 or X2a, not {made.id!r}")
    if not made.demand:
        raise ValueError(f"{module}: the check {made.id} has no docstring, which would say what it demands")
    if made.id in own and own[made.id].run.__qualname__ != made.run.__qualname__:
        raise ValueError(f"{module}: two checks are called {made.id}")
    return own
