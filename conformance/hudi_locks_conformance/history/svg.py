"""A history as a picture: time runs to the right, from event to event; each process has a lane."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from hudi_locks_conformance.history.overlaps import find_overlaps
from hudi_locks_conformance.history.record import History, Operation
from hudi_locks_conformance.history.timeline import MOST_EVENTS

__all__ = ["draw_svg"]

_WIDTH, _LEFT, _LANE, _TOP, _BAR = 960, 190, 34, 30, 16
_HELD, _TWICE, _EVENT, _INK = "#4878a8", "#c0392b", "#555555", "#222222"
_MS: Final = 1e6


@dataclass(frozen=True)
class _Frame:
    """Which processes have a lane, and which times are shown, all events at the same distance."""

    lanes: list[str]
    times_ns: list[int]

    def x(self, t_ns: int) -> float:
        """Where a time lies, within the frame."""
        after = bisect_left(self.times_ns, t_ns)
        place = float(min(after, len(self.times_ns) - 1))
        if 0 < after < len(self.times_ns):
            before_ns = self.times_ns[after - 1]
            place += (t_ns - before_ns) / (self.times_ns[after] - before_ns) - 1
        return round(_LEFT + place / max(len(self.times_ns) - 1, 1) * (_WIDTH - _LEFT - 20), 1)

    def y(self, process: str) -> int:
        """The middle of a lane."""
        return _TOP + self.lanes.index(process) * _LANE + _LANE // 2


def draw_svg(history: History, last: int = MOST_EVENTS) -> str:
    """The last events of a history as SVG; holds are bars, red where two of them meet."""
    shown = history.operations[-last:]
    if not shown:
        return '<svg xmlns="http://www.w3.org/2000/svg"/>'
    frame = _Frame(list(dict.fromkeys(one.process for one in shown)), sorted({one.t_ns for one in shown}))
    height = _TOP + len(frame.lanes) * _LANE + 26
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif"'
        f' font-size="12" fill="{_INK}">'
    )
    return "\n".join(
        [head, *_draw_lanes(frame, height), *_draw_holds(history, frame), *_draw_events(shown, frame), "</svg>"]
    )


def _draw_lanes(frame: _Frame, height: int) -> Iterator[str]:
    for name in frame.lanes:
        y = frame.y(name)
        yield f'<text x="8" y="{y + 4}">{escape(name[:26])}</text>'
        yield f'<line x1="{_LEFT}" y1="{y}" x2="{_WIDTH - 20}" y2="{y}" stroke="#dddddd"/>'
    span_ms = (frame.times_ns[-1] - frame.times_ns[0]) / _MS
    yield f'<text x="{_LEFT}" y="{height - 8}">0</text>'
    yield f'<text x="{_WIDTH - 20}" y="{height - 8}" text-anchor="end">{span_ms:.3f} ms, not to scale</text>'


def _draw_holds(history: History, frame: _Frame) -> Iterator[str]:
    for hold in history.holds():
        if hold.process in frame.lanes and hold.end_ns >= frame.times_ns[0]:
            said = f"{hold.process}, hold {hold.number}"
            yield _draw_bar(frame, hold.process, span=(hold.begin_ns, hold.end_ns), colour=_HELD, said=said)
    for overlap in find_overlaps(history):
        span = (overlap.second.begin_ns, min(overlap.first.end_ns, overlap.second.end_ns))
        for hold in (overlap.first, overlap.second):
            if hold.process in frame.lanes and span[1] >= frame.times_ns[0]:
                yield _draw_bar(frame, hold.process, span=span, colour=_TWICE, said=str(overlap))


def _draw_bar(frame: _Frame, process: str, *, span: tuple[int, int], colour: str, said: str) -> str:
    left, right = frame.x(span[0]), frame.x(span[1])
    place = f'x="{left}" y="{frame.y(process) - _BAR // 2}" width="{max(right - left, 3):.1f}" height="{_BAR}"'
    return f'<rect {place} fill="{colour}"><title>{escape(said)}</title></rect>'


def _draw_events(shown: Sequence[Operation], frame: _Frame) -> Iterator[str]:
    for one in shown:
        x, y = frame.x(one.t_ns), frame.y(one.process)
        token = "" if one.token is None else f" token {one.token}"
        said = escape(f"{one.f} {one.type}{token} at {(one.t_ns - frame.times_ns[0]) / _MS:.3f} ms")
        fill = "white" if one.type == "invoke" else _EVENT
        yield f'<circle cx="{x}" cy="{y}" r="3" fill="{fill}" stroke="{_EVENT}"><title>{said}</title></circle>'
