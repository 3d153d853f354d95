"""A test that fails now and then is found, by name and with the seeds of the runs in which it failed."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flaky
import pytest

TESTS = """
from pathlib import Path

def test_of_a_bad_day(request):
    runs = Path(__file__).with_name("runs")
    runs.write_text(runs.read_text() + "." if runs.exists() else ".")
    assert len(runs.read_text()) % 2, "the second time"

def test_well(): pass
"""


def test_a_test_that_fails_one_time_in_two_is_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    assert flaky.main([str(tmp_path / "test_some.py"), "--times", "2", "--busy", "0"]) == 1
    said = capfd.readouterr().out
    assert "failed, of 2 runs:\n    1 x " in said
    assert "test_some.py::test_of_a_bad_day, seeds 2" in said
    assert "test_well" not in said.split("failed, of 2 runs:")[1]


def test_tests_that_never_fail_are_no_failure(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []

    def run_well(words: Sequence[str], seed: int, log: Path) -> list[str]:
        seeds.append(seed)
        return []

    monkeypatch.setattr(flaky, "run_once", run_well)
    assert flaky.main(["test_some.py", "--times", "2", "--busy", "0"]) == 0
    assert seeds == [1, 2]
    assert capfd.readouterr().out.endswith("no failure in 2 runs\n")


def test_the_machine_is_busy_until_the_last_run_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    loops: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def note(*given: Any, **how: Any) -> subprocess.Popen[bytes]:
        loops.append(start(*given, **how))
        return loops[-1]

    monkeypatch.setattr(subprocess, "Popen", note)
    with flaky.keep_busy(2):
        assert [loop.poll() for loop in loops] == [None, None]
    assert [loop.returncode for loop in loops] == [-signal.SIGKILL, -signal.SIGKILL]


def test_a_run_without_any_test_is_a_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert flaky.main([str(tmp_path / "none.py"), "--times", "1", "--busy", "0"]) == 1
    assert "pytest, exit code 4" in capfd.readouterr().out
