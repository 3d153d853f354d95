"""The conformance kit: judges any lock provider, from the command line or from pytest.

`LockProviderSuite` needs pytest and is in `hudi_locks_conformance.suite`.
"""

from hudi_locks_conformance._output import Badge, find_badge
from hudi_locks_conformance.catalogue import select_checks
from hudi_locks_conformance.check import CHECKS, LADDER, Check, Level, Mode, NotRun, Violation
from hudi_locks_conformance.harness import Harness
from hudi_locks_conformance.history import History, find_overlaps, is_linearizable
from hudi_locks_conformance.runner import Outcome, Status, run_check, run_checks

__all__ = [
    "CHECKS",
    "LADDER",
    "Badge",
    "Check",
    "Harness",
    "History",
    "Level",
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
