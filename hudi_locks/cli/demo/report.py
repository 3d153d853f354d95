"""The report of the demonstration: one HTML file without anything to load, the timeline as a picture."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from string import Template
from typing import Any, Final

from hudi_locks.cli.demo.comparison import Comparison

__all__ = ["render_report"]

_WIDTH: Final = 1000
_LABEL: Final = 230
_LANE: Final = 54
_COLOURS: Final = {"COMMITTED": "#2f855a", "ABORTED": "#c53030", "UNKNOWN": "#b7791f"}

_PAGE: Final = Template("""\
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>hudi-locks: $title</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 1060px; margin: 2rem auto; padding: 0 1rem; color: #1a202c; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid #cbd5e0; padding: .3rem .8rem; text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
svg text { font: 13px system-ui, sans-serif; }
.verdict { font-size: 1.2rem; font-weight: 600; color: $colour; }
</style>
<h1>$title</h1>
<p>$story</p>
<p class="verdict">$verdict</p>
<h2>The timeline</h2>
$picture
<h2>What each writer did</h2>
$writers
<h2>What the readers see</h2>
$readers
</html>
""")


def render_report(
    loaded_rows: int, writers: Sequence[Mapping[str, Any]], comparisons: Sequence[Comparison], *, provider: str
) -> str:
    """The whole page."""
    agrees = all(comparison.agrees for comparison in comparisons)
    story = (
        f"{loaded_rows:,} real flights were loaded into a Hudi table. Then {len(writers)} writers, each a"
        f" process with its own Spark session, upserted into it at the same time under the lock provider {provider}."
    )
    return _PAGE.substitute(
        title=f"{len(writers)} writers, one Hudi table",
        story=html.escape(story),
        verdict="Every row is as it must be." if agrees else "Rows differ: see below.",
        colour=_COLOURS["COMMITTED" if agrees else "ABORTED"],
        picture=_draw_timeline(writers),
        writers=_tabulate(("writer", "instant", "rows", "file groups", "retries", "wasted"), map(_writer_row, writers)),
        readers=_tabulate(("reader", "rows", "missing", "surplus"), map(_reader_row, comparisons)),
    )


def _writer_row(writer: Mapping[str, Any]) -> tuple[object, ...]:
    retries = len(writer["attempts"]) - 1
    return (
        writer["name"], writer["instant"], writer["rows_updated"], writer["file_groups"], retries,
        f"{writer['wasted_s']:.1f} s",
    )  # fmt: skip


def _reader_row(comparison: Comparison) -> tuple[object, ...]:
    return comparison.reader, comparison.rows, comparison.missing, comparison.surplus


def _tabulate(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(value: object) -> str:
    return f'<td class="n">{value:,}</td>' if isinstance(value, int) else f"<td>{html.escape(str(value))}</td>"


def _draw_timeline(writers: Sequence[Mapping[str, Any]]) -> str:
    attempts = [attempt for writer in writers for attempt in writer["attempts"]]
    begin_ms = min(attempt["began_ms"] for attempt in attempts)
    span_ms = max(1, max(attempt["ended_ms"] for attempt in attempts) - begin_ms)
    scale = (_WIDTH - _LABEL - 10) / span_ms
    lanes = [_draw_lane(number, writer, begin_ms, scale) for number, writer in enumerate(writers)]
    height = _LANE * len(writers) + 30
    axis = (
        f'<text x="{_LABEL}" y="{height - 8}">0 s</text>'
        f'<text x="{_WIDTH - 10}" y="{height - 8}" text-anchor="end">{span_ms / 1000:.1f} s</text>'
    )
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img">{"".join(lanes)}{axis}</svg>'


def _draw_lane(number: int, writer: Mapping[str, Any], begin_ms: int, scale: float) -> str:
    top = number * _LANE + 8
    label = f'<text x="0" y="{top + 22}">{html.escape(writer["name"])}</text>'
    return label + "".join(_draw_attempt(attempt, top, begin_ms, scale) for attempt in writer["attempts"])


def _draw_attempt(attempt: Mapping[str, Any], top: int, begin_ms: int, scale: float) -> str:
    left = _LABEL + (attempt["began_ms"] - begin_ms) * scale
    width = max(2.0, (attempt["ended_ms"] - attempt["began_ms"]) * scale)
    title = html.escape(attempt["conflict"] or f"instant {attempt['instant']}, {attempt['outcome']}")
    word = "committed" if attempt["outcome"] == "COMMITTED" else f"conflict with {attempt['with']}"
    return (
        f'<g><title>{title}</title><rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="34" rx="4"'
        f' fill="{_COLOURS[attempt["outcome"]]}"/><text x="{left + 8:.1f}" y="{top + 22}" fill="#fff">'
        f"{html.escape(word)}</text></g>"
    )
