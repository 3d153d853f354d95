"""The broken providers as a table for people, kept in the documentation.

`python -m hudi_locks_conformance.broken docs/conformance.md` writes it there anew, between two marks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hudi_locks import LockProvider
from hudi_locks_conformance import CHECKS
from hudi_locks_conformance.broken import BROKEN

__all__ = ["BEGIN", "END", "put_table", "render_table", "write_table"]

BEGIN: Final = "<!-- broken providers: begin -->"
END: Final = "<!-- broken providers: end -->"


def render_table() -> str:
    """One row for each class: its name, its fault, and the checks that catch it."""
    rows = [f"| `{kind.__name__}` | {_say_fault(kind)} | {_name(checks)} |" for kind, checks in BROKEN]
    return "\n".join(["| class | its fault | caught by |", "|---|---|---|", *rows])


def _say_fault(kind: type[LockProvider]) -> str:
    sentence = " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
    return sentence.rstrip(".").replace("|", "\\|")


def _name(checks: tuple[str, ...]) -> str:
    return ", ".join(f"{check_id} {CHECKS[check_id].name}" if len(checks) == 1 else check_id for check_id in checks)


def put_table(page: str) -> str:
    """The page with the present table in its place.

    Raises:
        ValueError: It has no such place.
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no lines {BEGIN} and {END}, between which the table would stand")
    return f"{head}{BEGIN}\n{render_table()}\n{END}{tail}"


def write_table(path: Path) -> None:
    """Write the present table into a file."""
    path.write_text(put_table(path.read_text(encoding="utf-8")), encoding="utf-8")
