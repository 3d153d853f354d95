"""Runs the writers, stops and kills them, and takes down what they tell."""

from __future__ import annotations

import json
import random
import select
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hudi_locks import SystemClock
from soak.plan import WriterSpec, draw_stop_s, find_heartbeat_limit_s
from soak.process import WriterProcess
from soak.stores import Store

__all__ = ["Course", "SoakPlan", "Told", "run_writers"]

_TICK_S: Final = 0.05
_KILL_SHARE: Final = 0.3
_GRACE_S: Final = 240.0
"""In which writers that were told to end do so: the lock of a dead one may have to run out."""
_SILENCE_S: Final = 600.0
_MOST_SKEW_MS: Final = 4_000
"""Well within what `hudi_locks.max_clock_drift_ms` allows, and far more than JVM writers would stand."""
_REPORT_EVERY: Final = 50
Say = Callable[[str], None]


@dataclass(frozen=True)
class SoakPlan:
    """One run.

    Attributes:
        store: Where the table lies.
        log: File for the events of all writers.
        options: Hudi's keys, of the lock service and the store too.
        lease_s: How long the lock of a dead holder stands.
        writers: How many at a time.
        commits: The run ends after so many.
        seed: Of all that is drawn.
        calm: Fewest and most commits between two attacks from outside: a slow machine gets no more of them.
        risk: See `WriterSpec`.
        peace: Fewest and most commits between two outages of the link or restarts of the store.
    """

    store: Store
    log: Path
    options: Mapping[str, str]
    lease_s: float
    writers: int
    commits: int
    seed: int
    calm: tuple[int, int] = (1, 4)
    risk: float = 0.002
    peace: tuple[int, int] = (8, 20)


@dataclass
class Told:
    """What writers said.

    Attributes:
        committed: Completion time of every instant that was called committed; None where only that was said.
        aborted: Instants that were called aborted.
        done: Deeds that were called committed.
        events: How often each kind of event, and of failure, was told.
    """

    committed: dict[str, str | None] = field(default_factory=dict)
    aborted: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    events: Counter[str] = field(default_factory=Counter)

    def take(self, event: Mapping[str, Any]) -> None:
        """Take one event down."""
        kind = event["event"]
        self.events[f"{kind} {event['error']}" if "error" in event else kind] += 1
        outcome = event.get("outcome")
        if kind == "committed" or outcome == "COMMITTED":
            self.committed.setdefault(event["instant"], event.get("completion"))
            self.done.add(event["deed"])
        elif kind in ("conflict", "aborted") or outcome == "ABORTED":
            self.aborted.add(event["instant"])


@dataclass
class Course:
    """How a run went.

    Attributes:
        told: By the writers.
        took_s: From the first writer to the end of the last.
        kills: How many writers were killed, or killed themselves.
        stops: For how long each stop was meant to last.
        crashes: Exit status of writers that ended by themselves, which none should.
        link: How many requests met each fault on the way to the store, and how many outages there were.
    """

    told: Told = field(default_factory=Told)
    took_s: float = 0.0
    kills: int = 0
    stops: list[float] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    link: Counter[str] = field(default_factory=Counter)


def run_writers(plan: SoakPlan, say: Say) -> Course:
    """Let writers commit, and stop and kill them, until the plan is done."""
    run = _Run(plan, say)
    try:
        run.work()
    finally:
        run.close()
    return run.course


class _Run:
    def __init__(self, plan: SoakPlan, say: Say) -> None:
        self.plan = plan
        self.say = say
        self.clock = SystemClock()
        self.rng = random.Random(f"{plan.seed} soak")
        self.link_rng = random.Random(f"{plan.seed} outages")
        self.course = Course()
        self.running: list[WriterProcess] = []
        self.born = 0
        self.heard_s = self.clock.monotonic()
        self.said = 0
        self.attacks = 0
        self.longest_s = max(plan.lease_s, find_heartbeat_limit_s(plan.options))

    def begin(self) -> WriterProcess:
        self.born += 1
        skew_ms = self.rng.randint(-_MOST_SKEW_MS, _MOST_SKEW_MS)
        plan = self.plan
        options = self.plan.store.choose_services(self.born, plan.options)
        spec = WriterSpec(plan.store.path, str(self.born), plan.seed, options, skew_ms, self.longest_s, plan.risk)
        return WriterProcess(spec)

    def work(self) -> None:
        began_s = self.clock.monotonic()
        self.running += [self.begin() for _ in range(self.plan.writers)]
        attack_at = self.rng.randint(*self.plan.calm)
        strike_at = self.link_rng.randint(*self.plan.peace)
        while self.count() < self.plan.commits and self.is_heard_of():
            self.listen()
            self.resume_due(self.clock.monotonic())
            if self.count() >= attack_at:
                self.attack()
                attack_at = self.count() + self.rng.randint(*self.plan.calm)
            if self.plan.store.link is not None and self.count() >= strike_at:
                self.plan.store.link.strike()
                strike_at = self.count() + self.link_rng.randint(*self.plan.peace)
        self.end()
        self.course.took_s = self.clock.monotonic() - began_s

    def count(self) -> int:
        return len(self.course.told.committed)

    def is_heard_of(self) -> bool:
        """Whether the writers get on: a run that stands still ends, and is judged by what it did not do."""
        return self.clock.monotonic() < self.heard_s + _SILENCE_S

    def listen(self) -> None:
        """Take down what is told within a tick."""
        by_output = {one.output: one for one in self.running}
        ready, _, _ = select.select(list(by_output), [], [], _TICK_S)
        for output in ready:
            self.take_down(by_output[output])
        for one in [one for one in self.running if one.status is not None]:
            self.bury(one)
            self.running[self.running.index(one)] = self.begin()

    def take_down(self, one: WriterProcess) -> None:
        one.drain(self.plan.log.with_suffix(".err"))
        now_s = self.clock.monotonic()
        with self.plan.log.open("a") as log:
            for event in one.read(now_s):
                log.write(json.dumps({"t_s": round(now_s, 3), "writer": one.spec.name, **event}) + "\n")
                self.note(event, now_s)

    def note(self, event: dict[str, Any], now_s: float) -> None:
        told = self.course.told
        told.take(event)
        if event["event"] == "stops":
            self.course.stops.append(event["for_s"])
        if event["event"] == "committed":
            self.heard_s = now_s
        if len(told.committed) >= self.said + _REPORT_EVERY:
            self.said = len(told.committed)
            self.say(f"{self.said} commits, {self.course.kills} kills, {len(self.course.stops)} stops")

    def bury(self, one: WriterProcess) -> None:
        """One that has ended."""
        self.take_down(one)
        status = one.status
        if status == -9:
            self.course.kills += 1
        elif status not in (0, -15):
            self.course.crashes.append(f"writer {one.spec.name} ended with status {status}")
        one.close()

    def attack(self) -> None:
        """Stop one that runs, or kill one."""
        free = [one for one in self.running if one.paused_until_s is None]
        if len(free) < len(self.running) / 2:
            return  # somebody must be left to go on
        victim = self.rng.choice(free)
        if self.draws_kill():
            victim.kill()
            return
        stop_s = draw_stop_s(self.rng, self.longest_s)
        self.course.stops.append(stop_s)
        victim.pause(self.clock.monotonic() + stop_s)

    def draws_kill(self) -> bool:
        """The first two attacks are one of each kind, so that no run is without them, however short."""
        self.attacks += 1
        return self.attacks == 1 or (self.attacks > 2 and self.rng.random() < _KILL_SHARE)

    def resume_due(self, now_s: float) -> None:
        for one in self.running:
            if one.paused_until_s is not None and now_s >= one.paused_until_s:
                one.resume()

    def end(self) -> None:
        """Let all come to their end; kill who does not."""
        ends_s = self.clock.monotonic() + _GRACE_S
        for one in self.running:
            one.ask_to_end()
        while self.running and self.clock.monotonic() < ends_s:
            self.resume_due(float("inf"))
            for one in self.running:
                self.take_down(one)
            for one in [one for one in self.running if one.status is not None]:
                self.bury(one)
                self.running.remove(one)
            self.clock.sleep(_TICK_S)
        self.course.kills += len(self.running)

    def close(self) -> None:
        for one in self.running:
            one.close()
