"""The bill of materials that a release carries names what the wheel installs, and under which licences."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., str]
ROOT = Path(__file__).parents[2]
PERMISSIVE = ("Apache", "BSD", "MIT", "PSF", "Python Software Foundation", "ISC", "Unlicense")
pytestmark = pytest.mark.xdist_group("stranger")


def name_licences(component: dict[str, Any]) -> list[str]:
    found = [one.get("license", one) for one in component.get("licenses", [])]
    return [text for one in found for text in (one.get("id"), one.get("name"), one.get("expression")) if text]


def test_it_names_every_package_with_a_permissive_licence(python: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "hudi-locks.cdx.json"
    command = ["-m", "cyclonedx_py", "environment", "--pyproject", ROOT / "pyproject.toml", "--mc-type", "library"]
    run(sys.executable, *command, "--output-reproducible", "--output-file", out, python, cwd=tmp_path)
    bill = json.loads(out.read_text(encoding="utf-8"))
    assert bill["metadata"]["component"]["name"] == "hudi-locks"
    components = {one["name"]: one for one in bill["components"] if one["name"] != "hudi-locks"}  # it has a path
    licences = {name: name_licences(component) for name, component in components.items()}
    assert {"pyarrow", "pyspark", "typer"} <= set(licences)
    assert [name for name, found in components.items() if not (found.get("version") and found.get("purl"))] == []
    odd = {name: found for name, found in licences.items() if not any(word in " ".join(found) for word in PERMISSIVE)}
    assert not odd


def test_a_release_is_made_of_it() -> None:
    text = (ROOT / "tox.ini").read_text(encoding="utf-8")
    release = text.partition("[testenv:release]")[2].partition("\n[testenv")[0]
    assert "cyclonedx-py environment" in release
    assert "pip-audit" in release
