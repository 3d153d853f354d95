"""The summary of a test run says what a person needs to mend it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import test_run.__main__ as command
from test_run.plan import read_plan
from test_run.reports import PartReport, read_part, read_result
from test_run.summary import render_summary
from test_run.wheels import build_wheels, find_versions

ROOT = Path(__file__).parents[3]
TESTS = """
import pytest

@pytest.fixture
def broken():
    raise OSError("no such server")

def test_well(): pass
def test_wrong(): assert 1 == 2, "one is\\nnot two"
@pytest.mark.parametrize("n", ["a b"])
def test_without(n, broken): pass
def test_left_out(): pytest.skip("unsupported: here")
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pytest writes of a run with every outcome."""
    folder = tmp_path_factory.mktemp("reports")
    (folder / "test_some.py").write_text(TESTS)
    (folder / "test_none.py").write_text("import that_is_not_there")
    words = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", f"--report-log={folder / 'log'}"]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 1
    return folder / "log"


def told(minutes: float, retcode: int) -> dict[str, Any]:
    """As tox writes it."""
    step = {"command": "pytest", "output": "E   1 is not 2\n", "err": "", "retcode": retcode, "elapsed": 1.0}
    return {"result": {"success": retcode == 0, "duration": 60 * minutes}, "setup": [], "test": [step]}


def test_every_test_is_read_with_its_worst_phase(log: Path) -> None:
    tests = read_part("unit", told(2, 1), log).tests
    found = {name: (test.outcome, test.said) for name, test in tests.items()}
    assert found["test_some.py::test_well"] == ("passed", "")
    assert found["test_some.py::test_wrong"] == ("failed", "AssertionError: one is")
    assert found["test_some.py::test_without[a b]"] == ("failed", "OSError: no such server")
    assert found["test_some.py::test_left_out"] == ("skipped", "Skipped: unsupported: here")
    assert found["test_none.py"][0] == "failed"


def test_the_last_lines_name_part_test_seed_and_the_command_that_repeats_it(log: Path) -> None:
    plan = read_plan("whole", ["lint", "servers"])
    parts = [read_part("lint", told(0.1, 0), Path("none")), read_part("servers", told(99, 1), log)]
    text = render_summary(plan, parts, minutes=40, seed=17)
    assert "E   1 is not 2" in text
    assert "servers FAILED; seed 17" in text
    assert "  test_some.py::test_without[a b]: OSError: no such server" in text
    again = "./run test --seed 17 servers -- test_none.py test_some.py::test_wrong 'test_some.py::test_without[a b]'"
    assert sorted(text.splitlines()[-3].split("again: ")[1].split()) == sorted(again.split())
    assert text.splitlines()[-1] == "1 passed, 3 failed, 1 skipped"


def test_a_part_that_fails_without_a_failed_test_is_a_failure_too() -> None:
    plan = read_plan("quick", ["lint"])
    text = render_summary(plan, [read_part("lint", {}, Path("none"))], minutes=1, seed=3)
    assert text.splitlines()[-3:] == ["  again: ./run test --quick --seed 3 lint", "", "0 passed, 1 failed, 0 skipped"]


def test_what_is_over_its_budget_is_named_and_the_slowest_tests_come_first(log: Path) -> None:
    plan = read_plan("whole", ["type", "unit"])
    parts = [PartReport("type", plan.parts["type"] + 0.1, ok=True), read_part("unit", told(3, 0), log)]
    lines = render_summary(plan, parts, minutes=plan.minutes + 1, seed=1).splitlines()
    assert "WARNING: over budget (tools/test_run/budgets.ini): type, the whole" in lines
    at = lines.index("slowest of unit")
    seconds = [float(line.split()[0]) for line in lines[at + 1 : at + 6]]
    assert seconds == sorted(seconds, reverse=True)


def test_every_part_has_a_budget_and_is_an_environment_of_tox() -> None:
    tox = (ROOT / "tox.ini").read_text()
    for kind in ("whole", "quick", "nightly"):
        plan = read_plan(kind)
        assert plan.parts
        assert [part for part in plan.parts if f"[testenv:{part}]" not in tox and "spark" not in part] == []
    assert read_plan("whole").minutes == 30
    assert read_plan("quick").minutes == 5


def test_lines_of_a_report_that_are_no_tests_are_passed_over(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(json.dumps({"$report_type": "SessionStart", "pytest_version": "9"}) + "\n")
    assert read_part("unit", told(1, 0), log).tests == {}


def test_a_report_that_was_cut_off_is_read_to_there(log: Path, tmp_path: Path) -> None:
    whole = read_part("unit", told(2, 1), log).tests
    cut = tmp_path / "cut"
    cut.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    part = read_part("unit", {}, cut)
    assert 0 < len(part.tests) < len(whole)
    assert not part.ok
    (tmp_path / "result.json").write_text('{"testenvs": {"lint": ')
    assert read_result(tmp_path / "result.json") == read_result(tmp_path / "none") == {}


@pytest.mark.parametrize(("free_gb", "said"), [(0.2, "WARNING: 0.2 GB are free"), (99, "")])
def test_a_disk_without_room_for_the_run_is_told_of(
    free_gb: float, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free_gb * 1e9))
    command.warn_of_full_disk("whole")
    out = capsys.readouterr().out
    assert out.startswith(said)
    assert bool(out) == bool(said)


def test_pyspark_is_built_once_for_all_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By pip, which is asked for a version only where its wheel is not there yet."""
    asked: list[str] = []

    def answer(words: list[str], **_: Any) -> Any:
        if "config" in words:
            return SimpleNamespace(stdout="[testenv:spark]\ndeps =\n  pyspark==4.3.0\n  pyspark==3.5.7\n  pytest>=8\n")
        asked.append(words[-1])
        Path(words[words.index("--wheel-dir") + 1], f"{words[-1].replace('==', '-')}-py3-none-any.whl").touch()
        return SimpleNamespace(returncode=0)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(subprocess, "run", answer)
    folder = build_wheels(["spark", "interop"])
    assert build_wheels(["spark", "interop"]) == folder
    assert asked == ["pyspark==3.5.7", "pyspark==4.3.0"]
    assert sorted(file.name for file in folder.iterdir()) == [
        "pyspark-3.5.7-py3-none-any.whl",
        "pyspark-4.3.0-py3-none-any.whl",
    ]
    assert find_versions("pyspark<4.4,>=3.5") == set()
