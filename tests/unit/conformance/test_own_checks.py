"""Checks of a provider's author beside the kit's, and checks that the author leaves out."""

from __future__ import annotations

import json
import sys
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_locks_conformance import CHECKS, Harness, Status, find_badge, run_checks, select_checks
from hudi_locks_conformance.catalogue import load_checks, read_skips
from hudi_locks_conformance.check import OWN_CHECKS
from hudi_locks_conformance.cli import command
from typer.testing import CliRunner

from hudi_locks import ConfigError

EXAMPLE = Path(__file__).parents[3] / "examples" / "my_lock_provider"
OWN = "my_lock_provider.checks"
PROVIDER = "my_lock_provider:SqliteLockProvider"
Write = Callable[[str, str], str]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a module with checks; its name."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write_it(name: str, code: str) -> str:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.delitem(OWN_CHECKS, name, raising=False)
        return name

    return write_it


def run(tmp_path: Path, *words: str) -> tuple[int, str]:
    given = ("--provider", PROVIDER, "--option", f"file={tmp_path / 'locks.db'}", "--history", str(tmp_path))
    done = CliRunner().invoke(command, [*given, *words])
    return done.exit_code, done.output


def test_a_check_of_ones_own_is_run_beside_the_others(tmp_path: Path) -> None:
    status, said = run(tmp_path, "--checks", OWN, "--only", "A1,X1", "-v")
    assert status == 0, said
    assert "pass        X1 nothing-beside-the-file" in said
    assert "X1" not in CHECKS
    assert [check.id for check in select_checks(only=["X"], own=load_checks([OWN]))] == ["X1"]


def test_one_that_fails_is_a_violation_and_its_line_repeats_it(tmp_path: Path) -> None:
    (tmp_path / "locks.db-more").touch()
    status, said = run(tmp_path, "--checks", OWN, "--only", "X1")
    assert status == 1
    assert "beside locks.db there is locks.db-more" in said
    assert f"--checks {OWN} --only X1" in said.partition("again")[2]
    assert "1 failed" in said


def test_a_level_asks_for_it_too_and_it_earns_nothing(tmp_path: Path) -> None:
    own = load_checks([OWN])
    assert "X1" in [check.id for check in select_checks(own=own)]
    assert "X1" not in [check.id for check in select_checks()]
    outcomes = run_checks(own, Harness(PROVIDER, {"my.sqlite.file": str(tmp_path / "locks.db")}))
    assert [outcome.status for outcome in outcomes] == [Status.PASS]
    assert find_badge(outcomes).level is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('@check("B2", "mine", why="w")\ndef one(bench):\n    """Holds."""', "is called X1, X2 or X2a, not 'B2'"),
        ('@check("X1", "mine", why="w")\ndef one(bench):\n    pass', "X1 has no docstring"),
        ("", "declares no check"),
        ("import nothing_of_that_name", "cannot be loaded: No module named 'nothing_of_that_name'"),
        (
            (
                '@check("X1", "a", why="w")\ndef one(bench):\n    """Holds."""\n@check("X1", "b", why="w")\n'
                'def two(bench):\n    """Holds."""'
            ),
            "two checks are called X1",
        ),
    ],
)
def test_a_module_without_proper_checks_is_refused(write: Write, body: str, said: str) -> None:
    name = write("strange_checks", f"from hudi_locks_conformance.check import check\n{body}\n")
    with pytest.raises(ConfigError, match="strange_checks") as caught:
        load_checks([name])
    assert said in str(caught.value)


def test_two_modules_with_one_id_are_refused(write: Write) -> None:
    code = """
    from hudi_locks_conformance.check import check

    @check("X1", "another", why="the id is taken")
    def one(bench):
        'Holds.'
    """
    with pytest.raises(ConfigError, match="more_checks declares X1 once more"):
        load_checks([OWN, write("more_checks", code)])


def test_a_skipped_check_is_not_run_not_passed_and_told_everywhere(tmp_path: Path) -> None:
    reason = "our server is asked by one process"
    files = (
        "--json-file",
        str(tmp_path / "r.json"),
        "--junit",
        str(tmp_path / "r.xml"),
        "--html",
        str(tmp_path / "r.html"),
    )
    status, said = run(tmp_path, "--skip", f"A2={reason}", "--only", "A1,A2", *files)
    assert status == 0
    assert f"skipped     A2 {CHECKS['A2'].name}: {reason}" in said
    assert "1 skipped" in said.partition("badge")[2].splitlines()[0]
    assert "CONFORMANT, but for what was skipped (core)" in said
    told = json.loads((tmp_path / "r.json").read_text())
    assert told["badge"]["skipped"] == 1
    assert [check["message"] for check in told["checks"] if check["status"] == "skipped"] == [reason]
    (skipped,) = ET.parse(tmp_path / "r.xml").iter("skipped")
    assert (skipped.get("type"), skipped.get("message")) == ("skipped", reason)
    assert f"<div class='message'>{reason}</div>" in (tmp_path / "r.html").read_text()


def test_a_level_with_a_skipped_check_is_not_earned(tmp_path: Path) -> None:
    harness = Harness(PROVIDER, {"my.sqlite.file": str(tmp_path / "locks.db")})
    outcomes = run_checks(select_checks(), harness, skips={check.id: "no time" for check in select_checks()[1:]})
    badge = find_badge(outcomes)
    assert badge.level is None
    assert badge.lacking.startswith("core: A1 skipped, ")
    assert str(badge).endswith(f" · no level · 0 failed · {len(outcomes) - 1} skipped")


@pytest.mark.parametrize(
    ("word", "said"),
    [("B2", "says not why"), ("B2=", "says not why"), ("Z9=slow", "'Z9' is no check"), ("X1=slow", "'X1' is no check")],
)
def test_a_skip_needs_a_check_and_a_reason(word: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_skips([word])
    assert read_skips(["X1=slow here"], load_checks([OWN])) == {"X1": "slow here"}
