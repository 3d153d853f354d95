"""What a test that hangs leaves to those after it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
TESTS: Final = """
import pytest

@pytest.mark.timeout(2, func_only=True)
def test_hangs(spark):
    spark.sparkContext._jvm.java.lang.Thread.sleep(20_000)

def test_next(spark):
    assert spark.sparkContext.getConf().get("spark.app.name") == "hudi-locks tests"
    assert spark.range(3).count() == 3
"""


def test_a_test_that_hangs_fails_alone(tmp_path: Path) -> None:
    """The answer to its call, which comes late, is not taken for the answer to the next test's."""
    file = tmp_path / "test_it.py"
    file.write_text(TESTS)
    run = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), str(file)]
    run += ["-p", "conftest", "-p", "no:randomly", "-rA", "--tb=line"]
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(run, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert "Timeout (>2.0s)" in done.stdout, done.stdout
    assert "1 failed, 1 passed" in done.stdout, done.stdout
