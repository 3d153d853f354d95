"""JVM Hudi and hudi-rs judge our tables, and JVM writers share them with us."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from other_readers import MANY, ONE_CLOCK, THEIRS, Jvm

from hudi_locks import LockManager
from hudi_locks.errors import AcquireTimeout, WriteConflict, WriteError
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.services.clustering import ClusteringJob
from hudi_locks.table import latest_base_files
from hudi_locks.transaction.settings import WriterSettings

pytestmark = pytest.mark.interop

Row = tuple[Any, ...]
Create = Callable[..., HoodieTable]
Frame = Callable[..., Any]
AllRead = Callable[[HoodieTable], list[Row]]
ROWS: list[Row] = [
    ("a", "us_west", 1, 1.5, "ünï 日本 😀"),
    ("b", "us_west", 1, None, None),
    ("ключ", "us_east", 1, -0.5, ""),
    ("d", "eu", 1, 1e300, "plain"),
]


def newer(row: Row, ts: int, label: str) -> Row:
    return (*row[:2], ts, float(ts), label)


def in_order(rows: Any) -> list[Row]:
    return sorted((tuple(row) for row in rows), key=repr)


def test_three_readers_agree_after_writers_of_both_kinds(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead, rust: Callable[..., list[Row]]
) -> None:
    table = create()
    first = table.bulk_insert(frame(ROWS))
    second = table.upsert(frame([newer(ROWS[0], 2, "ours"), ("e", "eu", 2, 2.0, "new")]))
    state = [newer(ROWS[0], 2, "ours"), *ROWS[1:], ("e", "eu", 2, 2.0, "new")]
    assert all_read(table) == in_order(state)

    assert jvm.read(table, as__of__instant=first.instant) == in_order(ROWS)
    assert rust(table, as_of=first.instant) == in_order(ROWS)
    assert in_order(table.as_of(first.completion_time, meta_columns=False).collect()) == in_order(ROWS)

    changed = in_order([state[0], state[-1]])
    begin, end = first.completion_time, second.completion_time
    # Bundle 1.0.2 counts the begin of a span as part of it.
    after = str(int(begin) + 1) if jvm.version == "1.0.2" else begin
    span = {"hoodie__datasource__query__type": "incremental"}
    span |= {"hoodie__datasource__read__begin__instanttime": after, "hoodie__datasource__read__end__instanttime": end}
    assert jvm.read(table, **span) == changed
    assert rust(table, begin=begin, end=end) == changed
    assert in_order(table.incremental(begin, end, meta_columns=False).collect()) == changed

    jvm.write(table, [newer(ROWS[1], 3, "theirs"), newer(ROWS[0], 1, "late"), ("f", "eu", 3, 3.0, "jvm")])
    state = [state[0], newer(ROWS[1], 3, "theirs"), *state[2:], ("f", "eu", 3, 3.0, "jvm")]
    assert all_read(table) == in_order(state)
    result = table.upsert(frame([newer(row, 4, "ours again") for row in state[1:]]))
    assert (result.rows_updated, result.rows_inserted) == (len(state) - 1, 0)
    state = [state[0], *[newer(row, 4, "ours again") for row in state[1:]]]
    assert all_read(table) == in_order(state)
    jvm.write(table, state[1:3], "delete")
    table.delete(frame(state[3:4]))
    assert all_read(table) == in_order([state[0], *state[4:]])


def test_a_jvm_writer_with_the_bloom_index_finds_the_keys_of_our_files(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead
) -> None:
    table = create()
    table.bulk_insert(frame(ROWS))
    changed = [*[newer(row, 2, "bloom") for row in ROWS], ("new", "eu", 2, 2.0, "bloom")]
    jvm.write(table, changed, hoodie__index__type="BLOOM")
    assert all_read(table) == in_order(changed)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("moves", ["true", "false"], ids=["moving", "staying"])
def test_under_a_global_index_both_keep_one_row_for_a_key_that_changes_its_partition(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead, moves: str, kind: str
) -> None:
    options = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": moves}
    theirs = {name.replace(".", "__"): value for name, value in options.items()}
    theirs["hoodie__datasource__write__table__type"] = kind
    table = create(options=options, table_type=kind)
    table.upsert(frame([("a", "eu", 1, 1.0, "x"), ("b", "eu", 1, 1.0, "x"), ("c", "us", 1, 1.0, "x")]))
    jvm.write(table, [("a", "us", 2, 2.0, "theirs"), ("d", "us", 2, 2.0, "theirs")], **theirs)
    table.upsert(frame([("b", "us", 3, 3.0, "ours"), ("d", "eu", 3, 3.0, "ours"), ("c", "eu", 0, 0.0, "old")]))
    jvm.write(table, [("b", "eu", 4, 4.0, "theirs"), ("c", "eu", 0, 0.0, "old")], **theirs)
    table.upsert(frame([("a", "new", 5, 5.0, "ours")]))
    table.delete(frame([("c", "nowhere", 9, 0.0, "")]))
    # Of a row that stays hudi-rs shows the partition column that it came with, all others that of its path.
    rows = all_read(table) if moves == "true" else jvm.read(table)
    assert sorted(map(tuple, table.read(meta_columns=False).collect())) == rows
    found = {row[0]: (row[1], row[4]) for row in rows}
    places = {"a": "new", "b": "eu", "d": "eu"} if moves == "true" else {"a": "eu", "b": "eu", "d": "us"}
    assert {key: label for key, (_, label) in found.items()} == {"a": "ours", "b": "theirs", "d": "ours"}
    assert {key: place for key, (place, _) in found.items()} == places


def test_bucket_writers_of_both_kinds_keep_each_key_in_one_bucket(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead
) -> None:
    bucket = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "SIMPLE",
        "hoodie.bucket.index.num.buckets": "4",
        "hoodie.bucket.index.hash.field": "id",
    }
    theirs = {key.replace(".", "__"): value for key, value in bucket.items()}
    table = create(options=bucket)
    keys = [f"{text}{number}" for number in range(8) for text in ("k", "ключ", "😀")]
    table.upsert(frame([(key, "eu", 1, 1.0, "ours") for key in keys[::5]]))
    jvm.write(table, [(key, "eu", 2, 2.0, "theirs") for key in keys], **theirs)
    jvm.write(table, [(key, "us", 2, 2.0, "theirs") for key in keys[:4]], **theirs)
    table.upsert(frame([(key, "eu", 3, 3.0, "ours") for key in keys]))
    table.upsert(frame([(key, "us", 3, 3.0, "ours") for key in keys]))
    jvm.write(table, [(key, "eu", 4, 4.0, "theirs") for key in keys[:3]], **theirs)
    expected = [(key, "eu", 4, 4.0, "theirs") for key in keys[:3]] + [(key, "eu", 3, 3.0, "ours") for key in keys[3:]]
    assert all_read(table) == in_order([*expected, *[(key, "us", 3, 3.0, "ours") for key in keys]])
    files = latest_base_files(table.table.storage, table.table.timeline())
    assert len({(file.partition, file.file_id[:8]) for file in files}) == len(files) == 8


@pytest.mark.parametrize("key", ["id", ["id", "region"]], ids=["one", "two"])
def test_keys_of_tables_with_two_partition_fields_are_the_same_to_both(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead, key: str | list[str]
) -> None:
    table = create(record_key=key, partition_by=["region", "label"])
    rows = [("ключ", "eu", 1, 1.0, "x"), ("b", "us", 1, 1.0, "y")]
    table.upsert(frame(rows))
    jvm.write(table, [(*row[:2], 2, 2.0, row[4]) for row in rows])
    assert all_read(table) == in_order([(*row[:2], 2, 2.0, row[4]) for row in rows])
    table.upsert(frame([(*row[:2], 3, 3.0, row[4]) for row in rows]))
    assert all_read(table) == in_order([(*row[:2], 3, 3.0, row[4]) for row in rows])


def test_writers_of_both_kinds_alternate_for_many_commits(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead
) -> None:
    table = create()
    table.bulk_insert(frame(ROWS))
    state = {row[0]: row for row in ROWS}
    for number in range(2, 2 + MANY):
        rows = [newer(ROWS[number % len(ROWS)], number, f"commit {number}"), (f"k{number}", "eu", number, 0.0, "new")]
        if number % 2:
            jvm.write(table, rows)
        else:
            table.upsert(frame(rows))
        state |= {row[0]: row for row in rows}
    assert all_read(table) == in_order(state.values())
    assert len(table.table.timeline().completed(("commit",))) == 1 + MANY
    assert not Path(table.path, ".hoodie/lock").exists()


def test_a_lock_that_python_holds_keeps_the_jvm_out_and_the_reverse(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead
) -> None:
    table = create(options={"hoodie.write.lock.wait_time_ms": "100", "hoodie.write.lock.client.num_retries": "0"})
    table.bulk_insert(frame(ROWS))
    impatient = {"hoodie__write__lock__wait_time_ms": "100", "hoodie__write__lock__num_retries": "1"}
    impatient |= {"hoodie__write__lock__client__num_retries": "0"}
    before = table.table.timeline().instants
    with LockManager.from_options(table.options) as manager, manager.lock() as held:
        with pytest.raises(Exception, match="HoodieLockException"):
            jvm.write(table, [newer(ROWS[0], 2, "theirs")], **impatient)
        held.check()
        assert table.table.timeline().instants == before
    jvm.write(table, [newer(ROWS[0], 2, "theirs")], **impatient)

    assert jvm.ask("lock", path=table.path).result(600) is True
    with pytest.raises(AcquireTimeout):
        table.upsert(frame([newer(ROWS[1], 2, "ours")]))
    jvm.ask("unlock", path=table.path).result(600)
    table.upsert(frame([newer(ROWS[1], 2, "ours")]))
    assert all_read(table) == in_order([newer(ROWS[0], 2, "theirs"), newer(ROWS[1], 2, "ours"), *ROWS[2:]])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"},
        {"hoodie.write.lock.provider": THEIRS["hoodie.write.lock.provider"]},
        {name: value for name, value in THEIRS.items() if name not in ONE_CLOCK},
        {"hoodie.time.generator.max_expected_clock_skew_ms": "50"},
    ],
    ids=["alone", "in-process", "lock", "several", "given"],
)
def test_writers_of_both_kinds_wait_as_long_for_the_clocks_of_others(jvm: Jvm, options: dict[str, str]) -> None:
    assert WriterSettings.of(options, {}).skew_ms == jvm.expected_skew(options)


def test_our_pending_instant_survives_the_jvms_cleaner_while_we_live(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead, after_job: Callable[..., None]
) -> None:
    table = create()
    table.bulk_insert(frame(ROWS))
    clean = {"hoodie__clean__automatic": "true", "hoodie__clean__commits__retained": "1"}
    after_job(lambda: [jvm.write(table, [(f"c{n}", "eu", n, 0.0, "c")], **clean) for n in (1, 2)])
    assert table.upsert(frame([newer(ROWS[0], 2, "ours")])).retries == 0
    rows = [(f"c{n}", "eu", n, 0.0, "c") for n in (1, 2)]
    assert all_read(table) == in_order([newer(ROWS[0], 2, "ours"), *ROWS[1:], *rows])


def test_the_instant_of_a_writer_without_heartbeat_is_rolled_back_by_the_jvm(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead, after_job: Callable[..., None]
) -> None:
    table = create()
    table.bulk_insert(frame(ROWS))

    def let_it_look_dead() -> None:
        for file in Path(table.path, ".hoodie/.heartbeat").iterdir():
            os.utime(file, (1_600_000_000, 1_600_000_000))
        jvm.write(table, [("c", "eu", 1, 0.0, "c")], hoodie__clean__automatic="true")

    after_job(let_it_look_dead)
    with pytest.raises(WriteError, match="roll"):
        table.upsert(frame([newer(ROWS[0], 2, "ours")]))
    assert all_read(table) == in_order([*ROWS, ("c", "eu", 1, 0.0, "c")])


def test_of_a_jvm_writer_and_ours_on_one_file_group_ours_yields_if_it_publishes_last(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead, after_job: Callable[..., None]
) -> None:
    table = create(options={"hoodie.write.num.retries.on.conflict.failures": "0"})
    table.bulk_insert(frame(ROWS))
    after_job(lambda: jvm.write(table, [newer(ROWS[1], 2, "theirs")]))
    with pytest.raises(WriteConflict, match="both change file group"):
        table.upsert(frame([newer(ROWS[0], 2, "ours")]))
    assert all_read(table) == in_order([ROWS[0], newer(ROWS[1], 2, "theirs"), *ROWS[2:]])
    table.upsert(frame([newer(ROWS[0], 2, "ours")]))
    assert all_read(table) == in_order([newer(ROWS[0], 2, "ours"), newer(ROWS[1], 2, "theirs"), *ROWS[2:]])


def test_of_a_jvm_writer_and_ours_on_one_file_group_the_jvm_yields_if_it_publishes_last(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead, gate: Any
) -> None:
    table = create()
    table.bulk_insert(frame(ROWS))
    theirs = jvm.begin_write(table, [newer(ROWS[1], 2, "theirs")], gate=gate.path)
    with gate.closed():
        table.upsert(frame([newer(ROWS[0], 2, "ours")]))
    with pytest.raises(Exception, match="WriteConflictException"):
        theirs.result(600)
    assert all_read(table) == in_order([newer(ROWS[0], 2, "ours"), *ROWS[1:]])


def test_writers_of_both_kinds_in_different_partitions_do_not_disturb_each_other(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead, gate: Any
) -> None:
    table = create()
    table.bulk_insert(frame(ROWS))
    theirs = jvm.begin_write(table, [newer(ROWS[3], 2, "theirs")], gate=gate.path)
    with gate.closed():
        table.upsert(frame([newer(ROWS[0], 2, "ours")]))
    assert theirs.result(600) is None
    assert all_read(table) == in_order([newer(ROWS[0], 2, "ours"), *ROWS[1:3], newer(ROWS[3], 2, "theirs")])


def test_both_see_what_either_overwrites_or_deletes_and_build_on_it(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead, rust: Callable[..., list[Row]], after_job: Any
) -> None:
    table = create()
    first = table.bulk_insert(frame(ROWS))
    # A JVM writer meets our pending replacement and lives with it.
    after_job(lambda: jvm.write(table, [newer(ROWS[3], 2, "theirs")]))
    fresh = ("new", "us_west", 3, 3.0, "ours")
    table.insert_overwrite(frame([fresh]))
    state = [fresh, ROWS[2], newer(ROWS[3], 2, "theirs")]
    assert all_read(table) == in_order(state)
    assert jvm.read(table, as__of__instant=first.instant) == in_order(ROWS)
    assert rust(table, as_of=first.instant) == in_order(ROWS)
    table.delete_partitions(["region=eu"])
    assert all_read(table) == in_order(state[:2])
    jvm.write(table, [newer(fresh, 4, "theirs"), newer(ROWS[3], 4, "back")])
    assert all_read(table) == in_order([newer(fresh, 4, "theirs"), ROWS[2], newer(ROWS[3], 4, "back")])
    jvm.write(table, [newer(ROWS[2], 5, "theirs")], "insert_overwrite")
    jvm.write(table, ROWS[3:], "delete_partition", hoodie__datasource__write__partitions__to__delete="region=eu")
    table.upsert(frame([newer(ROWS[2], 6, "ours"), newer(ROWS[3], 6, "ours")]))
    expected = [newer(fresh, 4, "theirs"), newer(ROWS[2], 6, "ours"), newer(ROWS[3], 6, "ours")]
    assert all_read(table) == in_order(expected)
    table.insert_overwrite_table(frame([fresh]))
    assert all_read(table) == [fresh]


def fill_with_small_files(table: HoodieTable, frame: Frame) -> None:
    for row in ROWS:
        table.bulk_insert(frame([row]))


def test_both_read_and_write_on_after_either_clustered(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead, rust: Callable[..., list[Row]], after_job: Any
) -> None:
    table = create(options={"hoodie.parquet.small.file.limit": "0"})
    fill_with_small_files(table, frame)
    before = table.bulk_insert(frame([("x", "eu", 1, 1.0, "x")]))
    result = table.clustering.run(sort_by=["ts", "id"])
    assert result is not None
    assert (result.file_groups, result.file_groups_replaced) == (3, 5)
    state = [*ROWS, ("x", "eu", 1, 1.0, "x")]
    assert all_read(table) == in_order(state)
    assert jvm.read(table, as__of__instant=before.instant) == in_order(state)
    span = {"hoodie__datasource__query__type": "incremental"}
    span |= {"hoodie__datasource__read__begin__instanttime": str(int(before.completion_time) + 1)}
    assert jvm.read(table, **span) == []
    jvm.write(table, [newer(ROWS[0], 2, "theirs"), ("y", "eu", 2, 2.0, "y")], hoodie__parquet__small__file__limit="0")
    table.upsert(frame([newer(ROWS[1], 3, "ours")]))
    state = [newer(ROWS[0], 2, "theirs"), newer(ROWS[1], 3, "ours"), *state[2:], ("y", "eu", 2, 2.0, "y")]
    assert all_read(table) == in_order(state)
    # Our update began before their clustering and ends after it: it begins anew.
    after_job(lambda: jvm.cluster(table, "scheduleAndExecute", order="ts"))
    retrying = HoodieTable.load(
        table.spark, table.path, options={**table.options, "hoodie.write.num.retries.on.conflict.failures": "1"}
    )
    result = retrying.upsert(frame([newer(ROWS[3], 4, "ours")]))
    assert [conflict.other_action for conflict in result.conflicts] == ["replacecommit"]
    assert all_read(table) == in_order([newer(ROWS[3], 4, "ours"), *[row for row in state if row[0] != "d"]])


def test_each_respects_what_the_other_plans_to_cluster(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead
) -> None:
    table = create(options={"hoodie.parquet.small.file.limit": "0"})
    fill_with_small_files(table, frame)
    jvm.cluster(table, "schedule", order="ts")
    [theirs] = [instant.requested for instant in table.table.timeline().pending(("clustering",))]
    with pytest.raises(WriteConflict, match=f"clustering {theirs}"):
        table.upsert(frame([newer(ROWS[0], 2, "ours")]))
    assert table.clustering.run(sort_by=["ts"]) is None
    with pytest.raises(WriteError, match="planned by a JVM writer"):
        table.clustering.execute(theirs)
    table.bulk_insert(frame([("n", "eu", 2, 2.0, "n")]))
    jvm.cluster(table, "execute", order="ts", instants=theirs)
    table.upsert(frame([newer(ROWS[0], 2, "ours")]))
    state = [newer(ROWS[0], 2, "ours"), *ROWS[1:], ("n", "eu", 2, 2.0, "n")]
    assert all_read(table) == in_order(state)
    # And the reverse: a JVM writer meets our plan, while it waits and while it runs, and can run it.
    ours = table.clustering.schedule(sort_by=["id"])
    assert ours is not None
    with pytest.raises(Exception, match=r"Conflict|HoodieClusteringUpdateException"):
        jvm.write(table, [newer(ROWS[1], 3, "theirs")])
    jvm.write(table, [("m", "asia", 3, 3.0, "m")])
    jvm.cluster(table, "execute", order="id", instants=ours)
    done = table.table.timeline().get(ours)
    assert done is not None
    assert done.is_completed
    assert all_read(table) == in_order([*state, ("m", "asia", 3, 3.0, "m")])
    table.upsert(frame([newer(ROWS[1], 4, "ours")]))
    assert all_read(table) == in_order([state[0], newer(ROWS[1], 4, "ours"), *state[2:], ("m", "asia", 3, 3.0, "m")])


def test_a_jvm_writer_works_beside_our_clustering(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of the job: elsewhere it commits, on what is clustered it gives way."""
    table = create(options={"hoodie.parquet.small.file.limit": "0"})
    fill_with_small_files(table, frame)
    run_job = ClusteringJob._run_job

    def beside(self: ClusteringJob, *args: Any) -> Any:
        jvm.write(table, [("m", "asia", 3, 3.0, "m")])
        with pytest.raises(Exception, match=r"Conflict|HoodieClusteringUpdateException"):
            jvm.write(table, [newer(ROWS[1], 3, "theirs")])
        return run_job(self, *args)

    monkeypatch.setattr(ClusteringJob, "_run_job", beside)
    result = table.clustering.run(sort_by=["ts"])
    assert result is not None
    assert result.file_groups_replaced == 4
    assert all_read(table) == in_order([*ROWS, ("m", "asia", 3, 3.0, "m")])
