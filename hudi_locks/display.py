"""How values are shown to people: moments, and in notebooks cards, and lines that tell what is being done."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from html import escape
from typing import Any

__all__ = ["make_card", "open_notebook_line", "say_time"]


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


def open_notebook_line() -> Callable[[str], None] | None:
    """A line in the cell of a notebook that runs now: what it is called with stands there in place of the text before.

    Returns:
        The function; None where no kernel of a notebook runs. IPython is loaded by nobody but the kernel.
    """
    find_shell: Callable[[], Any] = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    if getattr(find_shell(), "kernel", None) is None:
        return None
    display = importlib.import_module("IPython.display").display
    line = display(_make_line(""), raw=True, display_id=True)
    return lambda text: line.update(_make_line(text), raw=True)


def _make_line(text: str) -> dict[str, str]:
    """A text in the forms between which a front end chooses."""
    return {"text/plain": text, "text/html": f"<pre>{escape(text)}</pre>" if text else ""}
