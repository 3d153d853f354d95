"""Ingest jobs: files into a table, once each, tried again, beside other jobs, and refused in plain words."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from json_checks import check_json
from schema_registry import SchemaRegistry

from hudi_locks.config import Options
from hudi_locks.errors import BadInput, ConfigError, HoodieEarlyConflictDetectionException, StorageError
from hudi_locks.ingest import IngestJob, IngestReport, IngestSettings, find_schema, open_source
from hudi_locks.ingest.messages import kafka_options
from hudi_locks.ingest.source_files import list_batch_files
from hudi_locks.ingest.unreadable import find_unreadable
from hudi_locks.observe import EARLY_CONFLICT_MARKER
from hudi_locks.spark import HoodieTable, Operation, StreamSink
from hudi_locks.spark.datasource import open_table

pytestmark = pytest.mark.spark

RowsOf = Callable[..., list[tuple[Any, ...]]]
FIELDS = [("id", "string"), ("month", "string"), ("ts", "long"), ("value", "double")]
AVRO = json.dumps({"type": "record", "name": "r", "fields": [{"name": n, "type": ["null", t]} for n, t in FIELDS]})
PROPERTIES = """\
hoodie.table.name=trips
hoodie.datasource.write.recordkey.field=id
hoodie.datasource.write.partitionpath.field=month
hoodie.datasource.write.precombine.field=ts
hoodie.upsert.shuffle.parallelism=2
hoodie.time.generator.max_expected_clock_skew_ms=1
hoodie.write.concurrency.mode=optimistic_concurrency_control
hoodie.clean.failed.writes.policy=LAZY
hoodie.write.lock.provider=filesystem
hoodie.write.lock.wait_time_ms_between_retry=50
hoodie.write.num.retries.on.conflict.failures=5
hoodie.streamer.schemaprovider.source.schema.file={schema}
"""


class Bench:
    """Files that come in, a properties file, and a table for both."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.path = str(folder / "table")
        (folder / "columns.avsc").write_text(AVRO)
        self.props = folder / "writer.properties"
        self.props.write_text(PROPERTIES.format(schema=folder / "columns.avsc"))

    def add(self, name: str, *rows: tuple[Any, ...], to: str = "in") -> None:
        (self.folder / to).mkdir(exist_ok=True)
        lines = [json.dumps(dict(zip((name for name, _ in FIELDS), row, strict=True))) for row in rows]
        (self.folder / to / f"{name}.json").write_text("\n".join(lines))

    def options(self, **more: str) -> Options:
        given = dict(line.split("=", 1) for line in self.props.read_text().splitlines())
        root = {"hoodie.streamer.source.dfs.root": str(self.folder / "in")}
        return Options({**given, **root, **{name.replace("__", "."): value for name, value in more.items()}})

    def job(self, settings: IngestSettings | None = None, source: str = "JsonDFSSource", **more: str) -> IngestJob:
        options = self.options(**more)
        rows = open_source(self.spark, source, options, schema=find_schema(options), files_per_batch=1)
        table = open_table(self.spark, self.path, options)
        return IngestJob(table, rows, settings or IngestSettings(retry_interval_s=0))

    def table(self) -> HoodieTable:
        return HoodieTable.load(self.spark, self.path)


@pytest.fixture
def bench(spark: Any, tmp_path: Path) -> Bench:
    made = Bench(spark, tmp_path)
    made.add("1", ("a", "1", 1, 1.0), ("b", "2", 1, 1.0))
    return made


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """A schema registry that knows the schema of trips, and another."""
    other = json.loads(AVRO.replace("double", "float"))
    with SchemaRegistry({"trips": {1: json.loads(AVRO)}, "other": {2: other}}).serving() as made:
        yield made


def test_a_job_makes_the_table_and_the_next_goes_on(bench: Bench, rows_of: RowsOf) -> None:
    first = bench.job().run()
    assert (first.batches, first.rows_inserted) == (1, 2)
    bench.add("2", ("a", "1", 2, 2.0), ("c", "2", 1, 1.0))
    second = bench.job().run()
    assert (second.batches, second.rows_inserted, second.rows_updated) == (1, 1, 1)
    assert bench.job().run() == IngestReport()
    assert rows_of(bench.table()) == [("a", "1", 2, 2.0), ("b", "2", 1, 1.0), ("c", "2", 1, 1.0)]
    assert bench.table().table.config.ordering_fields == ("ts",)


def test_csv_and_parquet_are_read_too(bench: Bench, rows_of: RowsOf) -> None:
    rows = bench.spark.createDataFrame([("a", "1", 1, 1.0)], "id string, month string, ts long, value double")
    rows.coalesce(1).write.mode("overwrite").parquet(str(bench.folder / "in"))
    job = bench.job(
        IngestSettings(identifier="one"), "parquet", hoodie__streamer__schemaprovider__source__schema__file=""
    )
    assert job.run().rows_inserted == 1
    rows.coalesce(1).write.mode("overwrite").option("header", True).csv(str(bench.folder / "in"))
    job = bench.job(IngestSettings(identifier="two"), "CsvDFSSource", hoodie__streamer__csv__header="true")
    assert job.run().rows_updated == 1
    rows.coalesce(1).write.mode("overwrite").option("sep", ";").csv(str(bench.folder / "in"))
    job = bench.job(IngestSettings(identifier="three"), "CsvDFSSource", hoodie__streamer__csv__sep=";")
    assert job.run().rows_updated == 1
    assert rows_of(bench.table()) == [("a", "1", 1, 1.0)]


LENIENT = "spark.sql.files.ignoreCorruptFiles"


def test_a_session_that_passes_over_damaged_files_of_a_source_is_warned_about(bench: Bench, rows_of: RowsOf) -> None:
    rows = bench.spark.createDataFrame([("a", "1", 1, 1.0)], "id string, month string, ts long, value double")
    rows.coalesce(1).write.mode("overwrite").parquet(str(bench.folder / "in"))
    (bench.folder / "in" / "damaged.parquet").write_bytes(b"PAR1 and nothing else PAR1")
    settings = IngestSettings(retries=0)
    with pytest.raises(BadInput, match=r"damaged\.parquet"):
        bench.job(settings, "parquet").run()
    bench.spark.conf.set(LENIENT, "true")
    try:
        with pytest.warns(UserWarning, match=rf"{LENIENT} of the session: Spark passes over such files"):
            job = bench.job(settings, "parquet")
        assert job.run().failures == 0
    finally:
        bench.spark.conf.unset(LENIENT)
    assert rows_of(bench.table()) == [("a", "1", 1, 1.0)]


@pytest.mark.parametrize(
    ("source", "name", "lines"),
    [
        ("JsonDFSSource", "1.json", '{"id": "a", "month": "1", "ts": 1, "value": 1.0}\n{"id": "b", "mon'),
        ("JsonDFSSource", "1.json", '{"id": "a", "month": "1", "ts": "soon", "value": 1.0}'),
        ("CsvDFSSource", "1.json", "a,1,1,1.0\nb,1,soon,2.0"),
    ],
)
def test_a_line_that_is_no_row_ends_the_job_and_nothing_of_its_batch_is_written(
    bench: Bench, source: str, name: str, lines: str
) -> None:
    (bench.folder / "in" / name).write_text(lines)
    job = bench.job(IngestSettings(retries=5, retry_interval_s=3600), source)
    with pytest.raises(BadInput, match="has a line that is no row of the table's columns") as caught:
        job.run()
    assert unquote(str(caught.value.facts["path"])).endswith(f"/in/{name}")
    assert job.report().failures == 0
    assert bench.table().table.timeline().completed() == ()


def test_the_files_of_each_batch_are_known_also_where_spark_has_merged_its_lists(bench: Bench) -> None:
    for number in range(2, 13):
        bench.add(f"{number} x", ("a", "1", number, 1.0))
    options, checkpoint = bench.options(), str(bench.folder / "checkpoint")
    rows = open_source(bench.spark, "json", options, schema=find_schema(options), files_per_batch=1)
    found: list[list[Path]] = []
    writing = rows.writeStream.foreachBatch(lambda _, batch: found.append(list_batch_files(checkpoint, batch)))
    query = writing.trigger(availableNow=True).option("checkpointLocation", f"file://{checkpoint}").start()
    query.awaitTermination()
    assert list((bench.folder / "checkpoint" / "sources" / "0").glob("*.compact"))
    assert [len(files) for files in found] == [1] * 12
    assert {files[0] for files in found} == set((bench.folder / "in").iterdir())
    assert list_batch_files("s3://elsewhere/checkpoint", 0) == list_batch_files(str(bench.folder), 0) == []


def test_rows_that_are_refused_are_not_tried_again(bench: Bench) -> None:
    bench.add("1", (None, "1", 1, 1.0))
    job = bench.job(IngestSettings(retries=5, retry_interval_s=3600))
    with pytest.raises(BadInput, match="no record key"):
        job.run()
    assert job.report().failures == 0


def test_a_failure_that_passes_starts_the_stream_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, rows_of: RowsOf
) -> None:
    left, write = [StorageError("the store is away", path="x")], StreamSink.write

    def fail(*arguments: Any) -> Any:
        if left:
            raise left.pop()
        return write(*arguments)

    monkeypatch.setattr(StreamSink, "write", fail)
    assert bench.job().run().failures == 1
    assert len(rows_of(bench.table())) == 2


def test_a_failure_that_stays_is_told_after_the_last_retry(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise StorageError("the store is away", path="x")

    monkeypatch.setattr(StreamSink, "write", fail)
    job = bench.job(IngestSettings(retries=2, retry_interval_s=0))
    with pytest.raises(StorageError, match="is away"):
        job.run()
    assert job.report().failures == 2


def test_a_continuous_job_takes_what_comes_later(bench: Bench, rows_of: RowsOf) -> None:
    job = bench.job(IngestSettings(operation=Operation.BULK_INSERT, is_continuous=True))
    running = threading.Thread(target=job.run, daemon=True)
    running.start()
    while job.report().batches < 1:
        running.join(0.1)
        assert running.is_alive()
    bench.add("2", ("c", "1", 1, 1.0))
    while job.report().batches < 2:
        running.join(0.1)
        assert running.is_alive()
    for query in bench.spark.streams.active:
        query.stop()
    running.join(60)
    assert not running.is_alive()
    assert len(rows_of(bench.table())) == 3


def test_a_registry_tells_the_columns(bench: Bench, registry: SchemaRegistry) -> None:
    file = "hoodie.streamer.schemaprovider.source.schema.file"
    url = "hoodie.streamer.schemaprovider.registry.url"
    options = Options({url: registry.url_of("trips")})
    assert find_schema(options) == find_schema(bench.options())
    with pytest.raises(ConfigError, match="does not give a schema"):
        find_schema(Options({url: registry.url_of("unknown")}))
    with pytest.raises(ConfigError, match="begins with http"):
        find_schema(Options({url: "file:///etc/passwd"}))
    with pytest.raises(ConfigError, match="leave one of them out"):
        find_schema(Options({url: registry.url, file: "x"}))
    with pytest.raises(ConfigError, match="cannot be read"):
        find_schema(Options({file: str(bench.folder / "gone.avsc")}))
    target = "hoodie.streamer.schemaprovider.target.schema.file"
    target_url = "hoodie.streamer.schemaprovider.registry.targetUrl"
    (bench.folder / "same.avsc").write_text(json.dumps(json.loads(AVRO), indent=1))
    (bench.folder / "other.avsc").write_text(AVRO.replace("double", "float"))
    for same in ({target: str(bench.folder / "same.avsc")}, {target_url: registry.url_of("trips")}):
        assert find_schema(bench.options(**same)) is not None
    for other in ({target: str(bench.folder / "other.avsc")}, {target_url: registry.url_of("other")}):
        with pytest.raises(ConfigError, match="names other columns than the source's"):
            find_schema(bench.options(**other))
    (bench.folder / "columns.avsc").write_text("no schema")
    with pytest.raises(BadInput, match="no Avro record"):
        find_schema(bench.options())


def test_a_written_schema_tells_moments_from_times_without_a_zone(bench: Bench) -> None:
    kinds = {"at": "timestamp-micros", "local": "local-timestamp-micros"}
    fields = [{"name": name, "type": {"type": "long", "logicalType": kind}} for name, kind in kinds.items()]
    (bench.folder / "columns.avsc").write_text(json.dumps({"type": "record", "name": "r", "fields": fields}))
    found = find_schema(bench.options())
    assert found is not None
    assert found.simpleString() == "struct<at:timestamp,local:timestamp_ntz>"


def test_a_source_that_lacks_something_says_what(bench: Bench) -> None:
    schema = find_schema(bench.options())
    with pytest.raises(ConfigError, match="JsonKafkaSource"):
        open_source(bench.spark, "org.apache.hudi.utilities.sources.OrcSource", Options({}), schema=schema)
    with pytest.raises(ConfigError, match="needs its columns"):
        open_source(bench.spark, "json", bench.options(), schema=None)
    with pytest.raises(ConfigError, match=r"needs hoodie\.streamer\.source\.dfs\.root"):
        open_source(bench.spark, "json", Options({}), schema=schema)
    topic = {"hoodie.streamer.source.kafka.topic": "trips"}
    with pytest.raises(ConfigError, match=r"needs bootstrap\.servers"):
        open_source(bench.spark, "kafka", Options(topic), schema=schema)
    package = rf"start it with --packages org\.apache\.spark:{{}}_2\.1[23]:{bench.spark.version}$"
    for source in ("kafka", "AvroKafkaSource"):
        with pytest.raises(ConfigError, match=package.format("spark-sql-kafka-0-10")):
            open_source(bench.spark, source, Options({**topic, "bootstrap.servers": "x:1"}), schema=schema)
    with pytest.raises(ConfigError, match=package.format("spark-avro")):
        open_source(bench.spark, "AvroDFSSource", bench.options(), schema=None)


def test_keys_of_the_kafka_client_are_handed_on() -> None:
    given = {"bootstrap.servers": "x:1", "auto.offset.reset": "earliest", "hoodie.table.name": "t"}
    assert kafka_options(given) == {"startingOffsets": "earliest", "kafka.bootstrap.servers": "x:1"}
    with pytest.raises(ConfigError, match="earliest, latest"):
        kafka_options({"auto.offset.reset": "yesterday"})


def test_limits_of_a_batch_that_cannot_be_kept_are_refused(spark: Any, tmp_path: Path) -> None:
    root = Options({"hoodie.streamer.source.dfs.root": str(tmp_path)})
    schema = spark.range(1).schema
    with pytest.raises(ConfigError, match="leave one of them out"):
        open_source(spark, "json", root, schema=schema, source_limit=1, files_per_batch=1)
    with pytest.raises(ConfigError, match="files-per-batch is for files"):
        open_source(spark, "kafka", root, schema=schema, files_per_batch=1)
    if spark.version.startswith("3."):
        with pytest.raises(ConfigError, match="--source-limit 1 is bytes of files, which Spark 3"):
            open_source(spark, "json", root, schema=schema, source_limit=1)
    else:
        assert open_source(spark, "json", root, schema=schema, source_limit=1).isStreaming


def test_an_unreadable_message_is_known_by_what_spark_says() -> None:
    said = (
        "x: [USER_RAISED_EXCEPTION] message at topic t, partition 3, offset 5 is bad; mend it SQLSTATE: P0001\n\tat y"
    )
    found = find_unreadable(said)
    assert isinstance(found, BadInput)
    assert str(found).endswith("is bad; mend it")
    assert (found.facts["topic"], found.facts["partition"], found.facts["offset"]) == ("t", 3, 5)
    assert "schema_id" not in found.facts
    unknown = find_unreadable("message at topic t, partition 3, offset 5 has the schema id 70000, which is new\n\tat y")
    assert unknown is not None
    assert unknown.facts["schema_id"] == 70_000
    assert find_unreadable("another failure") is None


def test_a_job_that_meets_an_earlier_writer_fails_after_the_last_retry_and_the_next_goes_on(
    bench: Bench, after_job: Callable[..., None], rows_of: RowsOf
) -> None:
    """The earlier one is at work all the time, so each attempt gives up before it writes."""
    detecting = {
        "hoodie__write__concurrency__early__conflict__detection__enable": "true",
        "hoodie__write__num__retries__on__conflict__failures": "0",
        "hoodie__datasource__write__streaming__retry__count": "0",
    }
    bench.job().run()
    bench.add("2", ("b", "2", 2, 2.0))
    job = bench.job(IngestSettings(retries=2, retry_interval_s=0), "JsonDFSSource", **detecting)

    def meet() -> None:
        with pytest.raises(HoodieEarlyConflictDetectionException) as caught:
            job.run()
        assert (caught.value.partition, caught.value.other_is_pending) == ("2", True)
        assert job.report() == IngestReport(failures=2)

    after_job(meet)
    with open_table(bench.spark, bench.path, bench.options(**detecting)) as other:
        frame = bench.spark.createDataFrame([("b", "2", 1, 1.5)], "id string, month string, ts long, value double")
        other.upsert(frame)
        assert job._table.metrics.counter(EARLY_CONFLICT_MARKER) == 3
    assert bench.job(IngestSettings(), "JsonDFSSource", **detecting).run().batches == 1
    assert rows_of(bench.table()) == [("a", "1", 1, 1.0), ("b", "2", 2, 2.0)]


@pytest.mark.nightly  # two processes with a JVM each; jobs of one process, and pairs of applications, are in every run
def test_two_jobs_share_a_table_and_a_properties_file(bench: Bench, rows_of: RowsOf) -> None:
    """Two processes, each started from the command line, whose rows meet in the same partitions."""
    bench.job().run()
    for name in ("one", "two"):
        for batch in range(2):
            bench.add(f"{name}-{batch}", (f"{name}-{batch}", "1", 1, 1.0), ("a", "1", 2 + batch, 1.0), to=name)
    jobs = [start(bench, name) for name in ("one", "two")]
    reports = [finish(job) for job in jobs]
    assert [report["batches"] for report in reports] == [2, 2]
    keys = [row[0] for row in rows_of(bench.table())]
    assert keys == sorted(["a", "b", *(f"{name}-{batch}" for name in ("one", "two") for batch in range(2))])


def start(bench: Bench, name: str) -> subprocess.Popen[str]:
    words = [
        *("ingest", "--source-class", "JsonDFSSource", "--target-base-path", bench.path, "--props", str(bench.props)),
        *("--identifier", name, "--files-per-batch", "1", "--max-retry-count", "1", "--json"),
        *("--option", f"hoodie.streamer.source.dfs.root={bench.folder / name}"),
    ]
    run = [sys.executable, "-c", "from hudi_locks.cli import main; main()", *words]
    return subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(job: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = job.communicate(timeout=900)
    assert job.returncode == 0, errors
    found: dict[str, Any] = check_json(["ingest"], out.strip().splitlines()[-1])
    return found
