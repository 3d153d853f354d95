"""A table that is written again and again stays small, and can be taken back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shared_table
from small_tables import archive_now

from hudi_locks.errors import TableError
from hudi_locks.spark import HoodieTable
from hudi_locks.table import table as table_module

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]
LOGGED = {
    **shared_table.SHARED,
    "hoodie.write.concurrency.mode": "non_blocking_concurrency_control",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
FIRST = [("a", "1", 5, 1.0), ("b", "1", 5, 2.0), ("c", "2", 5, 3.0)]


def instants_of(path: str) -> list[str]:
    """Which writes the data files of the first month are of."""
    return sorted(file.stem.rsplit("_", 1)[-1] for file in Path(path, "1").glob("*.parquet"))


def test_old_versions_go_after_writes_and_a_savepoint_brings_the_rows_back(
    create: Create, frame: Frame, rows_of: RowsOf, path: str
) -> None:
    table = create(options={"hoodie.clean.commits.retained": "1", "hudi_locks.sweep_before_write": "true"})
    first = table.bulk_insert(frame(FIRST)).instant
    kept = table.services.savepoints.create(user="ada", comments="before the change")
    later = [table.upsert(frame([("a", "1", n, float(n))])) for n in (6, 7, 8)]
    assert all(result.warnings == () for result in later)
    assert instants_of(path) == [first, later[1].instant, later[2].instant]
    assert table.services.savepoints.list() == [kept]

    assert table.services.restore(kept.instant).undone == tuple(result.instant for result in reversed(later))
    assert (rows_of(table), instants_of(path)) == (FIRST, [first])
    assert table.services.savepoints.delete(kept.instant)

    replaced = table.insert_overwrite(frame([("x", "1", 9, 9.0)])).instant
    last = table.upsert(frame([("c", "2", 9, 9.0)]))
    assert last.warnings == ()
    assert instants_of(path) == [replaced]
    assert rows_of(table) == [("c", "2", 9, 9.0), ("x", "1", 9, 9.0)]
    assert table.services.clean().deleted == table.services.sweep().leftovers == table.services.archive().archived == 0
    table.close()


def test_streams_of_logs_are_compacted_cleaned_and_archived_as_they_go(
    create: Create, frame: Frame, rows_of: RowsOf, path: str
) -> None:
    table = create(table_type="MERGE_ON_READ", options={**LOGGED, "hoodie.archive.automatic": "false"})
    sink = table.stream_sink(identifier="numbers")
    results = [sink.write(frame([("a", "1", n, float(n)), (f"k{n}", "1", n, 0.0)]), n) for n in range(1, 10)]
    second = results[1]
    assert second is not None
    assert [result.warnings for result in results if result] == [()] * 9
    state = [("a", "1", 9, 9.0), *((f"k{n}", "1", n, 0.0) for n in range(1, 10))]
    assert rows_of(table) == state
    assert len(list(Path(path, "1").glob("*.parquet"))) <= 2
    assert len(list(Path(path, "1").glob(".0*.log.*"))) <= 5

    assert archive_now(table) >= 6
    assert rows_of(table) == state
    last = table.table.timeline().completed(("deltacommit",))[-1]
    assert rows_of(table.as_of(last.completion)) == state
    assert rows_of(table.as_of(requested=last.requested)) == state
    assert rows_of(table.incremental("0")) == state
    assert sink.write(frame([("a", "1", 99, 0.0)]), 9) is None
    sink.write(frame([("a", "1", 10, 10.0)]), 10)
    table.compaction.run()
    assert rows_of(table) == rows_of(table.read(read_optimized=True)) == [("a", "1", 10, 10.0), *state[1:]]
    with pytest.raises(TableError, match="was cleaned"):
        table.incremental("0", second.completion_time)
    with pytest.raises(TableError, match="is not whole any more"):
        table.as_of(second.completion_time)
    with pytest.raises(TableError, match="is not whole any more"):
        table.as_of(requested=second.instant)
    table.close()


@pytest.mark.parametrize("runs", ["true", "false"])
def test_no_table_service_follows_writes_where_the_owner_says_so(create: Create, frame: Frame, runs: str) -> None:
    table = create(table_type="MERGE_ON_READ", options={**LOGGED, "hoodie.table.services.enabled": runs})
    results = [table.upsert(frame([("a", "1", n, float(n))])) for n in range(1, 10)]
    actions = {instant.action for instant in table.table.timeline().instants}
    assert ("clean" in actions, "commit" in actions) == (runs == "true",) * 2
    assert [result.warnings for result in results] == [()] * 9
    table.compaction.run()
    assert "commit" in {instant.action for instant in table.table.timeline().instants}
    table.close()


def test_a_savepoint_brings_back_rows_that_lay_in_logs(
    create: Create, frame: Frame, rows_of: RowsOf, path: str
) -> None:
    table = create(table_type="MERGE_ON_READ", options=LOGGED)
    table.upsert(frame(FIRST))
    table.upsert(frame([("a", "1", 6, 6.0)]))
    shown = rows_of(table)
    kept = table.services.savepoints.create(user="ada", comments="before the change")
    later = [table.upsert(frame([("a", "1", n, float(n)), ("b", "1", n, 0.0)])) for n in range(7, 13)]
    table.delete(frame([("c", "2")], "id string, month string"))
    assert all(result.warnings == () for result in later)
    assert table.services.savepoints.list() == [kept]

    undone = table.services.restore(kept.instant).undone
    assert set(undone) > {result.instant for result in later}
    assert rows_of(table) == rows_of(table.as_of(requested=kept.instant)) == shown
    assert rows_of(table.incremental(kept.completion_time)) == []
    assert not any(instant in file.name for instant in undone for file in Path(path).rglob(".*.log.*"))
    assert table.services.savepoints.delete(kept.instant)
    again = table.upsert(frame([("b", "1", 9, 9.0)]))
    table.compaction.run()
    assert rows_of(table) == rows_of(table.read(read_optimized=True)) == [shown[0], ("b", "1", 9, 9.0), shown[2]]
    assert rows_of(table.incremental(kept.completion_time)) == [("b", "1", 9, 9.0)]
    assert again.warnings == ()
    table.close()


def test_a_writer_goes_on_after_another_one_restored_the_table(
    create: Create, load: Create, frame: Frame, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last commit that it knew is gone."""
    options = {**shared_table.SHARED, "hudi_locks.foreign_writers": "false"}
    table = create(options=options)
    table.upsert(frame([("a", "1", 1, 1.0)]))
    other = load(options)
    kept = other.services.savepoints.create()
    for ts in (2, 3):
        table.upsert(frame([("a", "1", ts, 1.0)]))
    other.services.restore(kept.instant)
    monkeypatch.setattr(table_module, "_memories", OrderedDict())  # as if this process had not read it before
    table.upsert(frame([("b", "1", 4, 1.0)]))
    assert rows_of(table) == [("a", "1", 1, 1.0), ("b", "1", 4, 1.0)]
