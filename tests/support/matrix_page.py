"""The table of docs/compatibility.md that says what becomes of each kind of table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from other_readers import JvmError
from table_kinds import TABLES

from hudi_locks.errors import HudiLocksError

__all__ = ["EQUAL", "NOT_RUN", "Outcome", "describe_failure", "find_row", "find_word", "write_row"]

EQUAL: Final = "equal"
NOT_RUN: Final = "not run"
_HEAD: Final = "| table | Hudi | read | written | services |\n|---|---|---|---|---|\n"


@dataclass(frozen=True)
class Outcome:
    """What came of one table: "equal", "refused: …", "not by Hudi: …", or what was wrong.

    Attributes:
        read: Our reader beside the JVM.
        written: Every reader after an upsert of ours.
        services: Every reader after each table service, of ours and of the JVM.
    """

    read: str
    written: str
    services: str = NOT_RUN


def find_word(step: Callable[[], str]) -> str:
    """What a step found; the key for which this package refused it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return step()
    except HudiLocksError as error:
        return f"refused: {getattr(error, 'key', None) or type(error).__name__}"


def describe_failure(error: JvmError) -> str:
    """The class of the first cause of what JVM Hudi itself cannot do."""
    return f"not by Hudi: {str(error).split(':')[0].split(' > ')[-1].split('.')[-1]}"


def find_row(page: Path, name: str, release: str) -> Outcome:
    """What the page says of a kind of table of that release.

    Raises:
        LookupError: It has no such row.
    """
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[:2] == [name, release]:
            return Outcome(*(cell.strip("`") for cell in cells[2:5]))
    raise LookupError(f"{page.name} has no row of {name!r} for {release}")


def write_row(page: Path, name: str, release: str, outcome: Outcome) -> None:
    """Put what was found into the page, in the order of the kinds."""
    text = page.read_text(encoding="utf-8")
    head, found, after = text.partition(_HEAD)
    if not found:
        raise LookupError(f"{page.name} has no table of kinds")
    lines = after.splitlines(keepends=True)
    end = next((at for at, line in enumerate(lines) if not line.startswith("|")), len(lines))
    rows = {tuple(cell.strip() for cell in line.split("|")[1:3]): line for line in lines[:end]}
    rows[name, release] = f"| {name} | {release} | {outcome.read} | {outcome.written} | {outcome.services} |\n"
    order = {kind: place for place, kind in enumerate(TABLES)}
    kept = sorted(rows.items(), key=lambda row: (order.get(row[0][0], len(order)), row[0][1]))
    page.write_text(head + found + "".join(line for _, line in kept) + "".join(lines[end:]), encoding="utf-8")
