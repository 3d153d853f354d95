"""A clustering puts as many rows in place of file groups as these have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from hudi_locks.errors import UnsupportedTable, WriteAborted
from hudi_locks.services import TableWriter
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.services.clustering import ClusteringJob
from hudi_locks.storage import LocalStorage

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def table(create: Create, frame: Frame) -> HoodieTable:
    """Two small files in each of two partitions."""
    made = create(options={"hoodie.parquet.small.file.limit": "0"})
    made.bulk_insert(frame([("a", "1", 1, 1.0), ("b", "1", 2, 2.0), ("x", "2", 1, 1.0)]))
    made.bulk_insert(frame([("c", "1", 3, 3.0), ("y", "2", 2, 2.0)]))
    return made


@pytest.mark.parametrize(
    ("spoil", "written"),
    [
        (lambda rows: rows.where("id != 'b'"), 4),
        (lambda rows: rows.limit(0), 0),
        (lambda rows: rows.unionAll(rows), 10),
    ],
    ids=["one row is lost", "all are lost", "each comes twice"],
)
def test_files_of_more_or_fewer_rows_replace_nothing(
    table: HoodieTable,
    rows_of: RowsOf,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[DataFrame], DataFrame],
    written: int,
) -> None:
    before, files = rows_of(table), set(Path(table.path).rglob("*.parquet"))
    read = ClusteringJob._read
    monkeypatch.setattr(ClusteringJob, "_read", lambda *given: spoil(read(*given)))
    with pytest.raises(WriteAborted, match=f"wrote {written} rows, .* have 5: nothing is replaced") as caught:
        table.clustering.run(sort_by=["ts"])
    assert (caught.value.rows_written, caught.value.rows_expected) == (written, 5)
    assert rows_of(table) == before
    assert set(Path(table.path).rglob("*.parquet")) == files
    assert [i.action for i in table.table.timeline().completed()] == ["commit", "commit", "rollback"]
    assert table.table.timeline().get(caught.value.instant) is None
    monkeypatch.undo()
    result = table.clustering.run(sort_by=["ts"])
    assert result is not None
    assert (result.rows_written, result.file_groups_replaced) == (5, 4)
    assert rows_of(table) == before


def test_an_inline_clustering_that_would_lose_rows_is_a_warning(
    table: HoodieTable, load: Callable[..., HoodieTable], frame: Frame, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = ClusteringJob._read
    monkeypatch.setattr(ClusteringJob, "_read", lambda *given: read(*given).where("id != 'a'"))
    inline = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
    with load({**table.options, **inline}) as writer:
        result = writer.upsert(frame([("z", "1", 9, 9.0)]))
    assert "5 rows" in result.warnings[0]
    assert "have 6" in result.warnings[0]
    assert rows_of(table, "id") == [("a",), ("b",), ("c",), ("x",), ("y",), ("z",)]


@pytest.mark.parametrize("name", ["v8_mor", "v9_mor"])
def test_a_merge_on_read_table_is_not_clustered_without_its_logs(
    golden: Callable[[str], LocalStorage], name: str
) -> None:
    with TableWriter.open(golden(name).base, {"hoodie.write.lock.provider": "in_process"}) as writer:
        with pytest.raises(UnsupportedTable, match=r"merge-on-read table.* logs"):
            writer.clustering(sort_by=["ts"]).schedule()
        assert writer.table.timeline().pending() == ()
