"""Streams that share a merge-on-read table and never block each other, a compactor, and a reader that follows along."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks import SystemClock
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig, add_meta_schema, latest_file_slices, read_slice
from soak.flight_events import Row, draw_events, fold_events

__all__ = ["StreamSpec", "StreamsOutcome", "StreamsPlan", "render_streams", "soak_streams"]

Say = Callable[[str], None]
Readers = Mapping[str, Callable[[str], Sequence[Row]]]
_COLUMNS: Final = ("id", "region", "ts", "value", "label")
_BUCKETS: Final = 4
_OPTIONS: Final[Mapping[str, str]] = {
    "hoodie.write.concurrency.mode": "non_blocking_concurrency_control",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": str(_BUCKETS),
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.client.heartbeat.tolerable.misses": "3",
    "hoodie.write.lock.num_retries": "100000",
    "hoodie.write.lock.wait_time_ms": "60000",
    "hoodie.write.lock.wait_time_ms_between_retry": "20",
    "hoodie.write.lock.max_wait_time_ms_between_retry": "100",
    "hoodie.clean.commits.retained": "100",
    "hoodie.clean.trigger.max.commits": "20",
    "hoodie.keep.min.commits": "120",
    "hoodie.keep.max.commits": "140",
    "hudi_locks.foreign_writers": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
}
_TICK_S: Final = 0.2
_PATIENCE_S: Final = 900.0
_SHOWN: Final = 5


@dataclass(frozen=True)
class StreamSpec:
    """What one Spark application is told; travels as JSON.

    Attributes:
        path: Base path of the table.
        name: Its own, unique in the run.
        folder: Of the run, with the events, the checkpoints and the word that nothing more will come.
        options: Hudi's keys.
    """

    path: str
    name: str
    folder: str
    options: Mapping[str, str]

    @property
    def events(self) -> str:
        """The folder from which it reads."""
        return f"{self.folder}/events-{self.name}"

    @property
    def checkpoint(self) -> str:
        """Where its query keeps how far it came."""
        return f"{self.folder}/checkpoint-{self.name}"

    @property
    def is_ending(self) -> bool:
        """Whether it is to end once it has done what is there."""
        return Path(self.folder, f"end-{self.name}").exists()

    def encode(self) -> str:
        """As an argument of a process."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> StreamSpec:
        """See `encode`."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class StreamsPlan:
    """One run.

    Attributes:
        folder: For the table and all else.
        lock: Options of the lock service.
        streams: How many write.
        minutes: For so long events come in.
        rate: Events of a stream a second.
        calm_s: Shortest and longest time between two kills.
        seed: Of all that is drawn.
    """

    folder: Path
    lock: Mapping[str, str]
    streams: int = 4
    minutes: float = 30.0
    rate: int = 20
    calm_s: tuple[float, float] = (10.0, 40.0)
    seed: int = 1

    @property
    def path(self) -> str:
        """Base path of the table."""
        return str(self.folder / "table")

    def spec(self, name: str) -> StreamSpec:
        """What the application of this name is told."""
        options = {**_OPTIONS, **self.lock, "hoodie.base.path": self.path}
        return StreamSpec(self.path, name, str(self.folder), options)


@dataclass
class StreamsOutcome:
    """What a run came to.

    Attributes:
        events: How many were written.
        kills: How many applications were killed.
        told: How often each kind of event was told.
        conflicts: The most that a writer counted.
        followed: Rows that the reader that followed along was shown.
        rows: In the table at the end.
        took_s: From the first event to the end of the last writer.
        differences: Whatever is not as it should be, in words.
    """

    events: int = 0
    kills: int = 0
    told: Counter[str] = field(default_factory=Counter)
    conflicts: int = 0
    followed: list[list[Any]] = field(default_factory=list, repr=False)
    rows: int = 0
    took_s: float = 0.0
    differences: list[str] = field(default_factory=list)


class _Application:
    """A process with a Spark application, started anew whenever it is killed."""

    def __init__(self, role: str, spec: StreamSpec) -> None:
        self.role, self.spec = role, spec
        self._log = Path(spec.folder, f"{spec.name}.jsonl")
        self._read = 0
        self._start()

    def _start(self) -> None:
        with self._log.open("ab") as log, self._log.with_suffix(".err").open("ab") as errors:
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
            command = [sys.executable, "-m", "soak.streamer", self.role, self.spec.encode()]
            self._process = subprocess.Popen(command, env=env, stdout=log, stderr=errors, start_new_session=True)

    def kill(self) -> None:
        """End it as a crash would, its Spark with it, and start it anew."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._start()

    def end(self) -> None:
        """Tell it that nothing more will come."""
        Path(self.spec.folder, f"end-{self.spec.name}").touch()

    @property
    def status(self) -> int | None:
        return self._process.poll()

    def listen(self) -> Iterator[dict[str, Any]]:
        """What it told since the last time; a line that a kill cut off is left out."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            lines = log.read().split(b"\n")
        self._read += sum(len(line) + 1 for line in lines[:-1])
        for line in lines[:-1]:
            if line.startswith(b'{"event"') and line.endswith(b"}"):
                yield json.loads(line)

    def close(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def soak_streams(plan: StreamsPlan, readers: Readers, say: Say) -> StreamsOutcome:
    """Let streams write, be killed and be followed, and hold the table against their events."""
    run = _Run(plan, say)
    try:
        run.work()
    finally:
        run.close()
    outcome = run.outcome
    expected = fold_events(run.fed)
    outcome.rows = len(expected)
    for name, read in {"this package": _read_ours, **readers}.items():
        outcome.differences += _compare(name, expected, read(plan.path))
    outcome.differences += _check_followed(outcome.followed, expected, set(run.fed))
    if outcome.conflicts:
        outcome.differences.append(f"{outcome.conflicts} conflicts, where none can be")
    return outcome


class _Run:
    def __init__(self, plan: StreamsPlan, say: Say) -> None:
        self.plan, self.say = plan, say
        self.clock = SystemClock()
        self.rng = random.Random(f"{plan.seed} streams")
        self.outcome = StreamsOutcome()
        self.fed: list[Row] = []
        self.names = [f"stream-{number}" for number in range(plan.streams)]
        self.files = 0
        _create_table(plan.path)
        for name in self.names:
            Path(plan.spec(name).events).mkdir(parents=True)
        self.writers = [_Application("stream", plan.spec(name)) for name in self.names]
        self.compactor = _Application("compact", plan.spec("compactor"))
        self.follower = _Application("follow", plan.spec("follower"))

    def work(self) -> None:
        plan, began_s = self.plan, self.clock.monotonic()
        total = round(plan.minutes * 60 * plan.rate * plan.streams)
        events = draw_events(total, plan.seed)
        kill_at_s = began_s + self.rng.uniform(*plan.calm_s)
        while len(self.fed) < len(events):
            due = round((self.clock.monotonic() - began_s) * plan.rate * plan.streams)
            self.feed(events[len(self.fed) : max(due, len(self.fed))])
            if self.clock.monotonic() >= kill_at_s:
                self.attack()
                kill_at_s = self.clock.monotonic() + self.rng.uniform(*plan.calm_s)
            self.listen()
            self.clock.sleep(5 * _TICK_S)
        self.finish(self.writers)
        self.outcome.took_s = self.clock.monotonic() - began_s
        self.finish([self.compactor])
        self.finish([self.follower])

    def feed(self, events: Sequence[Row]) -> None:
        """Hand events out to the streams, whichever key they have."""
        for number, name in enumerate(self.names):
            part = events[number :: len(self.names)]
            if part:
                self.put(name, part)
        self.fed += events
        self.outcome.events = len(self.fed)

    def put(self, name: str, rows: Sequence[Row]) -> None:
        self.files += 1
        columns = {column: [row[place] for row in rows] for place, column in enumerate(_COLUMNS)}
        table = pa.table(columns, schema=_user_schema())
        folder = Path(self.plan.spec(name).events)
        hidden = folder / f".{self.files}"
        pq.write_table(table, hidden)
        hidden.rename(folder / f"{self.files:06d}.parquet")

    def attack(self) -> None:
        victim = self.rng.choice([*self.writers, self.compactor])
        victim.kill()
        self.outcome.kills += 1
        self.say(f"{len(self.fed)} events, {self.outcome.told['batch']} batches, killed {victim.spec.name}")

    def listen(self) -> None:
        for one in [*self.writers, self.compactor, self.follower]:
            for event in one.listen():
                self.note(event)

    def note(self, event: Mapping[str, Any]) -> None:
        self.outcome.told[event["event"]] += 1
        self.outcome.conflicts = max(self.outcome.conflicts, event.get("conflicts", 0))
        self.outcome.followed += event.get("rows", ())

    def finish(self, applications: Sequence[_Application]) -> None:
        """Let them come to their end by themselves."""
        ends_s = self.clock.monotonic() + _PATIENCE_S
        for one in applications:
            one.end()
        while any(one.status is None for one in applications) and self.clock.monotonic() < ends_s:
            self.clock.sleep(_TICK_S)
        self.listen()
        failed = [f"{one.spec.name} ended with status {one.status}" for one in applications if one.status != 0]
        self.outcome.differences += failed

    def close(self) -> None:
        for one in [*self.writers, self.compactor, self.follower]:
            one.close()


def _create_table(path: str) -> None:
    config = TableConfig(
        name="seen",
        record_key_fields=("id",),
        partition_fields=("region",),
        ordering_fields=("ts",),
        version=9,
        table_type="MERGE_ON_READ",
        extra={key: value for key, value in _OPTIONS.items() if "index" in key or "foreign" in key},
    )
    Table.create(open_storage(path), config)


def _user_schema() -> pa.Schema:
    kinds = (pa.string(), pa.string(), pa.int64(), pa.float64(), pa.string())
    return pa.schema(list(zip(_COLUMNS, kinds, strict=True)))


def _read_ours(path: str) -> list[Row]:
    table = Table.load(open_storage(path))
    slices = latest_file_slices(table.storage, table.timeline())
    schema, rule = add_meta_schema(_user_schema()), table.config.merge_rule
    pieces = [rows for piece in slices for rows in read_slice(table.storage, piece, schema, rule=rule)]
    return [tuple(row[name] for name in _COLUMNS) for rows in pieces for row in rows.to_pylist()]


def _compare(name: str, expected: Sequence[Row], found: Sequence[Row]) -> Iterator[str]:
    want, have = Counter(expected), Counter(found)
    missing, extra = want - have, have - want
    if missing or extra:
        yield f"{name}: {missing.total()} of {len(expected)} rows are missing, {extra.total()} are too much"
        yield from (f"{name}: missing {row}" for row in list(missing)[:_SHOWN])
        yield from (f"{name}: too much {row}" for row in list(extra)[:_SHOWN])


def _check_followed(followed: Sequence[Sequence[Any]], expected: Sequence[Row], events: set[Row]) -> Iterator[str]:
    """Whoever follows along sees each change once, none that was not there, and comes to the rows of the table."""
    seen = Counter((row[0], row[1], row[2]) for row in followed)
    twice = [key for key, times in seen.items() if times > 1]
    if twice:
        yield f"the reader that followed saw {len(twice)} changes twice, as {twice[0]}"
    rows: list[Row] = [tuple(row[1:]) for row in followed]
    if unknown := [row for row in rows if row not in events]:
        yield f"the reader that followed saw {len(unknown)} rows that nobody wrote, as {unknown[0]}"
    last = {row[:2]: row for row in rows}
    yield from _compare("the reader that followed", expected, list(last.values()))


def render_streams(outcome: StreamsOutcome) -> str:
    """The outcome as text."""
    told = "   ".join(f"{count} x {event}" for event, count in sorted(outcome.told.items()))
    lines = [
        f"events    {outcome.events} in {outcome.took_s:.0f} s, {outcome.kills} applications killed",
        f"told      {told}",
        f"conflicts {outcome.conflicts}",
        f"followed  {len(outcome.followed)} changes",
        f"rows      {outcome.rows}",
        *(f"FAIL  {line}" for line in outcome.differences),
    ]
    return "\n".join([*lines, f"verdict   {'DIFFERENT' if outcome.differences else 'EQUAL to the events'}"])
