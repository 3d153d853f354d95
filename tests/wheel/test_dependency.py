"""A stranger's project: the built wheel in an environment of its own, nothing of the tree beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., str]
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "spark_writer"
pytestmark = pytest.mark.xdist_group("stranger")  # one environment serves them all


def test_a_spark_writer_that_depends_on_the_wheel_writes_and_writes_again(
    python: Path, run: Run, tmp_path: Path
) -> None:
    assert (EXAMPLE / "requirements.txt").read_text().strip() == "hudi-locks[spark]"
    script, table = EXAMPLE / "write_trips.py", tmp_path / "trips"
    assert "3 inserted, 0 updated, 3 rows in all" in run(python, script, table, cwd=tmp_path)
    assert "0 inserted, 3 updated, 3 rows in all" in run(python, script, table, cwd=tmp_path)


def test_every_root_of_the_wheel_is_typed_and_complete(python: Path, run: Run, tmp_path: Path) -> None:
    names = "hudi_locks hudi_locks_providers hudi_locks_conformance"
    code = f"""
import importlib, pathlib
for name in "{names}".split():
    folder = pathlib.Path(importlib.import_module(name).__file__).parent
    print(name, (folder / "py.typed").exists(), len(list(folder.rglob("*.py"))))
"""
    lines = run(python, "-c", code, cwd=tmp_path).split("\n")[:3]
    roots = [ROOT / "hudi_locks", *ROOT.glob("*/hudi_locks_providers"), *ROOT.glob("*/hudi_locks_conformance")]
    counts = {root.name: len(list(root.rglob("*.py"))) for root in roots}
    assert lines == [f"{name} True {counts[name]}" for name in names.split()]
