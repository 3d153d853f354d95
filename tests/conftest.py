"""What all tests share."""

from __future__ import annotations

import os

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if os.environ.get("HUDI_LOCKS_NO_SKIPS") and terminalreporter.stats.get("skipped"):
        terminalreporter.write_line("HUDI_LOCKS_NO_SKIPS is set, and tests were skipped: see above", red=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("HUDI_LOCKS_NO_SKIPS") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
