"""A stranger's environment: the built wheel, and nothing of the tree beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
Run = Callable[..., str]


@pytest.fixture(scope="session")
def run() -> Run:
    """Runs a command in a folder; what it printed."""

    def run_it(*command: object, cwd: Path) -> str:
        hidden = ("PYTHON", "VIRTUAL_ENV", "TOX", "PYTEST")
        clean = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
        done = subprocess.run(
            [str(word) for word in command], cwd=cwd, env=clean, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout

    return run_it


@pytest.fixture(scope="session")
def install(run: Run) -> Callable[..., None]:
    """Installs something, from a folder, beside an interpreter."""

    def install_it(python: Path, what: str, cwd: Path) -> None:
        run(UV, "pip", "install", "--quiet", "--python", python, what, cwd=cwd)

    return install_it


@pytest.fixture(scope="session")
def make_environment(
    run: Run, install: Callable[..., None], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Path]:
    """Makes an environment with the wheel; its interpreter."""
    built = tmp_path_factory.mktemp("wheel")
    run(UV, "build", "--quiet", "--wheel", "--out-dir", built, ROOT, cwd=built)
    wheel = next(built.glob("hudi_locks-*.whl"))

    def make() -> Path:
        folder = tmp_path_factory.mktemp("stranger")
        run(UV, "venv", "--quiet", "--python", sys.executable, folder / "env", cwd=folder)
        interpreter = folder / "env" / "bin" / "python"
        install(interpreter, f"{wheel}[spark]", folder)
        return interpreter

    return make


@pytest.fixture(scope="session")
def python(make_environment: Callable[[], Path]) -> Path:
    """The interpreter of an environment with the wheel alone."""
    return make_environment()
