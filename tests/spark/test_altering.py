"""Columns are changed by table.schema: every row that is written anew afterwards keeps what it had."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import shared_table

from hudi_locks.errors import BadInput, TableError, UnsupportedTable, WriteAborted, WriteConflict
from hudi_locks.format import ALTER_SCHEMA
from hudi_locks.services import Archiver, ArchiveSettings, CleanSettings, drop_metadata_table, schema_changes
from hudi_locks.services.schema_changes import SchemaChanger
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.operation import Operation
from hudi_locks.spark.services.compaction import CompactionJob
from hudi_locks.table import NEWEST_COLUMNS, read_commit
from hudi_locks.transaction import store_history
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
Load = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
AfterJob = Callable[[Callable[[], Any]], None]
RENAMED = "id string, month string, ts long, price double"
SHOWN = ("id", "month", "ts", "price")
ROWS = [("a", "1", 1, 1.5), ("b", "1", 1, 2.5), ("c", "2", 1, 3.5)]
LOGGED = ("b", "1", 2, 2.75)
"""Of a merge-on-read table in a log, of others in a base file."""
NOW = {row[0]: row for row in (*ROWS, LOGGED)}
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
GIVEN = ("z", "1", 1, 9.5)


def rename(create: Create, frame: Frame, **settings: Any) -> HoodieTable:
    """A table of which one column has another name than in all its files."""
    table = create(**settings)
    table.upsert(frame(ROWS))
    table.upsert(frame([LOGGED]))
    result = table.schema.rename("value", "price")
    assert (result.rows_written, result.file_groups) == (0, 0)
    return table


def without(*keys: str) -> list[tuple[Any, ...]]:
    return sorted((row for key, row in NOW.items() if key not in keys), key=repr)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("operation", "left"),
    [
        ("upsert", [*without(), GIVEN]),
        ("insert", [*without(), GIVEN]),
        ("bulk_insert", [*without(), GIVEN]),
        ("delete", without("a")),
        ("insert_overwrite", [("c", "2", 1, 3.5), GIVEN]),
        ("insert_overwrite_table", [GIVEN]),
    ],
)
def test_rows_that_a_write_leaves_alone_keep_a_renamed_column(
    create: Create, frame: Frame, rows_of: RowsOf, kind: str, operation: str, left: list[tuple[Any, ...]]
) -> None:
    table = rename(create, frame, table_type=kind)
    given = frame([("a", "1", 9, None)], RENAMED) if operation == "delete" else frame([GIVEN], RENAMED)
    table.write(Operation(operation), given)
    assert rows_of(table, *SHOWN) == sorted(left, key=repr)
    newest = table.table.timeline().completed_between("")[-1]
    told = read_commit(table.table.storage, table.table.timeline(), requested=newest.requested)
    assert '"name":"price"' in told.extra[NEWEST_COLUMNS]


@pytest.mark.parametrize("kind", KINDS)
def test_what_services_write_anew_keeps_a_renamed_column(
    create: Create, frame: Frame, rows_of: RowsOf, kind: str
) -> None:
    options = {"hoodie.parquet.small.file.limit": "0", "hoodie.log.compaction.blocks.threshold": "2"}
    table = rename(create, frame, table_type=kind, options=options)
    table.upsert(frame([("b", "1", 3, 2.25), ("n", "1", 1, 4.5)], RENAMED))
    wanted = sorted([*without("b"), ("b", "1", 3, 2.25), ("n", "1", 1, 4.5)], key=repr)
    services = (table.log_compaction, table.compaction) if kind == KINDS[1] else ()
    for service in (*services, table.clustering):
        assert service.run() is not None
        assert rows_of(table, *SHOWN) == wanted


def test_rows_that_move_and_rows_of_a_merge_keep_a_renamed_column(
    create: Create, frame: Frame, rows_of: RowsOf
) -> None:
    options = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
    table = rename(create, frame, options=options)
    table.upsert(frame([("a", "2", 5, 1.25)], RENAMED))
    moved = sorted([*without("a"), ("a", "2", 5, 1.25)], key=repr)
    assert rows_of(table, *SHOWN) == moved
    source = frame([("b", "1", 7)], "id string, month string, newer long")
    table.merge(source, ["id", "month"]).when_matched_update(values={"ts": "source.newer"}).execute()
    assert rows_of(table, *SHOWN) == sorted([*(row for row in moved if row[0] != "b"), ("b", "1", 7, 2.75)], key=repr)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_filled_by_other_rows_keep_a_renamed_column(
    create: Create, frame: Frame, rows_of: RowsOf, kind: str
) -> None:
    options = {"hoodie.write.table.version": "9", "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
    table = rename(create, frame, table_type=kind, options=options)
    table.upsert(frame([("a", "1", 5, None)], RENAMED))
    assert rows_of(table, *SHOWN) == sorted([*without("a"), ("a", "1", 5, 1.5)], key=repr)


def test_a_column_added_by_a_write_begins_with_null_though_an_older_one_had_its_name(
    create: Create, frame: Frame, rows_of: RowsOf
) -> None:
    table = create()
    table.upsert(frame(ROWS))
    table.schema.drop("value")
    table.upsert(frame([("n", "1", 1)], "id string, month string, ts long"))
    table.upsert(frame([("o", "1", 1, 8.5)]))
    wanted = [("a", "1", 1, None), ("b", "1", 1, None), ("c", "2", 1, None), ("n", "1", 1, None), ("o", "1", 1, 8.5)]
    assert rows_of(table, "id", "month", "ts", "value") == wanted
    table.clustering.run()
    assert rows_of(table, "id", "month", "ts", "value") == wanted


def test_columns_that_exchange_their_names_are_told_apart(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create()
    both = "id string, month string, ts long, x double, y double"
    table.upsert(frame([("a", "1", 1, 1.0, 2.0)], both))
    for old, new in (("x", "z"), ("y", "x"), ("z", "y")):
        table.schema.rename(old, new)
    table.upsert(frame([("b", "1", 1, 3.0, 4.0)], both))
    assert rows_of(table, "id", "x", "y") == [("a", 2.0, 1.0), ("b", 3.0, 4.0)]


def test_a_widened_column_and_one_between_others_are_written(create: Create, frame: Frame, rows_of: RowsOf) -> None:
    table = create()
    table.upsert(frame([("a", "1", 1, 7, 0.1)], "id string, month string, ts long, n int, f float"))
    table.schema.widen("n", "bigint")
    table.schema.widen("f", "double")
    table.schema.add_column("note", "array<string>", after="id")
    assert table.read(meta_columns=False).columns == ["id", "note", "month", "ts", "n", "f"]
    later = "id string, note array<string>, month string, ts long, n long, f double"
    table.upsert(frame([("b", ["x"], "1", 1, 1 << 40, 0.2)], later))
    assert rows_of(table, "id", "n", "f", "note") == [("a", 7, 0.1, None), ("b", 1 << 40, 0.2, ["x"])]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda schema: schema.rename("none", "x"), "no column 'none' to change; it has id, month, ts, value"),
        (lambda schema: schema.rename("value", "TS"), "the name 'TS' is taken by column 'ts'"),
        (lambda schema: schema.rename("value", "a-b"), "'a-b' cannot be stored"),
        (lambda schema: schema.rename("value", "_hoodie_file_name"), "is taken"),
        (lambda schema: schema.add_column("value", "int"), "is taken"),
        (lambda schema: schema.add_column("x", "int", after="none"), "no column 'none'"),
        (lambda schema: schema.add_column("x", "integerish"), "is no type of Spark"),
        (lambda schema: schema.drop("id"), "id is a record key, partition or ordering column"),
        (lambda schema: schema.rename("month", "x"), "month is a record key, partition or ordering column"),
        (lambda schema: schema.widen("ts", "double"), "ts is a record key, partition or ordering column"),
        (lambda schema: schema.widen("value", "int"), "'value' is double and cannot become int"),
        (lambda schema: schema.widen("value", "array<int>"), "cannot become array"),
    ],
)
def test_what_hudi_refuses_is_refused_by_name_and_nothing_is_written(
    create: Create, frame: Frame, files_of: Callable[[], dict[str, bytes]], change: Callable[[Any], Any], told: str
) -> None:
    table = create()
    table.upsert(frame(ROWS))
    before = files_of()
    with pytest.raises(BadInput, match=told):
        change(table.schema)
    assert files_of() == before


def test_a_table_without_columns_or_with_a_plan_is_not_changed(create: Create, frame: Frame) -> None:
    table = create(options={"hoodie.parquet.small.file.limit": "0"})
    with pytest.raises(BadInput, match="has no columns yet"):
        table.schema.drop("value")
    table.upsert(frame(ROWS))
    table.upsert(frame([("n", "1", 1, 1.0)]))
    planned = table.clustering.schedule()
    assert planned is not None
    with pytest.raises(TableError, match=f"clustering {planned}.*run it, or take it back"):
        table.schema.rename("value", "price")
    table.clustering.abort(planned)
    assert table.schema.rename("value", "price").completion_time


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_a_table_of_version_6_have_a_history_by_the_names_of_its_timeline(
    create: Create, frame: Frame, rows_of: RowsOf, path: str, kind: str
) -> None:
    table = rename(create, frame, table_type=kind, options={"hoodie.write.table.version": "6"})
    table.upsert(frame([GIVEN], RENAMED))
    made = sorted(file.name for file in Path(path, ".hoodie/.schema").glob("*.schemacommit"))
    active = [one.requested for one in table.table.timeline().completed()]
    assert made == [f"{requested}.schemacommit" for requested in active[-2:]]
    assert rows_of(table, *SHOWN) == sorted([*without(), GIVEN], key=repr)


def test_a_compaction_of_version_6_is_run_before_columns_come_since_its_plan_stays(
    create: Create, frame: Frame, rows_of: RowsOf
) -> None:
    table = rename(create, frame, table_type=KINDS[1], options={"hoodie.write.table.version": "6"})
    planned = table.compaction.schedule()
    assert planned is not None
    with pytest.raises(TableError, match=f"compaction {planned} .* is planned"):
        table.schema.rename("price", "cost")
    with pytest.raises(WriteAborted, match=f"brings columns, and compaction {planned} is planned.*run it"):
        table.upsert(frame([(*GIVEN, "new")], f"{RENAMED}, note string"))
    table.upsert(frame([GIVEN], RENAMED))
    assert table.compaction.execute(planned) is not None
    table.upsert(frame([("y", "1", 1, 2.0, "new")], f"{RENAMED}, note string"))
    wanted = [*((*row, None) for row in (*without(), GIVEN)), ("y", "1", 1, 2.0, "new")]
    assert rows_of(table, *SHOWN, "note") == sorted(wanted, key=repr)


def test_statistics_by_the_names_of_their_time_are_in_the_way(
    create: Create, frame: Frame, rows_of: RowsOf, path: str
) -> None:
    table = create(options={"hoodie.metadata.enable": "true"})
    table.upsert(frame(ROWS))
    table.services.make_metadata_table()
    table.close()
    again = HoodieTable.load(table.spark, path)
    again.schema.add_column("note", "string")
    with pytest.raises(UnsupportedTable, match=r"metadata drop PATH --part column_stats"):
        again.schema.rename("value", "price")
    again.close()
    drop_metadata_table(path, parts=["column_stats", "partition_stats"])
    with HoodieTable.load(table.spark, path) as left:
        left.schema.rename("value", "price")
        left.upsert(frame([("a", "1", 5, 5.5, "n")], f"{RENAMED}, note string"))
        assert rows_of(left, *SHOWN) == [("a", "1", 5, 5.5), *ROWS[1:]]
        assert verify_table(left.table.storage).is_sound


def test_change_logs_and_files_without_meta_columns_are_in_the_way(create: Create, frame: Frame, path: str) -> None:
    for name, option in (("cdc", "hoodie.table.cdc.enabled"), ("bare", "hoodie.populate.meta.fields")):
        table = create(path=f"{path}{name}", options={option: str(name == "cdc").lower()})
        table.upsert(frame(ROWS))
        with pytest.raises(UnsupportedTable, match="copy it to a new table"):
            table.schema.rename("value", "price")


def test_a_change_waits_for_a_writer_that_may_be_of_the_jvm(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: AfterJob
) -> None:
    table, other = create(options=shared_table.SHARED), load(shared_table.SHARED)
    table.upsert(frame(ROWS))
    refused: list[WriteAborted] = []

    def alter() -> None:
        with pytest.raises(WriteAborted, match="is under way, and may be one of JVM Hudi") as caught:
            other.schema.rename("value", "price")
        refused.append(caught.value)

    after_job(alter)
    table.upsert(frame([("a", "1", 5, 5.5)]))
    assert refused
    assert rows_of(table) == [("a", "1", 5, 5.5), *ROWS[1:]]
    other.schema.rename("value", "price")
    assert rows_of(table, *SHOWN) == [("a", "1", 5, 5.5), *ROWS[1:]]


def test_an_upsert_begun_before_the_change_conflicts_and_loses_nothing(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: AfterJob
) -> None:
    alone = {**shared_table.SHARED, "hudi_locks.foreign_writers": "false"}
    table = create(options={**alone, "hoodie.write.num.retries.on.conflict.failures": "2"})
    table.upsert(frame(ROWS))
    other = load(alone)
    after_job(partial(other.schema.rename, "value", "price"))
    for _ in range(2):
        with pytest.raises(BadInput, match="column 'price' of the table is missing"):
            table.upsert(frame([("b", "1", 6, 6.5)]))
    assert rows_of(table, *SHOWN) == ROWS
    after_job(partial(other.schema.add_column, "note", "string"))
    with pytest.raises(BadInput, match="column 'note' of the table is missing"):
        table.upsert(frame([("b", "1", 6, 6.5)], RENAMED))


def test_an_insert_begun_before_the_change_conflicts_too(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: AfterJob
) -> None:
    alone = {**shared_table.SHARED, "hudi_locks.foreign_writers": "false"}
    table = create(options=alone)
    table.upsert(frame(ROWS))
    other = load(alone)
    for operation, name in ((table.insert, "price"), (table.bulk_insert, "value")):
        old = other.read().columns[-1]
        after_job(partial(other.schema.rename, old, name))
        with pytest.raises(WriteConflict, match="The columns of the table changed"):
            operation(frame([("n", "1", 1, 1.0)], RENAMED.replace("price", old)))
    assert rows_of(table, "id", "value") == [("a", 1.5), ("b", 2.5), ("c", 3.5)]


def test_a_write_that_adds_a_column_beside_a_later_one_begins_anew(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, after_job: AfterJob
) -> None:
    """Readers take the history of the write that was begun last, which would not have the column."""
    options = {**shared_table.SHARED, "hudi_locks.foreign_writers": "false"}
    table = create(options=options)
    table.upsert(frame(ROWS))
    table.schema.rename("value", "price")
    retrying = load({**options, "hoodie.write.num.retries.on.conflict.failures": "1"})
    for writer, key in ((table, "n"), (retrying, "o")):
        after_job(partial(load(options).upsert, frame([(f"{key}2", "9", 1, 1.0)], RENAMED)))
        rows = frame([(key, "1", 1, 8.5, "new")], f"{RENAMED}, note string")
        if writer is table:
            with pytest.raises(WriteConflict, match="The history of the columns went on meanwhile"):
                writer.upsert(rows)
        else:
            assert len(writer.upsert(rows).attempts) == 2
    assert rows_of(table, "id", "note")[-3:] == [("n2", None), ("o", "new"), ("o2", None)]


def test_a_change_beside_a_completed_write_is_made_after_it(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**shared_table.SHARED, "hoodie.write.num.retries.on.conflict.failures": "2"}
    table, other = create(options=options), load(options)
    table.upsert(frame(ROWS))
    store, done = store_history, threading.Event()

    def store_late(*args: Any, **named: Any) -> None:
        if not done.is_set():
            done.set()
            other.upsert(frame([("a", "1", 5, 5.5)]))
        store(*args, **named)

    monkeypatch.setattr(schema_changes, "store_history", store_late)
    table.schema.rename("value", "price")
    assert done.is_set()
    assert rows_of(table, *SHOWN) == [("a", "1", 5, 5.5), *ROWS[1:]]


def test_the_history_outlives_the_archive_and_goes_with_a_restore(
    create: Create, frame: Frame, rows_of: RowsOf, path: str
) -> None:
    table = rename(create, frame)
    for turn in range(4):
        table.upsert(frame([(f"n{turn}", "3", 1, float(turn))], RENAMED))
    settings = ArchiveSettings.of({"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    coordinator = table._open().transactions.coordinator
    Archiver(coordinator, replace(settings, min_age_ms=0), clean_settings=CleanSettings.of({})).run()
    table.upsert(frame([("n4", "3", 1, 4.0)], RENAMED))
    active = [one.requested for one in table.table.timeline().instants]
    timeline = table.table.timeline()
    commits = [
        read_commit(table.table.storage, timeline, requested=i.requested) for i in timeline.completed(("commit",))
    ]
    assert ALTER_SCHEMA not in {commit.operation for commit in commits}
    made = sorted(file.name for file in Path(path, ".hoodie/.schema").glob("*.schemacommit"))
    assert all(name.partition("_")[0] in active for name in made)
    assert rows_of(table, *SHOWN)[:3] == without()
    saved = table.services.savepoints.create()
    table.schema.rename("price", "cost")
    assert "cost" in table.read().columns
    table.services.restore(saved.instant)
    assert rows_of(table, *SHOWN)[:3] == without()
    table.upsert(frame([("a", "1", 9, 9.5)], RENAMED))
    assert rows_of(table, *SHOWN)[:3] == [("a", "1", 9, 9.5), *without("a")]


def test_a_compaction_of_version_6_beside_a_change_of_the_jvm_gives_way(
    create: Create, load: Load, frame: Frame, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**shared_table.SHARED, "hoodie.write.table.version": "6"}
    table = rename(create, frame, table_type=KINDS[1], options=options)
    planned = str(table.compaction.schedule())
    monkeypatch.setattr(SchemaChanger, "_refuse_pending", lambda *_: None)  # JVM Hudi changes columns beside a plan
    run_job = CompactionJob._run_job

    def run_and_change(self: CompactionJob, *args: Any) -> Any:
        found = run_job(self, *args)
        load(options).schema.rename("price", "cost")
        return found

    monkeypatch.setattr(CompactionJob, "_run_job", run_and_change)
    with pytest.raises(WriteConflict, match="columns"):
        table.compaction.execute(planned)
    again = load(options)
    with pytest.raises(WriteAborted, match="planned before ALTER TABLE"):
        again.compaction.execute(planned)
    again.upsert(frame([GIVEN], RENAMED.replace("price", "cost")))
    assert rows_of(again, "id", "month", "ts", "cost") == sorted([*without(), GIVEN], key=repr)
