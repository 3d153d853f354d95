"""The provider of the README: it is the one in `examples/`, and conformant."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_locks_conformance import Harness, Status, run_check, select_checks

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "my_lock_provider"


def test_the_readme_shows_the_very_file_and_the_entry_point() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = (EXAMPLE / "my_lock_provider" / "__init__.py").read_text(encoding="utf-8")
    assert f"```python\n{code}```\n" in readme
    lines = (EXAMPLE / "pyproject.toml").read_text().splitlines()
    group = lines.index('[project.entry-points."hudi_locks.providers"]')
    assert "```toml\n" + "\n".join(lines[group : group + 2]) + "\n```\n" in readme


@pytest.mark.parametrize("check_id", ["A1", "A6", "C3", "E1", "E5", "E8a", "F2c", "H1", "H2", "L6"])
def test_it_is_conformant(check_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    options = {"my.sqlite.file": str(tmp_path / "locks.db")}
    harness = Harness("my_lock_provider:SqliteLockProvider", options)
    outcome = run_check(select_checks(only=[check_id])[0], harness)
    assert outcome.status is Status.PASS, outcome
