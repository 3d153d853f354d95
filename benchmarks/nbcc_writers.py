"""Writers that do not block each other, side by side; the same under OCC; and one beside a compaction."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.lineitem import generate
from benchmarks.nbcc_writer import MODES, Done, Turn

__all__ = ["run"]

_SCALE, _QUICK_SCALE = 0.2, 0.01
_ROUNDS, _QUICK_ROUNDS = 3, 1
_TURN_S, _QUICK_TURN_S = 15.0, 3.0
_WRITERS, _QUICK_WRITERS = (1, 2, 4), (1, 2)
_NBCC, _OCC = MODES
Seen = Mapping[str, Sequence[Sequence[Done]]]
"""Of each play the rounds, and of each round what became of each writer."""


def run(*, quick: bool) -> list[Figure]:
    """Each writer is an application of one core; they live through all plays."""
    counts = _QUICK_WRITERS if quick else _WRITERS
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        data = generate(Path(made), _QUICK_SCALE if quick else _SCALE)
        folder = Path(made, "tables")
        subprocess.run(_words("load", folder, data), check=True, stdout=subprocess.DEVNULL)
        cores = sorted(os.sched_getaffinity(0))
        writers = [
            stack.enter_context(_start("write", folder, data, cores[number % len(cores)], number))
            for number in range(max(counts))
        ]
        compactor = stack.enter_context(_start("compact", folder, cores[-1]))
        for application in (*writers, compactor):
            application.await_ready()
        seen = _play(writers, compactor, counts, quick=quick)
    return [*_judge_scaling(seen, counts, len(cores)), *_judge_conflicts(seen, counts), *_judge_compaction(seen)]


def _play(
    writers: Sequence[_Application], compactor: _Application, counts: Sequence[int], *, quick: bool
) -> dict[str, list[list[Done]]]:
    """All plays take turns, so that a slow moment of the machine meets all of them."""
    seconds = _QUICK_TURN_S if quick else _TURN_S
    plays = {f"{mode} {count}": (Turn(mode, seconds), writers[:count]) for count in counts for mode in MODES}
    plays["beside compaction"] = Turn(_NBCC, seconds), [writers[0], compactor]
    seen: dict[str, list[list[Done]]] = {}
    for _ in range(_QUICK_ROUNDS if quick else _ROUNDS):
        for name, (turn, players) in plays.items():
            for player in players:
                player.begin(turn)
            seen.setdefault(name, []).append([player.end() for player in players])
    return seen


@dataclass(frozen=True)
class _Application:
    """One writer or compactor, which lives through all plays."""

    process: subprocess.Popen[str]

    def await_ready(self) -> None:
        while (line := self._read()) != "ready":
            assert line, f"an application ended with status {self.process.wait()}"

    def begin(self, turn: Turn) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps(asdict(turn))}\n")
        self.process.stdin.flush()

    def end(self) -> Done:
        line = self._read()
        assert line, f"an application ended with status {self.process.wait()}"
        return Done(**json.loads(line))

    def _read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def _start(*words: object) -> Iterator[_Application]:
    process = subprocess.Popen(_words(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield _Application(process)
    finally:
        process.kill()
        process.communicate()


def _words(*words: object) -> list[str]:
    return [sys.executable, "-m", "benchmarks.nbcc_writer", *map(str, words)]


def _rate(rounds: Sequence[Sequence[Done]], *, players: int | None = None) -> float:
    """Rows a second of all writers together, the median of the rounds."""
    rates = [sum(done.rows / done.took_s for done in found[:players]) for found in rounds]
    return round(statistics.median(rates))


def _thrift(rounds: Sequence[Sequence[Done]], *, players: int | None = None) -> float:
    """Rows for each second of processor time."""
    done = [one for found in rounds for one in found[:players]]
    return round(sum(one.rows for one in done) / sum(one.cpu_s for one in done))


def _judge_scaling(seen: Seen, counts: Sequence[int], cores: int) -> list[Figure]:
    one = _rate(seen[f"{_NBCC} 1"])
    assert not any(done.retries or done.failed for n in counts for found in seen[f"{_NBCC} {n}"] for done in found)
    figures = []
    for count in counts:
        rounds, parallel = seen[f"{_NBCC} {count}"], min(count, cores)
        what = f"non-blocking writers: {count}"
        figures.append(Figure(what, _rate(rounds), f"{parallel} x one", parallel * one, "rows/s", "higher"))
        thrift = _thrift(seen[f"{_NBCC} 1"])
        figures.append(Figure(what, _thrift(rounds), "one", thrift, "rows/s of processor", "higher"))
    return figures


def _judge_conflicts(seen: Seen, counts: Sequence[int]) -> list[Figure]:
    figures = []
    for count in counts:
        rounds = seen[f"{_OCC} {count}"]
        done = [one for found in rounds for one in found]
        what, peer = f"{count} writers under OCC", f"{count} non-blocking"
        figures.append(Figure(what, _rate(rounds), peer, _rate(seen[f"{_NBCC} {count}"]), "rows/s", "higher"))
        retries, commits = sum(one.retries + one.failed for one in done), sum(one.commits for one in done)
        wasted_s, took_s = sum(one.wasted_s for one in done), sum(one.took_s for one in done)
        figures.append(Figure(f"{what}: attempts in vain", retries, "commits", commits, "", "lower"))
        figures.append(Figure(f"{what}: time of these", round(wasted_s, 1), "all", round(took_s, 1), "s", "lower"))
    return figures


def _judge_compaction(seen: Seen) -> list[Figure]:
    rounds = seen["beside compaction"]
    compactions = sum(found[1].commits for found in rounds)
    assert compactions >= len(rounds), f"{compactions} compactions in {len(rounds)} rounds"
    what = f"a writer beside {compactions} compactions"
    alone = seen[f"{_NBCC} 1"]
    return [
        Figure(what, _rate(rounds, players=1), "without", _rate(alone), "rows/s", "higher"),
        Figure(what, _thrift(rounds, players=1), "without", _thrift(alone), "rows/s of processor", "higher"),
    ]
