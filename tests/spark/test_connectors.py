"""Tables on a store: large files are read by Spark, where a connector of the session opens them, others by Arrow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.spark import HoodieTable
from hudi_locks.spark._compat import SWITCHES, ask_connector_for_bytes
from hudi_locks.spark.reading import files
from hudi_locks.storage import LocalStorage

pytestmark = pytest.mark.spark
SCHEMA = "id long, region string, ts long, v string"
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
ALL = {n: (2, f"b{n}") if n >= 20 else (1, f"a{n}") for n in range(60)}


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Local files stand for a store: Hadoop has a file system for them, which is asked as a connector is."""
    monkeypatch.setattr(LocalStorage, "is_read_by_spark", False)
    monkeypatch.setattr(files, "_LARGE_BYTES", 1)
    monkeypatch.setattr(files, "_opened", {})


@pytest.fixture
def table(spark: Any, tmp_path: Path, request: pytest.FixtureRequest) -> HoodieTable:
    """Two writes; of a merge-on-read table the second is in logs."""
    kind = getattr(request, "param", "COPY_ON_WRITE")
    options = {"hoodie.upsert.shuffle.parallelism": "2", **(BUCKETS if kind == "MERGE_ON_READ" else {})}
    settings = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts", "table_type": kind}
    made = HoodieTable.create(spark, str(tmp_path / "t"), options=options, **settings)
    made.insert(frame(spark, range(40), 1, "a"))
    made.upsert(frame(spark, range(20, 60), 2, "b"))
    return made


def frame(spark: Any, ids: range, ts: int, v: str) -> Any:
    return spark.createDataFrame([(n, f"r{n % 2}", ts, f"{v}{n}") for n in ids], SCHEMA).coalesce(1)


def rows(found: Any) -> dict[int, tuple[int, str]]:
    listed = found.select("id", "ts", "v").collect()
    assert len({row.id for row in listed}) == len(listed)
    return {row.id: (row.ts, row.v) for row in listed}


def is_by_spark(found: Any) -> bool:
    return bool(found.inputFiles())


@pytest.mark.parametrize("table", ["COPY_ON_WRITE", "MERGE_ON_READ"], indirect=True)
def test_both_readers_show_the_same_rows(spark: Any, table: HoodieTable) -> None:
    if table.table.is_merge_on_read:
        assert table.compaction.run() is not None
    reads: list[Callable[[], Any]] = [
        table.read,
        lambda: table.read(where="region = 'r1'", columns=["id", "ts", "v"]),
        lambda: table.read(partitions="r0"),
        lambda: table.incremental("0"),
        lambda: table.as_of(str(table.table.timeline().completed()[-1].completion)),
    ]
    by_spark = [(is_by_spark(read()), rows(read())) for read in reads]
    spark.conf.set(SWITCHES["connector"], "false")
    try:
        by_arrow = [(is_by_spark(read()), rows(read())) for read in reads]
    finally:
        spark.conf.unset(SWITCHES["connector"])
    assert [shown for _, shown in by_spark] == [shown for _, shown in by_arrow]
    assert all(is_spark for is_spark, _ in by_spark)
    assert not any(is_spark for is_spark, _ in by_arrow)
    assert by_spark[0][1] == ALL


@pytest.mark.parametrize("table", ["MERGE_ON_READ"], indirect=True)
def test_slices_with_logs_are_merged_beside_those_that_spark_reads(spark: Any, table: HoodieTable) -> None:
    table.compaction.run()
    table.upsert(frame(spark, range(1), 3, "c"))
    found = table.read()
    assert is_by_spark(found)
    assert rows(found) == ALL | {0: (3, "c0")}


def test_small_files_are_read_by_arrow(table: HoodieTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LARGE_BYTES", 8 << 20)
    assert not is_by_spark(table.read())
    assert rows(table.read()) == ALL


@pytest.mark.parametrize("answer", [None, 7])
def test_a_connector_that_opens_nothing_or_another_file_is_left_alone(
    table: HoodieTable, monkeypatch: pytest.MonkeyPatch, answer: int | None
) -> None:
    """As one without credentials, or with those of another service that has a bucket of that name."""
    monkeypatch.setattr(files, "ask_connector_for_bytes", lambda *_: answer)
    assert not is_by_spark(table.read())
    assert rows(table.read()) == ALL


def test_a_connector_is_asked_until_it_opens_a_file_and_then_no_more(
    table: HoodieTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    answers = [None, -1]

    def ask(spark: Any, address: str) -> int | None:
        asked.append(address)
        return answers.pop(0) if answers else ask_connector_for_bytes(spark, address)

    monkeypatch.setattr(files, "ask_connector_for_bytes", ask)
    assert [is_by_spark(table.read()) for _ in range(5)] == [False, False, True, True, True]
    assert len(asked) == 3


def test_what_a_connector_cannot_say_is_none(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert ask_connector_for_bytes(spark, str(tmp_path / "file")) == 5
    assert ask_connector_for_bytes(spark, str(tmp_path / "another")) is None
    assert ask_connector_for_bytes(spark, "nobody-has-this://bucket/file") is None
