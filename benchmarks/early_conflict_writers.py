"""The test plan of RFC-56: two Spark applications upsert one table, with early conflict detection and without.

They play three plays on 100 file groups of TPC-H lineitem: half of the table each and the first file group both; half
of it each; one file group beside all of them. Whoever loses begins anew when the other is done.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.early_conflict_writer import BUCKETS, Done, Job
from benchmarks.figures import Figure
from benchmarks.lineitem import generate
from benchmarks.sides import run_side
from hudi_locks import SystemClock

__all__ = ["run"]

_SCALE, _QUICK_SCALE = 0.5, 0.1
_ROUNDS, _QUICK_ROUNDS = 3, 1
_POLL_S, _PATIENCE_S = 0.02, 300.0
_HALF = BUCKETS // 2
_clock = SystemClock()


@dataclass(frozen=True)
class Play:
    """Two jobs, the second of which begins when the first has announced its first file group.

    Attributes:
        first: Buckets of the first, by their place in the order in which tasks come to them.
        second: Of the second.
    """

    first: Sequence[int]
    second: Sequence[int]


_PLAYS: Mapping[str, Play] = {
    "halves": Play(range(_HALF), [0, *range(_HALF, BUCKETS - 1)]),
    "apart": Play(range(_HALF), range(_HALF, BUCKETS)),
    "small": Play(range(BUCKETS), [0]),
}


@dataclass(frozen=True)
class Outcome:
    """One play once.

    Attributes:
        both_s: From the start of the first to the end of both, in seconds.
        jobs: What became of the two.
    """

    both_s: float
    jobs: tuple[Done, Done]

    def total(self, pick: Callable[[Done], float]) -> float:
        """A value of both together."""
        return sum(map(pick, self.jobs))


Seen = Mapping[str, Mapping[bool, Sequence[Outcome]]]
"""Outcomes by play, and whether conflicts were looked for early."""


def run(*, quick: bool) -> list[Figure]:
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        folder = Path(made)
        table = folder / "table"
        order = _load(table, generate(folder, _QUICK_SCALE if quick else _SCALE))
        writers = [stack.enter_context(_start_writer(table)) for _ in range(2)]
        for writer in writers:
            writer.await_ready()
        stage = _Stage(table, order, writers)
        stage.warm()
        seen = stage.play_rounds(_QUICK_ROUNDS if quick else _ROUNDS)
    return [*_judge_conflicts(seen), *_judge_overhead(seen), *_judge_small(seen)]


def _load(table: Path, data: Path) -> list[int]:
    order: list[int] = run_side("early_conflict_writer", "load", table, data)
    return order


@dataclass(frozen=True)
class _Writer:
    """One application, which lives through all rounds."""

    process: subprocess.Popen[str]

    def await_ready(self) -> None:
        while (line := self._read()) != "ready":
            assert line, f"a writer ended with status {self.process.wait()}"

    def begin(self, job: Job) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps(asdict(job))}\n")
        self.process.stdin.flush()

    def end(self) -> Done:
        line = self._read()
        assert line, f"a writer ended with status {self.process.wait()}"
        return Done(**json.loads(line))

    def _read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def _start_writer(table: Path) -> Iterator[_Writer]:
    words = [sys.executable, "-m", "benchmarks.early_conflict_writer", "write", str(table)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield _Writer(process)
    finally:
        process.kill()
        process.communicate()


@dataclass(frozen=True)
class _Stage:
    """The table, and who writes it."""

    table: Path
    order: Sequence[int]
    writers: Sequence[_Writer]

    def warm(self) -> None:
        """The first write of an application compiles."""
        for detects in (True, False):
            self.play(Play([0], [1]), detects=detects)

    def play_rounds(self, rounds: int) -> Seen:
        """With and without detection take turns at going first."""
        seen: dict[str, dict[bool, list[Outcome]]] = {name: {True: [], False: []} for name in _PLAYS}
        for number in range(rounds):
            for name, play in _PLAYS.items():
                for detects in (True, False) if number % 2 else (False, True):
                    seen[name][detects].append(self.play(play, detects=detects))
        return seen

    def play(self, play: Play, *, detects: bool) -> Outcome:
        first, second = self.writers
        began_s = time.perf_counter()
        first.begin(self._make_job(play.first, detects=detects))
        self._await_marker()
        second.begin(self._make_job(play.second, detects=detects))
        jobs = first.end(), second.end()
        return Outcome(time.perf_counter() - began_s, jobs)

    def _make_job(self, places: Sequence[int], *, detects: bool) -> Job:
        return Job([self.order[place] for place in places], detects)

    def _await_marker(self) -> None:
        ends_s = time.perf_counter() + _PATIENCE_S
        while not any(self.table.glob(".hoodie/.temp/*/*.marker.*")):
            assert time.perf_counter() < ends_s, "the first writer never announced a file"
            _clock.sleep(_POLL_S)


def _median(outcomes: Sequence[Outcome], pick: Callable[[Outcome], float]) -> float:
    return round(statistics.median(map(pick, outcomes)), 3)


def _compare(what: str, found: Mapping[bool, Sequence[Outcome]], pick: Callable[[Outcome], float]) -> Figure:
    return Figure(what, _median(found[True], pick), "without detection", _median(found[False], pick), "s", "lower")


def _judge_conflicts(seen: Seen) -> list[Figure]:
    found = seen["halves"]
    _check_conflicts(found)
    what = f"two writers of {_HALF} of {BUCKETS} file groups that share the first"
    return [
        _compare(f"{what}: attempts given up", found, lambda seen: seen.total(lambda job: job.wasted_s)),
        _compare(f"{what}: their tasks", found, lambda seen: seen.total(lambda job: job.wasted_task_s)),
        _compare(f"{what}: until both are committed", found, lambda seen: seen.both_s),
    ]


def _judge_overhead(seen: Seen) -> list[Figure]:
    found = seen["apart"]
    assert not any(job.early or job.late for outcomes in found.values() for seen in outcomes for job in seen.jobs)
    what = f"two writers of {_HALF} file groups each, none shared"
    tasks_s = _median(found[True], lambda seen: seen.total(lambda job: job.task_s))
    looks_s = _median(found[True], lambda seen: seen.total(lambda job: job.check_s))
    return [
        _compare(f"{what}: both writes", found, lambda seen: seen.total(lambda job: job.write_s)),
        _compare(f"{what}: until both are committed", found, lambda seen: seen.both_s),
        Figure(f"{what}: looking for others", looks_s, "their tasks", tasks_s, "s", "lower"),
    ]


def _judge_small(seen: Seen) -> list[Figure]:
    found = seen["small"]
    _check_conflicts(found)
    what = f"a writer of one file group, and one of {BUCKETS} that came first"
    return [
        _compare(f"{what}: attempts given up", found, lambda seen: seen.total(lambda job: job.wasted_s)),
        _compare(f"{what}: until the large one is committed", found, lambda seen: seen.jobs[0].took_s),
        _compare(f"{what}: until the small one is committed", found, lambda seen: seen.jobs[1].took_s),
        _compare(f"{what}: until both are committed", found, lambda seen: seen.both_s),
    ]


def _check_conflicts(found: Mapping[bool, Sequence[Outcome]]) -> None:
    """Every play met its conflict, with detection early and without it at the publish."""
    for detects, outcomes in found.items():
        for seen in outcomes:
            met = seen.total(lambda job: job.early), seen.total(lambda job: job.late)
            assert (met[0] > 0, met[1] > 0) == (detects, not detects), f"{met[0]} early, {met[1]} late: {seen}"
