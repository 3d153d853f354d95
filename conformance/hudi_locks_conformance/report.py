"""What a run says, to people and to programs."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from hudi_locks.config import redact
from hudi_locks_conformance.check import Check, Level
from hudi_locks_conformance.harness import Harness
from hudi_locks_conformance.runner import Outcome, Status

__all__ = ["EXIT_CRASH", "EXIT_UNREACHABLE", "describe_check", "exit_status", "render", "save_evidence", "to_json"]

EXIT_UNREACHABLE: Final = 4
EXIT_CRASH: Final = 70
_EXITS: Final = ((Status.ERROR, EXIT_CRASH), (Status.FAIL, 1), (Status.UNKNOWN, 3), (Status.NOT_RUN, 3))


def exit_status(outcomes: Sequence[Outcome]) -> int:
    """0: every check passed or is unsupported by declaration; 70: the kit broke; 1: a violation; 3: not all judged."""
    statuses = {outcome.status for outcome in outcomes}
    return next((code for status, code in _EXITS if status in statuses), 0)


def save_evidence(outcomes: Sequence[Outcome], folder: Path) -> dict[str, Path]:
    """Write the history of each check that failed and recorded one; where each lies, by id."""
    saved: dict[str, Path] = {}
    for outcome in outcomes:
        if outcome.status is Status.FAIL and outcome.history.operations:
            saved[outcome.check.id] = folder / f"{outcome.check.id}.history.jsonl"
            outcome.history.dump(saved[outcome.check.id])
    return saved


def render(harness: Harness, outcomes: Sequence[Outcome], *, evidence: dict[str, Path], verbose: bool) -> str:
    """The report as text."""
    there, missing = harness.hook_names()
    lines = [
        f"provider   {harness.name} ({harness.kind.__module__}:{harness.kind.__qualname__})",
        f"with       hudi-locks {_version()}   seed {harness.seed}",
        f"claims     {' '.join(sorted(claim.name for claim in harness.claims)) or 'nothing'}",
        f"hooks      {' '.join(there) or 'none'}" + (f"   missing: {' '.join(missing)}" if missing else ""),
        *[_summary(level, outcomes) for level in Level if any(one.check.level is level for one in outcomes)],
    ]
    for outcome in outcomes:
        lines += _explain(harness, outcome, evidence=evidence, verbose=verbose)
    return "\n".join([*lines, f"verdict    {_verdict(outcomes)}"])


def _version() -> str:
    try:
        return version("hudi-locks")
    except PackageNotFoundError:
        return "from source"


def _summary(level: Level, outcomes: Sequence[Outcome]) -> str:
    mine = [outcome for outcome in outcomes if outcome.check.level is level]
    count = Counter(outcome.status for outcome in mine)
    words = "   ".join(
        f"{count[status]} {status.value.upper() if status is Status.FAIL and count[status] else status.value}"
        for status in Status
        if count[status] or status in (Status.PASS, Status.FAIL)
    )
    virtual = sum(outcome.virtual for outcome in mine)
    return f"  {level.name.lower():8} {words}   ({virtual} in virtual time, {sum(o.duration_s for o in mine):.1f} s)"


def _explain(harness: Harness, outcome: Outcome, *, evidence: dict[str, Path], verbose: bool) -> list[str]:
    check, status = outcome.check, outcome.status
    title = f"{check.id} {check.name}"
    lines = [f"NOTE  {title}: {note}" for note in outcome.notes]
    if status in (Status.FAIL, Status.ERROR):
        lines += [
            f"{status.name:5} {title}      {outcome.message}",
            f"      demanded        {check.demand}",
            f"      why it matters  {check.why}",
            f"      again           {_command(harness, check)}",
        ]
        if check.id in evidence:
            lines.append(
                f"      evidence        {evidence[check.id]}   (hudi-locks conformance --recheck {evidence[check.id]})"
            )
    elif verbose or status in (Status.NOT_RUN, Status.UNKNOWN):
        lines.append(f"{status.value:11} {title}" + (f": {outcome.message}" if outcome.message else ""))
    return lines


def _command(harness: Harness, check: Check) -> str:
    words = ["hudi-locks", "conformance", "--provider", harness.name]
    for name, value in redact(harness.options).items():
        words += ["--option", f"{name}={value}"]
    return shlex.join([*words, "--only", check.id, "--seed", str(harness.seed)])


def _verdict(outcomes: Sequence[Outcome]) -> str:
    status = exit_status(outcomes)
    levels = " ".join(level.name.lower() for level in Level if any(one.check.level is level for one in outcomes))
    said = {0: "CONFORMANT", 1: "NOT CONFORMANT", 3: "NOT JUDGED IN FULL", EXIT_CRASH: "THE KIT BROKE"}[status]
    return f"{said} ({levels})"


def describe_check(check: Check) -> str:
    """One line of `--list`."""
    needs = " ".join(sorted(claim.name for claim in check.needs)) or "-"
    return f"{check.id:5} {check.level.name.lower():6} {check.mode.value}  {needs:20} {check.name}: {check.demand}"


def to_json(harness: Harness, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The report as values."""
    return {
        "provider": harness.name,
        "options": redact(harness.options),
        "claims": sorted(claim.name for claim in harness.claims),
        "seed": harness.seed,
        "exit": exit_status(outcomes),
        "checks": [
            {
                "id": outcome.check.id,
                "name": outcome.check.name,
                "level": outcome.check.level.name.lower(),
                "status": outcome.status.value,
                "message": outcome.message,
                "notes": list(outcome.notes),
                "virtual": outcome.virtual,
                "seconds": round(outcome.duration_s, 3),
            }
            for outcome in outcomes
        ],
    }
