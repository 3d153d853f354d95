"""Fixtures of the pipeline's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

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

_IN_PAIRS = frozenset(
    {
        "test_a_delete_finds_its_key_in_whatever_partition[moving]",
        "test_a_merge_on_read_table_shows_no_less_with_logs_and_without[listed-corrupt]",
        "test_a_merge_on_read_table_shows_no_less_with_logs_and_without[told-missing]",
        "test_a_row_that_is_marked_as_deleted_goes_from_where_it_lies[staying]",
        "test_a_row_whose_partition_changed_moves_or_stays_as_the_option_says[moving-GLOBAL_BLOOM]",
        "test_a_row_whose_partition_changed_moves_or_stays_as_the_option_says[staying-GLOBAL_SIMPLE]",
        "test_no_read_shows_less[listed-corrupt]",
        "test_no_read_shows_less[told-missing]",
        "test_no_write_rests_on_what_was_passed_over[listed-corrupt-clustering]",
        "test_no_write_rests_on_what_was_passed_over[listed-corrupt-delete]",
        "test_no_write_rests_on_what_was_passed_over[listed-corrupt-upsert]",
        "test_no_write_rests_on_what_was_passed_over[told-missing-clustering]",
        "test_no_write_rests_on_what_was_passed_over[told-missing-delete]",
        "test_no_write_rests_on_what_was_passed_over[told-missing-upsert]",
        "test_rows_of_one_key_in_several_partitions_become_one_row[staying]",
        "test_the_later_of_two_writers_gives_up_before_it_writes[bloom]",
        "test_the_later_of_two_writers_gives_up_before_it_writes[transaction]",
        "test_what_another_writer_does_meanwhile_leaves_one_row_for_a_key[copy on write-delete]",
        "test_what_another_writer_does_meanwhile_leaves_one_row_for_a_key[copy on write-upsert]",
        "test_what_another_writer_does_meanwhile_leaves_one_row_for_a_key[merge on read-move]",
        "test_what_another_writer_does_meanwhile_leaves_one_row_for_a_key[merge on read-serve]",
        "test_writers_of_different_file_groups_go_on[bloom]",
        "test_writers_of_different_file_groups_go_on[transaction]",
    }
)
"""Of these every run has the other values of each parameter, and the nightly run all combinations."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the nightly run what other tests show in pairs."""
    for item in items:
        if item.name in _IN_PAIRS:
            item.add_marker(pytest.mark.nightly)


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
