"""The report shows what happened, and says nothing that could be taken for markup."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from hudi_locks.cli.demo.comparison import Comparison
from hudi_locks.cli.demo.report import render_report

LOADED = 1234


def attempt(began_ms: int, ended_ms: int, outcome: str, conflict: str = "") -> dict[str, Any]:
    return {
        "instant": "20260101000002000",
        "began_ms": began_ms,
        "ended_ms": ended_ms,
        "outcome": outcome,
        "conflict": conflict,
        "with": "20260101000003000" if conflict else "",
    }


def writer(name: str, *attempts: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name, "instant": "20260101000002000", "rows_updated": 7, "file_groups": 2, "wasted_s": 1.5,
        "lock_wait_ms": 3, "attempts": list(attempts),
    }  # fmt: skip


WRITERS = [
    writer("a <b> & c", attempt(0, 1500, "ABORTED", "both change x"), attempt(1600, 3000, "COMMITTED")),
    writer("d", attempt(100, 1000, "COMMITTED")),
]


def test_each_attempt_is_a_bar_of_its_length() -> None:
    page = render_report(LOADED, WRITERS, [Comparison("r", 1, 0, 0)], provider="filesystem")
    picture = ET.fromstring(page[page.index("<svg") : page.index("</svg>") + len("</svg>")])
    bars = [(float(bar.attrib["x"]), float(bar.attrib["width"])) for bar in picture.iter("rect")]
    (first, retry, other) = bars
    assert abs(first[1] / other[1] - 1500 / 900) < 0.01
    assert first[0] < other[0] < retry[0]
    assert next(element.text for element in picture.iter("title")) == "both change x"


def test_names_are_escaped_and_the_verdict_is_plain() -> None:
    good = render_report(LOADED, WRITERS, [Comparison("r", 1, 0, 0)], provider="filesystem")
    bad = render_report(LOADED, WRITERS, [Comparison("r", 1, 0, 1)], provider="filesystem")
    assert "a &lt;b&gt; &amp; c" in good
    assert "a <b>" not in good
    assert "Every row is as it must be." in good
    assert "Every row is as it must be." not in bad
