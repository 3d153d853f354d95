"""The page of keys tells the truth."""

from __future__ import annotations

from pathlib import Path

from hudi_locks.config import KEYS

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_every_key_is_listed_with_its_default_and_aliases() -> None:
    rows = {line.split("|")[1].strip(" `"): line for line in PAGE.read_text().splitlines() if line.startswith("| `")}
    for name, key in KEYS.items():
        assert key.doc in rows[name]
        shown = str(key.default).lower() if isinstance(key.default, bool) else str(key.default)
        assert key.default in (None, "") or f"`{shown}`" in rows[name]
        assert all(f"`{alias}`" in rows[name] for alias in key.aliases)
    assert set(rows) <= set(KEYS)
