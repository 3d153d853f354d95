"""What an executor does on a merge-on-read table, on plain Arrow batches."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from transaction_harness import name_files, without_tickets

from hudi_locks.errors import BadInput, WriteAborted
from hudi_locks.format import Instant, LogFileName, State, WriteStat, avro_schema, choose_token, fixed_bucket_file_id
from hudi_locks.markers import DirectMarkers, StagedFiles, drop_staged
from hudi_locks.spark import Operation
from hudi_locks.spark.operation import STAT, decode_stat
from hudi_locks.spark.writing.log_task import LogTask
from hudi_locks.spark.writing.placement import GROUP, FixedBuckets
from hudi_locks.storage import LocalStorage, StagedFile
from hudi_locks.table import (
    PARTITION_PATH,
    RECORD_KEY,
    LogFormat,
    MergeRule,
    Table,
    TableConfig,
    add_meta_schema,
    list_partitions,
    read_log,
)

INSTANT = "20240101000000000"
USER = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("text", pa.string())])
ZERO, ONE = fixed_bucket_file_id(0), fixed_bucket_file_id(1)
FORM = LogFormat(avro_schema(USER, "t", with_meta_columns=True))
SMALL = replace(FORM, block_bytes=1, file_bytes=1)
"""Each row a file."""
MakeTask = Callable[..., LogTask]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    config = TableConfig("t", ("id",), ordering_fields=("ts",), table_type="MERGE_ON_READ")
    return Table.create(LocalStorage(str(tmp_path / "table")), config)


@pytest.fixture
def make_task(table: Table) -> MakeTask:
    """A task of an instant that is inflight."""
    table.storage.create_if_absent(table.layout.path(Instant(INSTANT, "deltacommit", State.INFLIGHT)), b"")

    def make(**changes: Any) -> LogTask:
        files = StagedFiles(table.storage, table.layout, INSTANT, "deltacommit")
        defaults: dict[str, Any] = {
            "files": files,
            "schema": add_meta_schema(USER),
            "form": FORM,
            "groups": FixedBuckets(),
            "operation": Operation.UPSERT,
            "rule": MergeRule(("ts",)),
            "key_fields": ("id",),
            "memory_bytes": 1 << 20,
        }
        return LogTask(**{**defaults, **changes})

    return make


def batch(ids: Sequence[str | None], *, bucket: int = 0, ts: int = 1, text: str = "x") -> pa.RecordBatch:
    size = len(ids)
    columns = {
        "id": pa.array(ids, pa.string()),
        "ts": pa.array([ts] * size),
        "text": pa.array([text] * size),
        RECORD_KEY: pa.array(ids, pa.string()),
        PARTITION_PATH: pa.array(["p"] * size),
        GROUP: pa.array([bucket] * size, pa.int32()),
    }
    return pa.RecordBatch.from_pydict(columns)


def run(task: LogTask, *batches: pa.RecordBatch) -> list[WriteStat]:
    """The task, and a commit of what it reports."""
    stats = attempt(task, *batches)
    name_files(task.files.storage, stats)
    return stats


def attempt(task: LogTask, *batches: pa.RecordBatch) -> list[WriteStat]:
    return [decode_stat(text) for out in task(batches) for text in out[STAT].to_pylist()]


def logs(table: Table) -> list[str]:
    return [f"p/{entry.name}" for entry in table.storage.list("p") if LogFileName.parse(entry.name)]


def read(table: Table, path: str | None) -> list[dict[str, Any]]:
    assert path
    return [row for entry in read_log(table.storage.read(path) or b"", path) for row in entry.rows.to_pylist()]


def read_all(table: Table, stats: Sequence[WriteStat]) -> dict[str, Any]:
    return {row["id"]: (row["ts"], row["text"]) for stat in stats for row in read(table, stat.path)}


def test_a_file_group_gets_one_log_with_one_row_for_each_key(table: Table, make_task: MakeTask) -> None:
    stats = run(make_task(), batch(["a", "b"]), batch(["a"], ts=2), batch(["a"], ts=0), batch(["c"], bucket=1))
    assert (
        logs(table)
        == [stat.path for stat in stats]
        == [f"p/{LogFileName(g, INSTANT, 1, choose_token('p', g))}" for g in (ZERO, ONE)]
    )
    found = read(table, stats[0].path)
    assert [(row["id"], row["ts"]) for row in found] == [("b", 1), ("a", 2)]
    assert {row["_hoodie_file_name"] for row in found} == {ZERO}
    assert {row["_hoodie_commit_time"] for row in found} == {INSTANT}
    assert len({row["_hoodie_commit_seqno"] for row in found}) == 2
    assert list_partitions(table.storage) == ("p",)


def test_stats_are_those_of_a_delta_commit(table: Table, make_task: MakeTask) -> None:
    [stat] = run(make_task(), batch(["a", "b"]))
    assert stat.path
    size = Path(table.storage.address(stat.path)).stat().st_size
    name = stat.path.removeprefix("p/")
    assert (stat.partition_path, stat.file_id, stat.prev_commit) == ("p", ZERO, INSTANT)
    assert (stat.log_version, stat.log_offset, stat.base_file, stat.log_files) == (1, 0, "", (name,))
    assert (stat.file_size_bytes, stat.total_write_bytes) == (size, size)
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.num_deletes) == (2, 0, 2, 0)


@pytest.mark.parametrize(
    ("operation", "counts"), [(Operation.INSERT, (2, 2, 0, 0)), (Operation.DELETE, (0, 0, 0, 2))], ids=lambda x: str(x)
)
def test_counts_go_by_the_operation(
    make_task: MakeTask, operation: Operation, counts: tuple[int, int, int, int]
) -> None:
    rule = MergeRule() if operation is Operation.DELETE else MergeRule(("ts",))
    [stat] = run(make_task(operation=operation, rule=rule), batch(["a", "b"]), batch(["a"]))
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.num_deletes) == counts


def test_a_delete_logs_each_key_once(table: Table, make_task: MakeTask) -> None:
    [stat] = run(make_task(operation=Operation.DELETE, rule=MergeRule()), batch(["a", "b"]), batch(["a"]))
    assert stat.path
    [entry] = read_log(table.storage.read(stat.path) or b"", stat.path)
    assert (sorted(entry.rows.column(RECORD_KEY).to_pylist()), entry.orderings) == (["a", "b"], (None, None))


@pytest.mark.parametrize("form", [FORM, SMALL], ids=["one", "several"])
@pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.DELETE], ids=lambda operation: str(operation.value))
def test_a_second_attempt_gives_the_same_stats_and_the_commit_takes_one_of_them(
    table: Table, make_task: MakeTask, form: LogFormat, operation: Operation
) -> None:
    rule = MergeRule() if operation is Operation.DELETE else MergeRule(("ts",))
    task = pickle.loads(pickle.dumps(make_task(form=form, operation=operation, rule=rule)))
    batches = [batch(["a", "b", "c"]), batch(["d"], bucket=1)]
    first, second = attempt(task, *batches), attempt(task, *batches)
    assert without_tickets(first) == without_tickets(second)
    assert logs(table) == []
    name_files(table.storage, second)
    assert logs(table) == sorted(str(stat.path) for stat in second)
    assert len(second) == (4 if form is SMALL else 2)
    assert not any(table.storage.redeem(str(stat.ticket), str(stat.path)) for stat in first)


def test_a_full_log_is_followed_by_others_with_markers_of_their_own(table: Table, make_task: MakeTask) -> None:
    task = make_task(form=SMALL)
    announced = dataclasses.replace(task.files, maker=DirectMarkers(table.storage, INSTANT))
    stats = run(dataclasses.replace(task, files=announced), batch(["a", "b", "c"]))
    names = [LogFileName.parse(str(stat.path).rpartition("/")[2]) for stat in stats]
    assert [(name.version, stat.log_version) for name, stat in zip(names, stats, strict=True) if name] == [
        (1, 1),
        (2, 2),
        (3, 3),
    ]
    markers = DirectMarkers(table.storage, INSTANT).names()
    assert sorted(marker.data_path for marker in markers) == sorted(str(stat.path) for stat in stats)
    assert {marker.io_type.value for marker in markers} == {"CREATE"}
    assert read_all(table, stats) == dict.fromkeys("abc", (1, "x"))


def test_an_attempt_that_dies_leaves_nothing_of_its_logs(
    table: Table, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each attempt would leave some more on a full disk."""
    seal = StagedFiles.seal

    def die_at_second(self: StagedFiles, staged: StagedFile) -> str:
        if ".log.2_" in staged.target:
            raise KeyboardInterrupt
        return seal(self, staged)

    monkeypatch.setattr(StagedFiles, "seal", die_at_second)
    with pytest.raises(KeyboardInterrupt):
        attempt(make_task(form=SMALL), batch(["a", "b"]))
    assert list(table.storage.walk(".hoodie/.hudi_locks/staging")) == []


def test_a_task_of_a_rolled_back_instant_hears_of_it_where_its_files_are_gone(
    table: Table, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal = StagedFiles.seal

    def be_late(self: StagedFiles, staged: StagedFile) -> str:
        table.storage.delete(table.layout.path(Instant(INSTANT, "deltacommit", State.INFLIGHT)))
        drop_staged(table.storage, [INSTANT])
        return seal(self, staged)

    monkeypatch.setattr(StagedFiles, "seal", be_late)
    with pytest.raises(WriteAborted, match=INSTANT):
        attempt(make_task(), batch(["a"]))
    assert logs(table) == []


def test_nothing_on_the_table_is_listed_or_read(
    table: Table, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("list", "list_names", "read", "walk"):
        monkeypatch.setattr(LocalStorage, name, lambda self, path, name=name: calls.append(f"{name} {path}"))
    run(make_task(form=SMALL), batch(["a", "b"]))
    assert calls == []


def test_rows_beyond_the_memory_go_to_disk_and_come_back(table: Table, make_task: MakeTask) -> None:
    batches = [batch([f"k{number}-{i}" for i in range(100)]) for number in range(20)]
    [stat] = run(make_task(memory_bytes=4_000), *batches)
    assert stat.num_writes == len(read(table, stat.path)) == 2_000


def test_a_row_without_key_is_refused(table: Table, make_task: MakeTask) -> None:
    with pytest.raises(BadInput, match="1 rows have no record key"):
        run(make_task(), batch(["a", None]))
    assert logs(table) == []
