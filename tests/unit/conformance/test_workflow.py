"""The workflow of the example: what it would run on GitHub runs here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

yaml: Any = pytest.importorskip("yaml", reason="pip install pyyaml")
EXAMPLE = Path(__file__).parents[3] / "examples" / "my_lock_provider"
WORKFLOW = EXAMPLE / ".github" / "workflows" / "conformance.yml"
WRAPPER = "from hudi_locks.cli import main; import sys; sys.argv[0] = 'hudi-locks'; main(sys.argv[1:])"


@pytest.fixture
def job() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["conformance"]
    return found


def find_step(job: dict[str, Any], name: str) -> dict[str, Any]:
    (step,) = [step for step in job["steps"] if step.get("name") == name]
    return dict(step)


def run_step(job: dict[str, Any], name: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub's shell does, with the commands of this environment first."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (programs / "hudi-locks").write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{WRAPPER}" "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    path = os.pathsep.join([str(EXAMPLE), *(path for path in sys.path if path)])
    env = {**os.environ, **job["env"], "PYTHONPATH": path, "PATH": f"{programs}:{os.environ['PATH']}", **variables}
    command = ["bash", "-e", "-o", "pipefail", "-c", find_step(job, name)["run"]]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_its_commands_judge_the_example_and_make_the_badge(job: dict[str, Any], tmp_path: Path) -> None:
    quick = {"LEVEL": "core", "PROVIDER": "my_lock_provider:SqliteLockProvider"}
    job["steps"] = [dict(step, run=shorten(step["run"])) if "run" in step else step for step in job["steps"]]
    judged = run_step(job, "judge", tmp_path, **quick)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    badge = run_step(job, "badge", tmp_path)
    assert badge.returncode == 0, badge.stderr
    shown = json.loads((tmp_path / "report" / "badge.json").read_text())
    assert (shown["schemaVersion"], shown["label"], shown["color"]) == (1, "hudi-locks", "orange")
    assert "no level · 0 failed" in shown["message"]
    cases = [case.get("name", "") for case in ET.parse(tmp_path / "report" / "conformance.xml").iter("testcase")]
    assert [name.partition(" ")[0] for name in cases] == ["A1", "X1"]


def shorten(command: str) -> str:
    """Two checks in place of a level, which takes half a minute."""
    return command.replace('--level "$LEVEL"', "--only A1,X1")


def test_a_violation_fails_the_step_and_reddens_the_badge(job: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "locks.db-more").touch()
    job["steps"] = [dict(step, run=shorten(step["run"])) if "run" in step else step for step in job["steps"]]
    judged = run_step(job, "judge", tmp_path, PROVIDER="my_lock_provider:SqliteLockProvider")
    assert judged.returncode == 1
    assert run_step(job, "badge", tmp_path).returncode == 0
    assert json.loads((tmp_path / "report" / "badge.json").read_text())["color"] == "red"


def test_the_report_is_kept_also_after_a_violation(job: dict[str, Any]) -> None:
    kept = find_step(job, "keep the report")
    assert kept["if"] == "always()"
    assert kept["uses"].startswith("actions/upload-artifact@")
    judged, badge = find_step(job, "judge")["run"], find_step(job, "badge")
    assert badge["if"] == "always()"
    written = [word for word in judged.split() if word.startswith("report/")]
    assert written == ["report/conformance.xml", "report/conformance.json", "report/conformance.html"]
    assert all(word.startswith(kept["with"]["path"]) for word in written)


def test_it_installs_what_the_example_offers_and_names_its_entry_point(job: dict[str, Any]) -> None:
    project = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    assert find_step(job, "install")["run"] == "python -m pip install '.[test]'"
    assert "\ntest = [" in project
    assert f"\n{job['env']['PROVIDER']} = " in project
    assert "--level fencing" in (EXAMPLE / "README.md").read_text(encoding="utf-8")
    assert job["env"]["LEVEL"] == "fencing"
