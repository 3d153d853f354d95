"""Commits a second on one table: this package, deltalake, pyiceberg and JVM Hudi, one process or client a writer."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hudi_locks_conformance.servers import fetch_bundle

from benchmarks.commits_side import SIDES, Place, grow, prepare
from benchmarks.contention import distant_s3
from benchmarks.figures import Figure

__all__ = ["run"]

_WRITERS = (1, 4, 16)
_PEERS = ("deltalake", "pyiceberg")
_SECONDS = 5.0
_JVM = "JVM Hudi 1.2.0"
_JVM_WRITERS = (1, 4)
_LENGTHS = (100, 1_000, 10_000)


def run(*, quick: bool, growth_alone: bool = False, on_s3: bool = False) -> list[Figure]:
    seconds, writers = (1.0, _WRITERS[:2]) if quick else (_SECONDS, _WRITERS)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if growth_alone:
            return _growth(folder, seconds, _LENGTHS, archives=False)
        if on_s3:
            return _on_s3(folder, writers, 4 * seconds)
        figures = _beside_peers(folder, writers, seconds)
        figures += _beside_jvm(folder, seconds, _JVM_WRITERS[: len(writers) - 1])
        lengths = _LENGTHS[: 2 if quick else 3]
        figures += _growth(folder, seconds, lengths, archives=True)
        return figures + _growth(folder, seconds, lengths, archives=False)


def _on_s3(folder: Path, writers: tuple[int, ...], seconds: float) -> list[Figure]:
    """On versitygw, an S3 service of this machine, 20 ms away each way."""
    with distant_s3() as (_, endpoint):
        return _beside_peers(folder, writers, seconds, endpoint=endpoint)


def _beside_peers(folder: Path, writers: tuple[int, ...], seconds: float, *, endpoint: str = "") -> list[Figure]:
    figures = []
    for kind, what in (("metadata", "no rows"), ("rows", "100 rows")):
        for count in writers:
            rates = {
                side: _rate(_fresh(folder, side, endpoint), side, kind, count, seconds, endpoint=endpoint)
                for side in SIDES
            }
            title = f"commits of {what}, {count} writers"
            figures += [Figure(title, rates["ours"], peer, rates[peer], "commits/s", "higher") for peer in _PEERS]
    return figures


def _beside_jvm(folder: Path, seconds: float, writers: tuple[int, ...]) -> list[Figure]:
    jar, found = str(fetch_bundle("1.2.0")), []
    for count in writers:
        theirs = _jvm_rate(folder / f"jvm-{count}", jar, count, 2 * seconds)
        for side in ("ours", "ours beside JVM writers"):
            ours = _rate(_fresh(folder, side), "ours", "metadata", count, seconds)
            found.append(
                Figure(f"{side}: commits of no rows, {count} writers", ours, _JVM, theirs, "commits/s", "higher")
            )
    return found


def _growth(folder: Path, seconds: float, lengths: tuple[int, ...], *, archives: bool) -> list[Figure]:
    """One writer on a table that had so many commits before."""
    kind, rates = "archived" if archives else "metadata", {}
    for length in lengths:
        table = _fresh(folder, "ours")
        grow(table, length, archives=archives)
        rates[length] = _rate(table, "ours", kind, 1, seconds)
    first, how = lengths[0], "archived as they age" if archives else "all of them active"
    return [
        Figure(
            f"after {length:,} commits, {how}, 1 writer",
            rates[length],
            f"after {first:,}",
            rates[first],
            "commits/s",
            "higher",
        )
        for length in lengths[1:]
    ]


def _fresh(folder: Path, side: str, endpoint: str = "") -> Path:
    table = folder / f"{side.replace(' ', '-')}-{time.monotonic_ns()}"
    prepare(side.split()[0], Place(table, endpoint), foreign=side.endswith("JVM writers"))
    return table


def _rate(table: Path, side: str, kind: str, writers: int, seconds: float, *, endpoint: str = "") -> float:
    """Commits a second of all writers together, from the moment at which all are ready."""
    words = [sys.executable, "-m", "benchmarks.commits_side", side, kind, str(table)]
    processes = [
        subprocess.Popen(
            [*words, f"w{number}", str(seconds), endpoint], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for number in range(writers)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    start_s = time.perf_counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    counts = [int(process.communicate()[0]) for process in processes]
    return round(sum(counts) / (time.perf_counter() - start_s), 1)


def _jvm_rate(table: Path, jar: str, writers: int, seconds: float) -> float:
    words = [sys.executable, "-m", "benchmarks.commits_jvm", jar, str(table), str(writers), str(seconds)]
    found = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return round(int(found.stdout.split()[-1]) / seconds, 2)
