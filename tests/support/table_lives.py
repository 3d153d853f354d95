"""What tests of a table's whole life share, wherever it lies: its kinds, its rows, and those that must be there."""

from __future__ import annotations

from typing import Any

from other_readers import COLUMNS, Rows

__all__ = ["TYPES", "collect", "make_rows", "merge"]

TYPES = {
    "COPY_ON_WRITE": {"hoodie.index.type": "SIMPLE"},
    "MERGE_ON_READ": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}


def make_rows(ids: range, ts: int, label: str) -> list[tuple[Any, ...]]:
    return [(f"{number:03}", f"r{number % 2}", ts, float(number), label) for number in ids]


def merge(*parts: Rows) -> list[tuple[Any, ...]]:
    return sorted({row[0]: row for part in parts for row in part}.values())


def collect(found: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in found.select(*COLUMNS).collect()), key=repr)
