"""A stranger's own provider: installed beside the wheel, judged, and used by the name of its entry point."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_lock_provider"
Run = Callable[..., str]
SOME = "A,B1,B2,C,E1,E2,F2a,H1,H2,L6"
pytestmark = pytest.mark.xdist_group("stranger")  # one wheel serves them all


@pytest.fixture(scope="module")
def env(
    make_environment: Callable[[], Path], install: Callable[..., None], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of the commands of an environment of its own, with the example installed from a copy."""
    python = make_environment()
    copy = tmp_path_factory.mktemp("own") / "my_lock_provider"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    install(python, f"{copy}[test]", copy)
    return python.parent


def test_its_name_works_as_a_lock_provider(env: Path, run: Run, tmp_path: Path) -> None:
    code = """
from hudi_locks import LockManager
options = {"hoodie.write.lock.provider": "sqlite", "my.sqlite.file": "locks.db"}
with LockManager.from_options(options) as manager:
    for _ in range(2):
        with manager.lock() as held:
            print(held.token, manager.holder().owner == held.owner)
"""
    assert run(env / "python", "-c", code, cwd=tmp_path) == "1 True\n2 True\n"


def test_the_command_judges_it(env: Path, run: Run, tmp_path: Path) -> None:
    words = ("--provider", "sqlite", "--option", "file=locks.db", "--only", SOME)
    said = run(env / "hudi-locks", "conformance", *words, cwd=tmp_path)
    assert "provider   sqlite (my_lock_provider:SqliteLockProvider)" in said
    assert "verdict    CONFORMANT (core lease fencing)" in said


def test_its_own_three_lines_judge_it(env: Path, run: Run, tmp_path: Path) -> None:
    shutil.copy(EXAMPLE / "test_my_lock_provider.py", tmp_path)
    assert "3 passed" in run(env / "pytest", "-q", "-k", "[A1] or [E1] or [F2a]", cwd=tmp_path)


def test_pytest_judges_it_without_any_line(env: Path, run: Run, tmp_path: Path) -> None:
    words = ("--lock-provider", "sqlite", "--lock-option", "file=locks.db", "--lock-only", "A1,E1,F2a")
    assert "3 passed" in run(env / "pytest", "-q", *words, cwd=tmp_path)
