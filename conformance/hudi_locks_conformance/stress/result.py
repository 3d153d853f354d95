"""What a stress run came to."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypedDict

from hudi_locks.config import redact
from hudi_locks_conformance.history import History, Overlap, find_overlaps, find_violations
from hudi_locks_conformance.stress.plan import StressPlan

__all__ = ["StressResult", "StressValues", "render_result", "stress_values"]

_MS: Final = 1e6


@dataclass(frozen=True)
class StressResult:
    """A run that is over.

    Attributes:
        plan: What it was to do.
        history: What the contenders told.
        kills: When one was killed, on the system's monotonic clock, in seconds.
        pauses: For how long each stop was to last, in seconds.
        broken: What befell the link of half of them: "cut", "half-open", "slow" or "answers lost".
    """

    plan: StressPlan
    history: History
    kills: list[float]
    pauses: list[float]
    broken: tuple[str, ...] = ()

    @cached_property
    def holds(self) -> int:
        """How often the lock was held."""
        return len(self.history.holds())

    @cached_property
    def overlaps(self) -> list[Overlap]:
        """All times at which two held, or one held and another had not learnt yet that it did no longer."""
        return find_overlaps(self.history)

    @cached_property
    def violations(self) -> list[Overlap]:
        """Those that do harm."""
        return find_violations(self.history)

    @cached_property
    def repeated_tokens(self) -> list[int]:
        """Tokens that more than one hold had."""
        count = Counter(hold.token for hold in self.history.holds() if hold.token is not None)
        return sorted(token for token, times in count.items() if times > 1)

    @cached_property
    def handovers_ms(self) -> list[float]:
        """From the end of each hold to the beginning of the next, in milliseconds; not where they overlap."""
        holds = self.history.holds()
        gaps = [(after.begin_ns - before.end_ns) / _MS for before, after in itertools.pairwise(holds)]
        return [gap for gap in gaps if gap >= 0]

    def count(self, f: str, kind: str) -> int:
        """How many operations of that kind there were."""
        return sum((one.f, one.type) == (f, kind) for one in self.history.operations)

    @property
    def ok(self) -> bool | None:
        """Whether nothing is wrong; None if nobody ever held the lock."""
        if self.violations or self.repeated_tokens:
            return False
        return True if self.holds else None


def render_result(result: StressResult) -> str:
    """The result as text."""
    plan, gaps = result.plan, result.handovers_ms
    lease = "no lease that ends within the run" if not plan.kills else f"lease {plan.lease_s:.1f} s"
    attacks = f"{len(result.pauses)} pauses   {len(result.kills)} kills"
    faults = Counter(result.broken)
    lines = [
        f"stress     {plan.duration_s:g} s   {plan.contenders} processes   seed {plan.seed}   {lease}   {attacks}",
        *(["link       " + "   ".join(f"{faults[one]} x {one}" for one in sorted(faults))] if faults else []),
        f"holds      {result.holds}   {result.holds / plan.duration_s:.1f}/s",
    ]
    if gaps:
        lines.append(f"hand-over  median {statistics.median(gaps):.1f} ms   worst {max(gaps):.0f} ms")
    lines.append(
        f"overlaps   {len(result.violations)} harmful of {len(result.overlaps)}   "
        f"{result.count('check', 'fail')} losses noticed   {result.count('write', 'fail')} late writes refused"
    )
    lines += [f"FAIL  {one}" for one in result.violations[:5]]
    lines += [f"FAIL  token {token} was given to more than one hold" for token in result.repeated_tokens[:5]]
    verdict = {True: "CONFORMANT", False: "NOT CONFORMANT", None: "NOT JUDGED: nobody held the lock"}[result.ok]
    return "\n".join([*lines, f"verdict    {verdict} (stress)"])


class StressValues(TypedDict):
    """How a provider stood a stress run, with --stress.

    Attributes:
        provider: As it was asked for.
        options: Its options, secrets hidden.
        seed: Of everything that was drawn at random.
        seconds: How long processes contended.
        processes: How many at a time.
        lease_s: How long a dead holder keeps its lock; null if for ever, or if the provider does not say.
        fenced: Whether it claims fencing tokens.
        pauses: How often a process was stopped.
        kills: How often one was killed.
        link: By kind, how often the link of one was disturbed.
        holds: How often the lock was held.
        handover_median_ms: From the end of a hold to the next one, in the middle; null if nothing was handed over.
        handover_worst_ms: The longest.
        overlaps: How often two held the lock at once, also where fencing keeps it from harm.
        harmful: Those that do harm, in words.
        repeated_tokens: Fencing tokens that more than one hold had.
        losses_noticed: How often a holder noticed that its lock was lost.
        late_writes_refused: How often fencing refused a write.
        ok: Whether nothing is wrong; null if nobody ever held the lock.
    """

    provider: str
    options: dict[str, str]
    seed: int
    seconds: float
    processes: int
    lease_s: float | None
    fenced: bool
    pauses: int
    kills: int
    link: dict[str, int]
    holds: int
    handover_median_ms: float | None
    handover_worst_ms: float | None
    overlaps: int
    harmful: list[str]
    repeated_tokens: list[int]
    losses_noticed: int
    late_writes_refused: int
    ok: bool | None


def stress_values(result: StressResult) -> StressValues:
    """The result as values of JSON."""
    plan, gaps = result.plan, result.handovers_ms
    return {
        "provider": plan.provider,
        "options": redact(plan.options),
        "seed": plan.seed,
        "seconds": plan.duration_s,
        "processes": plan.contenders,
        "lease_s": plan.lease_s,
        "fenced": plan.fenced,
        "pauses": len(result.pauses),
        "kills": len(result.kills),
        "link": dict(sorted(Counter(result.broken).items())),
        "holds": result.holds,
        "handover_median_ms": round(statistics.median(gaps), 3) if gaps else None,
        "handover_worst_ms": round(max(gaps), 3) if gaps else None,
        "overlaps": len(result.overlaps),
        "harmful": [str(one) for one in result.violations],
        "repeated_tokens": result.repeated_tokens,
        "losses_noticed": result.count("check", "fail"),
        "late_writes_refused": result.count("write", "fail"),
        "ok": result.ok,
    }
