"""PySpark as wheels, each version built once on a machine.

It is published as source only. Where an index lets nobody keep what it answers, uv fetches and builds it anew for each
environment: 20 s and 1.6 GB of its cache every time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

__all__ = ["build_wheels", "find_versions"]

_PINNED: Final = re.compile(r"\bpyspark==([\d.]+)")


def build_wheels(parts: Iterable[str]) -> Path:
    """Build what the parts need and is not there yet; the folder of all wheels, for uv's `--find-links`.

    A build that fails is said and passed over: uv then tries by itself, and its error fails the part.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hudi-locks" / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    for version in sorted(find_versions(_ask_dependencies(parts))):
        if not any(folder.glob(f"pyspark-{version}-*.whl")):
            _build(version, folder)
    return folder


def find_versions(dependencies: str) -> set[str]:
    """The versions of PySpark that these lines pin."""
    return set(_PINNED.findall(dependencies))


def _ask_dependencies(parts: Iterable[str]) -> str:
    words = [sys.executable, "-m", "tox", "config", "-e", ",".join(parts), "-k", "deps"]
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False).stdout


def _build(version: str, folder: Path) -> None:
    print(f"building the wheel of PySpark {version}", flush=True)
    with TemporaryDirectory(dir=folder) as made:  # beside its place: a wheel appears there whole or not at all
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
        done = subprocess.run([*pip, "--no-deps", "--wheel-dir", made, f"pyspark=={version}"], check=False)
        for wheel in Path(made).glob("*.whl"):
            wheel.replace(folder / wheel.name)
    if done.returncode:
        print(f"no wheel of PySpark {version} could be built; uv tries it in each environment", flush=True)
