"""Two Spark applications that meet on a table, for each strategy of early detection and each lock service."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, cast

from hudi_locks_conformance.storm import start_process

from hudi_locks import SystemClock
from hudi_locks.markers import MARKER_FOLDER
from hudi_locks.storage import open_storage
from hudi_locks.table import Table
from soak.bucket_lock import BUCKET
from soak.services import describe_lock, start_lock

__all__ = [
    "SERVICES",
    "STRATEGIES",
    "Arena",
    "Duel",
    "Verdict",
    "lock_options",
    "open_arena",
    "play_all",
    "render_table",
]

SERVICES: Final = ("filesystem", "zookeeper", "dynamodb", "hive_metastore", "versitygw")
STRATEGIES: Final[Mapping[str, str]] = {
    "simple": "DIRECT",
    "transaction": "DIRECT",
    "bloom": "DIRECT",
    "async": "TIMELINE_SERVER_BASED",
    "bloom_async": "TIMELINE_SERVER_BASED",
}
"""Each with the kind of markers that it serves."""
_EARLY: Final = "hoodie.write.concurrency.early.conflict.detection."
_RETRIES: Final = "hoodie.write.num.retries.on.conflict.failures"
_OPTIONS: Final[Mapping[str, str]] = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.num_retries": "1000",
    "hoodie.write.lock.wait_time_ms_between_retry": "20",
    "hoodie.write.lock.max_wait_time_ms_between_retry": "200",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
    f"{_EARLY}enable": "true",
}
_PATIENCE_S: Final = 240.0
Row = list[Any]
_FIRST: Final[Sequence[Row]] = (["a", "1", 1, 1.0], ["b", "1", 1, 1.0], ["c", "2", 1, 1.0])
_A, _B, _C = (["a", "1", 2, 2.0], ["b", "1", 2, 2.0], ["c", "2", 2, 2.0])


@dataclass(frozen=True)
class Duel:
    """One meeting.

    Attributes:
        service: Of the lock; one of SERVICES.
        strategy: One of STRATEGIES.
        overlaps: Whether both write the same file group.
    """

    service: str
    strategy: str
    overlaps: bool

    def __str__(self) -> str:
        return f"{self.service} {self.strategy} {'overlapping' if self.overlaps else 'disjoint'}"


@dataclass(frozen=True)
class Verdict:
    """What a duel came to.

    Attributes:
        duel: Which.
        took_s: How long, in seconds.
        fault: The first thing that was not as it must be; "" if all was.
    """

    duel: Duel
    took_s: float
    fault: str


class Fighter:
    """A duelist's process."""

    def __init__(self) -> None:
        self._process = start_process(["-m", "soak.duelist"])
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._complaints: list[str] = []
        for read in (self._read_events, self._read_complaints):
            threading.Thread(target=read, daemon=True).start()

    def _read_events(self) -> None:
        for line in cast("IO[str]", self._process.stdout):
            self._events.put(json.loads(line))
        self._events.put({"event": "ended"})

    def _read_complaints(self) -> None:
        self._complaints.extend(cast("IO[str]", self._process.stderr))

    def tell(self, do: str, **facts: Any) -> None:
        """Have it do something."""
        stdin = cast("IO[str]", self._process.stdin)
        stdin.write(json.dumps({"do": do, **facts}) + "\n")
        stdin.flush()

    def hear(self) -> dict[str, Any]:
        """What it says next.

        Raises:
            RuntimeError: It has ended.
            queue.Empty: It says nothing.
        """
        event = self._events.get(timeout=_PATIENCE_S)
        if event["event"] == "ended":
            raise RuntimeError(f"a duelist ended: {''.join(self._complaints[-20:])}")
        return event

    def settle(self) -> None:
        """Have it bring to an end what it does, whatever that comes to."""
        self.tell("settle")
        while self.hear()["event"] != "settled":
            pass

    def close(self) -> None:
        """End it in any case."""
        self._process.kill()
        self._process.wait()


@dataclass(frozen=True)
class Arena:
    """Two applications that live through many duels.

    Attributes:
        base: Below which the tables lie.
        first: Begins each duel.
        second: Comes when the first has written its files.
        reach: Options of the store that the tables lie on.
    """

    base: str
    first: Fighter
    second: Fighter
    reach: Mapping[str, str] = field(default_factory=dict)

    def fight(self, duel: Duel, lock: Mapping[str, str]) -> Verdict:
        """Play a duel on a new table, with these options of its lock."""
        clock = SystemClock()
        began_s = clock.monotonic()
        options = {
            **_OPTIONS,
            **self.reach,
            **lock,
            f"{_EARLY}strategy": duel.strategy,
            "hoodie.write.markers.type": STRATEGIES[duel.strategy],
        }
        course = _Course(self, f"{self.base}/{str(duel).replace(' ', '-')}", options)
        fault = ""
        try:
            course.play(overlaps=duel.overlaps)
        except _Foul as foul:
            fault = str(foul)
            self.first.settle()
            self.second.settle()
        return Verdict(duel, clock.monotonic() - began_s, fault)


class _Foul(Exception):
    """A duel went another way than it must, so that its rest says nothing."""


class _Course:
    """How one duel goes."""

    def __init__(self, arena: Arena, path: str, options: Mapping[str, str]) -> None:
        self._first, self._second = arena.first, arena.second
        self._path = path
        self._options = options
        self._reach = dict(arena.reach)

    def play(self, *, overlaps: bool) -> None:
        self._first.tell("make", path=self._path, options=self._options, rows=_FIRST)
        self._expect(self._first, event="made")
        self._upsert(self._first, _A, holds=True)
        held = self._first.hear()
        (self._overlap if overlaps else self._pass_by)(str(held.get("instant")))
        self._judge([_A, _B, _FIRST[2]] if overlaps else [_A, _FIRST[1], _C])

    def _upsert(self, fighter: Fighter, row: Row, *, retries: int = 0, holds: bool = False) -> None:
        fighter.tell(
            "write", path=self._path, options={**self._options, _RETRIES: str(retries)}, rows=[row], holds=holds
        )

    def _overlap(self, held: str) -> None:
        """The second is stopped; one that may begin anew waits for the first, and is committed after it."""
        self._upsert(self._second, _B)
        stopped = self._expect(self._second, event="stopped", error="HoodieEarlyConflictDetectionException")
        self._check("the conflict names", (stopped.get("facts") or {}).get("other"), held)
        self._upsert(self._second, _B, retries=1)
        self._expect(self._second, event="met", other=held, early=True)
        self._first.tell("go")
        self._expect(self._first, event="committed", instant=held, retries=0, early=[])
        self._expect(self._second, event="committed", retries=1, early=[held])

    def _pass_by(self, held: str) -> None:
        """Both are committed, and nobody waits for anybody."""
        self._upsert(self._second, _C)
        self._expect(self._second, event="committed", retries=0, early=[])
        self._first.tell("go")
        self._expect(self._first, event="committed", instant=held, retries=0, early=[])

    def _judge(self, rows: Sequence[Row]) -> None:
        """Nothing is lost, and nothing is left."""
        for fighter in (self._first, self._second):
            fighter.tell("read", path=self._path, options=self._reach)
            self._expect(fighter, event="rows", rows=list(rows))
        storage = open_storage(self._path, self._reach)
        timeline = Table.load(storage).timeline()
        self._check("commits", len(timeline.completed(["commit"])), 3)
        self._check("pending instants", len(timeline.pending()), 0)
        self._check("marker folders", list(storage.list_names(MARKER_FOLDER)), [])

    def _expect(self, fighter: Fighter, **facts: Any) -> dict[str, Any]:
        heard = fighter.hear()
        self._check("a writer tells", {name: heard.get(name) for name in facts}, facts, heard)
        return heard

    def _check(self, what: str, found: Any, expected: Any, whole: Any = "") -> None:
        if found != expected:
            raise _Foul(f"{what} {found}, not {expected} {whole}".rstrip())


@contextmanager
def open_arena(folder: Path) -> Iterator[Arena]:
    """Two applications until the end of the block."""
    fighters = [Fighter(), Fighter()]
    try:
        for fighter in fighters:
            assert fighter.hear() == {"event": "ready"}
        yield Arena(str(folder), fighters[0], fighters[1])
    finally:
        for fighter in fighters:
            fighter.close()


def lock_options(service: str, server: Mapping[str, str]) -> dict[str, str]:
    """With which a duelist reaches a lock service.

    Args:
        service: One of SERVICES.
        server: Options of its server; none of the file system.
    """
    options = dict(describe_lock(service, server))
    base = options.pop("hoodie.base.path", "")
    if service == "versitygw":
        return {**options, "hoodie.write.lock.provider": "soak.bucket_lock:BucketLockProvider", BUCKET: base}
    return options


def play_all(folder: Path, services: Iterable[str], say: Callable[[str], object]) -> list[Verdict]:
    """Every duel, service by service."""
    verdicts = []
    with open_arena(folder) as arena, ExitStack() as stack:
        for service in services:
            lock = lock_options(service, stack.enter_context(start_lock(service)))
            for duel in (Duel(service, strategy, overlaps) for strategy in STRATEGIES for overlaps in (True, False)):
                verdict = arena.fight(duel, lock)
                say(f"{duel}: {verdict.fault or 'as expected'}, {verdict.took_s:.1f} s")
                verdicts.append(verdict)
    return verdicts


def render_table(verdicts: Sequence[Verdict]) -> str:
    """A row for each service and kind of duel, with seconds or FAIL."""
    found = {verdict.duel: "FAIL" if verdict.fault else f"{verdict.took_s:.1f} s" for verdict in verdicts}
    rows = list(dict.fromkeys((duel.service, duel.overlaps) for duel in found))
    lines = [f"| lock | writers | {' | '.join(STRATEGIES)} |", "|---|---|" + "---|" * len(STRATEGIES)]
    for service, overlaps in rows:
        cells = " | ".join(found[Duel(service, strategy, overlaps)] for strategy in STRATEGIES)
        lines.append(f"| {service} | {'overlapping' if overlaps else 'disjoint'} | {cells} |")
    return "\n".join(lines)
