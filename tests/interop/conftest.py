"""The JVM bundle in a process of its own, hudi-rs and our pipeline, side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from combinations import leave_combinations
from hudi_locks_conformance.servers import Server, ServerUnavailable
from other_readers import COLUMNS, DEADLINE_S, OURS, SCHEMA, Jvm, Rows, read_rust

from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

_HERE = Path(__file__).parent
_NEWEST_SPARK = "4.3.0"
_JOB = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
}

BUNDLES = [("1.0.2", 8), pytest.param(("1.1.1", 9), marks=pytest.mark.nightly), ("1.2.0", 9)]
"""Releases of JVM Hudi with the table version that they write; one test of the one between is in every run."""

_OLDER = "1.0.2"
_BY_THE_NEWEST = (
    "test_bloom_filters",
    "test_bootstrapped_tables",
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

_AT_LENGTH = frozenset(
    {
        "test_a_catalog_is_left_alone_while_nothing_changes_if_asked",
        "test_a_clean_of_either_takes_change_logs_and_their_names",
        "test_a_database_is_not_made_where_the_owner_says_so",
        "test_a_file_in_a_codec_that_is_not_here_is_not_called_damaged",
        "test_a_job_that_goes_on_takes_up_a_schema_that_comes_later",
        "test_a_key_that_was_deleted_and_came_again_is_there_after_a_log_compaction",
        "test_a_merge_on_read_table_is_compacted_unless_told_otherwise",
        "test_a_registry_that_is_away_when_a_schema_comes_is_asked_again",
        "test_a_restore_of_the_jvm_that_failed_is_finished",
        "test_a_table_of_another_place_is_left_alone",
        "test_a_table_without_partitions_has_such_an_index_too",
        "test_a_topic_of_avro_is_read_by_the_schema_of_each_writer",
        "test_all_partitions_are_compared_if_asked",
        "test_an_avro_file_without_rows_is_none",
        "test_an_index_that_is_dropped_is_made_anew_by_the_jvm",
        "test_an_initial_load_leaves_deletes_out",
        "test_an_unpartitioned_table_has_no_statistics_of_partitions_and_is_kept_too",
        "test_avro_files_of_older_and_newer_writers_become_rows",
        "test_both_find_keys_by_the_record_index_that_it_has",
        "test_both_keep_the_record_index_and_find_keys_by_it",
        "test_both_write_logs_and_base_files_in_turns",
        "test_buckets_of_prefixed_keys_are_the_same_to_both",
        "test_cleans_and_archival_of_both_kinds_go_on_from_each_other",
        "test_cleans_savepoints_and_restores_are_understood",
        "test_clustering_writes_older_files_in_the_new_types",
        "test_file_groups_end_and_the_index_follows",
        "test_filters_find_what_a_restore_brought_back",
        "test_it_reads_and_writes_our_logs",
        "test_jvm_writers_find_our_keys_by_the_filters_of_our_footers",
        "test_jvm_writers_join_a_table_of_ours",
        "test_keys_of_a_partition_are_spread_as_the_writer_that_began_it_says",
        "test_killed_and_stopped_writers_behind_a_link_that_fails_leave_what_a_serial_replay_gives",
        "test_logs_tell_which_keys_they_take_out",
        "test_logs_with_types_of_streamers_are_read_as_the_jvm_reads_them",
        "test_numbers_of_buckets_of_each_partition_are_shared_with_the_jvm",
        "test_our_compaction_leaves_out_what_the_flag_took",
        "test_rows_move_and_file_groups_end_and_the_index_follows",
        "test_rows_that_the_jvm_hides_behind_its_range_of_a_column_with_nan_are_told",
        "test_the_jvm_goes_by_the_index_after_we_restored",
        "test_the_jvm_goes_on_after_we_alone_compacted_cleaned_and_archived_for_long",
        "test_the_jvm_reads_and_adds_to_what_we_took_back_to_a_savepoint",
        "test_the_jvm_runs_what_we_planned",
        "test_the_metadata_table_of_the_jvm_names_what_is_there_through_compactions_and_cleans",
        "test_the_option_makes_one_for_a_table_without_partitions_and_the_jvm_goes_on",
        "test_the_session_says_how_the_bucket_is_reached",
        "test_were_the_order_not_kept_bundles_would_disagree",
        "test_what_the_jvm_archives_is_known_still",
        "test_what_the_jvm_replaces_clusters_cleans_and_archives_is_no_damage",
        "test_what_waits_for_one_that_dies_fails_at_once_and_the_next_question_starts_it_anew",
        "test_writers_of_both_kinds_alternate_for_many_commits",
        "test_writers_of_both_kinds_under_one_zookeeper_lock_leave_what_a_serial_replay_gives",
        "test_writers_of_the_jvm_write_twice_beside_a_plan_and_ours_meet_it",
    }
)
"""What takes long beside the JVM, and shows in one piece what shorter tests show of each step, or a rare case."""


def _name_bundle(bundle: tuple[str, int]) -> str:
    return f"{bundle[0]}-v{bundle[1]}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one bundle go to one process, which starts it once; leave to the nightly run what others show."""
    for item in items:
        bundle = getattr(item, "callspec", None) and item.callspec.params.get("jvm")  # type: ignore[attr-defined]
        if bundle:
            item.add_marker(pytest.mark.xdist_group(f"bundle {bundle[0]}"))
        name = getattr(item, "originalname", item.name)
        is_late = bundle and bundle[0] == _OLDER and not {item.path.stem, name}.isdisjoint(_BY_THE_NEWEST)
        if is_late or name in _AT_LENGTH:
            item.add_marker(pytest.mark.nightly)
    leave_combinations(item for item in items if item.path.is_relative_to(_HERE))


@pytest.fixture(scope="session")
def data_source_job(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[tuple[Any, ...]]]:
    """Runs a job of PySpark 4 in an environment of its own: it writes rows, and reads the table, by Spark's format."""
    folder = tmp_path_factory.mktemp("spark-4")
    python, uv = folder / "env" / "bin" / "python", str(Path(sys.executable).with_name("uv"))
    _call(uv, "venv", "--quiet", "--python", sys.executable, str(folder / "env"), cwd=folder)
    parts = (f"{_HERE.parents[1]}[s3,spark,zookeeper]", f"pyspark=={_NEWEST_SPARK}")
    _call(uv, "pip", "install", "--quiet", "--python", str(python), *parts, cwd=folder)

    def run(path: str, options: Mapping[str, str], rows: Rows = ()) -> list[tuple[Any, ...]]:
        given = json.dumps({**_JOB, **options})
        command = (str(python), str(_HERE / "data_source_job.py"), path, given, json.dumps(rows))
        said = _call(*command, cwd=folder)  # Spark's workers would take this package from the tree
        return [tuple(row) for row in json.loads(said.splitlines()[-1])]

    return run


def _call(*command: str, cwd: Path) -> str:
    hidden = ("PYTHON", "VIRTUAL_ENV", "TOX", "PYTEST")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    return done.stdout


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
