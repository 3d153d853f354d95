"""What a stranger meets who judges their own provider with pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hudi_locks_conformance.suite import LockProviderSuite

EXAMPLE = Path(__file__).parents[3] / "examples" / "my_lock_provider"
PROVIDER = "my_lock_provider:SqliteLockProvider"
STRANGER = """
import pytest
from hudi_locks_conformance import Harness
from hudi_locks_conformance.suite import LockProviderSuite

class TestMine(LockProviderSuite):
    only = ("A1", "B2", "C2", "C8")

    @pytest.fixture
    def harness(self, tmp_path):
        return Harness("hudi_locks_conformance.broken:NotAtomic", {"hoodie.sample.folder": str(tmp_path)})
"""


def run_pytest(folder: Path, *words: str) -> tuple[int, str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the kit's is named where it is wanted, installed or not
    command = [sys.executable, "-m", "pytest", "-rs", "-v", "--strict-markers", "-p", "no:cacheprovider", *words]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.verdicts
def test_ids_are_those_of_the_checks_and_reasons_are_told(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(STRANGER)
    status, out = run_pytest(tmp_path, "test_mine.py")
    assert status == 1, out
    assert "TestMine::test_conforms[A1] PASSED" in out
    assert "TestMine::test_conforms[B2] FAILED" in out
    assert "B2 threads-of-one-client: " in out
    assert "unsupported: REENTRANT is not claimed" in out
    assert "TestMine::test_conforms[C8] PASSED" in out


PLUGIN = ("-p", "hudi_locks_conformance.pytest_plugin")


def test_a_provider_is_judged_without_a_test_file(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("def test_other(): assert False")
    provider = ("--lock-provider", "hudi_locks_conformance.broken:NotAtomic", "--lock-option", "folder=locks")
    chosen = ("--lock-only", "A1,B2,C2,C8", "-k", "not C8", "--junitxml", "told.xml")
    status, out = run_pytest(tmp_path, *PLUGIN, *provider, *chosen)
    assert status == 1, out
    assert "hudi_locks::A1 PASSED" in out
    assert "hudi_locks::B2 FAILED" in out
    assert "B2 threads-of-one-client: " in out
    assert "unsupported: REENTRANT is not claimed" in out
    assert "1 failed, 1 passed, 1 skipped, 1 deselected" in out
    assert 'name="B2"' in (tmp_path / "told.xml").read_text()


def test_a_wrong_name_is_a_wrong_command_line(tmp_path: Path) -> None:
    status, out = run_pytest(tmp_path, *PLUGIN, "--lock-provider", "filesistem")
    assert (status, "did you mean filesystem" in out) == (pytest.ExitCode.USAGE_ERROR, True), out


class TestByName(LockProviderSuite):
    """A class that names its provider needs no fixture."""

    provider = "hudi_locks_conformance.sample:SampleLockProvider"
    options = {"hoodie.sample.folder": "{tmp_path}/locks"}  # noqa: RUF012  # as a stranger writes it
    only = ("A1", "A2")


WITH_OWN_CHECKS = f"""
from hudi_locks_conformance.suite import LockProviderSuite

class TestMine(LockProviderSuite):
    provider, options = "{PROVIDER}", {{"my.sqlite.file": "{{tmp_path}}/locks.db"}}
    only, checks, skips = ("A1", "A2", "X1"), ("my_lock_provider.checks",), {{"A2": "a reason of mine"}}
"""


def test_checks_of_ones_own_and_skips_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    (tmp_path / "test_mine.py").write_text(WITH_OWN_CHECKS)
    status, out = run_pytest(tmp_path, "test_mine.py")
    assert status == 0, out
    assert "TestMine::test_conforms[X1] PASSED" in out
    assert "skipped: a reason of mine" in out
    assert "2 passed, 1 skipped" in out


@pytest.mark.verdicts
def test_the_command_line_has_both_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    plugin = ("-p", "hudi_locks_conformance.pytest_plugin", "--lock-provider", PROVIDER)
    given = ("--lock-option", f"my.sqlite.file={tmp_path / 'locks.db'}", "--lock-only", "A1,A2,X1")
    more = ("--lock-checks", "my_lock_provider.checks", "--lock-skip", "A2=a reason of mine")
    status, out = run_pytest(tmp_path, *plugin, *given, *more)
    assert (status, "2 passed, 1 skipped" in out) == (0, True), out
    assert "skipped: a reason of mine" in out
    status, out = run_pytest(tmp_path, *plugin, *given, "--lock-skip", "A2")
    assert status == 4
    assert "says not why the check is skipped" in out
