"""What all tests share."""

from __future__ import annotations

import os
from typing import Any

import pytest

_DECLARED = "Skipped: unsupported: "


def _count_avoidable(reporter: Any) -> int:
    """Skipped tests, but for checks of a capability that a provider declares not to have."""
    skipped = reporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] if isinstance(report.longrepr, tuple) else "" for report in skipped]
    return sum(not reason.startswith(_DECLARED) for reason in reasons)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if os.environ.get("HUDI_LOCKS_NO_SKIPS") and (count := _count_avoidable(terminalreporter)):
        terminalreporter.write_line(f"HUDI_LOCKS_NO_SKIPS is set, and {count} tests were skipped", red=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("HUDI_LOCKS_NO_SKIPS") and reporter is not None and _count_avoidable(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
