"""A run as values, for JSON."""

from __future__ import annotations

from typing import TypedDict

from hudi_locks_conformance._output.report import Report
from hudi_locks_conformance.runner import Outcome

__all__ = ["BadgeValues", "CheckValues", "ReportValues", "to_values"]


class BadgeValues(TypedDict):
    """What a provider earned under one version of the kit.

    Attributes:
        text: All of it, in words.
        version: Of the kit.
        level: The highest that was earned; null for none.
        extra: Whether the checks beside the ladder are in order too.
        failed: How many checks failed.
        skipped: How many checks were left out on request.
        lacking: What keeps it from the next level; "" at the top.
    """

    text: str
    version: str
    level: str | None
    extra: bool
    failed: int
    skipped: int
    lacking: str


class CheckValues(TypedDict):
    """How one check ended.

    Attributes:
        id: Such as E12.
        name: In words joined by hyphens.
        level: To which it belongs.
        status: pass, fail, error, unsupported, not-run, skipped or unknown.
        message: Why it did not pass; "" if it did.
        notes: What was noticed besides.
        virtual: Whether time was simulated.
        seconds: How long it took.
    """

    id: str
    name: str
    level: str
    status: str
    message: str
    notes: list[str]
    virtual: bool
    seconds: float


class ReportValues(TypedDict):
    """How a provider was judged.

    Attributes:
        provider: As it was asked for.
        options: Its options, secrets hidden.
        claims: Capabilities that it claims.
        seed: Of everything that was drawn at random.
        exit: Exit status.
        badge: What it earned.
        notes: What was noticed besides.
        checks: How each check ended.
    """

    provider: str
    options: dict[str, str]
    claims: list[str]
    seed: int
    exit: int
    badge: BadgeValues
    notes: list[str]
    checks: list[CheckValues]


def to_values(report: Report) -> ReportValues:
    """The report as values of JSON."""
    badge = report.badge
    return {
        "provider": report.harness.name,
        "options": report.harness.shown_options,
        "claims": sorted(claim.name for claim in report.harness.claims),
        "seed": report.harness.seed,
        "exit": report.status,
        "badge": {
            "text": str(badge),
            "version": badge.version,
            "level": badge.level.word if badge.level else None,
            "extra": badge.extra,
            "failed": badge.failed,
            "skipped": badge.skipped,
            "lacking": badge.lacking,
        },
        "notes": list(report.notes),
        "checks": [_show(outcome) for outcome in report.outcomes],
    }


def _show(outcome: Outcome) -> CheckValues:
    return {
        "id": outcome.check.id,
        "name": outcome.check.name,
        "level": outcome.check.level.word,
        "status": outcome.status.value,
        "message": outcome.message,
        "notes": list(outcome.notes),
        "virtual": outcome.virtual,
        "seconds": round(outcome.duration_s, 3),
    }
