"""What a hosted run and a commit hook call is there, in the versions that tox has."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="needs pyyaml")
ROOT = Path(__file__).parents[3]
EXACT = re.compile(r"^(ruff|mypy)==(.+)$", re.MULTILINE)
CALL = re.compile(r"(?:\btox -e |^\./run test )(\S.*)$")

if not (ROOT / ".github").exists():
    pytest.skip("needs a clone: a source distribution has no hidden files", allow_module_level=True)


def read_yaml(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def read_environments() -> set[str]:
    """Names of tox.ini, with their braces written out."""
    found = ConfigParser(interpolation=None)
    found.read_string((ROOT / "tox.ini").read_text(encoding="utf-8"))
    names = [name.removeprefix("testenv:") for name in found.sections() if name.startswith("testenv:")]
    parts = [re.fullmatch(r"([^{]*)(?:\{(.*)\})?", name) for name in names]
    return {f"{p[1]}{ending}" for p in parts if p for ending in (p[2] or "").split(",")}


def list_called(job: dict[str, Any]) -> list[str]:
    """The environments that the steps of a job run, each value of its matrix among them."""
    values = job["strategy"]["matrix"].get("environment", [""])
    runs = [
        CALL.search(step.get("run", "").replace("${{ matrix.environment }}", value))
        for step in job["steps"]
        for value in values
    ]
    return [found[1] for found in runs if found]


def test_a_hosted_run_calls_only_what_is_there() -> None:
    jobs = read_yaml(".github/workflows/tests.yml")["jobs"]
    called = {name: list_called(job) for name, job in jobs.items()}
    assert all(called.values()), called
    assert {name for names in called.values() for name in names} <= read_environments()


def test_a_hosted_run_looks_for_known_holes_also_without_a_push() -> None:
    workflow = read_yaml(".github/workflows/tests.yml")
    assert "release" in list_called(workflow["jobs"]["checks"])
    found = ConfigParser(interpolation=None)
    found.read_string((ROOT / "tox.ini").read_text(encoding="utf-8"))
    assert "pip-audit --local --strict --vulnerability-service osv" in found["testenv:release"]["commands"]
    assert workflow[True]["schedule"], "YAML reads `on` as true"


def test_a_hosted_run_may_only_read_and_ends_when_it_is_outdated() -> None:
    workflow = read_yaml(".github/workflows/tests.yml")
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] is True
    used = [step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]
    assert [name for name in used if not re.search(r"@v\d+\.\d+\.\d+$", name)] == []


def test_commit_hooks_have_the_versions_of_tox() -> None:
    pinned = dict(
        EXACT.findall(re.sub(r"^\s+", "", (ROOT / "tox.ini").read_text(encoding="utf-8"), flags=re.MULTILINE))
    )
    hooks = read_yaml(".pre-commit-config.yaml")["repos"][0]["hooks"]
    found = [EXACT.match(need) for hook in hooks for need in hook["additional_dependencies"]]
    assert {hook["id"] for hook in hooks} == {"ruff-check", "ruff-format", "mypy"}
    assert pinned.keys() == {"ruff", "mypy"}
    assert {(one[1], one[2]) for one in found if one} == set(pinned.items())
