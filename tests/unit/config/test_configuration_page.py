"""The page of keys tells the truth."""

from __future__ import annotations

from configuration_page import PAGE, render_page

from hudi_locks.config import KEYS


def test_the_page_is_as_its_generator_writes_it() -> None:
    assert render_page(PAGE.read_text()) == PAGE.read_text(), "run python tools/configuration_page.py"


def test_every_key_is_listed() -> None:
    page = PAGE.read_text()
    assert [name for name in KEYS if f"\n| `{name}` |" not in page] == []
