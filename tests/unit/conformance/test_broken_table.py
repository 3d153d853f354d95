"""The table of broken providers in the documentation is the present one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_locks_conformance.broken import BROKEN
from hudi_locks_conformance.broken.table import put_table, render_table
from hudi_locks_conformance.storm import run_in_process

PAGE = Path(__file__).parents[3] / "docs" / "conformance.md"


def test_the_page_holds_the_present_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert put_table(page) == page, "type: python -m hudi_locks_conformance.broken docs/conformance.md"


def test_every_class_has_its_fault_and_its_check() -> None:
    rows = render_table().splitlines()[2:]
    assert len(rows) == len(BROKEN)
    (row,) = [row for row in rows if row.startswith("| `NotAtomic` |")]
    assert row.startswith("| `NotAtomic` | Looks whether the name is free, and then makes the file | B2, B3, ")
    assert all(cell.strip() for row in rows for cell in row.strip("|").split(" | "))


def test_the_command_writes_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- broken providers: begin -->\nold\n<!-- broken providers: end -->\nafter\n")
    run_in_process(["-m", "hudi_locks_conformance.broken", str(page)])
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert "old" not in lines
    assert len(lines) == len(BROKEN) + 6
    with pytest.raises(ValueError, match="has no lines"):
        put_table("nothing")
