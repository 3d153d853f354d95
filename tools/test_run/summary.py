"""A run in words: minutes, the slowest tests, what is over its budget, and how to repeat what failed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from heapq import nlargest
from typing import Final

from test_run.plan import Plan
from test_run.reports import PartReport, TestReport

__all__ = ["render_summary"]

_SLOWEST: Final = 10
_MOST_FAILURES: Final = 20
_OUTPUT_LINES: Final = 60


def render_summary(plan: Plan, parts: Sequence[PartReport], *, minutes: float, seed: int) -> str:
    """All that is said at the end; what failed stands last, where it is seen.

    Args:
        plan: What was to be run.
        parts: What came of it.
        minutes: How long the whole took.
        seed: Of the order of tests and of what they draw.
    """
    lines = [line for part in parts for line in _show_slowest(part)]
    lines += ["", *_show_minutes(plan, parts, minutes)]
    lines += [line for part in parts if not part.ok for line in _show_failures(part, plan.kind, seed)]
    counts = {outcome: sum(part.count(outcome) for part in parts) for outcome in ("passed", "failed", "skipped")}
    broken = sum(not part.ok and not part.count("failed") for part in parts)
    counts["failed"] += broken  # a part that fails otherwise counts as one
    return "\n".join([*lines, "", ", ".join(f"{count} {outcome}" for outcome, count in counts.items())])


def _show_slowest(part: PartReport) -> Iterator[str]:
    if part.tests:
        yield f"\nslowest of {part.name}"
        for test in nlargest(_SLOWEST, part.tests.values(), key=lambda test: test.seconds):
            yield f"  {test.seconds:6.1f} s  {test.name}"


def _show_minutes(plan: Plan, parts: Sequence[PartReport], minutes: float) -> Iterator[str]:
    yield f"{'part':<10} {'minutes':>8} {'budget':>7} {'passed':>7} {'failed':>7} {'skipped':>8}"
    for part in parts:
        counts = f"{part.count('passed'):>7} {part.count('failed'):>7} {part.count('skipped'):>8}"
        yield f"{part.name:<10} {_compare(part.minutes, plan.parts[part.name])} {counts}" + (
            "" if part.ok else "  FAILED"
        )
    yield f"{'whole':<10} {_compare(minutes, plan.minutes)}"
    over = [part.name for part in parts if part.minutes > plan.parts[part.name]]
    over += ["the whole"] if minutes > plan.minutes else []
    if over:
        yield f"WARNING: over budget (tools/test_run/budgets.ini): {', '.join(over)}"


def _compare(minutes: float, budget: float) -> str:
    return f"{minutes:8.1f} {budget:7g}"


def _show_failures(part: PartReport, kind: str, seed: int) -> Iterator[str]:
    failed = [test for test in part.tests.values() if test.outcome == "failed"]
    yield f"\n{part.name} FAILED; seed {seed}"
    yield from part.output.splitlines()[-_OUTPUT_LINES:]
    for test in failed[:_MOST_FAILURES]:
        yield f"  {test.name}: {test.said}"
    if len(failed) > _MOST_FAILURES:
        yield f"  and {len(failed) - _MOST_FAILURES} more"
    yield f"  again: {_repeat(part.name, failed[:_MOST_FAILURES], kind, seed)}"


def _repeat(part: str, failed: Sequence[TestReport], kind: str, seed: int) -> str:
    flag = "" if kind == "whole" else f" --{kind}"
    tests = f" -- {shlex.join(test.name for test in failed)}" if failed else ""
    return f"./run test{flag} --seed {seed} {part}{tests}"
