"""How a run ends for the shell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hudi_locks_conformance.runner import Outcome, Status

__all__ = ["EXIT_CRASH", "EXIT_UNJUDGED", "EXIT_UNREACHABLE", "EXIT_USAGE", "EXIT_VIOLATION", "exit_status"]

EXIT_VIOLATION: Final = 1
EXIT_USAGE: Final = 2
EXIT_UNJUDGED: Final = 3
EXIT_UNREACHABLE: Final = 4
EXIT_CRASH: Final = 70
_EXITS: Final = (
    (Status.ERROR, EXIT_CRASH),
    (Status.FAIL, EXIT_VIOLATION),
    (Status.UNKNOWN, EXIT_UNJUDGED),
    (Status.NOT_RUN, EXIT_UNJUDGED),
)


def exit_status(outcomes: Sequence[Outcome]) -> int:
    """0: every check passed, is unsupported by declaration, or skipped on request.

    70: the kit broke; 1: a violation; 3: not all judged.
    """
    statuses = {outcome.status for outcome in outcomes}
    return next((code for status, code in _EXITS if status in statuses), 0)
