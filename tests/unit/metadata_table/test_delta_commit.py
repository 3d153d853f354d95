"""What a commit changes in the metadata table, as readers of it see it."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from golden_metadata import BUNDLES, read_golden

from hudi_locks.clock import ManualClock
from hudi_locks.errors import DamagedTable, UnsupportedTable
from hudi_locks.format import METADATA_FOLDER, CommitMetadata, Instant, MetadataPartition, State, WriteStat
from hudi_locks.format.column_range import INT, LONG, ColumnRange, encode_ranges
from hudi_locks.format.hfile import HFile
from hudi_locks.format.key_filter import EVERY_KEY
from hudi_locks.format.log_block import decode_blocks
from hudi_locks.format.log_deletes import decode_deletes
from hudi_locks.format.metadata_keys import bloom_filter_key, column_stats_key, partition_stats_key
from hudi_locks.format.metadata_record import decode_metadata_record
from hudi_locks.format.metadata_schema import SCHEMA_TEXTS
from hudi_locks.metadata_table import (
    DeltaCommit,
    MetadataShape,
    MetadataTable,
    MetadataView,
    hides_some,
    list_indexed,
    log_path,
    plan_clean,
    plan_delta_commit,
)
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_2, Timeline, TimelineLayout

T = "20270101000000000"
OWN = TimelineLayout(2, f"{METADATA_FOLDER}/.hoodie/timeline", f"{METADATA_FOLDER}/.hoodie/timeline/history")
PARTS = (MetadataPartition.FILES, MetadataPartition.COLUMN_STATS, MetadataPartition.PARTITION_STATS)


@pytest.fixture(params=BUNDLES)
def bundle(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def version(bundle: str) -> int:
    return BUNDLES[bundle]


@pytest.fixture
def table(bundle: str, version: int) -> MetadataTable:
    """That of a table of the JVM, with three partitions."""
    storage = MemoryStorage(ManualClock())
    for path, data in read_golden(bundle).items():
        if path.startswith("cow/"):
            storage.replace(f"{METADATA_FOLDER}/{path.removeprefix('cow/')}", data)
    storage.replace(".hoodie/.index_defs/index.json", read_golden(bundle)["cow.index_defs/index.json"])
    return MetadataTable(storage, frozenset(part.value for part in PARTS), version, version)


def view(table: MetadataTable) -> MetadataView:
    return table.view(Timeline(LAYOUT_2, ()))


def stat(partition: str, name: str, size: int) -> WriteStat:
    path = f"{partition}/{name}".removeprefix("/")
    return WriteStat(partition, name.partition("_")[0], path, file_size_bytes=size)


def plan(table: MetadataTable, version: int, written: CommitMetadata, **ranges: ColumnRange) -> DeltaCommit:
    """With the same ranges of `qty` for every file whose name begins so."""
    told = {
        partition: tuple(replace(one, ranges=encode_ranges({"qty": ranges[one.file_id]})) for one in stats)
        for partition, stats in written.partition_to_write_stats.items()
    }
    return plan_delta_commit(T, replace(written, partition_to_write_stats=told), shape_of(table, version))


def shape_of(table: MetadataTable, version: int) -> MetadataShape:
    return MetadataShape(version, {part: view(table).list_groups(part) for part in PARTS}, ("qty",))


def carry_out(table: MetadataTable, commit: DeltaCommit) -> None:
    for path, data in commit.logs.items():
        assert table.storage.create_if_absent(path, data)
    begun = Instant(T, "deltacommit", State.REQUESTED)
    contents = {begun: b"", begun.as_inflight(): b""}
    contents[begun.as_completed(T)] = commit.metadata.encode("deltacommit", layout_version=2)
    for instant, data in contents.items():
        assert table.storage.create_if_absent(OWN.path(instant), data)


def test_files_of_a_commit_are_named_and_its_ranges_told(table: MetadataTable, version: int) -> None:
    before = view(table).files
    written = CommitMetadata.of(
        [stat("eu", f"a_0-0-0_{T}.parquet", 70), stat("new", f"b_0-0-0_{T}.parquet", 9)], "UPSERT", schema=None
    )
    low, high = ColumnRange(INT, 5000, 5001, 2, 0, 50, 60), ColumnRange(INT, -7000, -6000, 3, 1, 51, 61)
    carry_out(table, plan(table, version, written, a=low, b=high))
    added = {"eu": {**before["eu"], f"a_0-0-0_{T}.parquet": 70}, "new": {f"b_0-0-0_{T}.parquet": 9}}
    assert view(table).files == {**before, **added}
    told = view(table).read(
        MetadataPartition.COLUMN_STATS, keys=[column_stats_key("qty", "eu", f"a_0-0-0_{T}.parquet")]
    )
    [record] = told.values()
    assert record.statistics is not None
    assert (record.statistics.values, record.statistics.size, record.statistics.plain_size) == (2, 50, 60)
    partitions = view(table).read(MetadataPartition.PARTITION_STATS)
    for partition, found in (("eu", low), ("new", high)):
        statistics = partitions[partition_stats_key("qty", partition)].statistics
        assert statistics is not None
        assert not hides_some(statistics, found)


def test_the_range_of_a_partition_is_widened_and_never_replaced(table: MetadataTable, version: int) -> None:
    key = partition_stats_key("qty", "eu")
    before = view(table).read(MetadataPartition.PARTITION_STATS)[key].statistics
    assert before is not None
    assert before.low is not None
    assert before.high is not None
    written = CommitMetadata.of([stat("eu", f"a_0-0-0_{T}.parquet", 70)], "UPSERT", schema=None)
    kind = {"IntWrapper": INT, "LongWrapper": LONG}[before.low.wrapper]
    carry_out(table, plan(table, version, written, a=ColumnRange(kind, 90_000, 90_000, 1, 0)))
    after = view(table).read(MetadataPartition.PARTITION_STATS)[key].statistics
    assert after is not None
    assert (after.low, after.high) == (before.low, before.high._replace(value=90_000))
    assert after.values == before.values + 1


def test_the_same_commit_gives_the_same_bytes(table: MetadataTable, version: int) -> None:
    stats = [stat("", f"{name}_0-0-0_{T}.parquet", 5) for name in "abc"]
    found = ColumnRange(INT, 1, 2, 2, 0)
    plans = [
        plan(table, version, CommitMetadata.of(order, "UPSERT", schema=None), a=found, b=found, c=found)
        for order in (stats, stats[::-1])
    ]
    assert plans[0] == plans[1]
    assert {path.split("/")[2] for path in plans[0].logs} == {part.value for part in PARTS}
    assert {one.path for one in plans[0].metadata.stats} == {
        path.removeprefix(f"{METADATA_FOLDER}/") for path in plans[0].logs
    }


def test_a_commit_without_files_changes_nothing(table: MetadataTable, version: int) -> None:
    made = plan(table, version, CommitMetadata.of([], "UPSERT", schema=None))
    assert made.logs == {}
    assert made.metadata.stats == ()


def test_a_file_whose_task_told_no_range_of_an_indexed_column_is_refused(table: MetadataTable, version: int) -> None:
    """But for one without values: of it there is nothing to tell."""
    empty = stat("eu", f"a_0-0-0_{T}.parquet", 70)
    shape = shape_of(table, version)
    assert plan_delta_commit(T, CommitMetadata.of([empty], "UPSERT", schema=None), shape).logs
    filled = CommitMetadata.of([replace(empty, num_writes=1, ranges=encode_ranges({}))], "UPSERT", schema=None)
    with pytest.raises(UnsupportedTable, match="statistics of qty"):
        plan_delta_commit(T, filled, shape)


SCHEMA = pa.schema([
    ("id", pa.string()), ("tags", pa.list_(pa.string())), ("inner", pa.struct([("x", pa.int32())])),
    ("wide", pa.decimal128(38, 18)), ("at", pa.timestamp("ms", "UTC")),
])  # fmt: skip


def test_statistics_are_kept_of_the_columns_of_which_the_jvm_keeps_them() -> None:
    columns = ("_hoodie_record_key", "id", "tags", "inner", "wide", "a column that is gone")
    assert list_indexed(columns, SCHEMA, version=9) == ("_hoodie_record_key", "id", "wide")
    assert list_indexed(columns, SCHEMA, version=8) == ("_hoodie_record_key", "id")


@pytest.mark.parametrize("column", ["at", "inner.x"])
def test_a_column_of_which_it_is_not_known_what_the_jvm_keeps_is_refused(column: str) -> None:
    with pytest.raises(UnsupportedTable, match=f"statistics of {column}") as caught:
        list_indexed((column,), SCHEMA, version=9)
    assert caught.value.facts["columns"] == [column]


def test_a_clean_takes_its_files_out_and_what_is_known_of_them(table: MetadataTable, version: int) -> None:
    before = view(table).files
    [first, *_] = sorted(before["eu"])
    shape = replace(shape_of(table, version), columns=table.indexed_columns)
    known = view(table).read(MetadataPartition.COLUMN_STATS)
    carry_out(table, plan_clean(T, {"eu": [first], "us": []}, shape))
    after = view(table).files
    assert after == {**before, "eu": {name: size for name, size in before["eu"].items() if name != first}}
    keys = {column_stats_key(column, "eu", first) for column in table.indexed_columns}
    assert keys & known.keys()
    assert view(table).read(MetadataPartition.COLUMN_STATS).keys() == known.keys() - keys
    assert plan_clean(T, {"us": []}, shape).logs == {}


def test_statistics_of_partitions_without_those_of_files_and_another_version_are_refused(table: MetadataTable) -> None:
    table.refuse_unwritable()
    for strange in (replace(table, names=frozenset({"files", "partition_stats"})), replace(table, table_version=6)):
        with pytest.raises(UnsupportedTable, match="hudi-locks metadata drop"):
            strange.refuse_unwritable()


def test_the_indexed_columns_are_those_of_the_tables_list(table: MetadataTable) -> None:
    assert table.indexed_columns[3:] == ("id", "region", "ts", "name", "price", "qty")
    for damaged in (b"", b"{", json.dumps({"indexDefinitions": {}}).encode()):
        table.storage.replace(".hoodie/.index_defs/index.json", damaged)
        with pytest.raises(DamagedTable, match=r"index\.json"):
            replace(table).indexed_columns  # noqa: B018  # read anew
    assert MetadataTable(table.storage, frozenset({"files"}), 9, 9).indexed_columns == ()


@pytest.mark.parametrize("key_filter", [None, "AAAA"], ids=["every key", "its own"])
def test_base_files_get_the_filter_of_their_footer_and_lose_it_with_a_clean(
    version: int, key_filter: str | None
) -> None:
    part = MetadataPartition.BLOOM_FILTERS
    shape = MetadataShape(version, {part: ("bloom-filters-0000-0",)}, ())
    name = f"a_0-0-0_{T}.parquet"
    log = replace(stat("eu", f".a_{T}.log.1_0-0-0", 5), log_version=1)
    base = replace(stat("eu", name, 7), key_filter=key_filter)
    made = plan_delta_commit(T, CommitMetadata.of([base, log], "UPSERT", schema=None), shape)
    (block,) = decode_blocks(made.logs[log_path(part, "bloom-filters-0000-0", T)], "it")
    ((key, value),) = HFile(block.content, "it").entries()
    record = decode_metadata_record(value, SCHEMA_TEXTS[version], "it")
    assert key.decode() == bloom_filter_key("eu", name)
    assert record.other == {
        "type": "SIMPLE",
        "timestamp": T,
        "bloomFilter": (key_filter or EVERY_KEY).encode(),
        "isDeleted": False,
    }
    gone = plan_clean(T, {"eu": [name, f".a_{T}.log.1_0-0-0"]}, shape)
    (block,) = decode_blocks(gone.logs[log_path(part, "bloom-filters-0000-0", T)], "it")
    assert decode_deletes(block.content, "it").keys == (bloom_filter_key("eu", name),)
