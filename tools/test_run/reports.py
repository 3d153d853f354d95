"""What tox and pytest wrote down of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_GROUP: Final = re.compile(r"@[\w .-]+$")
"""What pytest-xdist adds to the name of a test that belongs to a group."""

__all__ = ["PartReport", "TestReport", "read_part", "read_result", "read_tests"]


@dataclass
class TestReport:
    """One test.

    Attributes:
        name: Its node id.
        seconds: Of set-up, call and teardown together.
        outcome: `passed`, `failed` or `skipped`.
        said: Why it failed or was skipped, in a line.
    """

    name: str
    seconds: float = 0.0
    outcome: str = "passed"
    said: str = ""


@dataclass(frozen=True)
class PartReport:
    """One part.

    Attributes:
        name: Its tox environment.
        minutes: How long it took, set-up included.
        ok: Whether tox calls it a success.
        output: What the failed command printed; of a part that is well, nothing.
        tests: All that pytest ran in it, by node id.
    """

    name: str
    minutes: float
    ok: bool
    output: str = ""
    tests: Mapping[str, TestReport] = field(default_factory=dict)

    def count(self, outcome: str) -> int:
        """How many tests ended so."""
        return sum(test.outcome == outcome for test in self.tests.values())


def read_result(file: Path) -> dict[str, Any]:
    """What tox's result file tells of each part; nothing if the run ended before it was written."""
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")).get("testenvs", {})
    except (OSError, ValueError):
        return {}
    return found


def read_part(name: str, told: Mapping[str, Any], log: Path) -> PartReport:
    """One part's report.

    Args:
        name: The tox environment.
        told: What tox's result file tells of it; empty if it was never begun.
        log: What pytest-reportlog wrote; need not exist.
    """
    result = told.get("result", {})
    failed = [step for step in [*told.get("setup", []), *told.get("test", [])] if step["retcode"]]
    output = "".join(step["output"] + step["err"] for step in failed[-1:])
    return PartReport(name, result.get("duration", 0.0) / 60, bool(result.get("success")), output, read_tests(log))


def read_tests(log: Path) -> dict[str, TestReport]:
    """What pytest-reportlog wrote, by node id; nothing if there is no such file.

    A module that could not be collected counts as a test that failed. A line that was cut off, as by a full disk or a
    run that was killed, ends what can be read.
    """
    tests: dict[str, TestReport] = {}
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            break
        name = _GROUP.sub("", entry.get("nodeid", ""))
        if entry["$report_type"] == "TestReport":
            _add_phase(tests.setdefault(name, TestReport(name)), entry)
        elif entry["$report_type"] == "CollectReport" and entry["outcome"] == "failed":
            tests[name] = TestReport(name, outcome="failed", said=_last_line(entry["longrepr"]))
    return tests


def _add_phase(test: TestReport, entry: Mapping[str, Any]) -> None:
    """Set-up, call and teardown are reported one by one; the worst of them is the test's outcome."""
    test.seconds += entry["duration"]
    if entry["outcome"] == "passed" or test.outcome == "failed":
        return
    test.outcome = entry["outcome"]
    test.said = _last_line(entry["longrepr"])


def _last_line(told: Any) -> str:
    """The line that says most: of a skip its reason, of an error the message where it was raised."""
    if isinstance(told, Mapping):
        told = (told.get("reprcrash") or {}).get("message", "")
    elif isinstance(told, list):
        return str(told[-1])
    lines = str(told or "").strip().splitlines()
    return lines[0] if lines else ""
