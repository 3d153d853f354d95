"""A table's index is part of the table: a writer with another one would double rows, and is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import ConfigError, UnsupportedTable
from hudi_locks.spark import HoodieTable

BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
ROWS = [(f"k{i}", "m1", 1, float(i)) for i in range(40)]


@pytest.fixture
def forget(path: str) -> Callable[[], None]:
    """Make the table one of a JVM writer, which keeps its index to itself."""

    def drop_lines() -> None:
        properties = Path(path, ".hoodie", "hoodie.properties")
        lines = properties.read_text().splitlines(keepends=True)
        properties.write_text("".join(line for line in lines if "index" not in line))

    return drop_lines


@pytest.fixture
def made(create: Callable[..., HoodieTable], frame: Callable[..., Any]) -> HoodieTable:
    table = create(options=BUCKETS)
    table.upsert(frame(ROWS))
    return table


def test_a_table_remembers_its_index(made: HoodieTable, load: Callable[..., HoodieTable], frame: Any) -> None:
    result = load().upsert(frame([(key, month, 2, value) for key, month, _, value in ROWS]))
    assert (result.rows_inserted, result.rows_updated) == (0, 40)
    assert made.read().count() == 40


@pytest.mark.parametrize(
    "other", [{"hoodie.bucket.index.num.buckets": "8"}, {"hoodie.index.type": "SIMPLE"}], ids=["buckets", "kind"]
)
def test_another_index_than_the_tables_is_refused(
    made: HoodieTable, load: Callable[..., HoodieTable], frame: Any, other: dict[str, str]
) -> None:
    with pytest.raises(ConfigError, match="the table was made with"):
        load(other).upsert(frame(ROWS))


@pytest.mark.parametrize(
    "other",
    [
        {**BUCKETS, "hoodie.bucket.index.num.buckets": "8"},
        {**BUCKETS, "hoodie.bucket.index.num.buckets": "3"},
        {"hoodie.index.type": "SIMPLE"},
    ],
    ids=["more", "fewer", "kind"],
)
def test_rows_that_lie_elsewhere_betray_another_index(
    made: HoodieTable, load: Callable[..., HoodieTable], frame: Any, forget: Callable[[], None], other: dict[str, str]
) -> None:
    forget()
    before = made.table.timeline().instants
    with pytest.raises(UnsupportedTable, match="bucket"):
        load(other).upsert(frame(ROWS))
    assert made.table.timeline().instants == before
    assert load(BUCKETS).upsert(frame(ROWS)).rows_inserted == 0


def test_a_simple_table_takes_no_buckets(
    create: Callable[..., HoodieTable], load: Callable[..., HoodieTable], frame: Any
) -> None:
    create().upsert(frame(ROWS))
    with pytest.raises(UnsupportedTable, match="bucket"):
        load(BUCKETS).upsert(frame(ROWS))
