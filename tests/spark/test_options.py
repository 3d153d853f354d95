"""Options of a writer are honoured, refused by name before anything is made, or warned about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hudi_locks.errors import BadInput, ConfigError, HudiLocksError, NoEffectWarning
from hudi_locks.spark import HoodieTable, read, write
from hudi_locks.table import DeleteMarker, read_commit

pytestmark = pytest.mark.spark

GENERATOR = "hoodie.datasource.write.keygenerator.class"
KEYS = "org.apache.hudi.keygen."
PAYLOADS = "org.apache.hudi.common.model."
WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "region",
    WRITE + "precombine.field": "ts",
}
V9 = {"hoodie.write.table.version": "9"}
Row = tuple[Any, ...]


@pytest.fixture
def frame(spark: Any) -> Callable[..., Any]:
    def make(rows: list[Row], schema: str = "id string, region string, ts long, value double") -> Any:
        return spark.createDataFrame(rows, schema).coalesce(1)

    return make


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def rows_of(spark: Any, path: str, *columns: str) -> list[Row]:
    shown = HoodieTable.load(spark, path).read(meta_columns=False)
    return sorted(tuple(row) for row in shown.select(*(columns or shown.columns)).collect())


def keys_of(spark: Any, path: str) -> list[Row]:
    rows = HoodieTable.load(spark, path).read().select("_hoodie_record_key", "_hoodie_partition_path").collect()
    return sorted(tuple(row) for row in rows)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({GENERATOR: KEYS + "SimpleKeyGenerator"}, ("a", "eu")),
        ({"hoodie.datasource.write.keygenerator.type": "simple"}, ("a", "eu")),
        ({GENERATOR: KEYS + "ComplexKeyGenerator", **V9}, ("id:a", "eu")),
        ({GENERATOR: KEYS + "ComplexKeyGenerator"}, ("a", "eu")),
        (
            {
                GENERATOR: KEYS + "ComplexKeyGenerator",
                "hoodie.write.complex.keygen.new.encoding": "false",
            },
            ("id:a", "eu"),
        ),
        (
            {
                GENERATOR: KEYS + "NonpartitionedKeyGenerator",
                WRITE + "partitionpath.field": "",
            },
            ("a", ""),
        ),
    ],
)
def test_a_key_generator_makes_the_keys(
    spark: Any, frame: Any, path: str, changes: Mapping[str, str], expected: Row
) -> None:
    for value in (1.0, 2.0):
        write(frame([("a", "eu", 1, value)]), path, {**OPTIONS, **changes}, "append")
        assert keys_of(spark, path) == [expected]
    assert rows_of(spark, path, "value") == [(2.0,)]


def test_a_partition_column_that_the_key_generator_leaves_out_is_warned_about(
    spark: Any, frame: Any, path: str
) -> None:
    asked = {**OPTIONS, GENERATOR: KEYS + "NonpartitionedKeyGenerator"}
    with pytest.warns(UserWarning, match=r"partitionpath\.field has no effect"):
        write(frame([("a", "eu", 1, 1.0)]), path, asked, "append")
    assert keys_of(spark, path) == [("a", "")]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({GENERATOR: KEYS + "GlobalDeleteKeyGenerator"}, "GlobalDeleteKeyGenerator is not offered"),
        ({GENERATOR: KEYS + "TimestampBasedKeyGenerator"}, r"timebased\.timestamp\.type is required"),
        ({GENERATOR: KEYS + "CustomKeyGenerator"}, "region: a custom key generator wants column:SIMPLE or column:TIME"),
        (
            {GENERATOR: KEYS + "TimestampBasedKeyGenerator", WRITE + "recordkey.field": "id,ts"},
            "one record key column and one partition column, and 2 and 1 are given",
        ),
        ({GENERATOR: "com.example.Keys"}, r"com\.example\.Keys is not offered"),
        (
            {GENERATOR: KEYS + "SimpleKeyGenerator", WRITE + "recordkey.field": "id,ts"},
            "one record key column and one partition column, and 2 and 1 are given",
        ),
        ({"hoodie.datasource.write.payload.class": "com.example.Payload"}, r"com\.example\.Payload is Java code"),
        (
            {"hoodie.datasource.write.payload.class": PAYLOADS + "OverwriteWithLatestAvroPayload",
             "hoodie.record.merge.mode": "EVENT_TIME_ORDERING"},
            "contradict each other",
        ),
        ({"hoodie.payload.delete.field": "op"}, r"delete\.marker beside it"),
        ({"hoodie.table.base.file.format": "ORC"}, r"base\.file\.format=ORC"),
        ({"hoodie.table.initial.version": "6"}, r"initial\.version=6"),
        ({"hoodie.table.multiple.base.file.formats.enable": "true"}, r"formats\.enable=true"),
        ({"hoodie.partition.metafile.use.base.format": "true"}, r"base\.format=true"),
        (
            {"hoodie.populate.meta.fields": "false", "hoodie.table.cdc.enabled": "true"},
            r"populate\.meta\.fields: false cannot be created",
        ),
        ({"hoodie.index.bucket.engine": "CONSISTENT_HASHING", "hoodie.index.type": "BUCKET"}, "CONSISTENT_HASHING"),
        ({"hoodie.index.type": "HBASE"}, "use GLOBAL_SIMPLE, if a key is to have one row in the whole table"),
        ({"hoodie.index.type": "FLINK_STATE"}, "FLINK_STATE is not offered"),
        ({"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"}, "sort the DataFrame"),
        ({"as.of.instant": "20260101000000000"}, r"hudi_locks\.spark\.read"),
        ({"hoodie.datasource.query.type": "incremental"}, r"hudi_locks\.spark\.read"),
    ],
)  # fmt: skip
def test_what_is_not_offered_is_refused_before_anything_is_made(
    spark: Any, frame: Any, path: str, changes: Mapping[str, str], message: str
) -> None:
    with pytest.raises((ConfigError, BadInput), match=message):
        write(frame([("a", "eu", 1, 1.0)]), path, {**OPTIONS, **changes}, "append")
    assert not Path(path).exists() or not list(Path(path).iterdir())
    write(frame([("a", "eu", 1, 1.0)]), path, OPTIONS, "append")
    with pytest.raises(HudiLocksError):
        write(frame([("b", "eu", 1, 1.0)]), path, {**OPTIONS, **changes}, "append")
    assert rows_of(spark, path, "id") == [("a",)]


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize(
    ("payload", "mode", "partial"),
    [
        ("OverwriteWithLatestAvroPayload", "COMMIT_TIME_ORDERING", ""),
        ("DefaultHoodieRecordPayload", "EVENT_TIME_ORDERING", ""),
        ("EventTimeAvroPayload", "EVENT_TIME_ORDERING", ""),
        ("PartialUpdateAvroPayload", "EVENT_TIME_ORDERING", "IGNORE_DEFAULTS"),
        ("OverwriteNonDefaultsWithLatestAvroPayload", "COMMIT_TIME_ORDERING", "IGNORE_DEFAULTS"),
        ("AWSDmsAvroPayload", "COMMIT_TIME_ORDERING", ""),
    ],
)
def test_a_payload_class_merges_as_the_merge_mode_that_it_stands_for(
    spark: Any, frame: Any, path: str, payload: str, mode: str, partial: str, version: str
) -> None:
    asked = {
        **OPTIONS,
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.payload.class": PAYLOADS + payload,
    }
    schema = "id string, region string, ts long, value double, Op string"
    write(frame([("a", "eu", 5, 1.0, "I"), ("b", "eu", 5, 1.0, "I")], schema), path, asked, "append")
    write(frame([("a", "eu", 4, None, "D"), ("b", "eu", 6, None, "U")], schema), path, asked, "append")
    config = HoodieTable.load(spark, path).table.config
    assert (config.merge_mode, config.partial_update_mode) == (mode, partial)
    assert (DeleteMarker("Op", "D") in config.delete_markers) == (payload == "AWSDmsAvroPayload")
    kept = ("a", 4, None) if mode.startswith("COMMIT") else ("a", 5, 1.0)
    filled = 1.0 if partial else None
    expected = [(*kept[:2], 1.0) if partial else kept, ("b", 6, filled)]
    assert rows_of(spark, path, "id", "ts", "value") == (expected[1:] if payload.startswith("AWS") else expected)


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_table_is_merged_by_its_own_merger_alone(spark: Any, frame: Any, path: str, version: str) -> None:
    key, rows = "hoodie.record.merge.strategy.id", frame([("a", "eu", 1, 1.0)])
    made = {**OPTIONS, "hoodie.write.table.version": version}
    with pytest.raises(BadInput, match="was made with eeb8d96f-b1e4-49fd-bbf8-28ac514178e5") as caught:
        write(rows, path, {**made, key: "00000000-0000-0000-0000-000000000000"}, "append")
    assert caught.value.key == key
    write(rows, path, {**made, key: "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"}, "append")
    assert rows_of(spark, path, "id") == [("a",)]


def test_an_option_that_means_another_table_is_refused(spark: Any, frame: Any, path: str) -> None:
    write(frame([("a", "eu", 1, 1.0)]), path, OPTIONS, "append")
    for key, value in {
        "hoodie.table.name": "other",
        WRITE + "precombine.field": "value",
        WRITE + "hive_style_partitioning": "true",
        WRITE + "table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.keygenerator.type": "COMPLEX",
        "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
        "hoodie.timeline.path": "elsewhere",
        "hoodie.table.timeline.timezone": "LOCAL",
    }.items():
        with pytest.raises(BadInput, match="was made with") as caught:
            HoodieTable.load(spark, path, options={key: value}).upsert(frame([("b", "eu", 1, 1.0)]))
        assert caught.value.key == key
    assert rows_of(spark, path, "id") == [("a",)]


def test_an_option_without_effect_is_warned_about_by_name(spark: Any, frame: Any, path: str) -> None:
    with pytest.warns(NoEffectWarning, match=r"hoodie\.parquet\.compression\.ratio has no effect here: .*measured"):
        write(frame([("a", "eu", 1, 1.0)]), path, {**OPTIONS, "hoodie.parquet.compression.ratio": "0.5"}, "append")


def test_a_database_name_is_kept_at_the_making_of_a_table_and_no_later_write_adds_one(
    spark: Any, frame: Any, tmp_path: Path
) -> None:
    """JVM Hudi compares only what a table has; but whoever gives a name expects the table to have it."""
    rows, named = frame([("a", "eu", 1, 1.0)]), {**OPTIONS, "hoodie.database.name": "lake"}
    made, bare = str(tmp_path / "made"), str(tmp_path / "bare")
    write(rows, made, named, "append")
    write(rows, made, named, "append")
    with pytest.raises(BadInput, match=r"hoodie\.database\.name=other, but .* was made with lake"):
        write(rows, made, {**named, "hoodie.database.name": "other"}, "append")
    write(rows, bare, OPTIONS, "append")
    with pytest.warns(
        NoEffectWarning, match=r"hoodie\.database\.name=lake has no effect on the table at .*bare"
    ) as told:
        write(rows, bare, named, "append")
    assert [one.category for one in told].count(NoEffectWarning) == 1
    assert HoodieTable.load(spark, bare).table.config.database == ""


@pytest.mark.parametrize("operation", ["bulk_insert", "upsert"])
def test_sizes_of_row_groups_and_pages_are_as_asked(spark: Any, path: str, operation: str) -> None:
    rows = spark.range(20_000).selectExpr("cast(id as string) id", "'eu' region", "id ts", "rand() value").coalesce(1)

    def count_parts(**changes: str) -> int:
        asked = {**OPTIONS, WRITE + "operation": operation, **{k.replace("__", "."): v for k, v in changes.items()}}
        write(rows, path, asked, "overwrite")
        return sum(pq.read_metadata(file).num_row_groups for file in Path(path).rglob("*.parquet"))

    assert count_parts() == 1
    assert count_parts(hoodie__parquet__block__size="200000") > 5


@pytest.mark.parametrize(
    "key", ["hoodie.datasource.write.reconcile.schema", "hoodie.write.set.null.for.missing.columns"]
)
def test_columns_that_the_input_lacks_are_null_where_that_is_asked(spark: Any, frame: Any, path: str, key: str) -> None:
    write(frame([("a", "eu", 1, 1.0), ("b", "eu", 1, 1.0)]), path, OPTIONS, "append")
    less = frame([("b", "eu", 2), ("c", "eu", 2)], "id string, region string, ts long")
    with pytest.raises(BadInput, match="value"):
        write(less, path, OPTIONS, "append")
    write(less, path, {**OPTIONS, key: "true"}, "append")
    assert rows_of(spark, path, "id", "value") == [("a", 1.0), ("b", None), ("c", None)]


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"hoodie.datasource.insert.dup.policy": "none"}, [1.0, 2.0, 3.0]),
        ({"hoodie.datasource.insert.dup.policy": "DROP"}, [1.0, 3.0]),
    ],
)
def test_what_an_insert_does_with_keys_that_are_there(
    spark: Any, frame: Any, path: str, options: dict[str, str], values: list[float]
) -> None:
    asked = {**OPTIONS, **options, WRITE + "operation": "insert"}
    write(frame([("a", "eu", 1, 1.0)]), path, asked)
    write(frame([("a", "eu", 2, 2.0), ("b", "eu", 2, 3.0)]), path, asked, "append")
    assert sorted(value for (value,) in rows_of(spark, path, "value")) == values


def test_options_with_the_prefix_are_kept_in_the_commit_but_for_secrets(spark: Any, frame: Any, path: str) -> None:
    noted = {"_source": "kafka/7", "_api.token": "hunter2", "job.run": "12"}
    write(frame([("a", "eu", 1, 1.0)]), path, {**OPTIONS, **noted})
    write(
        frame([("b", "eu", 1, 1.0)]),
        path,
        {**OPTIONS, **noted, "hoodie.datasource.write.commitmeta.key.prefix": "job."},
        "append",
    )
    table = HoodieTable.load(spark, path).table
    timeline = table.timeline()
    kept = [read_commit(table.storage, timeline, requested=one.requested).extra for one in timeline.completed()]
    assert [{name: one[name] for name in noted if name in one} for one in kept] == [
        {"_source": "kafka/7"},
        {"job.run": "12"},
    ]


def test_a_read_goes_by_hudis_options(spark: Any, frame: Any, path: str) -> None:
    first = write(frame([("a", "eu", 1, 1.0)]), path, OPTIONS, "append")
    second = write(frame([("b", "eu", 1, 1.0)]), path, OPTIONS, "append")
    assert first is not None
    assert second is not None

    def ids(**options: str) -> list[str]:
        named = {key.replace("__", "."): value for key, value in options.items()}
        return sorted(row["id"] for row in read(spark, path, named).collect())

    span = {"hoodie__datasource__query__type": "incremental"}
    assert ids() == ["a", "b"]
    assert ids(as__of__instant=first.instant) == ["a"]
    assert ids(hoodie__datasource__query__type="read_optimized") == ["a", "b"]
    assert ids(**span, hoodie__datasource__read__begin__instanttime=first.completion_time) == ["b"]
    assert ids(**span, hoodie__datasource__read__begin__instanttime="earliest") == ["a", "b"]
    ends = {"hoodie__datasource__read__end__instanttime": first.completion_time}
    assert ids(**span, **ends, hoodie__datasource__read__begin__instanttime="0") == ["a"]
    with pytest.raises(ConfigError, match=r"end\.instanttime has no meaning with .*query\.type=snapshot"):
        ids(**ends)
    with pytest.raises(ConfigError, match=r"as\.of\.instant has no meaning with"):
        ids(**span, as__of__instant=first.instant, hoodie__datasource__read__begin__instanttime="0")
    with pytest.raises(ConfigError, match=r"begin\.instanttime is required"):
        ids(**span)
    for key, value in (
        ("incr.path.glob", "eu/*"),
        ("incr.filters", "x > 1"),
        ("paths", "a"),
        ("merge.type", "skip_merge"),
    ):
        name = f"hoodie.datasource.{'' if key == 'merge.type' else 'read.'}{key}"
        with pytest.raises(ConfigError, match=f"{name}={value.replace('*', '.')} is not offered"):
            read(spark, path, {name: value})
    with pytest.raises(ConfigError, match=r"is an option of one read"):
        HoodieTable.load(spark, path, options={"as.of.instant": first.instant})


def test_short_names_of_sql_mean_the_keys_for_which_they_stand(spark: Any, frame: Any, path: str) -> None:
    asked = {"hoodie.table.name": "t", "primaryKey": "id", "preCombineField": "ts", "type": "cow"}
    for ts, value in ((2, 1.0), (1, 2.0)):
        write(frame([("a", "eu", ts, value)]), path, asked, "append")
    config = HoodieTable.load(spark, path).table.config
    assert (config.record_key_fields, config.ordering_fields, config.table_type) == (("id",), ("ts",), "COPY_ON_WRITE")
    assert rows_of(spark, path, "value") == [(1.0,)]
    for changes, message in (
        ({"type": "mor"}, "was made with COPY_ON_WRITE"),
        ({"type": "row"}, "is none of COPY_ON_WRITE"),
        ({"hoodie.datasource.write.recordkey.field": "ts"}, "primaryKey=id and .* contradict each other"),
    ):
        with pytest.raises((BadInput, ConfigError), match=message):
            write(frame([("a", "eu", 1, 1.0)]), path, {**asked, **changes}, "append")


def test_dates_that_are_three_folders(spark: Any, frame: Any, path: str) -> None:
    slashed = "hoodie.datasource.write.slash.separated.date.partitioning"
    write(frame([("a", "2024-01-31", 1, 1.0), ("b", None, 1, 1.0)]), path, {**OPTIONS, slashed: "true"})
    HoodieTable.load(spark, path).upsert(frame([("a", "2024-01-31", 2, 2.0)]))
    assert keys_of(spark, path) == [("a", "2024/01/31"), ("b", "__HIVE_DEFAULT_PARTITION__")]
    assert rows_of(spark, path, "id", "region", "ts") == [("a", "2024-01-31", 2), ("b", None, 1)]
    with pytest.raises(BadInput, match=f"{slashed}=false, but the table at .* was made with true"):
        write(frame([("a", "2024-01-31", 3, 3.0)]), path, {**OPTIONS, slashed: "false"}, mode="append")


def test_a_writer_cannot_begin_to_split_dates(frame: Any, path: str) -> None:
    slashed = "hoodie.datasource.write.slash.separated.date.partitioning"
    write(frame([("a", "2024-01-31", 1, 1.0)]), path, OPTIONS)
    with pytest.raises(BadInput, match=f"{slashed}=true, but the table at .* was made with false"):
        write(frame([("a", "2024-01-31", 2, 2.0)]), path, {**OPTIONS, slashed: "true"}, mode="append")


@pytest.mark.parametrize(
    ("payload", "kept"),
    [("", "later"), ("OverwriteWithLatestAvroPayload", "later"), ("DefaultHoodieRecordPayload", "newer")],
)
def test_a_table_of_hudi_0_15_that_names_no_payload_class_takes_that_of_the_writer(
    spark: Any, path: str, payload: str, kept: str
) -> None:
    """Its writers go by their own options, and by default the later write wins."""
    options = {"hoodie.write.table.version": "6"}
    HoodieTable.create(spark, path, name="t", record_key="id", partition_by="region", ordering="ts", options=options)
    file = Path(path, ".hoodie", "hoodie.properties")
    lines = [line for line in file.read_text().splitlines() if "payload" not in line and "merge" not in line]
    file.write_text("\n".join(line for line in lines if "checksum" not in line) + "\n")
    columns = "id string, region string, ts long, label string"
    given = {"hoodie.datasource.write.payload.class": PAYLOADS + payload} if payload else {}
    for ts, label in ((2, "newer"), (1, "later")):
        HoodieTable.load(spark, path, options=given).upsert(spark.createDataFrame([("a", "eu", ts, label)], columns))
    assert [row["label"] for row in HoodieTable.load(spark, path).read().collect()] == [kept]


def test_a_table_of_hudi_0_15_takes_from_the_writer_how_a_custom_key_generator_names_folders(
    spark: Any, path: str
) -> None:
    made = {GENERATOR: KEYS + "CustomKeyGenerator", WRITE + "partitionpath.field": "region:SIMPLE"}
    frame = spark.createDataFrame([("a", "eu", 1)], "id string, region string, ts long")
    write(frame, path, {**OPTIONS, **made, "hoodie.write.table.version": "6"}, "append")
    file = Path(path, ".hoodie", "hoodie.properties")
    lines = [line for line in file.read_text().splitlines() if "checksum" not in line]
    assert "hoodie.table.partition.fields=region:SIMPLE" in [line.replace("\\", "") for line in lines]
    told = ["hoodie.table.partition.fields=region" if "partition.fields=" in line else line for line in lines]
    file.write_text("\n".join(told) + "\n")
    with pytest.raises(HudiLocksError, match=r"hoodie\.table\.partition\.fields=region: a custom key generator"):
        HoodieTable.load(spark, path).upsert(frame)
    HoodieTable.load(spark, path, options=made).upsert(spark.createDataFrame([("b", "us", 1)], frame.schema))
    assert {entry.name for entry in Path(path).iterdir() if not entry.name.startswith(".")} == {"eu", "us"}
    assert HoodieTable.load(spark, path).read().count() == 2
