"""A table that is written again and again stays small, and can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
FIRST = [("a", "1", 5, 1.0), ("b", "1", 5, 2.0), ("c", "2", 5, 3.0)]


def instants_of(path: str) -> list[str]:
    """Which writes the data files of the first month are of."""
    return sorted(file.stem.rsplit("_", 1)[-1] for file in Path(path, "1").glob("*.parquet"))


def test_old_versions_go_after_writes_and_a_savepoint_brings_the_rows_back(
    create: Create, frame: Frame, rows_of: RowsOf, path: str
) -> None:
    table = create(options={"hoodie.clean.commits.retained": "1", "hudi_locks.sweep_before_write": "true"})
    first = table.bulk_insert(frame(FIRST)).instant
    kept = table.savepoint(user="ada", comments="before the change")
    later = [table.upsert(frame([("a", "1", n, float(n))])) for n in (6, 7, 8)]
    assert all(result.warnings == () for result in later)
    assert instants_of(path) == [first, later[1].instant, later[2].instant]
    assert table.list_savepoints() == [kept]

    assert table.restore(kept.instant).undone == tuple(result.instant for result in reversed(later))
    assert (rows_of(table), instants_of(path)) == (FIRST, [first])
    assert table.delete_savepoint(kept.instant)

    replaced = table.insert_overwrite(frame([("x", "1", 9, 9.0)])).instant
    last = table.upsert(frame([("c", "2", 9, 9.0)]))
    assert last.warnings == ()
    assert instants_of(path) == [replaced]
    assert rows_of(table) == [("c", "2", 9, 9.0), ("x", "1", 9, 9.0)]
    assert table.clean().deleted == table.sweep().leftovers == table.archive().archived == 0
    table.close()
