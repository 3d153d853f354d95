"""How values are shown to people: moments, and the cards of notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from html import escape

__all__ = ["make_card", "say_time"]


def say_time(ms: int | None) -> str:
    """Milliseconds since the epoch as a moment in UTC, to the second; nothing for None."""
    return "" if ms is None else datetime.fromtimestamp(ms // 1000, timezone.utc).isoformat(" ")


def make_card(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """What a notebook shows in place of a repr: a small table in HTML.

    Args:
        title: Above it.
        rows: Names and values; those that are empty are left out.
    """
    known = ((name, value) for name, value in rows if value not in ("", None, ()))
    shown = "".join(f"<tr><th>{escape(name)}</th><td>{_cell(value)}</td></tr>" for name, value in known)
    return f"<table><caption>{escape(title)}</caption>{shown}</table>"


def _cell(value: object) -> str:
    """A value as text, several of a tuple one below the other."""
    many = value if isinstance(value, tuple) else (value,)
    return "<br>".join(escape(str(one)) for one in many)
