"""The conformance kit: judges any lock provider, from the command line or from pytest.

`LockProviderSuite` needs pytest and is in `hudi_locks_conformance.suite`. What is named here is loaded when it is asked
for, so that the processes which a check starts, and which need one small part, start quickly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hudi_locks_conformance._output import Badge, find_badge
    from hudi_locks_conformance.catalogue import CHECKS, select_checks
    from hudi_locks_conformance.check import LADDER, Check, Level, Mode, NotRun, Violation
    from hudi_locks_conformance.harness import Harness
    from hudi_locks_conformance.history import History, find_overlaps, is_linearizable
    from hudi_locks_conformance.limits import Limit
    from hudi_locks_conformance.runner import Outcome, Status, run_check, run_checks

__all__ = [
    "CHECKS",
    "LADDER",
    "Badge",
    "Check",
    "Harness",
    "History",
    "Level",
    "Limit",
    "Mode",
    "NotRun",
    "Outcome",
    "Status",
    "Violation",
    "find_badge",
    "find_overlaps",
    "is_linearizable",
    "run_check",
    "run_checks",
    "select_checks",
]

_MODULES: Final = {
    "CHECKS": "catalogue",
    "LADDER": "check",
    "Badge": "_output",
    "Check": "check",
    "Harness": "harness",
    "History": "history",
    "Level": "check",
    "Limit": "limits",
    "Mode": "check",
    "NotRun": "check",
    "Outcome": "runner",
    "Status": "runner",
    "Violation": "check",
    "find_badge": "_output",
    "find_overlaps": "history",
    "is_linearizable": "history",
    "run_check": "runner",
    "run_checks": "runner",
    "select_checks": "catalogue",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
