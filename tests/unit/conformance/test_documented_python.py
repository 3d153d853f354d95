"""The Python of the page about the kit is what pytest takes; that of the page for schedulers runs commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hudi_locks.cli.main import load_commands

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN_ELSEWHERE = {
    "README.md", "airflow.md", "chain.md", "command-line.md", "conformance.md", "dynamodb.md", "early-conflict.md",
    "filesystem.md", "hive_metastore.md", "pipeline.md", "storage.md", "tables-on-stores.md", "tutorial.md",
    "zookeeper.md",
}  # fmt: skip
"""Pages of whose Python a test runs every block."""
SUITE = "from hudi_locks_conformance.suite import LockProviderSuite\n"
STORE = """\
import pytest
from hudi_locks.storage import LocalStorage as MyStorage, Storage
"""


def find_blocks(page: str) -> list[str]:
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


def collect(folder: Path, text: str) -> list[str]:
    """The ids of the tests that pytest finds in such a file."""
    (folder / "test_mine.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return re.findall(r"::test_conforms\[(\w+)", done.stdout)


def test_every_page_with_python_has_a_test_that_runs_it() -> None:
    pages = [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
    assert {page.name for page in pages if "```python" in page.read_text(encoding="utf-8")} == RUN_ELSEWHERE


def test_suites_of_the_page_are_collected_by_pytest(tmp_path: Path) -> None:
    whole, own, skipping, storage = find_blocks("conformance.md")
    ids = collect(tmp_path, whole.replace("my.package:MyProvider", "filesystem"))
    assert {"A1", "J6"} <= set(ids)
    (tmp_path / "my_lock_provider").mkdir()
    (tmp_path / "my_lock_provider" / "checks.py").write_text(own, encoding="utf-8")
    mine = collect(tmp_path, SUITE + skipping.replace('"sqlite"', '"filesystem"'))
    assert set(mine) == {*ids, "X1"}
    assert {"SF1", "SC1", "SR1", "ST1"} <= set(collect(tmp_path, STORE + storage))


class Task:
    """As Airflow's operator: it keeps what it is given, and stands in an order."""

    made: list[dict[str, Any]]

    def __init__(self, **given: Any) -> None:
        self.made.append(given)

    def __rshift__(self, other: Task) -> Task:
        return other


def test_tasks_of_a_scheduler_run_commands_that_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    [block] = find_blocks("airflow.md")
    names = ["airflow", *(f"airflow.providers{end}" for end in ("", ".standard", ".standard.operators"))]
    modules = {name: ModuleType(name) for name in (*names, "airflow.providers.standard.operators.bash")}
    monkeypatch.setattr(Task, "made", [], raising=False)
    modules["airflow"].DAG = lambda *_, **__: nullcontext()  # type: ignore[attr-defined]
    modules["airflow.providers.standard.operators.bash"].BashOperator = Task  # type: ignore[attr-defined]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    exec(block, {})
    assert [one["task_id"] for one in Task.made] == ["write", "compact"]
    (tmp_path / "trips.properties").touch()
    typed = Task.made[1]["bash_command"].replace("/etc/hudi", str(tmp_path))
    program, name, *words = shlex.split(typed)
    assert program == "hudi-locks"
    assert load_commands()[name].make_context(name, words).params["path"] == "/data/trips"
