"""The JVM bundle in a process of its own, hudi-rs and our pipeline, side by side."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance.servers import Server, ServerUnavailable
from other_readers import COLUMNS, DEADLINE_S, OURS, SCHEMA, Jvm, Rows, read_rust

from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

BUNDLES = [("1.0.2", 8), pytest.param(("1.1.1", 9), marks=pytest.mark.nightly), ("1.2.0", 9)]
"""Releases of JVM Hudi with the table version that they write; one test of the one between is in every run."""

_OLDER = "1.0.2"
_BY_THE_NEWEST = (
    "test_bloom_filters",
    "test_catalogs",
    "test_change_logs",
    "test_dropped_columns",
    "test_column_types",
    "test_damage",
    "test_deleting_rows",
    "test_interop",
    "test_keys_of_both",
    "test_log_compaction",
    "test_matrix",
    "test_object_stores",
    "test_timeline_server",
    "test_widened_columns",
    # Tests of the modules that ask both bundles.
    "test_a_jvm_compaction_takes_our_logs_and_later_ones_lie_on_top",
    "test_a_jvm_compaction_that_is_not_told_the_ordering_field_keeps_what_is_newer",
    "test_a_jvm_writer_with_the_bloom_index_finds_the_keys_of_our_files",
    "test_a_jvm_writer_works_beside_our_clustering",
    "test_a_key_that_was_deleted_may_come_again",
    "test_a_log_that_began_before_a_compaction_and_ended_after_it_is_archived_once_another_one_took_it",
    "test_an_overwrite_of_the_jvm_beside_a_writer_that_does_not_block_is_a_conflict",
    "test_both_fill_the_same_columns_before_and_after_a_compaction",
    "test_cleaning_and_archival_of_both_kinds_go_on_from_each_other",
    "test_cleans_and_archival_of_both_kinds_go_on_from_each_other",
    "test_each_respects_what_the_other_plans_to_cluster",
    "test_logs_of_a_write_that_died_are_rolled_back_by_the_jvm",
    "test_nobody_sees_the_first_write_of_a_table_before_it_is_completed_though_a_later_one_is",
    "test_readers_open_what_the_metadata_table_leaves_and_go_on_without_it",
    "test_rows_that_the_jvm_hides_behind_its_range_of_a_column_with_nan_are_told",
    "test_savepoints_and_restores_of_both_kinds_are_understood",
    "test_the_jvm_reads_and_adds_to_what_we_compacted",
    "test_the_jvm_reads_and_adds_to_what_we_took_back_to_a_savepoint",
    "test_the_jvm_goes_on_after_we_alone_compacted_cleaned_and_archived_for_long",
    "test_three_readers_agree_on_what_changed_in_a_span",
    "test_writers_of_both_kinds_in_different_partitions_do_not_disturb_each_other",
    "test_writers_of_both_kinds_wait_as_long_for_the_clocks_of_others",
)
"""What these modules and tests ask of the older bundle the nightly run asks: other pairs meet both in every run."""


_IN_PAIRS = frozenset(
    {
        "test_the_jvm_goes_on_with_such_a_table_of_ours[1.2.0-v9]",
        "test_both_make_the_same_of_the_same_rows[1.0.2-v8-PartialUpdateAvroPayload-MERGE_ON_READ]",
        "test_both_make_the_same_of_the_same_rows[1.0.2-v8-OverwriteNonDefaultsWithLatestAvroPayload-COPY_ON_WRITE]",
        "test_both_make_the_same_of_the_same_rows[1.0.2-v8-EventTimeAvroPayload-COPY_ON_WRITE]",
        "test_both_make_the_same_of_the_same_rows[1.0.2-v8-EventTimeAvroPayload-MERGE_ON_READ]",
        "test_both_make_the_same_of_the_same_rows[1.2.0-v9-PartialUpdateAvroPayload-COPY_ON_WRITE]",
        "test_both_make_the_same_of_the_same_rows[1.2.0-v9-PartialUpdateAvroPayload-MERGE_ON_READ]",
        "test_both_make_the_same_of_the_same_rows[1.2.0-v9-OverwriteNonDefaultsWithLatestAvroPayload-COPY_ON_WRITE]",
        "test_both_make_the_same_of_the_same_rows[1.2.0-v9-OverwriteNonDefaultsWithLatestAvroPayload-MERGE_ON_READ]",
        "test_both_make_the_same_of_the_same_rows[1.2.0-v9-EventTimeAvroPayload-COPY_ON_WRITE]",
        "test_both_make_the_same_of_the_same_rows[1.2.0-v9-EventTimeAvroPayload-MERGE_ON_READ]",
        "test_both_write_in_turns[1.2.0-v9-two]",
        "test_changes_of_both_are_found_by_cdc_queries[1.2.0-v9-COPY_ON_WRITE-OP_KEY_ONLY]",
        "test_changes_of_both_are_found_by_cdc_queries[1.2.0-v9-COPY_ON_WRITE-DATA_BEFORE_AFTER]",
        "test_changes_of_both_are_found_by_cdc_queries[1.2.0-v9-MERGE_ON_READ-OP_KEY_ONLY]",
        "test_both_find_the_keys_of_the_other_by_the_index_and_keep_it[1.0.2-v8-COPY_ON_WRITE]",
        "test_both_find_the_keys_of_the_other_by_the_index_and_keep_it[1.0.2-v8-MERGE_ON_READ]",
        "test_both_find_the_keys_of_the_other_by_the_index_and_keep_it[1.2.0-v9-COPY_ON_WRITE]",
        "test_the_jvm_goes_by_an_index_that_we_made[1.0.2-v8-COPY_ON_WRITE]",
        "test_the_jvm_goes_by_an_index_that_we_made[1.2.0-v9-MERGE_ON_READ]",
        "test_a_table_without_partitions_has_such_an_index_too[1.0.2-v8]",
        "test_logs_tell_which_keys_they_take_out[1.0.2-v8-MERGE_ON_READ]",
        "test_an_index_that_is_dropped_is_made_anew_by_the_jvm[1.0.2-v8-MERGE_ON_READ]",
        "test_an_index_that_looks_into_base_files_alone_is_refused[1.0.2-v8-MERGE_ON_READ]",
        "test_rows_move_and_file_groups_end_and_the_index_follows[1.0.2-v8-MERGE_ON_READ]",
        "test_rows_move_and_file_groups_end_and_the_index_follows[1.2.0-v9-COPY_ON_WRITE]",
        "test_rows_move_and_file_groups_end_and_the_index_follows[1.2.0-v9-MERGE_ON_READ]",
        "test_an_unpartitioned_table_has_no_statistics_of_partitions_and_is_kept_too[1.0.2-v8]",
        "test_jvm_writers_that_go_by_the_filters_find_our_keys[1.2.0-v9-COPY_ON_WRITE]",
        "test_null_and_the_empty_text[cow-plain-1.2.0-v9]",
        "test_null_and_the_empty_text[mor-hive-1.2.0-v9]",
        "test_both_write_in_turns_and_every_reader_sees_every_row[1.0.2-v8-MERGE_ON_READ]",
        "test_both_write_in_turns[1.0.2-v8-custom-MERGE_ON_READ]",
        "test_both_write_in_turns[1.0.2-v8-numbers-COPY_ON_WRITE]",
        "test_both_write_in_turns[1.0.2-v8-texts-MERGE_ON_READ]",
        "test_both_write_in_turns[1.2.0-v9-custom-COPY_ON_WRITE]",
        "test_both_write_in_turns[1.2.0-v9-numbers-MERGE_ON_READ]",
        "test_both_write_in_turns[1.2.0-v9-texts-COPY_ON_WRITE]",
        "test_both_write_logs_and_base_files_in_turns[1.0.2-v8]",
        "test_the_jvm_goes_on_with_a_table_that_we_made[1.0.2-v8-custom]",
        "test_the_jvm_goes_on_with_a_table_that_we_made[1.0.2-v8-numbers]",
        "test_the_jvm_goes_on_with_a_table_that_we_made[1.2.0-v9-texts]",
        "test_the_jvm_goes_on_with_a_table_that_we_made[1.2.0-v9]",
        "test_both_write_in_turns_and_every_reader_sees_every_row[1.2.0-v9-COPY_ON_WRITE]",
        "test_filters_find_what_a_restore_brought_back[1.0.2-v8-COPY_ON_WRITE]",
        "test_filters_find_what_a_restore_brought_back[1.2.0-v9-COPY_ON_WRITE]",
        "test_filters_find_what_a_restore_brought_back[1.2.0-v9-MERGE_ON_READ]",
        "test_filters_on_columns_of_every_type_find_what_we_wrote[1.0.2-v8]",
        "test_statistics_by_footers_are_those_of_the_jvm_for_every_type[1.0.2-v8-MERGE_ON_READ]",
        "test_the_jvm_goes_by_one_that_we_made_and_keeps_it[1.0.2-v8-COPY_ON_WRITE]",
        "test_the_jvm_goes_by_one_that_we_made_and_keeps_it[1.0.2-v8-MERGE_ON_READ]",
        "test_the_jvm_goes_by_one_that_we_made_and_keeps_it[1.2.0-v9-COPY_ON_WRITE]",
        "test_the_option_makes_one_for_a_table_without_partitions_and_the_jvm_goes_on[1.0.2-v8]",
        "test_the_option_makes_one_for_a_table_without_partitions_and_the_jvm_goes_on[1.2.0-v9]",
        "test_three_readers_agree_on_our_logs_and_a_jvm_writer_goes_on[1.0.2-v8-parquet]",
        "test_three_readers_agree_on_our_logs_and_a_jvm_writer_goes_on[1.2.0-v9-avro]",
        "test_under_a_global_index_both_keep_one_row_for_a_key_that_changes_its_partition[1.2.0-v9-moving-COPY_ON_WRITE]",
        "test_under_a_global_index_both_keep_one_row_for_a_key_that_changes_its_partition[1.2.0-v9-staying-MERGE_ON_READ]",
        "test_three_readers_agree_on_logs_that_became_one_and_a_jvm_writer_goes_on[1.2.0-v9-avro alone]",
        "test_the_metadata_table_of_the_jvm_names_what_is_there_through_compactions_and_cleans[1.2.0-v9-COPY_ON_WRITE]",
        "test_the_metadata_table_of_the_jvm_names_what_is_there_through_compactions_and_cleans[1.0.2-v8-MERGE_ON_READ]",
        "test_both_log_to_the_file_groups_that_buckets_have[1.0.2-v8]",
        "test_both_write_in_turns_and_every_reader_sees_every_row[1.0.2-v8-COPY_ON_WRITE]",
        "test_statistics_by_footers_are_those_of_the_jvm_for_every_type[1.2.0-v9-COPY_ON_WRITE]",
        "test_the_metadata_table_of_the_jvm_names_what_is_there_through_compactions_and_cleans[1.0.2-v8-COPY_ON_WRITE]",
        "test_both_write_in_turns[1.0.2-v8-custom-COPY_ON_WRITE]",
        "test_both_write_in_turns[1.0.2-v8-numbers-MERGE_ON_READ]",
        "test_both_write_in_turns[1.0.2-v8-texts-COPY_ON_WRITE]",
        "test_the_jvm_goes_on_with_a_table_that_we_made[1.0.2-v8]",
        "test_a_marker_of_the_table_is_one_to_us[1.2.0-v9-COPY_ON_WRITE]",
        "test_a_row_with_the_flag_is_a_delete_to_everybody[1.2.0-v9-MERGE_ON_READ]",
        "test_an_initial_load_leaves_deletes_out[1.2.0-v9-COPY_ON_WRITE]",
        "test_changes_of_the_migration_service_are_applied[1.2.0-v9-MERGE_ON_READ]",
        "test_our_compaction_leaves_out_what_the_flag_took[1.2.0-v9-COPY_ON_WRITE]",
        "test_a_table_lives_its_life[azurite-MERGE_ON_READ]",
        "test_a_table_lives_its_life[fake_gcs-COPY_ON_WRITE]",
        "test_a_table_lives_its_life[webhdfs-COPY_ON_WRITE]",
        "test_a_table_lives_its_life[COPY_ON_WRITE]",
        "test_several_writers_lose_nothing[MERGE_ON_READ]",
        "test_the_jvm_reads_and_writes_the_same_table[1.2.0-COPY_ON_WRITE]",
        "test_a_commit_that_the_metadata_table_does_not_know_would_be_invisible[1.0.2-v8]",
        "test_readers_that_ask_for_a_metadata_table_see_our_commits_in_tables_of_ours[1.2.0-v9]",
        "test_verification_tells_what_the_metadata_table_misses_and_names_in_vain[1.0.2-v8]",
        "test_a_table_in_a_bucket_is_read_as_on_the_disk[1.2.0-v9-COPY_ON_WRITE]",
        "test_both_write_in_turns[1.2.0-v9-texts-MERGE_ON_READ]",
        "test_the_jvm_goes_on_with_a_table_that_we_made[1.2.0-v9-numbers]",
        "test_the_metastore_has_what_the_sync_of_the_jvm_puts_there[1.2.0-v9-copy on write]",
        "test_keys_of_tables_with_two_partition_fields_are_the_same_to_both[1.2.0-v9-one]",
        "test_writers_of_both_kinds_wait_as_long_for_the_clocks_of_others[1.2.0-v9-alone]",
        "test_writers_of_both_kinds_wait_as_long_for_the_clocks_of_others[1.2.0-v9-in-process]",
        "test_a_jvm_writer_beside_ours_on_one_file_group_meets_no_conflict[1.0.2-v8]",
        "test_formatted_times_say_nothing_of_the_column[cow-1.2.0-v9]",
        "test_null_and_the_empty_text[cow-hive-1.2.0-v9]",
        "test_a_key_of_the_jvm_is_found_and_ours_is_found_by_it[1.2.0-v9-none]",
        "test_one_key_column_of_a_complex_generator_is_written_as_the_rows_have_it[1.2.0-v9-false]",
        "test_an_upsert_asks_no_more_often_than_the_page_says[fake_gcs-8]",
        "test_both_write_in_turns[1.2.0-v9-one]",
        "test_a_catalog_is_told_the_types_that_the_jvm_tells[1.2.0-v9-false]",
    }
)
"""Of these every run has another bundle, type of table or service, and the nightly run all."""


def _name_bundle(bundle: tuple[str, int]) -> str:
    return f"{bundle[0]}-v{bundle[1]}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one bundle go to one process, so that it is started once; those without it go anywhere."""
    for item in items:
        bundle = getattr(item, "callspec", None) and item.callspec.params.get("jvm")  # type: ignore[attr-defined]
        if bundle:
            item.add_marker(pytest.mark.xdist_group(f"bundle {bundle[0]}"))
        name = getattr(item, "originalname", item.name)
        is_late = bundle and bundle[0] == _OLDER and not {item.path.stem, name}.isdisjoint(_BY_THE_NEWEST)
        if is_late or item.name in _IN_PAIRS:
            item.add_marker(pytest.mark.nightly)


@pytest.fixture(scope="session", params=BUNDLES, ids=_name_bundle)
def jvm(request: pytest.FixtureRequest) -> Iterator[Jvm]:
    """One agent for each bundle: a JVM cannot hold two."""
    import pyspark

    if not pyspark.__version__.startswith("3.5."):
        pytest.skip(f"the bundles are for Spark 3.5, and this is {pyspark.__version__}: run tox -e interop")
    try:
        agent = Jvm(*request.param)
    except ServerUnavailable as error:
        pytest.skip(str(error))
    yield agent
    agent.close()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def create(spark: Any, jvm: Jvm, path: str) -> Callable[..., HoodieTable]:
    """A new table of ours, of the version that the bundle writes."""

    def make(**changes: Any) -> HoodieTable:
        options = {**OURS, "hoodie.write.table.version": str(jvm.table_version), **changes.pop("options", {})}
        options.setdefault("hoodie.datasource.write.hive_style_partitioning", "true")
        settings = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts", **changes}
        return HoodieTable.create(spark, path, options=options, **settings)

    return make


@pytest.fixture
def frame(spark: Any) -> Callable[[Rows], Any]:
    return lambda rows: spark.createDataFrame(list(rows), SCHEMA).coalesce(1)


@pytest.fixture
def rust() -> Callable[..., list[tuple[Any, ...]]]:
    return lambda table, **options: read_rust(table.path, **options)


@pytest.fixture
def all_read(jvm: Jvm) -> Callable[[HoodieTable], list[tuple[Any, ...]]]:
    """The rows of a table that is sound, after the JVM, hudi-rs and our reader agreed on them."""

    def read(table: HoodieTable) -> list[tuple[Any, ...]]:
        ours = sorted((tuple(row) for row in table.read().select(*COLUMNS).collect()), key=repr)
        assert jvm.read(table) == ours
        assert read_rust(table.path) == ours
        assert verify_table(table.table.storage).damages == ()
        return ours

    return read


class Gate:
    """A named pipe at which a JVM writer waits in the middle of its write."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        os.mkfifo(path)

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Inside the block the writer waits; at its end it goes on."""
        opened: Future[int] = Future()
        threading.Thread(target=lambda: opened.set_result(os.open(self.path, os.O_WRONLY)), daemon=True).start()
        pipe = opened.result(DEADLINE_S)
        try:
            yield
        finally:
            Path(f"{self.path}.passed").touch()
            os.close(pipe)


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


@pytest.fixture
def zookeeper_lock(zookeeper: Server) -> tuple[dict[str, str], dict[str, str]]:
    """Options of the lock that both take, as ours and as the JVM's."""
    own = f"/{uuid.uuid4().hex}"
    given = {
        "hoodie.write.lock.zookeeper.url": zookeeper.options["hoodie.write.lock.zookeeper.url"],
        "hoodie.write.lock.zookeeper.base_path": own,
        "hoodie.write.lock.zookeeper.lock_key": "t",
    }
    java = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
    return (
        {**given, "hoodie.write.lock.provider": "zookeeper"},
        {**given, "hoodie.write.lock.provider": java},
    )
