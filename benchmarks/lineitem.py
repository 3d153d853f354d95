"""TPC-H lineitem: load, upsert a tenth, read back; beside plain Parquet and JVM Hudi in the same session settings."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hudi_locks_conformance.servers import KINDS, fetch_bundle, fetch_s3a, start_server

from benchmarks.commits_side import Place
from benchmarks.figures import Figure
from benchmarks.sides import run_side

__all__ = ["generate", "run"]

_BUNDLE = "1.2.0"
_QUICK_SCALE = 0.01
_PEERS = {"plain": "Spark's Parquet", "hudi": f"JVM Hudi {_BUNDLE}"}


def run(*, quick: bool, scale: float, rounds: int, on_s3: bool = False) -> list[Figure]:
    """The three sides take turns; each figure is the median of its rounds."""
    bundle = str(fetch_bundle(_BUNDLE))
    with tempfile.TemporaryDirectory() as made, _serve(on_s3=on_s3) as endpoint:
        folder = Path(made)
        data = generate(folder, _QUICK_SCALE if quick else scale)
        found: dict[str, list[dict[str, float]]] = {"plain": [], "ours": [], "hudi": []}
        for number in range(1 if quick else rounds):
            for side, results in found.items():
                work = Place(folder / f"{side}-{number}", endpoint)
                results.append(_run_side(side, data, work, _list_jars(side, bundle, endpoint)))
    return _compare({side: _take_medians(results) for side, results in found.items()})


@contextmanager
def _serve(*, on_s3: bool) -> Iterator[str]:
    """The address of versitygw, an S3 service of this machine; "" for tables on the local disk."""
    if not on_s3:
        yield ""
        return
    with start_server(KINDS["versitygw"]) as server:
        yield f"http://127.0.0.1:{server.port}"


def _list_jars(side: str, bundle: str, endpoint: str) -> str:
    """What Spark needs besides: its connector for S3, which ours only reads by."""
    jars = [bundle] if side == "hudi" else []
    return ",".join([*jars, *map(str, fetch_s3a() if endpoint else ())])


def generate(folder: Path, scale: float) -> Path:
    """The rows of TPC-H's own generator."""
    tool = Path(sys.executable).parent / "tpchgen-cli"
    command = [tool, "parquet", "-s", f"{scale:g}", "--tables", "lineitem", "--output-dir", folder]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
    return folder / "lineitem.parquet"


def _run_side(side: str, data: Path, place: Place, jars: str) -> dict[str, float]:
    """Writes in one process and reads in another, so that what a side's writer compiled does not help its reader."""
    return _run_job(side, "write", data, place, jars) | _run_job(side, "read", data, place, jars)


def _run_job(side: str, job: str, data: Path, place: Place, jars: str) -> dict[str, float]:
    seconds: dict[str, float] = run_side("lineitem_side", side, job, data, place.folder, jars, place.endpoint)
    return seconds


def _take_medians(results: list[dict[str, float]]) -> dict[str, float]:
    return {job: statistics.median(result[job] for result in results) for job in results[0]}


def _compare(medians: dict[str, dict[str, float]]) -> list[Figure]:
    ours = medians["ours"]
    return [
        Figure(f"lineitem {job}", ours[job], _PEERS[side], medians[side][job], "s", "lower")
        for job in ours
        for side in _PEERS
        if job in medians[side]
    ]
