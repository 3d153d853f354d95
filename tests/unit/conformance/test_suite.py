"""What a stranger meets who judges their own provider with pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


def test_ids_are_those_of_the_checks_and_reasons_are_told(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(STRANGER)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-rs",
        "-v",
        "--strict-markers",
        "-p",
        "no:cacheprovider",
        "test_mine.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    assert "TestMine::test_conforms[A1] PASSED" in done.stdout
    assert "TestMine::test_conforms[B2] FAILED" in done.stdout
    assert "B2 threads-of-one-client: " in done.stdout
    assert "unsupported: REENTRANT is not claimed" in done.stdout
    assert "TestMine::test_conforms[C8] PASSED" in done.stdout
