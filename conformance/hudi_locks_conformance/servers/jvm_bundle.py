"""JVM Hudi for Spark, from Maven into the user's cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from hudi_locks.errors import HudiLocksError

__all__ = ["BundleUnavailable", "fetch_bundle"]

_GROUP: Final = "org.apache.hudi"
_ARTIFACT: Final = "hudi-spark3.5-bundle_2.12"
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_INSTALL: Final = "apt-get install maven"
_LONGEST_FETCH_S: Final = 600.0


class BundleUnavailable(HudiLocksError):
    """The bundle is not in the cache and cannot be fetched; the message names the command that helps."""


def fetch_bundle(version: str) -> Path:
    """The jar of the bundle for Spark 3.5 and Scala 2.12, fetched once.

    Several processes may call this at the same time: each fetches into a folder of its own, and the jar appears whole.

    Raises:
        BundleUnavailable: Maven is missing, or could not get it.
    """
    jar = _cache() / f"{_ARTIFACT}-{version}.jar"
    if jar.exists():
        return jar
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=jar.parent) as folder:
        _copy(version, folder)
        Path(folder, jar.name).replace(jar)
    return jar


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hudi-locks" / "jars"


def _copy(version: str, folder: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise BundleUnavailable(f"Maven is needed to fetch {_ARTIFACT} {version}: {_INSTALL}", command=_INSTALL)
    command = [maven, "-q", "-B", _COPY, f"-Dartifact={_GROUP}:{_ARTIFACT}:{version}", f"-DoutputDirectory={folder}"]
    try:
        done = subprocess.run(  # noqa: S603 - our own words and a path
            command, cwd=folder, capture_output=True, text=True, timeout=_LONGEST_FETCH_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        message = f"{' '.join(command)} did not end within {_LONGEST_FETCH_S:.0f} s; try it by hand"
        raise BundleUnavailable(message, command=" ".join(command)) from error
    if done.returncode:
        found = (done.stdout + done.stderr).strip()[-500:]
        raise BundleUnavailable(f"{' '.join(command)} failed: {found}", command=" ".join(command))
