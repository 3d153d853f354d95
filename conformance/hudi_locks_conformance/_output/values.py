"""A run as values, for JSON."""

from __future__ import annotations

from typing import Any

from hudi_locks_conformance._output.report import Report
from hudi_locks_conformance.runner import Outcome

__all__ = ["to_values"]


def to_values(report: Report) -> dict[str, Any]:
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


def _show(outcome: Outcome) -> dict[str, Any]:
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
