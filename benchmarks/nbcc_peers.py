"""Merge-on-read tables beside JVM Hudi: upserts into logs, and snapshots of base files with logs."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from hudi_locks_conformance.servers import fetch_bundle

from benchmarks.figures import Figure
from benchmarks.lineitem import generate
from benchmarks.nbcc_tables import PEER_LOGS
from benchmarks.sides import run_side

__all__ = ["run"]

_BUNDLE = "1.2.0"
_SCALE, _QUICK_SCALE = 0.2, 0.01
_ROUNDS = 2
_TIMES = {"took_s": "time", "cpu_s": "processor time"}


def run(*, quick: bool) -> list[Figure]:
    """The sides take turns; each reads in a session of its own."""
    with tempfile.TemporaryDirectory() as made:
        data = generate(Path(made), _QUICK_SCALE if quick else _SCALE)
        found: dict[str, list[dict[str, float]]] = {"ours": [], "hudi": [], "plain": []}
        for number in range(1 if quick else _ROUNDS):
            _play_round(data, Path(made, str(number)), found)
    return _judge(found)


def _play_round(data: Path, work: Path, found: dict[str, list[dict[str, float]]]) -> None:
    work.mkdir()
    jar = fetch_bundle(_BUNDLE)
    for side, results in found.items():
        jars = [jar] if side == "hudi" else []
        written, read = (_run_side(side, job, data, work, *jars) for job in ("write", "read"))
        results.append(written | read)
    contents = {(results[-1]["rows"], results[-1]["versions"]) for results in found.values()}
    assert len(contents) == 1, f"the sides show different rows: {found}"


def _run_side(*words: object) -> dict[str, float]:
    found: dict[str, float] = run_side("nbcc_peers_side", *words)
    return found


def _judge(found: dict[str, list[dict[str, float]]]) -> list[Figure]:
    ours, hudi, plain = (
        {job: statistics.median(one[job] for one in results) for job in results[0]} for results in found.values()
    )
    peer, what = f"JVM Hudi {_BUNDLE}", f"snapshot of base files with {PEER_LOGS} logs each"
    figures = []
    for how, unit in _TIMES.items():
        upsert, read = f"upsert {how}", f"read {how}"
        figures += [
            Figure(f"upsert of one row in ten: {unit}", ours[upsert], peer, hudi[upsert], "s", "lower"),
            Figure(f"{what}: {unit}", ours[read], peer, hudi[read], "s", "lower"),
            Figure(f"{what}: {unit}", ours[read], "Spark's Parquet", plain[read], "s", "lower"),
        ]
    return figures
