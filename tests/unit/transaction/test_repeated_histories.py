"""A seed gives the same history in every process: else what one run found could not be looked at in another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import history_digest
import pytest

SEEDS = ("0", "7")
pytestmark = pytest.mark.histories


def test_a_seed_gives_the_same_history_whatever_the_hashes_of_texts() -> None:
    running = [start(hash_seed) for hash_seed in ("1", "2")]
    first, second = (process.communicate(timeout=120)[0].split() for process in running)
    assert first == second
    assert len(set(first)) == len(SEEDS)


def start(hash_seed: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(Path(history_digest.__file__)), *SEEDS]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
