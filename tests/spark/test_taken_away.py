"""A writer that is taken for dead, sleeps, and wakes to files that a clean has removed meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shared_table import SHARED

from hudi_locks.errors import WriteAborted
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.index.simple_index import KeyLookup

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]


def test_a_write_says_that_it_was_rolled_back_and_blames_no_file(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has chosen the base files that it looks its keys up in; Spark says of one that it is not there."""
    table = create(options=SHARED)
    table.insert(frame([("a", "1", 1, 1.0)]))
    (base,) = Path(path).rglob("*.parquet")
    locate = KeyLookup.locate

    def locate_late(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(KeyLookup, "locate", locate)
        shutil.rmtree(Path(path, ".hoodie/.heartbeat"))
        other = load({**SHARED, "hoodie.clean.commits.retained": "1"})
        for ts in (3, 4):
            other.upsert(frame([("a", "1", ts, 1.0)]))
        return locate(*arguments, **named)

    monkeypatch.setattr(KeyLookup, "locate", locate_late)
    with pytest.raises(WriteAborted, match=r"rolled the instant back by claim .* begin a new write") as caught:
        table.upsert(frame([("a", "1", 2, 2.0)]))
    assert not base.exists()
    assert base.name in str(caught.value.__cause__)
    table.upsert(frame([("a", "1", 5, 5.0)]))
    assert rows_of(load(SHARED)) == [("a", "1", 5, 5.0)]
