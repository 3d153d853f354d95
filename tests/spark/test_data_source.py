"""The format `hudi_locks` of `spark.read` and `spark.readStream`, which PySpark has from release 4 on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import StreamingQueryException

from hudi_locks.errors import BadInput, ConfigError, HudiLocksError, TableError, UnsupportedTable
from hudi_locks.spark import HoodieTable, read
from hudi_locks.spark.session import prepare_session

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        pyspark.__version__.startswith("3."), reason="unsupported: PySpark 3.5 has no Python data sources"
    ),
]

Create = Callable[..., HoodieTable]
Frame = Callable[..., Any]
RowsOf = Callable[..., list[tuple[Any, ...]]]
FIRST = [("a", "1", 1, 1.0), ("b", "2", 1, 1.0)]
SECOND = [("a", "1", 2, 2.0), ("c", "2", 1, 1.0)]
QUERY, BEGIN, END = (
    f"hoodie.datasource.{name}" for name in ("query.type", "read.begin.instanttime", "read.end.instanttime")
)
HOLES = "hoodie.read.timeline.holes.resolution.policy"


def open_source(base: str, **options: str) -> Any:
    from hudi_locks.spark import HudiLocksDataSource

    return HudiLocksDataSource({"path": base, **options})


def read_shares(reader: Any, *span: dict[str, str]) -> list[tuple[Any, ...]]:
    """What the tasks of a reader yield, without the processes in which PySpark runs them."""
    batches = [batch for share in reader.partitions(*span) for batch in reader.read(share)]
    return sorted((tuple(row.values()) for row in pa.Table.from_batches(batches).to_pylist()), key=repr)


def read_batch(path: str, options: dict[str, str]) -> list[tuple[Any, ...]]:
    source = open_source(path, **options)
    return read_shares(source.reader(source.schema()))


@pytest.fixture
def registered(spark: Any) -> Any:
    from hudi_locks.spark import HudiLocksDataSource

    prepare_session(spark)  # what is registered keeps the Python that workers run at that time
    spark.dataSource.register(HudiLocksDataSource)
    return spark


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_each_kind_of_read_shows_what_the_function_shows(
    spark: Any, create: Create, frame: Frame, path: str, table_type: str
) -> None:
    table = create(table_type=table_type)
    first = table.upsert(frame(FIRST))
    second = table.upsert(frame(SECOND))
    asked: list[dict[str, str]] = [
        {},
        {QUERY: "read_optimized"},
        {"as.of.instant": first.instant},
        {QUERY: "incremental", BEGIN: "earliest"},
        {QUERY: "incremental", BEGIN: first.completion_time},
        {QUERY: "incremental", BEGIN: "0", END: first.completion_time},
        {QUERY: "incremental", BEGIN: second.completion_time},
    ]
    for options in asked[:-1]:
        shown = sorted((tuple(row) for row in read(spark, path, options).collect()), key=repr)
        assert shown
        assert read_batch(path, options) == shown, options
    source = open_source(path, **asked[-1])
    assert source.reader(source.schema()).partitions() == []


def test_a_data_frame_shows_the_table_as_it_was_loaded(
    registered: Any, create: Create, frame: Frame, path: str, rows_of: RowsOf
) -> None:
    table = create()
    table.upsert(frame(FIRST))
    loaded = registered.read.format("hudi_locks").load(path)
    assert loaded.schema == table.read().schema
    table.upsert(frame(SECOND))
    assert rows_of(loaded) == FIRST
    chosen = registered.read.format("hudi_locks").schema("value double, id string").load(path)
    assert rows_of(chosen.where("id <> 'b'")) == [(1.0, "c"), (2.0, "a")]


def test_times_bytes_and_nested_columns_come_as_spark_has_them(
    registered: Any, spark: Any, create: Create, path: str
) -> None:
    rows = spark.sql(
        "select 'a' id, '1' month, 1L ts, timestamp'2026-01-01 10:00:00' at, timestamp_ntz'2026-01-01 10:00:00' local,"
        " date'2026-01-01' day, 1.20BD price, X'00FF' raw, array(struct('x' as s, 1 as n)) list, map('k', 2L) pairs,"
        " cast(null as string) nothing"
    )
    table = create()
    table.upsert(rows)
    found = registered.read.format("hudi_locks").load(path)
    assert found.schema == table.read().schema
    assert found.collect() == table.read().collect()


def test_a_table_without_meta_columns_shows_none(create: Create, frame: Frame, path: str) -> None:
    table = create(table_type="MERGE_ON_READ", options={"hoodie.populate.meta.fields": "false"})
    table.upsert(frame(FIRST))
    table.upsert(frame(SECOND))
    shown = sorted((tuple(row) for row in table.read().collect()), key=repr)
    assert read_batch(path, {}) == shown
    with pytest.raises(UnsupportedTable, match=r"hoodie\.populate\.meta\.fields=false"):
        read_batch(path, {QUERY: "incremental", BEGIN: "0"})


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"mergeSchema": "true"}, "option mergeschema is not read"),
    ({"hoodie.datasource.query.typ": "snapshot"}, "option hoodie.datasource.query.typ is not read"),
    ({"paths": '["a", "b"]'}, "option paths is not read.*one table by its base path"),
    ({"path": ""}, "needs the base path of a table"),
    ({QUERY: "cdc"}, "is none of snapshot, incremental"),
    (
        {QUERY: "incremental", BEGIN: "0", "hoodie.datasource.query.incremental.format": "cdc"},
        "is not offered by format",
    ),
    (
        {QUERY: "incremental", BEGIN: "0", "hoodie.datasource.read.incr.path.glob": "a*"},
        "name the partitions of a read",
    ),
    ({QUERY: "read_optimized", "as.of.instant": "20260101"}, "as.of.instant has no meaning"),
    ({"ignorecorruptfiles": "true"}, "ignorecorruptfiles=true is not offered"),
    ({QUERY: "incremental"}, "read.begin.instanttime is required"),
]


def test_options_that_cannot_be_used_are_refused(create: Create, frame: Frame, path: str) -> None:
    create().upsert(frame(FIRST))
    for options, match in REFUSED:
        with pytest.raises(ConfigError, match=match):
            read_batch(path, {name.lower(): value for name, value in options.items()})


def test_a_stream_refuses_what_only_a_read_means(create: Create, frame: Frame, path: str) -> None:
    create().upsert(frame(FIRST))
    begins = "hoodie.datasource.streaming.startoffset"
    for options in ({QUERY: "snapshot"}, {END: "20260101"}, {"as.of.instant": "20260101"}):
        source = open_source(path, **options)
        with pytest.raises(ConfigError, match="has no meaning"):
            source.streamReader(open_source(path).schema())
    with pytest.raises(ConfigError, match="latest is not offered"):
        open_source(path, **{begins: "latest"}).streamReader(open_source(path).schema())
    with pytest.raises(ConfigError, match="has no meaning for a read"):
        open_source(path, **{begins: "earliest"}).reader(open_source(path).schema())


def test_a_stream_begins_where_hudis_option_says(create: Create, frame: Frame, path: str) -> None:
    first = create().upsert(frame(FIRST)).completion_time
    for options, begin in (({}, "0"), ({"startOffset": "earliest"}, "0"), ({"startoffset": first}, first)):
        source = open_source(path, **{f"hoodie.datasource.streaming.{name}": text for name, text in options.items()})
        assert source.streamReader(source.schema()).initialOffset() == {"completed": begin}


def test_columns_that_the_table_does_not_have_are_refused(create: Create, frame: Frame, path: str) -> None:
    from pyspark.sql.types import LongType, StringType, StructType

    create().upsert(frame(FIRST))
    for schema, match in (
        (StructType().add("price", LongType()), "there is no column 'price'"),
        (StructType().add("ts", StringType()), "'ts' of the table is bigint, and string was asked for"),
    ):
        with pytest.raises(BadInput, match=match):
            open_source(path).reader(schema).partitions()


def test_files_that_were_cleaned_since_the_load_are_told(create: Create, frame: Frame, path: str) -> None:
    table = create(options={"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"})
    table.upsert(frame(FIRST))
    source = open_source(path)
    schema = source.schema()
    for ts in (2, 3, 4):
        table.upsert(frame([("a", "1", ts, 1.0)]))
    table.services.clean()
    with pytest.raises(TableError, match=r"changed since load\(\.\.\.\) was called.*call load\(\.\.\.\) again"):
        source.reader(schema).partitions()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_stream_shows_each_commit_once_over_restarts(
    registered: Any, create: Create, frame: Frame, path: str, tmp_path: Path, table_type: str
) -> None:
    table = create(table_type=table_type)
    table.upsert(frame(FIRST))
    shown: list[tuple[int, list[tuple[Any, ...]]]] = []
    failing = set[int]()

    def take(rows: Any, batch: int) -> None:
        if batch in failing:
            failing.remove(batch)
            raise RuntimeError("the sink is out of order")
        found = rows.drop(*(name for name in rows.columns if name.startswith("_hoodie_"))).collect()
        shown.append((batch, sorted(map(tuple, found))))

    def run() -> None:
        rows = registered.readStream.format("hudi_locks").load(path)
        writing = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writing.trigger(availableNow=True).start().awaitTermination()

    run()
    failing.add(1)
    table.upsert(frame(SECOND))
    with pytest.raises(StreamingQueryException, match="out of order"):
        run()
    table.upsert(frame([("d", "2", 1, 4.0)]))
    run()
    run()  # before 4.2 a query that repeats a micro-batch ends with it
    assert shown == [(0, FIRST), (1, SECOND), (2, [("d", "2", 1, 4.0)])]


def test_offsets_are_completion_times_and_never_go_back(create: Create, frame: Frame, path: str) -> None:
    table = create()
    first = table.upsert(frame(FIRST))
    source = open_source(path, **{BEGIN: "earliest"})
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    assert (start, reader.latestOffset()) == ({"completed": "0"}, {"completed": first.completion_time})
    second = table.upsert(frame(SECOND))
    ends = [{"completed": result.completion_time} for result in (first, second)]
    assert reader.latestOffset(start, None) == ends[1]
    assert sorted(row[5:] for row in read_shares(reader, start, ends[0])) == FIRST
    assert sorted(row[5:] for row in read_shares(reader, *ends)) == SECOND
    later = {"completed": f"{int(second.completion_time or 0) + 1}"}
    reader.commit(later)
    assert reader.latestOffset() == later
    assert reader.partitions(later, ends[1]) == []


def test_a_stream_beside_a_pending_write_goes_by_the_policy(
    create: Create,
    load: Callable[..., HoodieTable],
    frame: Frame,
    path: str,
    after_job: Callable[[Callable[[], Any]], None],
) -> None:
    shared = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.lock.provider": "filesystem",
    }
    table = create(options=shared)
    first = table.upsert(frame(FIRST))
    found: dict[str, Any] = {}

    def find_offset(policy: str) -> Any:
        source = open_source(path, **{HOLES: policy, BEGIN: str(first.completion_time)})
        try:
            return source.streamReader(source.schema()).latestOffset()
        except HudiLocksError as error:
            return str(error)

    def commit_behind() -> None:
        found["second"] = load(shared).upsert(frame([("x", "3", 1, 1.0)])).completion_time
        found.update({policy: find_offset(policy) for policy in ("USE_TRANSITION_TIME", "BLOCK", "FAIL")})

    after_job(commit_behind)
    table.upsert(frame(SECOND))
    assert found["USE_TRANSITION_TIME"] == {"completed": found["second"]}
    assert found["BLOCK"] == {"completed": first.completion_time}
    assert f"{HOLES} is FAIL" in found["FAIL"]
