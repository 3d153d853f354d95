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
        "test_a_damaged_index_is_done_without_and_told[copy on write]",
        "test_a_delete_finds_its_key_in_whatever_partition[moving]",
        "test_a_merge_on_read_table_shows_no_less_with_logs_and_without[listed-corrupt]",
        "test_a_merge_on_read_table_shows_no_less_with_logs_and_without[told-missing]",
        "test_a_new_table_gets_one_with_its_metadata_table[COPY_ON_WRITE]",
        "test_a_null_says_nothing_and_an_older_row_fills_what_is_missing[MERGE_ON_READ]",
        "test_a_read_of_the_past_does_not_go_by_what_is_now[copy on write]",
        "test_a_restore_says_what_stands_in_its_way[merge on read]",
        "test_a_row_that_is_marked_as_deleted_goes_from_where_it_lies[staying]",
        "test_a_row_whose_partition_changed_moves_or_stays_as_the_option_says[moving-GLOBAL_BLOOM]",
        "test_a_row_whose_partition_changed_moves_or_stays_as_the_option_says[staying-GLOBAL_SIMPLE]",
        "test_a_row_without_a_key_is_refused_as_ever[copy on write]",
        "test_a_table_is_written_read_and_served[COPY_ON_WRITE]",
        "test_a_table_with_a_key_in_two_rows_gets_none_and_stays_as_it_is[MERGE_ON_READ]",
        "test_a_table_with_rows_gets_one_and_writers_go_by_it[MERGE_ON_READ]",
        "test_a_write_into_a_file_group_tells_what_each_row_was_and_is[MERGE_ON_READ]",
        "test_a_write_with_another_index_keeps_the_record_index_too[merge on read]",
        "test_a_writer_whose_options_ask_for_one_is_told_once_that_there_is_none[COPY_ON_WRITE]",
        "test_after_a_restore_it_is_made_anew[COPY_ON_WRITE]",
        "test_an_index_of_single_partitions_is_not_asked[copy on write]",
        "test_an_index_that_was_dropped_since_the_table_was_loaded_is_done_without[merge on read]",
        "test_both_readers_show_the_same_rows[COPY_ON_WRITE]",
        "test_keys_are_found_without_a_look_at_data_files_and_the_index_is_told[merge on read]",
        "test_no_read_shows_less[listed-corrupt]",
        "test_no_read_shows_less[told-missing]",
        "test_no_write_rests_on_what_was_passed_over[listed-corrupt-clustering]",
        "test_no_write_rests_on_what_was_passed_over[listed-corrupt-delete]",
        "test_no_write_rests_on_what_was_passed_over[listed-corrupt-upsert]",
        "test_no_write_rests_on_what_was_passed_over[told-missing-clustering]",
        "test_no_write_rests_on_what_was_passed_over[told-missing-delete]",
        "test_no_write_rests_on_what_was_passed_over[told-missing-upsert]",
        "test_numbers_that_the_table_names_and_the_options_do_not_are_refused[MERGE_ON_READ]",
        "test_one_that_is_damaged_is_made_anew_with_the_metadata_table[MERGE_ON_READ]",
        "test_partitions_may_have_numbers_of_buckets_of_their_own[MERGE_ON_READ]",
        "test_rows_lie_in_the_folders_of_their_times[MERGE_ON_READ]",
        "test_rows_of_one_key_in_several_partitions_become_one_row[staying]",
        "test_rows_of_some_columns_leave_the_others_as_they_are_whoever_was_first[MERGE_ON_READ]",
        "test_some_partitions_are_read_by_it_too[merge on read]",
        "test_the_index_is_compacted_with_the_other_parts_of_the_metadata_table[copy on write]",
        "test_the_later_of_two_writers_gives_up_before_it_writes[bloom]",
        "test_the_later_of_two_writers_gives_up_before_it_writes[transaction]",
        "test_what_another_writer_does_meanwhile_leaves_one_row_for_a_key[copy on write-delete]",
        "test_what_another_writer_does_meanwhile_leaves_one_row_for_a_key[copy on write-upsert]",
        "test_what_another_writer_does_meanwhile_leaves_one_row_for_a_key[merge on read-move]",
        "test_what_another_writer_does_meanwhile_leaves_one_row_for_a_key[merge on read-serve]",
        "test_what_moves_or_ends_is_told[merge on read]",
        "test_what_was_written_since_the_snapshot_counts_for_nothing[copy on write]",
        "test_without_the_option_the_index_is_not_asked[merge on read]",
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
