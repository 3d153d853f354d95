"""What a run says: as text, as values, as files for other programs."""

from hudi_locks_conformance._output.badge import Badge, find_badge
from hudi_locks_conformance._output.evidence import Evidence, save_evidence, save_history
from hudi_locks_conformance._output.exits import (
    EXIT_CRASH,
    EXIT_UNJUDGED,
    EXIT_UNREACHABLE,
    EXIT_USAGE,
    EXIT_VIOLATION,
    exit_status,
)
from hudi_locks_conformance._output.junit import render_junit
from hudi_locks_conformance._output.page import render_page
from hudi_locks_conformance._output.report import Report
from hudi_locks_conformance._output.text import describe_check, render_text
from hudi_locks_conformance._output.values import to_values

__all__ = [
    "EXIT_CRASH",
    "EXIT_UNJUDGED",
    "EXIT_UNREACHABLE",
    "EXIT_USAGE",
    "EXIT_VIOLATION",
    "Badge",
    "Evidence",
    "Report",
    "describe_check",
    "exit_status",
    "find_badge",
    "render_junit",
    "render_page",
    "render_text",
    "save_evidence",
    "save_history",
    "to_values",
]
