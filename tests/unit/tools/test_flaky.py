"""A test that fails now and then is found, by name and with the seeds of the runs in which it failed."""

from __future__ import annotations

from pathlib import Path

import flaky
import pytest

TESTS = """
from pathlib import Path

def test_of_a_bad_day(request):
    runs = Path(__file__).with_name("runs")
    runs.write_text(runs.read_text() + "." if runs.exists() else ".")
    assert len(runs.read_text()) % 4, "the fourth time"

def test_well(): pass
"""


def test_a_test_that_fails_one_time_in_four_is_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    assert flaky.main([str(tmp_path / "test_some.py"), "--times", "4", "--busy", "1"]) == 1
    said = capfd.readouterr().out
    assert "failed, of 4 runs:\n    1 x " in said
    assert "test_some.py::test_of_a_bad_day, seeds 4" in said
    assert "test_well" not in said.split("failed, of 4 runs:")[1]


def test_tests_that_never_fail_are_no_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_some.py").write_text("def test_well(): pass")
    assert flaky.main([str(tmp_path / "test_some.py"), "--times", "2", "--busy", "0"]) == 0
    assert capfd.readouterr().out.endswith("no failure in 2 runs\n")


def test_a_run_without_any_test_is_a_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert flaky.main([str(tmp_path / "none.py"), "--times", "1", "--busy", "0"]) == 1
    assert "pytest, exit code 4" in capfd.readouterr().out
