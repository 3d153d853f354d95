"""Merge-on-read tables of the JVM, read to the row that both of Hudi's readers see."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from hudi_locks.storage import LocalStorage
from hudi_locks.table import PARTITION_PATH, MergeRule, Table, add_meta_schema, latest_file_slices, read_slice


def read_rows(storage: LocalStorage) -> list[dict[str, Any]]:
    table = Table.load(storage)
    timeline = table.timeline()
    schema, rule = add_meta_schema(table.schema(timeline)), MergeRule(table.config.merge_ordering)
    slices = latest_file_slices(storage, timeline)
    return [
        row for piece in slices for rows in read_slice(storage, piece, schema, rule=rule) for row in rows.to_pylist()
    ]


@pytest.mark.parametrize("name", ["v8_mor", "v8_mor_compacted", "v8_mor_nbcc", "v9_mor"])
def test_rows_are_those_of_hudis_readers(
    golden: Callable[[str], LocalStorage], golden_rows: Callable[[str], str], name: str
) -> None:
    expected = [json.loads(line) for line in golden_rows(name).splitlines()]
    for row in expected:
        row["at"] = datetime.fromisoformat(row["at"])
    found = sorted(read_rows(golden(name)), key=lambda row: (row[PARTITION_PATH], row["id"]))
    assert list(map(visible, found)) == expected


def visible(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("_hoodie")}
