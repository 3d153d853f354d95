"""A timeline to look at in a browser: a line for each writer, a bar for each instant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from string import Template
from typing import Final

from hudi_locks.display import say_time
from hudi_locks.services.activity import Activity

__all__ = ["STYLE", "draw_instants", "draw_timeline"]

_NOBODY: Final = "JVM Hudi, or not known"
_LEAST_PERCENT: Final = 0.4
"""So that an instant of a moment is seen too."""
_LABEL_PERCENT: Final = 15
_IDLE_SHARE: Final = 0.05
"""A longer time in which nothing happened, as part of the time in which something did, is drawn this long."""
_KINDS: Final = {
    "commit": "write",
    "deltacommit": "write",
    "replacecommit": "replace",
    "clustering": "replace",
    "compaction": "compact",
    "logcompaction": "compact",
    "rollback": "undo",
    "restore": "undo",
}
_LEGEND: Final = (
    ("write", "write"),
    ("replace", "overwrite or clustering"),
    ("compact", "compaction"),
    ("undo", "rollback or restore"),
    ("other", "clean, savepoint and others"),
    ("pending", "not completed"),
)


@dataclass(frozen=True)
class _Bar:
    """One instant, from its begin to its completion, or to the moment of the picture."""

    one: Activity
    ended_ms: int

    @property
    def began_ms(self) -> int:
        return self.one.began_ms

    @property
    def classes(self) -> str:
        kind = _KINDS.get(self.one.action, "other")
        return kind if self.one.completed_ms is not None else f"{kind} pending"


@dataclass(frozen=True)
class _Stretch:
    """A time in which something happened, and its share of the width."""

    began_ms: int
    ended_ms: int
    left: float
    width: float


class _Scale:
    """Where moments lie, in percent of the width: a time in which nothing happened takes little of it."""

    def __init__(self, bars: Iterable[_Bar]) -> None:
        spans = _join([(bar.began_ms, max(bar.ended_ms, bar.began_ms + 1)) for bar in bars])
        busy = sum(ended - began for began, ended in spans)
        gaps = [min(after[0] - before[1], busy * _IDLE_SHARE) for before, after in pairwise(spans)]
        whole, left = busy + sum(gaps), 0.0
        self.stretches: list[_Stretch] = []
        for (began, ended), gap in zip(spans, [*gaps, 0.0], strict=True):
            self.stretches.append(_Stretch(began, ended, 100 * left / whole, 100 * (ended - began) / whole))
            left += ended - began + gap

    def place(self, moment_ms: int) -> float:
        """Of a moment within a stretch."""
        stretch = next(one for one in reversed(self.stretches) if one.began_ms <= moment_ms)
        return stretch.left + stretch.width * (moment_ms - stretch.began_ms) / (stretch.ended_ms - stretch.began_ms)


def draw_timeline(title: str, found: Sequence[Activity], *, now_ms: int) -> str:
    """A page of HTML with these instants, readable in light and dark, on a narrow screen and without a mouse.

    It has no script, and loads nothing.

    Args:
        title: Of the page, such as the table's path.
        found: The instants, in the order in which they were begun.
        now_ms: The moment of the picture, to which pending instants are drawn.
    """
    drawn = draw_instants(found, now_ms=now_ms)
    return _PAGE.substitute(title=escape(title), when=say_time(now_ms), style=STYLE, drawn=drawn)


def draw_instants(found: Sequence[Activity], *, now_ms: int) -> str:
    """The picture and the table below it, as a part of a page that has `STYLE`; see `draw_timeline`."""
    if not found:
        return "<p>No instants.</p>"
    bars = [_Bar(one, max(one.began_ms, one.completed_ms or now_ms)) for one in found]
    lanes: dict[str, list[_Bar]] = {}
    for bar in bars:
        lanes.setdefault(bar.one.writer or _NOBODY, []).append(bar)
    scale = _Scale(bars)
    return _PICTURE.substitute(
        axis=_draw_axis(scale),
        lanes="".join(_draw_lane(name, lane, scale=scale) for name, lane in lanes.items()),
        legend="".join(f'<li><i class="{kind}"></i>{told}</li>' for kind, told in _LEGEND),
        rows="".join(map(_write_row, found)),
    )


def _join(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that meet as one."""
    joined: list[tuple[int, int]] = []
    for began, ended in sorted(spans):
        if joined and began <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(ended, joined[-1][1]))
        else:
            joined.append((began, ended))
    return joined


def _draw_axis(scale: _Scale) -> str:
    """When each stretch of time began; a moment too near to the one before it is left out."""
    shown: list[_Stretch] = []
    for stretch in scale.stretches:
        if not shown or stretch.left >= shown[-1].left + _LABEL_PERCENT:
            shown.append(stretch)
    ends = [*(stretch.left for stretch in shown[1:]), 100.0]
    labels = (_draw_moment(one, end) for one, end in zip(shown, ends, strict=True))
    return f'<div class="axis">{"".join(labels)}</div>'


def _draw_moment(stretch: _Stretch, end_percent: float) -> str:
    """When it began, as far as there is room; a phone has none for the day."""
    day, time = say_time(stretch.began_ms)[:19].split()
    place = f"left:{stretch.left:.2f}%;width:{end_percent - stretch.left:.2f}%"
    return f'<span style="{place}"><i>{day} </i>{time}</span>'


def _draw_lane(name: str, bars: Sequence[_Bar], *, scale: _Scale) -> str:
    """The instants of one writer; those at the same time below each other."""
    rows: list[int] = []
    drawn = []
    for bar in bars:
        row = next((number for number, ended in enumerate(rows) if ended <= bar.began_ms), len(rows))
        rows[row : row + 1] = [bar.ended_ms]
        drawn.append(_draw_bar(bar, scale, row=row))
    return f'<h2>{escape(name)}</h2><div class="lane" style="height:{len(rows) * 1.5}rem">{"".join(drawn)}</div>'


def _draw_bar(bar: _Bar, scale: _Scale, *, row: int) -> str:
    left = scale.place(bar.began_ms)
    width = max(_LEAST_PERCENT, scale.place(bar.ended_ms) - left)
    place = f"left:{min(left, 100 - _LEAST_PERCENT):.2f}%;width:{width:.2f}%;top:{row * 1.5}rem"
    return f'<a class="bar {bar.classes}" href="#{_name(bar.one)}" style="{place}" title="{_tell(bar)}"></a>'


def _tell(bar: _Bar) -> str:
    one = bar.one
    what = " ".join(filter(None, (one.requested, one.action, one.operation, one.state.lower())))
    return escape(f"{what}, {(bar.ended_ms - bar.began_ms) / 1000:.1f} s")


def _write_row(one: Activity) -> str:
    rows = f"+{one.rows_inserted:,} ~{one.rows_updated:,} -{one.rows_deleted:,}"
    cells = (
        one.requested,
        say_time(one.began_ms)[:19],
        say_time(one.completed_ms)[:19],
        one.action,
        one.operation,
        one.state.lower(),
        rows if one.file_groups else "",
        one.writer,
        "" if one.fencing_token is None else str(one.fencing_token),
    )
    told = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr id="{_name(one)}">{told}</tr>'


def _name(one: Activity) -> str:
    """Of its row in the page."""
    return escape(f"{one.action}-{one.requested}")


STYLE: Final = """:root {
  color-scheme: light dark;
  --ground: #fff; --text: #1b1f24; --quiet: #57606a; --line: #d0d7de;
  --write: #0969da; --replace: #8250df; --compact: #1a7f37; --undo: #bc4c00; --other: #6e7781;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0d1117; --text: #e6edf3; --quiet: #9198a1; --line: #30363d;
    --write: #4493f8; --replace: #ab7df8; --compact: #3fb950; --undo: #f0883e; --other: #9198a1;
  }
}
body { margin: 1rem auto; max-width: 80rem; padding: 0 1rem; font: 1rem/1.4 system-ui, sans-serif;
  background: var(--ground); color: var(--text); }
h1 { font-size: 1.25rem; overflow-wrap: anywhere; }
h2 { font-size: .9rem; margin: .75rem 0 .25rem; overflow-wrap: anywhere; }
p, .axis { color: var(--quiet); font-size: .8rem; }
.axis { position: relative; height: 1.4rem; overflow: hidden; border-bottom: 1px solid var(--line); }
.axis span { position: absolute; overflow: hidden; white-space: nowrap; box-sizing: border-box;
  border-left: 1px solid var(--line); padding-left: .25rem; }
.axis i { font-style: normal; }
@media (max-width: 48rem) { .axis i { display: none; } }
.lane { position: relative; border-bottom: 1px solid var(--line); }
.bar { position: absolute; height: 1.1rem; border-radius: 2px; box-sizing: border-box; }
.write { background: var(--write); } .replace { background: var(--replace); } .compact { background: var(--compact); }
.undo { background: var(--undo); } .other { background: var(--other); }
.pending { opacity: .55; border: 2px dashed var(--text); }
ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem 1rem; font-size: .8rem; }
li i { display: inline-block; box-sizing: border-box; width: .9rem; height: .9rem;
  margin-right: .35rem; vertical-align: -.1rem; }
.wide { overflow-x: auto; }
.wide + .wide { margin-top: .75rem; }
table { border-collapse: collapse; font-size: .8rem; white-space: nowrap; }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--line); }
tr:target { outline: 2px solid var(--write); }"""
"""Of a page that shows `draw_instants`."""
_PICTURE: Final = Template(
    """$axis
$lanes
<ul>$legend</ul>
<div class="wide"><table>
<thead><tr><th>instant</th><th>begun</th><th>completed</th><th>action</th><th>operation</th><th>state</th><th>rows</th>
<th>writer</th><th>token</th></tr></thead>
<tbody>$rows</tbody>
</table></div>"""
)
_PAGE: Final = Template(
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
<title>Timeline of $title</title>
<style>
$style
</style>
</head>
<body>
<h1>Timeline of $title</h1>
<p>As it was at $when. Times are in UTC; a time in which nothing happened is drawn short.</p>
$drawn
</body>
</html>
"""
)
