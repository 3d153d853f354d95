"""What an executor does, on plain Arrow batches."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from transaction_harness import name_files, without_tickets

from hudi_locks.errors import BadInput, WriteAborted
from hudi_locks.format import Instant, State, WriteStat, avro_schema
from hudi_locks.markers import StagedFiles, drop_staged
from hudi_locks.spark import Operation
from hudi_locks.spark.operation import STAT, decode_stat
from hudi_locks.spark.writing.placement import GROUP, ListedGroups
from hudi_locks.spark.writing.task import WriteTask
from hudi_locks.storage import LocalStorage
from hudi_locks.table import (
    PARTITION_PATH,
    RECORD_KEY,
    AppendMerge,
    BaseFile,
    BaseFileFormat,
    BaseFileWriter,
    DeleteMerge,
    Merge,
    MergeRule,
    Table,
    TableConfig,
    UpsertMerge,
    add_meta_schema,
)

FIRST, SECOND = "20240101000000000", "20240101000000001"
USER = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("text", pa.string())])
MakeTask = Callable[..., WriteTask]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.create(LocalStorage(str(tmp_path / "table")), TableConfig("t", ("id",), ordering_fields=("ts",)))


@pytest.fixture
def make_task(table: Table) -> MakeTask:
    """A task of an instant that is inflight."""

    def make(requested: str = FIRST, bases: list[BaseFile] | None = None, **changes: Any) -> WriteTask:
        table.storage.create_if_absent(table.layout.path(Instant(requested, "commit", State.INFLIGHT)), b"")
        files = StagedFiles(table.storage, table.layout, requested, "commit")
        defaults: dict[str, Any] = {
            "files": files,
            "schema": add_meta_schema(USER),
            "form": BaseFileFormat(avro_schema(USER, "t", with_meta_columns=True), row_group_bytes=1 << 14),
            "groups": ListedGroups({(file.partition, file.file_id): file for file in bases or []}),
            "operation": Operation.UPSERT,
            "rule": MergeRule(("ts",)),
            "combine": True,
            "key_fields": ("id",),
            "memory_bytes": 1 << 20,
            "changes": None,
        }
        return WriteTask(**{**defaults, **changes})

    return make


def batch(ids: Sequence[str | None], *, group: str = "f1", ts: int = 1, text: str = "x") -> pa.RecordBatch:
    size = len(ids)
    columns = {
        "id": pa.array(ids, pa.string()),
        "ts": pa.array([ts] * size),
        "text": pa.array([text] * size),
        RECORD_KEY: pa.array(ids, pa.string()),
        PARTITION_PATH: pa.array(["p"] * size),
        GROUP: pa.array([group] * size),
    }
    return pa.RecordBatch.from_pydict(columns)


def run(task: WriteTask, *batches: pa.RecordBatch) -> list[WriteStat]:
    """The task, and a commit of what it reports."""
    stats = attempt(task, *batches)
    name_files(task.files.storage, stats)
    return stats


def attempt(task: WriteTask, *batches: pa.RecordBatch) -> list[WriteStat]:
    return [decode_stat(text) for out in task(batches) for text in out[STAT].to_pylist()]


def data_files(table: Table) -> list[str]:
    return sorted(path for path, _ in table.storage.walk("") if path.endswith(".parquet"))


def base_of(stat: WriteStat, requested: str = FIRST) -> BaseFile:
    assert stat.path
    return BaseFile(stat.partition_path, stat.file_id, requested, stat.path, stat.file_size_bytes)


def read(table: Table, stat: WriteStat) -> list[dict[str, Any]]:
    assert stat.path
    rows: list[dict[str, Any]] = pq.read_table(table.storage.address(stat.path), partitioning=None).to_pylist()
    return rows


def test_a_new_file_group_gets_one_file_and_its_stat(table: Table, make_task: MakeTask) -> None:
    [stat] = run(make_task(), batch(["a", "b"]), batch(["a"], ts=2))
    assert data_files(table) == [stat.path] == [f"p/f1_0-0-0_{FIRST}.parquet"]
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.prev_commit) == (2, 2, 0, "null")
    assert stat.file_size_bytes == Path(table.storage.address(stat.path or "")).stat().st_size
    assert {row["id"]: row["ts"] for row in read(table, stat)} == {"a": 2, "b": 1}
    assert {row["_hoodie_file_name"] for row in read(table, stat)} == {f"f1_0-0-0_{FIRST}.parquet"}


@pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.INSERT, Operation.BULK_INSERT])
def test_a_second_attempt_gives_the_same_stat_and_the_commit_takes_one_of_them(
    table: Table, make_task: MakeTask, operation: Operation
) -> None:
    changes = {"operation": operation, "combine": operation is Operation.UPSERT}
    task = pickle.loads(pickle.dumps(make_task(**changes)))
    batches = batch(["a", "b"]), batch(["c"], group="f2")
    first, second = attempt(task, *batches), attempt(task, *batches)
    assert without_tickets(first) == without_tickets(second)
    assert {stat.ticket for stat in first}.isdisjoint({stat.ticket for stat in second})
    assert data_files(table) == []
    name_files(table.storage, second)
    assert data_files(table) == sorted(str(stat.path) for stat in second)
    assert not any(table.storage.redeem(str(stat.ticket), str(stat.path)) for stat in first)


def test_a_second_attempt_of_a_merge_gives_the_same_stat(table: Table, make_task: MakeTask) -> None:
    [first] = run(make_task(), batch(["a", "b"]))
    task = make_task(SECOND, [base_of(first)])
    stats = run(task, batch(["b", "c"], ts=5))
    assert [(s.num_writes, s.num_inserts, s.num_update_writes, s.prev_commit) for s in stats] == [(3, 1, 1, FIRST)]
    assert without_tickets(attempt(task, batch(["b", "c"], ts=5))) == without_tickets(stats)
    assert len(data_files(table)) == 2


@pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.INSERT])
def test_a_task_of_a_rolled_back_instant_names_nothing(table: Table, make_task: MakeTask, operation: Operation) -> None:
    task = make_task(combine=operation is Operation.UPSERT, operation=operation)

    def batches() -> Any:
        yield batch(["a"])
        table.storage.delete(table.layout.path(Instant(FIRST, "commit", State.INFLIGHT)))
        drop_staged(table.storage, [FIRST])

    assert len(list(task(batches()))) == 1
    assert data_files(table) == []


def test_a_file_group_larger_than_the_memory_merges(table: Table, make_task: MakeTask) -> None:
    keys = [f"k{number:05}" for number in range(20_000)]
    pieces = [batch(keys[start : start + 1000], text="x" * 50) for start in range(0, len(keys), 1000)]
    [first] = run(make_task(memory_bytes=10_000), *pieces)
    newer = [batch(keys[start : start + 1000 : 2], ts=2, text="y" * 50) for start in range(0, len(keys), 1000)]
    [second] = run(make_task(SECOND, [base_of(first)], memory_bytes=10_000), *newer)
    assert (second.num_writes, second.num_update_writes, second.num_inserts) == (20_000, 10_000, 0)
    assert [row["ts"] for row in read(table, second)] == [2, 1] * 10_000
    assert {row["_hoodie_commit_time"] for row in read(table, second)} == {FIRST, SECOND}


def test_many_new_file_groups_share_the_memory_of_their_task(
    table: Table, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[int, int] = {}
    write = BaseFileWriter.write

    def watch(self: BaseFileWriter, rows: pa.Table) -> None:
        write(self, rows)
        kept[id(self)] = self.buffered_bytes

    monkeypatch.setattr(BaseFileWriter, "write", watch)
    most = 0

    def batches() -> Any:
        nonlocal most
        for number in range(100):
            yield batch([f"k{number}-{row}" for row in range(100)], group=f"f{number % 10}")
            most = max(most, sum(kept.values()))

    form = BaseFileFormat(avro_schema(USER, "t", with_meta_columns=True))
    task = make_task(operation=Operation.BULK_INSERT, combine=False, memory_bytes=50_000, form=form)
    monkeypatch.setattr(
        BaseFileWriter, "flush", lambda self, flush=BaseFileWriter.flush: (flush(self), kept.update({id(self): 0}))[0]
    )
    stats = [decode_stat(text) for out in task(batches()) for text in out[STAT].to_pylist()]
    name_files(table.storage, stats)
    assert sum(stat.num_inserts for stat in stats) == 10_000
    assert sum(len(read(table, stat)) for stat in stats) == 10_000
    assert 0 < most <= 50_000


def test_a_delete_that_meets_no_row_writes_no_file(table: Table, make_task: MakeTask) -> None:
    [first] = run(make_task(), batch(["a"]))
    task = make_task(SECOND, [base_of(first)], operation=Operation.DELETE, combine=False)
    left = run(task, batch(["z"]), batch(["z"], group="new"))
    assert [(stat.partition_path, stat.file_id, stat.path) for stat in left] == [("p", "f1", None), ("p", "new", None)]
    assert data_files(table) == [first.path]
    [stat] = run(task, batch(["a"]))
    assert (stat.num_deletes, stat.num_writes) == (1, 0)
    assert read(table, stat) == []


def test_an_upsert_that_loses_everywhere_writes_no_file_and_names_what_it_met(
    table: Table, make_task: MakeTask
) -> None:
    [first] = run(make_task(), batch(["a"], ts=5))
    [left] = run(make_task(SECOND, [base_of(first)]), batch(["a"], ts=3))
    assert (left.partition_path, left.file_id, left.path) == ("p", "f1", None)
    assert data_files(table) == [first.path]


@pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.INSERT])
def test_a_task_that_fails_leaves_no_staged_file(table: Table, make_task: MakeTask, operation: Operation) -> None:
    task = make_task(operation=operation, combine=operation is Operation.UPSERT, rule=MergeRule(("no such column",)))

    def batches() -> Any:
        yield batch(["a", "a"])
        raise ValueError("the source broke")

    with pytest.raises((ValueError, KeyError)):
        list(task(batches() if operation is Operation.INSERT else [batch(["a", "a"])]))
    assert list(table.storage.walk(".hoodie/.hudi_locks/staging")) == []
    assert data_files(table) == []


def test_a_row_without_key_is_refused_where_nobody_looked_before(table: Table, make_task: MakeTask) -> None:
    with pytest.raises(BadInput, match="1 rows have no record key") as caught:
        run(make_task(), batch(["a", None]))
    assert (caught.value.partition, caught.value.count) == ("p", 1)
    assert data_files(table) == []


def test_a_partition_that_would_lie_outside_the_table_is_refused(table: Table, make_task: MakeTask) -> None:
    rows = batch(["a"])
    at = rows.schema.get_field_index(PARTITION_PATH)
    for path in ("../outside", ".hoodie/timeline", "a//b", "/etc"):
        with pytest.raises(BadInput, match="partition path"):
            run(make_task(), rows.set_column(at, PARTITION_PATH, pa.array([path])))
    assert data_files(table) == []


def test_stats_survive_their_way_to_the_driver(make_task: MakeTask) -> None:
    [out] = list(make_task()([batch(["a"])]))
    text = out[STAT].to_pylist()[0]
    assert json.loads(text)["path"] == decode_stat(text).path


@pytest.mark.parametrize(
    ("operation", "merge", "written"),
    [
        (Operation.UPSERT, UpsertMerge, 3),
        (Operation.INSERT, AppendMerge, 4),
        (Operation.DELETE, DeleteMerge, 1),
    ],
)
def test_a_merge_that_loses_a_row_makes_no_file(
    table: Table,
    make_task: MakeTask,
    monkeypatch: pytest.MonkeyPatch,
    operation: Operation,
    merge: type[Merge],
    written: int,
) -> None:
    [first] = run(make_task(), batch(["a", "b", "c"]))
    apply = merge.apply
    monkeypatch.setattr(merge, "apply", lambda self, rows: apply(self, rows).slice(1))
    task = make_task(SECOND, [base_of(first)], operation=operation, combine=operation is Operation.UPSERT)
    counts = rf"has {written} rows, .* are {written + 1}"
    with pytest.raises(WriteAborted, match=counts) as caught:
        run(task, batch(["b", "d"], ts=5))
    assert (caught.value.rows_written, caught.value.rows_expected) == (written, written + 1)
    assert data_files(table) == [first.path]
    assert list(table.storage.walk(".hoodie/.hudi_locks/staging")) == []
