"""What an executor does with file slices that are compacted, on plain Arrow batches."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from transaction_harness import name_files, without_tickets

from hudi_locks.format import (
    BaseFileName,
    CommitMetadata,
    Instant,
    LogFileName,
    State,
    WriteStat,
    add_ms,
    avro_schema,
    choose_token,
)
from hudi_locks.format import fixed_bucket_file_id as name_bucket
from hudi_locks.format.log_block import decode_blocks
from hudi_locks.markers import StagedFiles
from hudi_locks.spark import Operation
from hudi_locks.spark.operation import STAT, decode_stat
from hudi_locks.spark.services.tasks import CompactTask, LogCompactTask
from hudi_locks.spark.writing.log_task import LogTask
from hudi_locks.spark.writing.placement import GROUP, FixedBuckets
from hudi_locks.storage import LocalStorage
from hudi_locks.table import (
    COMMIT_TIME,
    FILE_NAME,
    PARTITION_PATH,
    RECORD_KEY,
    BaseFileFormat,
    LogFormat,
    MergeRule,
    Table,
    TableConfig,
    add_meta_schema,
    latest_file_slices,
    read_slice,
    slices_changed,
)

FIRST, SECOND, THIRD, PLAN = (f"2024010100000{number}000" for number in range(4))
USER = pa.schema([("id", pa.string()), ("ts", pa.int64())])
SCHEMA, AVRO = add_meta_schema(USER), avro_schema(USER, "t", with_meta_columns=True)
RULE = MergeRule(("ts",))
Rows = list[tuple[str, int]]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    config = TableConfig("t", ("id",), ordering_fields=("ts",), table_type="MERGE_ON_READ")
    return Table.create(LocalStorage(str(tmp_path / "table")), config)


def open_files(table: Table, requested: str, action: str) -> StagedFiles:
    table.storage.create_if_absent(table.layout.path(Instant(requested, action, State.INFLIGHT)), b"")
    return StagedFiles(table.storage, table.layout, requested, action)


def complete(table: Table, requested: str, action: str, stats: list[WriteStat]) -> str:
    pending = Instant(requested, action, State.REQUESTED)
    table.storage.create_if_absent(table.layout.path(pending), b"")
    done = pending.as_completed(add_ms(requested, 500))
    operation = {"compaction": "COMPACT", "logcompaction": "LOG_COMPACT"}.get(action, "UPSERT")
    metadata = CommitMetadata.of(stats, operation, schema=avro_schema(USER, "t"), compacted=operation != "UPSERT")
    table.storage.create_if_absent(table.layout.path(done), metadata.encode(done.action, layout_version=2))
    return str(done.completion)


@pytest.fixture
def log(table: Table) -> Callable[..., str]:
    """A delta commit, and when it completed."""

    def write(requested: str, rows: Rows, *, operation: Operation = Operation.UPSERT, bucket: int = 0) -> str:
        task = LogTask(
            files=open_files(table, requested, "deltacommit"),
            schema=SCHEMA,
            form=LogFormat(AVRO),
            groups=FixedBuckets(),
            operation=operation,
            rule=MergeRule() if operation is Operation.DELETE else RULE,
            key_fields=("id",),
            memory_bytes=1 << 20,
        )
        keys = [key for key, _ in rows]
        columns = {"id": keys, "ts": [ts for _, ts in rows], RECORD_KEY: keys, PARTITION_PATH: ["p"] * len(rows)}
        batch = pa.RecordBatch.from_pydict({**columns, GROUP: pa.array([bucket] * len(rows), pa.int32())})
        return complete(table, requested, "deltacommit", run(task, batch))

    return write


def run(task: Any, batch: pa.RecordBatch) -> list[WriteStat]:
    """The task, and a commit of what it reports."""
    stats = attempt(task, batch)
    name_files(task.files.storage, stats)
    return stats


def attempt(task: Any, batch: pa.RecordBatch) -> list[WriteStat]:
    return [decode_stat(text) for out in task([batch]) for text in out[STAT].to_pylist()]


@pytest.fixture
def make_task(table: Table) -> Callable[[], CompactTask]:
    """Of all slices that have logs."""

    def make() -> CompactTask:
        slices = tuple(piece for piece in latest_file_slices(table.storage, table.timeline()) if piece.logs)
        return CompactTask(open_files(table, PLAN, "compaction"), SCHEMA, BaseFileFormat(AVRO), RULE, slices)

    return make


@pytest.fixture
def make_joining(table: Table) -> Callable[..., LogCompactTask]:
    """Of all slices that have logs."""

    def make(form: LogFormat = LogFormat(AVRO)) -> LogCompactTask:  # noqa: B008  # it is frozen
        slices = tuple(piece for piece in latest_file_slices(table.storage, table.timeline()) if piece.logs)
        return LogCompactTask(open_files(table, PLAN, "logcompaction"), SCHEMA, form, RULE, slices)

    return make


def compact(task: CompactTask | LogCompactTask) -> list[WriteStat]:
    return run(task, pa.RecordBatch.from_pydict({"id": list(range(len(task.slices)))}))


def bases(table: Table) -> list[str]:
    return [f"p/{entry.name}" for entry in table.storage.list("p") if BaseFileName.parse(entry.name)]


def logs(table: Table, requested: str = PLAN) -> list[str]:
    names = [LogFileName.parse(entry.name) for entry in table.storage.list("p")]
    return [f"p/{name}" for name in names if name and name.instant == requested]


def rows_of(table: Table, pieces: Any) -> list[tuple[Any, ...]]:
    names = ("id", "ts", COMMIT_TIME)
    found = [part for piece in pieces for part in read_slice(table.storage, piece, SCHEMA, rule=RULE)]
    return sorted(tuple(row[name] for name in names) for part in found for row in part.to_pylist())


def test_a_slice_becomes_a_base_file_with_its_rows_as_they_were(
    table: Table, log: Any, make_task: Callable[[], CompactTask]
) -> None:
    log(FIRST, [("a", 1), ("b", 1), ("c", 1)])
    log(SECOND, [("a", 2), ("b", 0)])
    log(THIRD, [("c", 0)], operation=Operation.DELETE)
    task = make_task()
    before = rows_of(table, task.slices)
    [stat] = compact(pickle.loads(pickle.dumps(task)))
    assert bases(table) == [stat.path] == [f"p/{name_bucket(0)}_{choose_token('p', name_bucket(0))}_{PLAN}.parquet"]
    assert (stat.num_writes, stat.prev_commit, stat.log_version) == (2, "null", None)
    complete(table, PLAN, "compaction", [stat])
    [piece] = latest_file_slices(table.storage, table.timeline())
    assert (piece.barrier, piece.logs) == (PLAN, ())
    assert rows_of(table, [piece]) == before == [("a", 2, SECOND), ("b", 1, FIRST)]
    [part] = read_slice(table.storage, piece, SCHEMA, rule=RULE)
    assert set(part[FILE_NAME].to_pylist()) == {bases(table)[0].removeprefix("p/")}


def test_a_slice_of_which_nothing_is_left_becomes_a_base_file_without_rows(
    table: Table, log: Any, make_task: Callable[[], CompactTask]
) -> None:
    log(FIRST, [("a", 1)])
    log(SECOND, [("a", 0)], operation=Operation.DELETE)
    [stat] = compact(make_task())
    assert (stat.num_writes, bases(table)) == (0, [stat.path])
    complete(table, PLAN, "compaction", [stat])
    assert rows_of(table, latest_file_slices(table.storage, table.timeline())) == []


def test_a_second_attempt_gives_the_same_stats_and_the_commit_takes_one_of_them(
    table: Table, log: Any, make_task: Callable[[], CompactTask]
) -> None:
    log(FIRST, [("a", 1)])
    log(SECOND, [("b", 1)], bucket=1)
    task = make_task()
    numbers = pa.RecordBatch.from_pydict({"id": [0, 1]})
    first, second = attempt(task, numbers), attempt(task, numbers)
    assert without_tickets(first) == without_tickets(second)
    assert bases(table) == []
    name_files(table.storage, second)
    assert bases(table) == sorted(str(stat.path) for stat in second)
    assert not any(table.storage.redeem(str(stat.ticket), str(stat.path)) for stat in first)


def test_a_compaction_is_no_change_to_who_follows_the_table(
    table: Table, log: Any, make_task: Callable[[], CompactTask]
) -> None:
    seen = log(FIRST, [("a", 1), ("b", 1)])
    log(SECOND, [("a", 2), ("c", 1)])

    def changes_since(begin: str) -> list[tuple[Any, ...]]:
        changes = slices_changed(table.storage, table.timeline(), begin=begin)
        return [row for row in rows_of(table, changes.slices) if row[2] in changes.instants]

    before = changes_since(seen)
    complete(table, PLAN, "compaction", compact(make_task()))
    assert changes_since(seen) == before == [("a", 2, SECOND), ("c", 1, SECOND)]
    assert changes_since(PLAN) == []


# ---- logs that become one log ----


@pytest.mark.parametrize("block_form", ["parquet", "avro"])
def test_logs_become_one_log_that_says_what_they_said(
    table: Table, log: Any, make_joining: Callable[..., LogCompactTask], block_form: str
) -> None:
    log(FIRST, [("a", 1), ("b", 1), ("c", 1)])
    log(SECOND, [("c", 0)], operation=Operation.DELETE)
    log(THIRD, [("a", 2), ("b", 0)])
    task = make_joining(LogFormat(AVRO, block_form))
    before = rows_of(table, task.slices)
    [stat] = compact(pickle.loads(pickle.dumps(task)))
    assert logs(table) == [stat.path]
    assert (stat.num_writes, stat.num_deletes, stat.log_version, stat.partition_path) == (2, 1, 1, "p")
    complete(table, PLAN, "logcompaction", [stat])
    [piece] = latest_file_slices(table.storage, table.timeline())
    assert [log.instant for log in piece.logs] == [FIRST, SECOND, THIRD, PLAN]
    assert rows_of(table, [piece]) == before == [("a", 2, THIRD), ("b", 1, FIRST)]
    alone = [replace(piece, logs=piece.logs[-1:]), replace(piece, logs=piece.logs[:-1])]
    assert [rows_of(table, [part]) for part in alone] == [before, before]
    blocks = list(decode_blocks(table.storage.read(str(stat.path)) or b"", str(stat.path)))
    assert [block.stands_for for block in blocks] == [frozenset({FIRST, SECOND, THIRD})] * 2
    assert {block.instant for block in blocks} == {PLAN}


def test_a_delete_still_takes_a_row_out_of_the_base_file(
    table: Table, log: Any, make_task: Any, make_joining: Callable[..., LogCompactTask]
) -> None:
    log(FIRST, [("a", 5), ("b", 5), ("c", 5)])
    complete(table, PLAN, "compaction", compact(make_task()))
    late = add_ms(PLAN, 1000)
    log(late, [("a", 0), ("b", 0)], operation=Operation.DELETE)
    log(add_ms(late, 1000), [("b", 1), ("c", 1)])
    [piece] = latest_file_slices(table.storage, table.timeline())
    last = add_ms(late, 2000)
    task = LogCompactTask(open_files(table, last, "logcompaction"), SCHEMA, LogFormat(AVRO), RULE, (piece,))
    complete(table, last, "logcompaction", compact(task))
    [after] = latest_file_slices(table.storage, table.timeline())
    assert after.logs[-1].instant == last
    assert rows_of(table, [after]) == rows_of(table, [piece]) == [("b", 1, add_ms(late, 1000)), ("c", 5, FIRST)]


def test_a_log_that_is_full_is_followed_by_another(
    table: Table, log: Any, make_joining: Callable[..., LogCompactTask]
) -> None:
    log(FIRST, [(f"k{number}", number) for number in range(50)])
    log(SECOND, [(f"k{number}", 100) for number in range(25, 75)])
    task = make_joining(LogFormat(AVRO, file_bytes=2000, block_bytes=1000))
    stats = compact(task)
    assert len(stats) > 1
    assert sorted(str(stat.path) for stat in stats) == sorted(logs(table))
    before = rows_of(table, task.slices)
    complete(table, PLAN, "logcompaction", stats)
    assert rows_of(table, latest_file_slices(table.storage, table.timeline())) == before
    assert without_tickets(attempt(task, pa.RecordBatch.from_pydict({"id": [0]}))) == without_tickets(stats)


def test_a_log_compaction_is_no_change_to_who_follows_the_table(
    table: Table, log: Any, make_joining: Callable[..., LogCompactTask]
) -> None:
    seen = log(FIRST, [("a", 1), ("b", 1)])
    log(SECOND, [("a", 2), ("c", 1)])
    done = complete(table, PLAN, "logcompaction", compact(make_joining()))
    changes = slices_changed(table.storage, table.timeline(), begin=seen)
    found = [row for row in rows_of(table, changes.slices) if row[2] in changes.instants]
    assert found == [("a", 2, SECOND), ("c", 1, SECOND)]
    alone = slices_changed(table.storage, table.timeline(), begin=add_ms(PLAN, 0), end=done)
    assert alone.instants == (PLAN,)
    assert [row for row in rows_of(table, alone.slices) if row[2] in alone.instants] == []
