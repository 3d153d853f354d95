"""Making markers by eight tasks at once: through the timeline server, directly, and by bare creates."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from hudi_locks.format import BaseFileName, IOType, MarkerName
from hudi_locks.markers import DirectMarkers, FallbackMarkers, read_markers
from hudi_locks.observe import Metrics
from hudi_locks.storage import LocalStorage
from hudi_locks.timeline_server import Endpoint, ServerMarkers, ServerSettings
from hudi_locks.timeline_server.embedding import embed

__all__ = ["run"]

_INSTANT = "20260101000000001"
_TASKS, _PARTITIONS, _REQUESTS = 8, 20, 20
_EACH, _QUICK_EACH = 5_000, 250
_ROUNDS, _QUICK_ROUNDS = 5, 1
Make = Callable[[Sequence[MarkerName]], object]


def run(*, quick: bool) -> list[Figure]:
    each = _QUICK_EACH if quick else _EACH
    ways: dict[str, Callable[[], float]] = {
        "one request": lambda: _time_server(each, each),
        "many requests": lambda: _time_server(each, each // _REQUESTS),
        "direct markers": lambda: _time_files(_make_direct, each),
        "bare creates": lambda: _time_files(_make_bare, each),
    }
    seen: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_QUICK_ROUNDS if quick else _ROUNDS):
        for name, measure in ways.items():
            seen[name].append(_TASKS * each / measure())
    rates = {name: round(statistics.median(found)) for name, found in seen.items()}
    what = f"markers through the server, {_TASKS} tasks, {each:,} each"
    ours = {f"{what} in one request": rates["one request"], f"{what} in {_REQUESTS}": rates["many requests"]}
    peers = {name: rates[name] for name in ("direct markers", "bare creates")} | {"the goal": 20_000}
    return [
        Figure(row, rate, name, value, "1/s", "higher") for row, rate in ours.items() for name, value in peers.items()
    ]


def _time_server(each: int, batch: int) -> float:
    with tempfile.TemporaryDirectory() as path:
        storage = LocalStorage(path)
        with embed(storage, ServerSettings(), make_checker=lambda _: None, metrics=Metrics()) as endpoint:
            return _time_tasks(partial(_make_by_server, endpoint), path, each=each, batch=batch)


def _time_files(open_maker: Callable[[str], Make], each: int) -> float:
    with tempfile.TemporaryDirectory() as path:
        return _time_tasks(open_maker, path, each=each, batch=each)


def _time_tasks(open_maker: Callable[[str], Make], path: str, *, each: int, batch: int) -> float:
    """Seconds from the moment at which all tasks are ready until all markers are durable."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(_TASKS + 1)
    arguments = [(open_maker, path, number, each, batch, barrier) for number in range(_TASKS)]
    tasks = [context.Process(target=_run_task, args=given) for given in arguments]
    for task in tasks:
        task.start()
    barrier.wait()
    began_s = time.perf_counter()
    barrier.wait()
    taken_s = time.perf_counter() - began_s
    for task in tasks:
        task.join()
    found = len(read_markers(LocalStorage(path), _INSTANT).names)
    assert found == _TASKS * each, f"{found} markers"
    return taken_s


def _run_task(open_maker: Callable[[str], Make], path: str, number: int, each: int, batch: int, barrier: Any) -> None:
    make, names = open_maker(path), _name_markers(number, each)
    barrier.wait()
    for start in range(0, each, batch):
        make(names[start : start + batch])
    barrier.wait()


def _name_markers(number: int, each: int) -> list[MarkerName]:
    def name(serial: int) -> MarkerName:
        file = str(BaseFileName(f"{number:08d}-0000-4000-8000-{serial:012d}-0", _INSTANT))
        return MarkerName(f"region={serial % _PARTITIONS:02d}", file, IOType.MERGE)

    return [name(serial) for serial in range(each)]


def _make_by_server(endpoint: Endpoint, path: str) -> Make:
    return ServerMarkers(endpoint, _INSTANT, fallback=FallbackMarkers(LocalStorage(path), _INSTANT)).create_all


def _make_direct(path: str) -> Make:
    return DirectMarkers(LocalStorage(path), _INSTANT).create_all


def _make_bare(path: str) -> Make:
    folder = Path(path, ".hoodie/.temp", _INSTANT)

    def make(names: Sequence[MarkerName]) -> None:
        for partition in {name.partition_path for name in names}:
            (folder / partition).mkdir(parents=True, exist_ok=True)
        for name in names:
            os.close(os.open(f"{folder}/{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))

    return make
