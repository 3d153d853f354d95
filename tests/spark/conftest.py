"""Fixtures of the pipeline's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.spark import HoodieTable

Rows = list[dict[str, Any]]

COLUMNS = "id string, month string, ts long, value double"
FAST = {"hoodie.upsert.shuffle.parallelism": "2", "hoodie.time.generator.max_expected_clock_skew_ms": "1"}
"""Few tasks, since the rows of a test are few, and no wait for the clocks of other machines."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def frame(spark: Any) -> Callable[..., Any]:
    """A DataFrame of tuples."""

    def make(rows: Iterable[tuple[Any, ...]], schema: str = COLUMNS) -> Any:
        return spark.createDataFrame(list(rows), schema).coalesce(1)

    return make


@pytest.fixture
def create(spark: Any, path: str) -> Callable[..., HoodieTable]:
    """A new table at `path` with the columns of COLUMNS, if not told otherwise."""

    def make(*, options: Mapping[str, object] | None = None, **changes: Any) -> HoodieTable:
        settings = {"name": "t", "record_key": "id", "partition_by": "month", "ordering": "ts", **changes}
        return HoodieTable.create(spark, settings.pop("path", path), options={**FAST, **(options or {})}, **settings)

    return make


@pytest.fixture
def load(spark: Any, path: str) -> Callable[..., HoodieTable]:
    """The table at `path` once more, as another writer has it."""

    def make(options: Mapping[str, object] | None = None) -> HoodieTable:
        return HoodieTable.load(spark, path, options={**FAST, **(options or {})})

    return make


@pytest.fixture
def rows_of() -> Callable[..., list[tuple[Any, ...]]]:
    """The user's columns of a table or DataFrame as sorted tuples."""

    def collect(source: Any, *columns: str) -> list[tuple[Any, ...]]:
        found = source.read(meta_columns=False) if isinstance(source, HoodieTable) else source
        names = columns or [name for name in found.columns if not name.startswith("_hoodie_")]
        return sorted((tuple(row) for row in found.select(*names).collect()), key=repr)

    return collect


@pytest.fixture
def files_of(path: str) -> Callable[[], dict[str, bytes]]:
    """Every file below the table, to show that it is untouched."""

    def collect() -> dict[str, bytes]:
        found = sorted(file for file in Path(path).rglob("*") if file.is_file())
        return {str(file.relative_to(path)): file.read_bytes() for file in found}

    return collect
