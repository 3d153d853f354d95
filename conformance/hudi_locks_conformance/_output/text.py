"""What a run says to people."""

from __future__ import annotations

from collections import Counter

from hudi_locks_conformance._output.badge import find_version
from hudi_locks_conformance._output.report import Report
from hudi_locks_conformance.check import Check, Level
from hudi_locks_conformance.runner import Outcome, Status

__all__ = ["describe_check", "render_text", "summarise"]


def render_text(report: Report, *, verbose: bool) -> str:
    """The report as text."""
    harness, badge = report.harness, report.badge
    there, missing = harness.hook_names()
    lines = [
        f"provider   {report.provider}",
        f"with       hudi-locks {find_version()}   seed {harness.seed}",
        f"claims     {' '.join(sorted(claim.name for claim in harness.claims)) or 'nothing'}",
        f"hooks      {' '.join(there) or 'none'}" + (f"   missing: {' '.join(missing)}" if missing else ""),
        *[f"  {level.word:8} {summarise(report, level)}" for level in report.levels],
    ]
    for outcome in report.outcomes:
        lines += _explain(report, outcome, verbose=verbose)
    lines += [f"NOTE  {note}" for note in report.notes]
    lines += [f"badge      {badge}", *([f"next       {badge.lacking}"] if badge.lacking else [])]
    return "\n".join([*lines, f"verdict    {report.verdict}"])


def summarise(report: Report, level: Level) -> str:
    """How the checks of a level ended, counted."""
    mine = [outcome for outcome in report.outcomes if outcome.check.level is level]
    count = Counter(outcome.status for outcome in mine)
    words = "   ".join(
        f"{count[status]} {status.value.upper() if status is Status.FAIL and count[status] else status.value}"
        for status in Status
        if count[status] or status in (Status.PASS, Status.FAIL)
    )
    virtual = sum(outcome.virtual for outcome in mine)
    return f"{words}   ({virtual} in virtual time, {sum(one.duration_s for one in mine):.1f} s)"


def _explain(report: Report, outcome: Outcome, *, verbose: bool) -> list[str]:
    check, status = outcome.check, outcome.status
    title = f"{check.id} {check.name}"
    lines = [f"NOTE  {title}: {note}" for note in outcome.notes]
    if status in (Status.FAIL, Status.ERROR):
        lines += [
            f"{status.name:5} {title}      {outcome.message}",
            f"      demanded        {check.demand}",
            f"      why it matters  {check.why}",
            f"      again           {report.command(check)}",
        ]
        if check.id in report.evidence:
            path = report.evidence[check.id].path
            lines.append(f"      evidence        {path}   (hudi-locks conformance --recheck {path})")
    elif verbose or status in (Status.NOT_RUN, Status.SKIPPED, Status.UNKNOWN):
        lines.append(f"{status.value:11} {title}" + (f": {outcome.message}" if outcome.message else ""))
    return lines


def describe_check(check: Check) -> str:
    """One line of `--list`."""
    needs = " ".join(sorted(claim.name for claim in check.needs)) or "-"
    return f"{check.id:5} {check.level.word:7} {check.mode.value}  {needs:20} {check.name}: {check.demand}"
