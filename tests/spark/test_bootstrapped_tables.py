"""Tables that were made of files which lie elsewhere: what writes rows anew brings the columns of the source along."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bootstrapped_tables import bootstrap, digest

from hudi_locks.errors import DamagedTable, UnsupportedTable
from hudi_locks.format import ClusteringPlan, CompactionPlan
from hudi_locks.format.instant import METADATA_BOOTSTRAP
from hudi_locks.spark import HoodieTable, write
from hudi_locks.table import BaseFile, latest_file_slices
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

SCHEMA = "id string, ts long, value double, note string, region string"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.time.generator.max_expected_clock_skew_ms": "1",
}
COPY, MERGE = "COPY_ON_WRITE", "MERGE_ON_READ"
Row = tuple[str, int, float, str, str]
Rows = dict[str, Row]


def make_rows(first: int) -> pa.Table:
    numbers = range(first, first + 10)
    columns = {"id": [f"k{n:02}" for n in numbers], "ts": [1] * 10, "value": [float(n) for n in numbers]}
    return pa.table({**columns, "note": [f"source {n}" for n in numbers]})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source"


@pytest.fixture
def expected() -> Rows:
    """The rows of the source, to be kept up to date by key."""
    return {f"k{n:02}": (f"k{n:02}", 1, float(n), f"source {n}", "eu" if n < 20 else "us") for n in range(30)}


@pytest.fixture
def make(tmp_path: Path, source: Path) -> Iterator[Callable[[str], Path]]:
    """A bootstrapped table; at the end its source is as it was."""
    files = {"region=eu": [make_rows(0), make_rows(10)], "region=us": [make_rows(20)]}

    def create(table_type: str) -> Path:
        given = {"partitions": {"region": pa.string()}, "table_type": table_type, "version": 9}
        bootstrap(tmp_path / "table", source, files, **given)  # type: ignore[arg-type]
        return tmp_path / "table"

    yield create
    assert {name: pq.read_table(source / name).num_rows for name in digest(source)} == dict.fromkeys(digest(source), 10)


@pytest.fixture
def put(spark: Any, path: str) -> Callable[..., None]:
    def make(rows: list[Row], operation: str = "upsert", **more: str) -> None:
        options = {**OPTIONS, "hoodie.datasource.write.operation": operation, **more}
        write(spark.createDataFrame(rows, SCHEMA).coalesce(1), path, options, mode="append")

    return make


def rows_of(table: HoodieTable, **how: Any) -> list[Row]:
    found = table.read(**how).select("id", "ts", "value", "note", "region").collect()
    return sorted(tuple(row) for row in found)


def list_bases(table: HoodieTable) -> list[BaseFile]:
    slices = latest_file_slices(table.table.storage, table.table.timeline())
    return [piece.base for piece in slices if piece.base is not None]


def check(load: Any, expected: Rows) -> None:
    table = load()
    assert rows_of(table) == sorted(expected.values())
    assert verify_table(table.table.storage, reads_values=True).damages == ()


def take(expected: Rows, *rows: Row) -> list[Row]:
    expected.update({row[0]: row for row in rows})
    return list(rows)


@pytest.mark.parametrize("table_type", [COPY, MERGE])
def test_rows_are_read_with_the_columns_of_the_source(make: Any, load: Any, expected: Rows, table_type: str) -> None:
    make(table_type)
    check(load, expected)
    table = load()
    in_us = [row for row in sorted(expected.values()) if row[4] == "us"]
    assert rows_of(table, partitions="region=us") == rows_of(table, where="region = 'us'") == in_us
    assert rows_of(table, where="value = 12.0 and note = 'source 12'") == [expected["k12"]]
    assert min(map(tuple, table.read(columns=["note"], meta_columns=False).collect())) == ("source 0",)
    assert table.read(columns=["region"]).where("region = 'eu'").count() == 20
    assert rows_of(table, read_optimized=True) == sorted(expected.values())
    completed = table.table.timeline().completed_between("")[0].completion
    assert sorted(row["note"] for row in table.incremental("0").collect()) == sorted(
        row[3] for row in expected.values()
    )
    assert table.as_of(completed).count() == table.change_data("0").count() == 30
    assert table.incremental(completed).count() == 0


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_an_upsert_writes_the_rows_beside_its_own_whole(
    make: Any, put: Any, load: Any, expected: Rows, index: str
) -> None:
    make(COPY)
    put(take(expected, ("k03", 2, -1.0, "new", "eu"), ("n1", 2, -2.0, "new", "eu")), **{"hoodie.index.type": index})
    check(load, expected)
    put([("k04", 0, 0.0, "older", "eu")], **{"hoodie.index.type": index})
    check(load, expected)


def test_a_row_that_moves_is_compared_by_the_ordering_column_of_the_source(
    make: Any, put: Any, load: Any, expected: Rows
) -> None:
    make(COPY)
    moves = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
    put([*take(expected, ("k03", 2, -1.0, "new", "us")), ("k05", 0, 0.0, "older", "us")], **moves)
    check(load, expected)


def test_deletes_and_inserts_leave_the_others_as_they_are(make: Any, put: Any, load: Any, expected: Rows) -> None:
    make(COPY)
    put([expected.pop("k07")], "delete")
    check(load, expected)
    put(take(expected, ("i1", 1, 1.0, "inserted", "us")), "insert")
    check(load, expected)
    assert sum(base.is_skeleton for base in list_bases(load())) == 2


@pytest.mark.parametrize("table_type", [COPY, MERGE])
def test_clustering_brings_rows_of_sources_together(
    make: Any, put: Any, load: Any, expected: Rows, table_type: str
) -> None:
    make(table_type)
    put(take(expected, ("k03", 2, -1.0, "new", "eu")))
    assert load().clustering.run(sort_by=["note"]) is not None
    check(load, expected)


def test_clustering_counts_a_skeleton_by_the_size_of_its_source(make: Any, load: Any, source: Path) -> None:
    make(COPY)
    sizes = {file.stat().st_size for file in source.rglob("*.parquet")}
    assert load({"hoodie.clustering.plan.strategy.small.file.limit": str(min(sizes))}).clustering.run() is None


def test_logs_lie_upon_a_skeleton_until_a_compaction_writes_all_rows(
    make: Any, put: Any, load: Any, expected: Rows
) -> None:
    make(MERGE)
    before = sorted(expected.values())
    put(take(expected, ("k03", 2, -1.0, "new", "eu"), ("n1", 2, -2.0, "new", "us")))
    put([expected.pop("k12")], "delete")
    check(load, expected)
    assert [row for row in rows_of(load(), read_optimized=True) if row[0] != "n1"] == before
    table = load()
    table.compaction.schedule()
    assert table.compaction.run() is not None
    check(load, expected)
    assert rows_of(load(), read_optimized=True) == sorted(expected.values())


def test_a_new_column_is_null_in_rows_of_the_source(
    make: Any, spark: Any, path: str, load: Any, expected: Rows
) -> None:
    make(COPY)
    rows = spark.createDataFrame([("k03", 2, -1.0, "new", 5, "eu")], SCHEMA.replace("region", "extra int, region"))
    write(rows, path, OPTIONS, mode="append")
    found = {row["id"]: (row["note"], row["extra"]) for row in load().read().collect()}
    assert found == {key: (row[3], None) for key, row in expected.items()} | {"k03": ("new", 5)}


def test_a_clean_takes_skeletons_and_no_source(
    make: Any, put: Any, load: Any, source: Path, path: str, expected: Rows
) -> None:
    make(COPY)
    before = digest(source)
    for ts in (2, 3, 4):
        put(take(expected, ("k03", ts, -1.0, "new", "eu"), ("k20", ts, -1.0, "new", "us")))
    load({"hoodie.clean.commits.retained": "1"}).services.clean()
    check(load, expected)
    assert len(list(Path(path).rglob(f"*_{METADATA_BOOTSTRAP}.parquet"))) == 1
    assert digest(source) == before


@pytest.mark.parametrize("table_type", [COPY, MERGE])
def test_a_restore_brings_back_rows_of_the_source(
    make: Any, put: Any, load: Any, expected: Rows, table_type: str
) -> None:
    make(table_type)
    put(take(expected, ("k03", 2, -1.0, "new", "eu")))
    services = load().services
    saved = load().table.timeline().completed_between("")[-1].requested
    services.savepoints.create(saved)
    put([("k13", 2, -1.0, "newer", "eu"), ("k20", 2, -1.0, "newer", "us")])
    load().services.restore(saved)
    check(load, expected)


def test_a_metadata_table_has_the_ranges_of_sources(make: Any, put: Any, load: Any, expected: Rows) -> None:
    make(COPY)
    assert load().services.make_metadata_table() is not None
    check(load, expected)
    assert rows_of(load(), where="ts = 1 and id > 'k25'") == [expected[f"k{n}"] for n in range(26, 30)]
    put(take(expected, ("k03", 2, -1.0, "new", "eu")))
    check(load, expected)
    assert rows_of(load(), where="ts = 2") == [expected["k03"]]


def test_no_record_index_is_made_of_files_of_the_bootstrap(make: Any, load: Any) -> None:
    make(COPY)
    asked = {"hoodie.metadata.record.index.enable": "true"}
    with pytest.raises(UnsupportedTable, match=f"no record index.*{METADATA_BOOTSTRAP}"):
        load(asked).services.make_metadata_table()


@pytest.mark.parametrize("table_type", [COPY, MERGE])
def test_a_lost_source_stops_writes_of_its_partition_alone(
    make: Any, put: Any, load: Any, source: Path, expected: Rows, table_type: str
) -> None:
    make(table_type)
    lost = source / "region=eu" / "part-0.parquet"
    kept = lost.read_bytes()
    lost.unlink()
    with pytest.raises(DamagedTable, match=r"part-0\.parquet is gone"):
        put([("k03", 2, -1.0, "new", "eu")])
    with pytest.raises(DamagedTable, match=r"part-0\.parquet is gone"):
        load().read()
    assert load().table.timeline().pending() == ()
    put(take(expected, ("k20", 2, -1.0, "new", "us")))
    lost.write_bytes(kept)
    check(load, expected)


def test_plans_name_the_sources_so_that_the_jvm_can_run_them(make: Any, put: Any, load: Any, source: Path) -> None:
    make(MERGE)
    put([("k03", 2, -1.0, "new", "eu"), ("n1", 2, -2.0, "new", "xx")])
    table = load()
    storage, layout = table.table.storage, table.table.layout
    requested = storage.read(f"{layout.folder}/{table.compaction.schedule()}.compaction.requested")
    [compacted] = CompactionPlan.decode(requested or b"", "plan").groups
    assert compacted.source == f"file:{source}/region=eu/part-0.parquet"


def test_a_plan_of_clustering_names_the_sources(make: Any, load: Any, source: Path) -> None:
    make(COPY)
    table = load()
    storage, layout = table.table.storage, table.table.layout
    requested = storage.read(f"{layout.folder}/{table.clustering.schedule()}.clustering.requested")
    plan = ClusteringPlan.decode(requested or b"", "plan")
    assert plan is not None
    named = {piece.source for group in plan.groups for piece in group.slices}
    assert named == {f"file:{source}/region=eu/part-{number}.parquet" for number in range(2)}
