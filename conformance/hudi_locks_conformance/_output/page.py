"""A run as one HTML page that needs nothing else: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from hudi_locks_conformance._output.badge import find_version
from hudi_locks_conformance._output.report import Report
from hudi_locks_conformance._output.text import summarise
from hudi_locks_conformance.check import Level
from hudi_locks_conformance.runner import Outcome, Status

__all__ = ["render_page"]

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
.badge { display: inline-block; padding: .2rem .7rem; border-radius: .3rem; background: #2e7d32; color: #fff }
.badge.failed { background: #c0392b }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid #ddd }
.status { white-space: nowrap; font-weight: 600 } .why, .message, .time { color: #555 }
.pass .status { color: #2e7d32 } .fail .status, .error .status { color: #c0392b }
.not-run .status, .skipped .status, .unknown .status { color: #b26a00 } .unsupported { color: #888 }
pre { background: #f6f6f6; padding: .6rem; overflow-x: auto; font-size: 13px }
"""
_ATTENTION: Final = (Status.FAIL, Status.ERROR)


def render_page(report: Report) -> str:
    """The report as HTML."""
    title = escape(f"Conformance of {report.harness.name}")
    body = "\n".join([*_draw_head(report), *(part for level in report.levels for part in _draw_level(report, level))])
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}\n</body>\n</html>\n"
    )


def _draw_head(report: Report) -> Iterator[str]:
    harness, badge = report.harness, report.badge
    claims = " ".join(sorted(claim.name for claim in harness.claims)) or "nothing"
    there, missing = harness.hook_names()
    yield f'<p><span class="badge{" failed" if badge.failed else ""}">{escape(str(badge))}</span></p>'
    yield f"<p><strong>{escape(report.verdict)}</strong></p>"
    facts = {
        "provider": report.provider,
        "judged by": f"hudi-locks {find_version()}, seed {harness.seed}",
        "claims": claims,
        "hooks": " ".join(there) or "none",
        "hooks that are missing": " ".join(missing),
        "next level": badge.lacking,
    }
    rows = (f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in facts.items() if value)
    yield f"<table>{''.join(rows)}</table>"
    for note in report.notes:
        yield f"<p>Note: {escape(note)}</p>"


def _draw_level(report: Report, level: Level) -> Iterator[str]:
    yield f"<h2>{level.word}</h2>\n<p>{escape(summarise(report, level))}</p>\n<table>"
    yield "<tr><th>check</th><th>ended</th><th>what is demanded, why, and what was found</th><th>s</th></tr>"
    for outcome in report.outcomes:
        if outcome.check.level is level:
            yield _draw_row(report, outcome)
    yield "</table>"


def _draw_row(report: Report, outcome: Outcome) -> str:
    check, status = outcome.check, outcome.status.value
    said = [f"{escape(check.demand)} <span class='why'>Otherwise: {escape(check.why)}.</span>"]
    said += [f"<div class='message'>{escape(outcome.message)}</div>"] if outcome.message else []
    said += [f"<div class='message'>Note: {escape(note)}</div>" for note in outcome.notes]
    said += _draw_failure(report, outcome) if outcome.status in _ATTENTION else []
    return (
        f"<tr id='{check.id}' class='{status}'><td>{check.id}<br>{escape(check.name)}</td><td class='status'>{status}"
        f"</td><td>{''.join(said)}</td><td class='time'>{outcome.duration_s:.2f}</td></tr>"
    )


def _draw_failure(report: Report, outcome: Outcome) -> list[str]:
    found = report.evidence.get(outcome.check.id)
    told = [f"<pre>{escape(report.command(outcome.check))}</pre>"]
    if found is not None:
        told.append(f"<div class='message'>history: {escape(str(found.path))}</div>{found.svg}")
        told += [f"<pre>{escape(found.text)}</pre>"] if found.text else []
    return told
