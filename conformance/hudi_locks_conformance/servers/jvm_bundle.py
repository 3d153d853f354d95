"""JVM Hudi for Spark, and what Spark needs for S3, from Maven into the user's cache folder."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from hudi_locks_conformance.servers.cache import cache_folder, find_tool, run_tool

__all__ = ["fetch_bundle", "fetch_s3a"]

_BUNDLE: Final = "org.apache.hudi:hudi-spark3.5-bundle_2.12"
_S3A: Final = ("org.apache.hadoop:hadoop-aws:3.3.4", "com.amazonaws:aws-java-sdk-bundle:1.12.262")
"""Of the very release of Hadoop that PySpark 3.5 has."""
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def fetch_bundle(version: str) -> Path:
    """The jar of the bundle for Spark 3.5 and Scala 2.12, fetched once.

    Several processes may call this at the same time: each fetches into a folder of its own, and the jar appears whole.

    Raises:
        ServerUnavailable: Maven is missing, or could not get it.
    """
    return _fetch(f"{_BUNDLE}:{version}")


def fetch_s3a() -> list[Path]:
    """The jars by which Spark 3.5 opens `s3a:` addresses, fetched once: 281 MB.

    Raises:
        ServerUnavailable: Maven is missing, or could not get them.
    """
    return [_fetch(coordinate) for coordinate in _S3A]


def _fetch(coordinate: str) -> Path:
    _, artifact, version = coordinate.split(":")
    jar = cache_folder() / "jars" / f"{artifact}-{version}.jar"
    if jar.exists():
        return jar
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=jar.parent) as name:
        folder = Path(name)
        words = [find_tool("mvn"), "-q", "-B", _COPY, f"-Dartifact={coordinate}", f"-DoutputDirectory={folder}"]
        run_tool(words, folder)
        (folder / jar.name).replace(jar)
    return jar
