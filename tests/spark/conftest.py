"""Fixtures of the pipeline's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from combinations import leave_combinations

from hudi_locks.spark import HoodieTable

Rows = list[dict[str, Any]]

COLUMNS = "id string, month string, ts long, value double"
FAST = {"hoodie.upsert.shuffle.parallelism": "2", "hoodie.time.generator.max_expected_clock_skew_ms": "1"}
"""Few tasks, since the rows of a test are few, and no wait for the clocks of other machines."""

SESSIONS = [
    ("UTC", "true"),
    ("America/New_York", "false"),
    pytest.param(("UTC", "false"), marks=pytest.mark.nightly),
    pytest.param(("America/New_York", "true"), marks=pytest.mark.nightly),
]

_AT_LENGTH = frozenset(
    {
        "test_a_job_that_meets_an_earlier_writer_fails_after_the_last_retry_and_the_next_goes_on",
        "test_a_test_that_hangs_fails_alone",
        "test_executors_without_the_package_are_refused_in_one_sentence",
        "test_what_a_killed_clustering_left_is_removed_and_clustered_anew",
    }
)
"""What takes a minute, and shows in one piece what shorter tests show of each step."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the nightly run what other tests show."""
    ours = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    for item in ours:
        if getattr(item, "originalname", item.name) in _AT_LENGTH:
            item.add_marker(pytest.mark.nightly)
    leave_combinations(ours)


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


@pytest.fixture(params=SESSIONS, ids=lambda session: "-".join(session))
def session(spark: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """One with another zone and other rules for bad values."""
    names = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
    before = [spark.conf.get(name) for name in names]
    for name, value in zip(names, request.param, strict=True):
        spark.conf.set(name, value)
    yield spark
    for name, value in zip(names, before, strict=True):
        spark.conf.set(name, value)
