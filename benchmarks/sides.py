"""Sides of a benchmark in processes of their own, so that none warms or disturbs another."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

__all__ = ["run_side"]


def run_side(module: str, *words: object) -> Any:
    """What a module of benchmarks prints as JSON in its last line; before it may come whatever Spark prints."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, words)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])
