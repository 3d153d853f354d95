"""Keys of few rows are searched for in each file, by the driver or tasks, those of many are joined: all find them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_locks.errors import BadInput, DamagedTable, UnsupportedTable
from hudi_locks.spark import HoodieTable
from hudi_locks.spark.index.simple_index import KeyLookup
from hudi_locks.spark.settings import FileSizing
from hudi_locks.spark.writing.placement import GROUP
from hudi_locks.spark.writing.rows import KeyedRows, count_rows
from hudi_locks.table import RECORD_KEY, latest_file_slices, list_base_files

pytestmark = pytest.mark.spark

Create = Callable[..., HoodieTable]
Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]
APART = {"hoodie.parquet.small.file.limit": "0"}
"""Each write has file groups of its own."""
KEYS = ("a", "bc", "zürich", "東京", "\U0001f680", "k" * 60_000, "~")
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


WAYS = {
    "a constant": {},
    "joined": {"_FEW_CONSTANTS": -1},
    "by tasks": {"_FEW_FILES": 0},
}
"""How what was found comes to the rows, by the limits that make it so."""


def choose_way(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    for name, limit in WAYS[way].items():
        monkeypatch.setattr(f"hudi_locks.spark.index.key_search.{name}", limit)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_of_rows_with_one_key_the_last_wins_where_no_column_decides(
    create: Create, frame: Frame, rows_of: RowsOf, monkeypatch: pytest.MonkeyPatch, index: str, way: str
) -> None:
    choose_way(monkeypatch, way)
    merges = {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING", "hoodie.index.type": index}
    table = create(options={**APART, **merges}, ordering=())
    keys = [f"k{number:03}" for number in range(200)]
    table.upsert(frame([(key, "eu", 0, 0.0) for key in keys]))
    table.upsert(frame([(key, "eu", ts, 1.0) for ts in (2, 1) for key in keys]))
    assert rows_of(table, "id", "ts") == [(key, 1) for key in keys]


@pytest.mark.parametrize("twice", [True, False], ids=["a key is there twice", "each key is there once"])
def test_rows_of_each_file_group_are_counted_alike(
    create: Create, frame: Frame, monkeypatch: pytest.MonkeyPatch, twice: bool
) -> None:
    """By the driver and by Spark; a key that is given twice counts twice, and so does one that the table has twice."""
    table = create(options={**APART, "hoodie.combine.before.upsert": "false"})
    for keys in ("ab", "b" if twice else 'q"\u001f\\'):
        table.bulk_insert(frame([(key, "eu", 1, 1.0) for key in keys]))
    given = [(key, "eu", 2, 2.0) for key in ("a", "a", "b", "c", "c", "q", '"', "\\")] + [("d", "asia", 2, 2.0)]
    rows = frame(given).selectExpr("id _hoodie_record_key", "month _hoodie_partition_path", "ts")
    counted_rows = count_rows(rows, table.table.config, most_keys=len(given))
    files = list_base_files(table.table.storage, ["eu"])
    lookup, found = KeyLookup(table.table.storage, FileSizing(1, 1, 0), searches=True), dict[str, Any]()
    for way in WAYS:
        with monkeypatch.context() as patched:
            choose_way(patched, way)
            keyed = KeyedRows(rows, pa.schema([]), None, counted_rows.counts, counted_rows.keys)
            located = lookup.locate(rows, files, GROUP, keyed=keyed)
            found[way] = sorted(map(tuple, located.rows.select(RECORD_KEY, "ts", GROUP).collect()), key=str)
            counted = located.rows.groupBy("_hoodie_partition_path", GROUP).count().collect()
            assert located.counts in (None, {(path, group): rows for path, group, rows in counted})
            assert (located.counts is None) == (way == "by tasks")
            plan = located.rows._jdf.queryExecution().optimizedPlan().toString()
        assert ("Join" not in plan) == (way == "a constant" and not twice)
        assert ("from_json" not in plan) or "Join" in plan, "a constant is read once, and not for each row"
        assert ("rightHint=(strategy=broadcast)" in plan) == ("Join" in plan and way != "by tasks")
    assert found["a constant"] == found["joined"] == found["by tasks"]
    assert len(found["joined"]) == len(given) + twice


def test_few_rows_are_counted_with_their_keys_and_more_by_spark(create: Create, frame: Frame) -> None:
    config = create().table.config
    rows = frame([("a", "eu", 1, 1.0), ("b", "eu", 1, 1.0), ("c", "asia", 1, 1.0)])
    keyed = rows.selectExpr("id _hoodie_record_key", "month _hoodie_partition_path")
    few, more = count_rows(keyed, config, most_keys=3), count_rows(keyed, config, most_keys=2)
    assert few.counts == more.counts == {"eu": 2, "asia": 1}
    assert few.keys is not None
    assert sorted(few.keys.column(RECORD_KEY).to_pylist()) == ["a", "b", "c"]
    assert more.keys is None


@pytest.mark.parametrize("most", [10, 0], ids=["few", "many"])
def test_rows_without_keys_are_refused_however_they_are_counted(create: Create, frame: Frame, most: int) -> None:
    rows = frame([("a", "eu", 1, 1.0), (None, "asia", 1, 1.0), (None, "asia", 2, 1.0)])
    keyed = rows.selectExpr("id _hoodie_record_key", "month _hoodie_partition_path")
    with pytest.raises(BadInput, match="2 rows have no record key") as refused:
        count_rows(keyed, create().table.config, most_keys=most)
    assert refused.value.facts["partition"] == "asia"


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
