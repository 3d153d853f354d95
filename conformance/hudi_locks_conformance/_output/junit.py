"""A run as JUnit XML, for programs that collect tests: one case for each check."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET  # only writes
from collections import Counter
from typing import Final

from hudi_locks_conformance._output.report import Report
from hudi_locks_conformance.runner import Outcome, Status

__all__ = ["render_junit"]

_TAGS: Final = {
    Status.FAIL: "failure",
    Status.ERROR: "error",
    Status.UNSUPPORTED: "skipped",
    Status.NOT_RUN: "skipped",
    Status.SKIPPED: "skipped",
    Status.UNKNOWN: "skipped",
}
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML may hold."""


def render_junit(report: Report) -> str:
    """The report as one test suite; what could not be judged is skipped, with its reason."""
    count = Counter(_TAGS.get(outcome.status, "") for outcome in report.outcomes)
    facts = {
        "name": f"hudi-locks conformance of {report.harness.name}",
        "tests": str(len(report.outcomes)),
        "failures": str(count["failure"]),
        "errors": str(count["error"]),
        "skipped": str(count["skipped"]),
        "time": f"{sum(outcome.duration_s for outcome in report.outcomes):.3f}",
    }
    suites = ET.Element("testsuites")
    suite = ET.SubElement(suites, "testsuite", facts)
    properties = ET.SubElement(suite, "properties")
    for name, value in (("badge", str(report.badge)), ("verdict", report.verdict), ("seed", str(report.harness.seed))):
        ET.SubElement(properties, "property", {"name": name, "value": value})
    for outcome in report.outcomes:
        _add_case(suite, report, outcome)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True)


def _add_case(suite: ET.Element, report: Report, outcome: Outcome) -> None:
    check = outcome.check
    facts = {"classname": f"hudi_locks.{check.level.word}.{check.group}", "name": f"{check.id} {check.name}"}
    case = ET.SubElement(suite, "testcase", {**facts, "time": f"{outcome.duration_s:.3f}"})
    tag = _TAGS.get(outcome.status)
    if tag is not None:
        told = ET.SubElement(case, tag, {"message": _clean(outcome.message), "type": outcome.status.value})
        if tag != "skipped":
            told.text = _clean(f"{check.demand}\n{check.why}\n{report.command(check)}")
    if outcome.notes:
        ET.SubElement(case, "system-out").text = _clean("\n".join(outcome.notes))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
