"""What a pipeline makes of its options."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from slice_files import new_file
from transaction_harness import Harness, HarnessClock, heartbeats_that_end

from hudi_locks.config import Options
from hudi_locks.errors import ConfigError, NoEffectWarning
from hudi_locks.format import avro_schema
from hudi_locks.format.key_filter import KeyFilter
from hudi_locks.spark import Operation
from hudi_locks.spark.settings import PipelineSettings, check_pipeline
from hudi_locks.spark.writing.writer import Writer
from hudi_locks.storage import LocalStorage, MemoryStorage
from hudi_locks.table import BaseFileWriter, RowBuffers, TableConfig, add_meta_schema, stamp_rows

pytestmark = pytest.mark.spark

USER = pa.schema([("value", pa.int64())])
SCHEMA = add_meta_schema(USER)
ROWS = 50_000
FILTER = (b"hoodie_bloom_filter_type_code", b"org.apache.hudi.bloomfilter")


def read_settings(options: dict[str, str]) -> PipelineSettings:
    return PipelineSettings.of(Options(options), TableConfig("t", ("id", "day")))


def write_file(folder: Path, **options: str) -> pq.FileMetaData:
    """The footer of a base file."""
    form = read_settings(options).base_file_format(
        avro_schema(USER, "t", with_meta_columns=True), TableConfig("t", ("id",))
    )
    keys = pa.array([f"k{number:08}" for number in range(ROWS)])
    values = np.random.default_rng(7).integers(0, 1 << 60, ROWS)
    rows = pa.table({"_hoodie_record_key": keys, "_hoodie_partition_path": pa.repeat("p", ROWS), "value": values})
    path = f"{len(list(folder.iterdir()))}.parquet"
    writer = BaseFileWriter(new_file(LocalStorage(str(folder)), path), SCHEMA, form)
    writer.write(stamp_rows(rows, SCHEMA, instant="20240101000000000", seqno_prefix="7", first_seqno=0))
    writer.close()
    return pq.read_metadata(folder / path)


@pytest.mark.parametrize(
    ("kept", "asked", "parts"),
    [
        ("SIMPLE", "BLOOM", ""),
        ("GLOBAL_SIMPLE", "RECORD_INDEX", ""),
        ("GLOBAL_RECORD_LEVEL_INDEX", "GLOBAL_BLOOM", ""),
        ("SIMPLE", "RECORD_INDEX", "files,record_index"),
    ],
)
def test_an_index_that_finds_the_same_rows_may_take_the_place_of_the_tables(kept: str, asked: str, parts: str) -> None:
    properties = {"hoodie.index.type": kept, "hoodie.table.metadata.partitions": parts}
    config = TableConfig("t", ("id",), ("day",), extra=properties)
    assert PipelineSettings.of(Options({"hoodie.index.type": asked}), config).index_type == asked
    assert PipelineSettings.of(Options({}), config).index_type == kept


@pytest.mark.parametrize(
    ("kept", "asked", "parts"),
    [
        ("SIMPLE", "GLOBAL_SIMPLE", "files,record_index"),
        ("BLOOM", "RECORD_INDEX", "files"),
        ("GLOBAL_SIMPLE", "SIMPLE", ""),
        ("BUCKET", "RECORD_INDEX", "files,record_index"),
        ("RECORD_INDEX", "BUCKET", ""),
    ],
)
def test_an_index_that_may_miss_rows_is_refused(kept: str, asked: str, parts: str) -> None:
    properties = {"hoodie.index.type": kept, "hoodie.table.metadata.partitions": parts}
    config = TableConfig("t", ("id",), ("day",), extra=properties)
    with pytest.raises(ConfigError, match=f"{asked}, but the table was made with {kept}"):
        PipelineSettings.of(Options({"hoodie.index.type": asked}), config)


def test_base_files_have_the_compression_asked_for(tmp_path: Path) -> None:
    kinds = ("gzip", "snappy", "zstd", "uncompressed")
    made = [write_file(tmp_path, **{"hoodie.parquet.compression.codec": kind}) for kind in kinds]
    assert [file.row_group(0).column(0).compression for file in made] == [kind.upper() for kind in kinds]


def test_base_files_have_row_groups_and_pages_of_the_size_asked_for(tmp_path: Path) -> None:
    plain = write_file(tmp_path)
    assert plain.num_row_groups == 1
    assert write_file(tmp_path, **{"hoodie.parquet.block.size": "1000000"}).num_row_groups > 3
    paged = write_file(tmp_path, **{"hoodie.parquet.page.size": "1000"})
    header_bytes, pages = 10, ROWS * 8 // 1000 // 10
    value = SCHEMA.get_field_index("value")
    sizes = [file.row_group(0).column(value).total_uncompressed_size for file in (plain, paged)]
    assert sizes[1] - sizes[0] > header_bytes * pages


def read_filter(folder: Path, **options: str) -> KeyFilter:
    told = write_file(folder, **options).metadata
    found = KeyFilter.decode(*(told[name].decode() for name in FILTER))
    assert found is not None
    assert found.may_hold(pa.chunked_array([[f"k{number:08}" for number in range(ROWS)]])).all()
    return found


def bits_of(folder: Path, **options: str) -> int:
    return len(read_filter(folder, **options).parts[0])


@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_BLOOM"])
def test_base_files_of_a_bloom_index_have_a_filter_of_their_keys(tmp_path: Path, index: str) -> None:
    others = pa.chunked_array([[f"other {number}" for number in range(ROWS)]])
    by_index = {"hoodie.index.type": index}
    assert read_filter(tmp_path, **by_index).may_hold(others).sum() == 0
    assert read_filter(tmp_path).may_hold(others).all()
    assert read_filter(tmp_path, **by_index, **{"hoodie.parquet.bloom.filter.enabled": "false"}).may_hold(others).all()
    assert read_filter(tmp_path, **{"hoodie.parquet.bloom.filter.enabled": "true"}).may_hold(others).sum() == 0
    often = read_filter(tmp_path, **by_index, **{"hoodie.index.bloom.fpp": "0.1"}).may_hold(others).sum()
    assert 0.08 < often / ROWS < 0.12


def test_filters_grow_up_to_the_limit_of_their_kind(tmp_path: Path) -> None:
    by_index = {"hoodie.index.type": "BLOOM"}
    whole = bits_of(tmp_path, **by_index)
    of_kind = {
        "SIMPLE": {**by_index, "hoodie.bloom.index.filter.type": "simple", "hoodie.index.bloom.num_entries": "5000"},
        "DYNAMIC_V0": {**by_index, "hoodie.bloom.index.filter.dynamic.max.entries": "5000"},
    }
    assert {kind: round(whole / bits_of(tmp_path, **options)) for kind, options in of_kind.items()} == {
        "SIMPLE": 10,
        "DYNAMIC_V0": 10,
    }
    assert bits_of(tmp_path, **by_index, **{"hoodie.index.bloom.num_entries": "5000"}) == whole


@pytest.mark.parametrize("text", ["0", "1", "-0.1", "seldom", "nan"])
def test_a_share_of_wrong_answers_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=f"hoodie.index.bloom.fpp={text} is no number above 0 and below 1"):
        read_settings({"hoodie.index.bloom.fpp": text})


@pytest.mark.parametrize(("options", "spills"), [({}, 0), ({"hoodie.memory.merge.max.size": "1000"}, 1)])
def test_input_beyond_the_memory_asked_for_goes_to_disk(options: dict[str, str], spills: int) -> None:
    with RowBuffers[str](USER, read_settings(options).memory_bytes) as buffers:
        buffers.add("f", pa.record_batch([pa.array(range(1000))], schema=USER))
        assert len(list(Path(buffers._folder.name).iterdir())) == spills


@pytest.mark.parametrize(
    ("key", "operation"),
    [
        ("hoodie.insert.shuffle.parallelism", Operation.INSERT),
        ("hoodie.bulkinsert.shuffle.parallelism", Operation.BULK_INSERT),
        ("hoodie.delete.shuffle.parallelism", Operation.DELETE),
        ("hoodie.upsert.shuffle.parallelism", Operation.UPSERT),
    ],
)
def test_each_operation_has_its_own_number_of_tasks(key: str, operation: Operation) -> None:
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
    settings = read_settings({key: "7"})
    others = {Operation.UPSERT, Operation.INSERT, Operation.BULK_INSERT, Operation.DELETE} - {operation}
    assert settings.count_tasks(spark, 1, operation=operation) == 7
    assert settings.count_log_tasks(spark, 1, operation=operation) == 7
    assert {settings.count_tasks(spark, 1, operation=other) for other in others} == {8}


@pytest.mark.parametrize("wait_s", [0, 30])
def test_an_earlier_write_is_waited_for_as_long_as_asked(monkeypatch: pytest.MonkeyPatch, wait_s: int) -> None:
    clock = HarnessClock()
    settings = read_settings({"hudi_locks.early_conflict.max_wait_ms": str(wait_s * 1000)})
    with heartbeats_that_end(monkeypatch):
        harness = Harness(clock, MemoryStorage(clock))
        other = harness.open().begin("commit", "UPSERT").instant
        writer: Any = SimpleNamespace(transactions=harness.open(), settings=settings, clock=clock)
        began_s, conflict = clock.monotonic(), SimpleNamespace(is_early=True, other=other)
        Writer._pause(writer, conflict, attempts=0)  # type: ignore[arg-type]  # as much of a conflict as is asked for
        assert wait_s <= clock.monotonic() - began_s < wait_s + 10


def test_the_fields_that_are_named_choose_the_bucket() -> None:
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "64"}
    keys = pa.array([f"id:{number},day:1" for number in range(50)])
    by_day = read_settings({**bucket, "hoodie.bucket.index.hash.field": "day"})
    by_all = read_settings(bucket)
    found = [set(one.buckets.assign(keys, one.hash_fields).to_pylist()) for one in (by_day, by_all)]
    assert len(found[0]) == 1
    assert len(found[1]) > 10


@pytest.mark.parametrize(
    ("options", "key", "why"),
    [
        ({"hoodie.bucket.index.num.buckets": "4"}, "hoodie.bucket.index.num.buckets", "SIMPLE, which has no buckets"),
        ({"hoodie.index.bloom.fpp": "0.1"}, "hoodie.index.bloom.fpp", "SIMPLE, and base files get no bloom filter"),
        (
            {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.bloom.index.update.partition.path": "false"},
            "hoodie.bloom.index.update.partition.path",
            "GLOBAL_SIMPLE, and it is of another index",
        ),
        (
            {"hoodie.record.index.update.partition.path": "true"},
            "hoodie.record.index.update.partition.path",
            "SIMPLE, and it is of another index",
        ),
        *(
            ({**index, f"hoodie.bucket.index.{key}": "3"}, f"hoodie.bucket.index.{key}", why)
            for key in ("max.num.buckets", "min.num.buckets", "split.threshold", "merge.threshold")
            for index, why in (
                ({}, "SIMPLE, which has no buckets"),
                ({"hoodie.index.type": "BUCKET"}, "is not CONSISTENT_HASHING, and the number of buckets stays"),
            )
        ),
        (
            {
                "hoodie.index.type": "BUCKET",
                "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
                "hoodie.bucket.index.partition.expressions": "eu,4",
            },
            "hoodie.bucket.index.partition.expressions",
            "CONSISTENT_HASHING: all partitions begin with hoodie.bucket.index.num.buckets",
        ),
        (
            {"hoodie.index.type": "BLOOM", "hoodie.index.bloom.num_entries": "5000"},
            "hoodie.index.bloom.num_entries",
            "DYNAMIC_V0, which has another limit",
        ),
        (
            {"hoodie.index.type": "BLOOM", "hoodie.bloom.index.prune.by.ranges": "false"},
            "hoodie.bloom.index.prune.by.ranges",
            "files and row groups that cannot have a key are never read for it",
        ),
    ],
)
def test_what_is_said_of_another_index_is_warned_about(options: dict[str, str], key: str, why: str) -> None:
    kind = "MERGE_ON_READ" if "hoodie.index.bucket.engine" in options else "COPY_ON_WRITE"
    with pytest.warns(NoEffectWarning, match=f"{key} has no effect here: .*{why}") as told:
        check_pipeline(Options(options), TableConfig("t", ("id",), table_type=kind), "/lake/t", for_writing=True)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("small.file.limit", "1024"),
        ("target.file.max.bytes", "1024"),
        ("max.bytes.per.group", "1024"),
        ("single.group.clustering.enabled", "false"),
    ],
)
def test_how_small_files_are_joined_is_nothing_to_buckets_of_consistent_hashing(key: str, value: str) -> None:
    kept = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    config = TableConfig("t", ("id",), table_type="MERGE_ON_READ", extra=kept)
    name = f"hoodie.clustering.plan.strategy.{key}"
    said = f"{name} has no effect here: .*CONSISTENT_HASHING: .*split.threshold and .*merge.threshold say which"
    with pytest.warns(NoEffectWarning, match=said) as told:
        check_pipeline(Options({name: value}), config, "/lake/t", for_writing=True)
    assert len(told) == 1


def test_what_clustering_takes_counts_where_it_counts() -> None:
    sizes = {f"hoodie.clustering.plan.strategy.{key}": "1024" for key in ("small.file.limit", "max.num.groups")}
    rings = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    bounds = {"hoodie.bucket.index.max.num.buckets": "8", "hoodie.clustering.plan.strategy.max.num.groups": "2"}
    kept = TableConfig("t", ("id",), table_type="MERGE_ON_READ", extra=rings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_pipeline(Options(sizes), TableConfig("t", ("id",)), "/lake/t", for_writing=True)
        check_pipeline(Options(bounds), kept, "/lake/t", for_writing=True)


@pytest.mark.parametrize(("kept", "asked"), [({}, "false"), ({"hudi_locks.foreign_writers": "false"}, "true")])
def test_a_table_says_whether_it_expects_jvm_writers(kept: dict[str, str], asked: str) -> None:
    key, config = "hudi_locks.foreign_writers", TableConfig("t", ("id",), extra=kept)
    with pytest.warns(NoEffectWarning, match=f"{key}={asked} has no effect on the table at /lake/t") as told:
        check_pipeline(Options({key: asked}), config, "/lake/t", for_writing=True)
    assert len(told) == 1
    same = {key: "false" if asked == "true" else "true"}
    assert same.items() <= dict(check_pipeline(Options(same), config, "/lake/t", for_writing=True)).items()


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
        {"hoodie.index.type": "BLOOM", "hoodie.index.bloom.fpp": "0.1", "hoodie.bloom.index.use.caching": "true"},
        {"hoodie.parquet.bloom.filter.enabled": "true", "hoodie.index.bloom.fpp": "0.1"},
        {"hoodie.index.type": "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"},
    ],
)
def test_what_is_said_of_the_index_of_the_writer_is_not(options: dict[str, str]) -> None:
    checked = check_pipeline(Options(options), TableConfig("t", ("id",)), "/lake/t", for_writing=True)
    assert options.items() <= dict(checked).items()
