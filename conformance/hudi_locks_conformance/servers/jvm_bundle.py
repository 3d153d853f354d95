"""JVM Hudi for Spark, from Maven into the user's cache folder."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from hudi_locks_conformance.servers.cache import cache_folder, find_tool, run_tool

__all__ = ["fetch_bundle"]

_GROUP: Final = "org.apache.hudi"
_ARTIFACT: Final = "hudi-spark3.5-bundle_2.12"
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def fetch_bundle(version: str) -> Path:
    """The jar of the bundle for Spark 3.5 and Scala 2.12, fetched once.

    Several processes may call this at the same time: each fetches into a folder of its own, and the jar appears whole.

    Raises:
        ServerUnavailable: Maven is missing, or could not get it.
    """
    jar = cache_folder() / "jars" / f"{_ARTIFACT}-{version}.jar"
    if jar.exists():
        return jar
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=jar.parent) as name:
        folder = Path(name)
        artifact = f"-Dartifact={_GROUP}:{_ARTIFACT}:{version}"
        run_tool([find_tool("mvn"), "-q", "-B", _COPY, artifact, f"-DoutputDirectory={folder}"], folder)
        (folder / jar.name).replace(jar)
    return jar
