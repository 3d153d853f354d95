"""Keys of few rows are searched for in each file, by the driver or tasks, those of many are joined: all find them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hudi_locks.errors import DamagedTable, UnsupportedTable
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.index.simple_index import KeyLookup
from hudi_locks.spark.settings import FileSizing
from hudi_locks.spark.writing.placement import GROUP
from hudi_locks.table import RECORD_KEY, latest_file_slices, list_base_files

pytestmark = pytest.mark.spark

Create = Callable[..., HoodieTable]
Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]
APART = {"hoodie.parquet.small.file.limit": "0"}
"""Each write has file groups of its own."""
KEYS = ("a", "bc", "zürich", "東京", "\U0001f680", "k" * 40, "~")
INDEXES = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM")


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", INDEXES)
def test_a_search_finds_every_key_of_a_partition_or_of_the_table(
    create: Create, frame: Frame, rows_of: RowsOf, index: str, kind: str
) -> None:
    find_every_key(create, frame, rows_of, index, kind)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", INDEXES)
def test_tasks_find_every_key_of_a_partition_or_of_the_table(
    create: Create, frame: Frame, rows_of: RowsOf, index: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_locks.spark.index.key_search._FEW_FILES", 0)
    find_every_key(create, frame, rows_of, index, kind)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", INDEXES)
def test_a_join_finds_every_key_of_a_partition_or_of_the_table(
    create: Create, frame: Frame, rows_of: RowsOf, index: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hudi_locks.spark.index.simple_index.MOST_KEYS", -1)
    find_every_key(create, frame, rows_of, index, kind)


def find_every_key(create: Create, frame: Frame, rows_of: RowsOf, index: str, kind: str) -> None:
    table = create(table_type=kind, options={**APART, "hoodie.index.type": index})
    regions = ("eu",) if index.startswith("GLOBAL") else ("eu", "us")
    expected: dict[tuple[str, str], tuple[Any, ...]] = {}
    for ts in (1, 2, 3):
        rows = [(key, region, ts, float(ts)) for key in KEYS[: 2 * ts + 1] for region in regions]
        expected |= {row[:2]: row for row in rows}
        table.upsert(frame(rows))
    table.delete(frame([("a", "eu", 4, 0.0), ("nobody", "eu", 4, 0.0)]))
    expected.pop(("a", "eu"))
    result = table.upsert(frame([("a", "eu", 5, 5.0), ("~", "eu", 5, 5.0), ("new", "asia", 5, 5.0)]))
    expected |= {("a", "eu"): ("a", "eu", 5, 5.0), ("~", "eu"): ("~", "eu", 5, 5.0)}
    expected[("new", "asia")] = ("new", "asia", 5, 5.0)
    assert rows_of(table) == sorted(expected.values())
    assert result.rows_updated >= 1
    assert result.rows_inserted == 2 if kind == "COPY_ON_WRITE" else result.rows_inserted >= 1


@pytest.mark.parametrize("few", [16, 0])
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_of_rows_with_one_key_the_last_wins_where_no_column_decides(
    create: Create, frame: Frame, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch, index: str, few: int
) -> None:
    monkeypatch.setattr("hudi_locks.spark.index.key_search._FEW_FILES", few)
    merges = {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING", "hoodie.index.type": index}
    table = create(options={**APART, **merges}, ordering=())
    keys = [f"k{number:03}" for number in range(200)]
    table.upsert(frame([(key, "eu", 0, 0.0) for key in keys]))
    table.upsert(frame([(key, "eu", ts, 1.0) for ts in (2, 1) for key in keys]))
    assert rows_of(table, "id", "ts") == [(key, 1) for key in keys]


def test_rows_of_each_file_group_are_counted_alike(
    create: Create, frame: Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the driver and by Spark; a key that is given twice counts twice, and so does one that the table has twice."""
    table = create(options={**APART, "hoodie.combine.before.upsert": "false"})
    for keys in ("ab", "b"):
        table.bulk_insert(frame([(key, "eu", 1, 1.0) for key in keys]))
    given = frame([(key, "eu", 2, 2.0) for key in ("a", "a", "b", "c", "c")] + [("d", "asia", 2, 2.0)])
    rows = given.selectExpr("id _hoodie_record_key", "month _hoodie_partition_path", "ts")
    files = list_base_files(table.table.storage, ["eu"])
    lookup, found = KeyLookup(table.table.storage, FileSizing(1, 1, 0), searches=True), dict[str, Any]()
    for few in (16, 0):
        monkeypatch.setattr("hudi_locks.spark.index.key_search._FEW_FILES", few)
        located = lookup.locate(rows, files, GROUP)
        found[f"{few}"] = sorted(tuple(row) for row in located.rows.collect()), located.counts
        plan = located.rows._jdf.queryExecution().optimizedPlan().toString()
        assert ("rightHint=(strategy=broadcast)" in plan) == (few > 0), "else Spark may broadcast the rows out of order"
    assert found["16"][0] == found["0"][0]
    assert found["0"][1] is None
    counted = located.rows.groupBy("_hoodie_partition_path", GROUP).count().collect()
    assert found["16"][1] == {(path, group): rows for path, group, rows in counted}
    assert sum(found["16"][1].values()) == 7


def break_keys(table: HoodieTable, key: str) -> None:
    """Overwrite the keys of the file that has this one."""
    for file in Path(table.path).rglob("*.parquet"):
        metadata = pq.read_metadata(file)
        if key in pq.read_table(file, columns=[RECORD_KEY]).column(0).to_pylist():
            column = metadata.row_group(0).column(metadata.schema.names.index(RECORD_KEY))
            data = bytearray(file.read_bytes())
            start = column.dictionary_page_offset or column.data_page_offset
            data[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
            file.write_bytes(data)


@pytest.mark.parametrize("index", INDEXES)
def test_a_file_that_cannot_have_them_is_not_read(create: Create, frame: Frame, index: str) -> None:
    """Out of range for all indexes; under a bloom index also what its filter rules out."""
    table = create(options={**APART, "hoodie.index.type": index})
    for rows in (("k10", "k30"), ("k05", "k20", "k40"), ("p1", "p9")):
        table.upsert(frame([(key, "eu", 1, 1.0) for key in rows]))
    break_keys(table, "k20")
    assert table.upsert(frame([("p1", "eu", 2, 2.0)])).rows_updated == 1
    within = frame([("k10", "eu", 2, 2.0)])
    if index.endswith("BLOOM"):
        assert table.upsert(within).rows_updated == 1
        return
    with pytest.raises(DamagedTable, match=r"^eu/.*\.parquet: a base file cannot be read as Parquet"):
        table.upsert(within)
    assert [instant.action for instant in table.table.timeline().completed()] == [*["commit"] * 4, "rollback"]


def test_a_writer_lists_the_partitions_of_its_rows_alone(
    create: Create, load: Create, frame: Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the rows lie in buckets, which all files would tell, the newest write tells too."""
    create(options=APART).upsert(frame([("a", "eu", 1, 1.0), ("b", "us", 1, 1.0), ("c", "asia", 1, 1.0)]))
    listed: list[frozenset[str] | None] = []

    def list_slices(storage: Any, timeline: Any, *, partitions: Any, **others: Any) -> Any:
        listed.append(partitions)
        return latest_file_slices(storage, timeline, partitions=partitions, **others)

    monkeypatch.setattr("hudi_locks.spark.snapshot.latest_file_slices", list_slices)
    load(APART).upsert(frame([("b", "us", 2, 2.0)]))
    assert set(listed) == {frozenset({"us"})}


def test_rows_in_buckets_are_seen_where_the_table_does_not_tell(
    create: Create, load: Create, frame: Frame, path: str
) -> None:
    """As JVM Hudi leaves such a table."""
    bucketed = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    create(options=bucketed).upsert(frame([("a", "eu", 1, 1.0), ("b", "us", 1, 1.0)]))
    properties = Path(path, ".hoodie/hoodie.properties")
    kept = [line for line in properties.read_text().splitlines() if ".index." not in line and "checksum" not in line]
    properties.write_text("\n".join(kept) + "\n")
    with pytest.raises(UnsupportedTable, match=r"all others belong to buckets; set hoodie\.index\.type=BUCKET"):
        load({"hoodie.index.type": "SIMPLE"}).upsert(frame([("a", "eu", 2, 2.0)]))
