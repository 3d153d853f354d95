"""The forms that a run's report takes: JUnit XML, one page, JSON in a file."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hudi_locks_conformance import CHECKS, Harness, History, Outcome, Status
from hudi_locks_conformance._output import Report, render_junit, render_page, save_evidence, to_values
from hudi_locks_conformance.cli import command

Judge = Callable[..., Report]
VOID = {"meta", "br", "circle", "line"}


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """One outcome of each kind; the failed one has a history with two holders."""
    history = History()
    for name, at_s in (("<left>", 1.0), ("right", 2.0)):
        history.add(name, "acquire", "invoke", t_s=at_s)
        history.add(name, "acquire", "ok", t_s=at_s + 0.1)
    outcomes = (
        Outcome(CHECKS["A1"], Status.PASS, "", 0.5, notes=("a note",)),
        Outcome(CHECKS["B4"], Status.FAIL, "two <holders> & \x00 more", 0.25, history=history),
        Outcome(CHECKS["B7"], Status.ERROR, "the kit broke"),
        Outcome(CHECKS["C8"], Status.NOT_RUN, "no hook 'peek'"),
        Outcome(CHECKS["E1"], Status.UNSUPPORTED, "LEASE is not claimed"),
        Outcome(CHECKS["F2a"], Status.UNKNOWN, "gave up"),
    )
    harness = Harness("noop", {"hoodie.aws.secret.key": "hush", "hoodie.base.path": "/lake"}, seed=7)
    return Report(harness, outcomes, save_evidence(outcomes, tmp_path, fenced=True))


def test_junit_has_a_case_for_each_check(report: Report) -> None:
    suite = ET.fromstring(render_junit(report)).find("testsuite")
    assert suite is not None
    told = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert told == {"tests": "6", "failures": "1", "errors": "1", "skipped": "3"}
    cases = {case.get("name", "").split()[0]: case for case in suite.iter("testcase")}
    assert list(cases) == ["A1", "B4", "B7", "C8", "E1", "F2a"]
    failure = cases["B4"].find("failure")
    assert failure is not None
    assert failure.get("message") == "two <holders> & \ufffd more"
    assert "--only B4 --seed 7" in (failure.text or "")
    assert cases["A1"].findtext("system-out") == "a note"
    assert cases["E1"].find("skipped") is not None
    assert "hush" not in render_junit(report)


class Reader(HTMLParser):
    """Every tag that is opened must be closed, in order; keeps what may not be on the page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href")]
        self.fetched += [tag] if tag == "script" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(report: Report) -> None:
    page = render_page(report)
    reader = Reader()
    reader.feed(page)
    assert (reader.open, reader.fetched) == ([], [])
    assert "no level · 2 failed" in page
    assert "THE KIT BROKE" in page
    for check_id in ("A1", "B4", "B7", "C8", "E1", "F2a"):
        assert f"id='{check_id}'" in page
        assert CHECKS[check_id].name in page
    assert "two &lt;holders&gt;" in page
    assert page.count("<svg ") == 1
    assert "◀ two holders" in page
    assert "hush" not in page


def test_what_was_saved_lies_beside_the_history(report: Report, tmp_path: Path) -> None:
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        f"B4.history.{kind}" for kind in ("jsonl", "svg", "txt")
    ]
    assert report.evidence["B4"].path == tmp_path / "B4.history.jsonl"


def test_the_command_writes_all_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {kind: tmp_path / "deep" / f"report.{kind}" for kind in ("json", "xml", "html")}
    words = ["-p", "in_process", "-o", f"path={tmp_path}", "--only", "A1,A2", "--seed", "3"]
    words += ["--json-file", str(files["json"]), "--junit", str(files["xml"]), "--html", str(files["html"])]
    with pytest.raises(SystemExit) as ended:
        command(args=[*words, "--json"])
    assert ended.value.code == 0
    assert json.loads(files["json"].read_text()) == json.loads(capsys.readouterr().out)
    assert ET.parse(files["xml"]).getroot().tag == "testsuites"
    assert "CONFORMANT (core)" in files["html"].read_text()


def test_a_check_on_a_started_server_is_repeated_by_its_name(report: Report) -> None:
    again = Report(report.harness, report.outcomes, asked=("--server", "zookeeper", "--option", "a=1"))
    wanted = "hudi-locks conformance --server zookeeper --option a=1 --only A1 --seed 7"
    assert again.command(CHECKS["A1"]) == wanted
    assert to_values(again)["badge"]["failed"] == 2


def test_tokens_that_nobody_claims_do_not_make_a_history_wrong(tmp_path: Path) -> None:
    history = History()
    for at_s in (1.0, 2.0):
        history.add("a", "acquire", "invoke", t_s=at_s)
        history.add("a", "acquire", "ok", t_s=at_s + 0.1, token=1)
        history.add("a", "release", "invoke", t_s=at_s + 0.2)
        history.add("a", "release", "ok", t_s=at_s + 0.3)
    outcome = Outcome(CHECKS["B4"], Status.FAIL, history=history)
    assert save_evidence([outcome], tmp_path, fenced=False)["B4"].text == ""
    assert save_evidence([outcome], tmp_path, fenced=True)["B4"].text.endswith("◀ this cannot be")
