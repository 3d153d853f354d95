"""Runs the contenders, pauses and kills them, and takes down what they tell."""

from __future__ import annotations

import math
import random
import select
import uuid
from typing import Any, Final

from hudi_locks import SystemClock
from hudi_locks_conformance.check import NotRun, Violation
from hudi_locks_conformance.harness import Harness
from hudi_locks_conformance.history import History, Operation
from hudi_locks_conformance.register import FencedRegister
from hudi_locks_conformance.stress.links import ShakyLink
from hudi_locks_conformance.stress.plan import StressPlan, make_plan
from hudi_locks_conformance.stress.process import ContenderProcess
from hudi_locks_conformance.stress.result import StressResult

__all__ = ["run_stress"]

_TICK_S: Final = 0.02
_CALM_S: Final = (0.2, 0.8)
"""Between two attacks."""
_SHORTEST_PAUSE_S: Final = 0.05
_KILL_SHARE: Final = 0.25
_LINK_SHARE: Final = 0.15
_START_S: Final = 60.0
_GRACE_S: Final = 15.0
"""In which contenders that were told to end do so."""


def run_stress(harness: Harness, duration_s: float) -> StressResult:
    """Let contenders fight over one lock for `duration_s` seconds, as the harness's seed draws it.

    Where the kit started the lock service, every second contender reaches it over a link that is broken now and then.

    Raises:
        NotRun: Processes cannot contend for this lock, or cannot import the provider.
        Violation: A contender ended by itself.
    """
    plan = make_plan(harness, duration_s, uuid.uuid4().hex)
    run = _Run(plan, ShakyLink(harness.server) if harness.server else None)
    try:
        run.contend()
    finally:
        run.close()
    broken = run.link.broken if run.link else []
    return StressResult(run.plan, run.history(), run.kills, run.pauses, tuple(broken))


class _Run:
    def __init__(self, plan: StressPlan, link: ShakyLink | None) -> None:
        self.plan = plan
        self.link = link
        self.clock = SystemClock()
        self.rng = random.Random(f"{plan.seed} stress")  # noqa: S311  # repeatable, guards nothing
        self.register = FencedRegister()
        self.operations: list[Operation] = []
        self.kills: list[float] = []
        self.pauses: list[float] = []
        self.born = 0
        self.running: list[ContenderProcess] = []

    def begin(self) -> ContenderProcess:
        self.born += 1
        behind = self.link.options if self.link and self.born % 2 else {}
        return ContenderProcess(self.plan, f"contender-{self.born}", behind)

    def contend(self) -> None:
        """Attack until the time is over, then let all come to their end."""
        self.running += [self.begin() for _ in range(self.plan.contenders)]
        self.wait_for_all()
        ends_s = self.clock.monotonic() + self.plan.duration_s
        attack_s = self.clock.monotonic() + self.rng.uniform(*_CALM_S)
        while self.clock.monotonic() < ends_s:
            self.listen()
            self.resume_due()
            if self.clock.monotonic() >= attack_s:
                self.attack()
                attack_s = self.clock.monotonic() + self.rng.uniform(*_CALM_S)
        self.end()

    def wait_for_all(self) -> None:
        """The run begins when all have asked for the lock: processes take a while to start."""
        ends_s = self.clock.monotonic() + _START_S
        while len({one.process for one in self.operations}) < self.born and self.clock.monotonic() < ends_s:
            self.listen()

    def listen(self) -> None:
        """Take down what is told within a tick."""
        by_output = {one.output: one for one in self.running}
        ready, _, _ = select.select(list(by_output), [], [], _TICK_S)
        for output in ready:
            self.take_down(by_output[output])
            if by_output[output].has_ended():
                raise self.explain(by_output[output])

    def take_down(self, contender: ContenderProcess) -> None:
        for event in contender.read():
            told = event.pop("token", None)
            token = told if self.plan.fenced else None
            self.add(contender.name, **event, token=token)
            if (event["f"], event["type"]) == ("write", "invoke"):
                kind = "ok" if self.register.write(token) else "fail"
                self.add(contender.name, "write", kind, self.clock.monotonic(), token=token)
                contender.answer(kind)

    def add(self, process: str, f: str, type: str, t_s: float, **facts: Any) -> None:  # noqa: A002  # as in Operation
        self.operations.append(Operation(len(self.operations), process, f, type, round(t_s * 1e9), **facts))

    def explain(self, contender: ContenderProcess) -> Exception:
        said = contender.close()
        if "ProviderLoadError" in said:
            return NotRun(f"another process cannot import the provider: {said}")
        return Violation(f"{contender.name} ended by itself: {said or 'it said nothing'}")

    def attack(self) -> None:
        """Break the link, stop one that runs, or kill one."""
        if self.link and self.link.healed_s is None and self.rng.random() < _LINK_SHARE:
            self.link.break_down(self.rng, self.clock.monotonic() + self.draw_pause_s())
            return
        free = [one for one in self.running if one.paused_until_s is None]
        kills, share = self.plan.kills, self.rng.random()
        if len(free) < len(self.running) / 2:
            return  # somebody must be left to take over
        victim = self.rng.choice(free)
        if kills and share < _KILL_SHARE:
            self.replace(victim)
        else:
            pause_s = self.draw_pause_s()
            victim.pause(self.clock.monotonic() + pause_s)
            self.pauses.append(pause_s)

    def draw_pause_s(self) -> float:
        return self.rng.uniform(_SHORTEST_PAUSE_S, self.plan.longest_pause_s)

    def replace(self, victim: ContenderProcess) -> None:
        victim.kill()
        killed_s = self.clock.monotonic()
        self.bury(victim, killed_s)
        self.kills.append(killed_s)
        self.running[self.running.index(victim)] = self.begin()

    def bury(self, victim: ContenderProcess, killed_s: float) -> None:
        """A dead process believes nothing: its hold ends, although its lock may stand for a while."""
        self.take_down(victim)
        self.add(victim.name, "release", "invoke", killed_s, error="killed")
        victim.close()

    def resume_due(self) -> None:
        now_s = self.clock.monotonic()
        for one in self.running:
            if one.paused_until_s is not None and now_s >= one.paused_until_s:
                one.resume()
        if self.link:
            self.link.heal_due(now_s)

    def end(self) -> None:
        """Let all finish their hold; kill who does not."""
        if self.link:
            self.link.heal_due(math.inf)
        for one in self.running:
            one.resume()
            one.ask_to_end()
        ends_s = self.clock.monotonic() + _GRACE_S
        while self.running and self.clock.monotonic() < ends_s:
            for one in [one for one in self.running if one.has_ended()]:
                self.take_down(one)
                one.close()
                self.running.remove(one)
            for one in self.running:
                self.take_down(one)
            self.clock.sleep(_TICK_S / 4)
        for one in self.running:
            one.kill()
            self.bury(one, self.clock.monotonic())
        self.running = []

    def close(self) -> None:
        for one in self.running:
            one.close()
        if self.link:
            self.link.close()

    def history(self) -> History:
        history = History()
        history.merge(self.operations)
        return history
