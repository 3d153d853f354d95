"""A storage that Spark has no file system for: no read, lookup or plan of ours asks Spark for one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.spark import HoodieTable
from hudi_locks.spark.reading import files
from hudi_locks.storage import LocalStorage
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark
SCHEMA = "id long, region string, ts long, v string"
TYPES = {
    "COPY_ON_WRITE": {},
    "MERGE_ON_READ": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}


@pytest.fixture(autouse=True)
def unknown_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("Spark was asked for the table's file system")

    monkeypatch.setattr(LocalStorage, "is_read_by_spark", False)
    monkeypatch.setattr(files, "FileIndexes", refuse)


@pytest.fixture
def make(spark: Any, tmp_path: Path) -> Callable[..., HoodieTable]:
    def make_one(**changes: Any) -> HoodieTable:
        options = {"hoodie.upsert.shuffle.parallelism": "2", **changes.pop("options", {})}
        settings = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts", **changes}
        return HoodieTable.create(spark, str(tmp_path / "t"), options=options, **settings)

    return make_one


def frame(spark: Any, ids: range, ts: int, v: str) -> Any:
    return spark.createDataFrame([(n, f"r{n % 2}", ts, f"{v}{n}") for n in ids], SCHEMA).coalesce(1)


def rows(found: Any) -> dict[int, tuple[int, str]]:
    listed = found.select("id", "ts", "v").collect()
    assert len({row.id for row in listed}) == len(listed)
    return {row.id: (row.ts, row.v) for row in listed}


@pytest.mark.parametrize("table_type", TYPES)
def test_a_table_is_written_read_and_served(spark: Any, make: Any, table_type: str) -> None:
    table = make(table_type=table_type, options=TYPES[table_type])
    table.insert(frame(spark, range(40), 1, "a"))
    begin = str(table.table.timeline().completed()[-1].completion)
    table.upsert(frame(spark, range(20, 60), 2, "b"))
    table.delete(frame(spark, range(5), 3, "c"))
    expected = {n: (2, f"b{n}") if n >= 20 else (1, f"a{n}") for n in range(5, 60)}
    assert rows(table.read()) == expected
    assert rows(table.read(where="region = 'r1'")) == {n: row for n, row in expected.items() if n % 2}
    assert rows(table.as_of(begin)) == {n: (1, f"a{n}") for n in range(40)}
    assert rows(table.incremental(begin)) == {n: row for n, row in expected.items() if n >= 20}
    done = table.compaction.run() if table_type == "MERGE_ON_READ" else table.clustering.run(sort_by=["id"])
    assert done is not None
    assert rows(table.read()) == expected
    assert verify_table(table.table.storage).damages == ()


def test_keys_that_another_write_brought_are_found(spark: Any, make: Any) -> None:
    """The index looks into the files of a commit by their names alone, of which no size is known."""
    table = make()
    table.insert(frame(spark, range(10), 1, "a"))
    late = table.table.timeline()
    assert late.completed()
    table.insert(frame(spark, range(10, 20), 1, "b"))
    table.upsert(frame(spark, range(20), 2, "c"))
    assert rows(table.read()) == {n: (2, f"c{n}") for n in range(20)}
