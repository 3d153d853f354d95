"""Whole lives of tables on S3: written by our pipeline, read by others, and written by both."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import connector_reader
import pytest
from bucketed_tables import KEYS, THEIRS, TOGETHER, in_order, rows
from hudi_locks_conformance.servers import Server, ServerUnavailable
from other_readers import ONE_CLOCK, Jvm, name_s3a_settings, open_jvm_on_s3, read_rust_on_s3
from small_tables import archive_now
from table_lives import TYPES, collect, make_rows, merge, race_writers

from hudi_locks.cli import main
from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop
ENDPOINT = "hudi_locks.storage.endpoint_url"
SHARED = {
    **ONE_CLOCK,
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
OURS = {**SHARED, "hoodie.write.lock.provider": "storage"}
TABLE_TYPE = "hoodie.datasource.write.table.type"
DEADLINE_S = 600


@pytest.fixture
def base(versitygw: Server) -> str:
    return f"{versitygw.options['hoodie.base.path']}/{uuid.uuid4().hex}"


@pytest.fixture
def make(spark: Any, versitygw: Server, base: str) -> Callable[..., HoodieTable]:
    def make_one(table_type: str, **options: str) -> HoodieTable:
        keyed = {key.replace("__", "."): value for key, value in options.items()}
        given = {**versitygw.options, **OURS, **TYPES[table_type], **keyed}
        settings = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
        return HoodieTable.create(spark, base, table_type=table_type, options=given, **settings)

    return make_one


def run_command(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


@pytest.mark.parametrize("table_type", TYPES)
def test_a_table_lives_its_life(
    make: Any, frame: Any, versitygw: Server, base: str, table_type: str, capsys: Any, monkeypatch: Any
) -> None:
    table = make(
        table_type,
        hoodie__keep__max__commits="4",
        hoodie__keep__min__commits="3",
        hoodie__clean__commits__retained="1",
        hoodie__clean__automatic="false",
        hoodie__archive__automatic="false",
    )
    first = make_rows(range(60), 1, "first")
    table.insert(frame(first))
    begin = str(table.table.timeline().completed()[-1].completion)
    saved = table.services.savepoints.create()
    second = make_rows(range(30, 90), 2, "second")
    table.upsert(frame(second))
    table.delete(frame(make_rows(range(5), 3, "gone")))
    expected = [row for row in merge(first, second) if row[0] >= "005"]
    assert collect(table.read()) == expected
    assert collect(table.as_of(begin)) == sorted(first)
    assert collect(table.incremental(begin)) == sorted(second)
    served = table.compaction.run() if table_type == "MERGE_ON_READ" else table.clustering.run(sort_by=["id"])
    assert served is not None
    assert collect(table.read()) == expected
    assert read_rust_on_s3(base, versitygw.options) == expected
    for turn in range(3, 7):
        third = make_rows(range(10, 20), turn, f"turn {turn}")
        table.upsert(frame(third))
        expected = merge(expected, third)
    assert table.services.savepoints.delete(saved.instant)
    assert table.services.clean().deleted
    assert archive_now(table) > 0
    table.services.sweep()
    assert collect(table.read()) == expected
    assert read_rust_on_s3(base, versitygw.options) == expected
    assert table.table.storage.list_staged() == set()
    found = verify_table(table.table.storage)
    assert found.damages == ()
    loaded = HoodieTable.load(table.spark, base, options={**versitygw.options, **OURS, **TYPES[table_type]})
    loaded.upsert(frame(make_rows(range(1), 9, "again")))
    expected = merge(expected, make_rows(range(1), 9, "again"))
    assert collect(loaded.read()) == expected
    assert read_rust_on_s3(base, versitygw.options) == expected
    look_from_the_shell(base, versitygw, monkeypatch, capsys)


def look_from_the_shell(base: str, server: Server, monkeypatch: Any, capsys: Any) -> None:
    told = {
        "AWS_ACCESS_KEY_ID": server.options["hoodie.aws.access.key"],
        "AWS_SECRET_ACCESS_KEY": server.options["hoodie.aws.secret.key"],
        "AWS_ENDPOINT_URL": server.options[ENDPOINT],
        "AWS_ALLOW_HTTP": "true",
    }
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    for words, said in (
        (("verify", base), "sound"),
        (("show", base, "--provider", "storage"), "nobody"),
        (("doctor", base, "--provider", "storage"), "tickets"),
    ):
        status = run_command(*words)
        shown = "".join(capsys.readouterr())
        assert status == 0, shown
        assert said in shown.lower()


@pytest.mark.parametrize("table_type", TYPES)
def test_several_writers_lose_nothing(make: Any, frame: Any, spark: Any, versitygw: Server, table_type: str) -> None:
    table, options = make(table_type), {**versitygw.options, **OURS, **TYPES[table_type]}
    race_writers(table, frame, lambda: HoodieTable.load(spark, table.path, options=options))
    assert read_rust_on_s3(table.path, versitygw.options) == collect(table.read())


@pytest.fixture(scope="session", params=["1.2.0", pytest.param("1.0.2", marks=pytest.mark.nightly)])
def jvm_on_s3(versitygw: Server, request: pytest.FixtureRequest) -> Iterator[Jvm]:
    """A JVM that opens s3a."""
    import pyspark

    if not pyspark.__version__.startswith("3.5."):
        pytest.skip(f"the bundles are for Spark 3.5, and this is {pyspark.__version__}: run tox -e interop")
    try:
        agent = open_jvm_on_s3(versitygw.options, request.param)
    except ServerUnavailable as error:
        pytest.skip(str(error))
    yield agent
    agent.close()


@pytest.mark.parametrize("table_type", TYPES)
def test_the_jvm_reads_and_writes_the_same_table(
    make: Any, frame: Any, jvm_on_s3: Jvm, versitygw: Server, base: str, table_type: str, zookeeper_lock: Any
) -> None:
    ours, theirs = zookeeper_lock
    keyed = {key.replace(".", "__"): value for key, value in ours.items()}
    table = make(table_type, hoodie__write__table__version=str(jvm_on_s3.table_version), **keyed)
    expected = make_rows(range(40), 1, "ours")
    table.insert(frame(expected))
    assert jvm_on_s3.read_path(base) == expected
    for turn in range(2, 4):
        change = make_rows(range(10, 50), turn, f"jvm {turn}")
        named = {key.replace(".", "__"): value for key, value in {**TYPES[table_type], **theirs}.items()}
        jvm_on_s3.write(table, change, **named)
        expected = merge(expected, change)
        change = make_rows(range(5, 30), turn, f"ours {turn}")
        table.upsert(frame(change))
        expected = merge(expected, change)
        assert collect(table.read()) == jvm_on_s3.read_path(base) == expected
        assert read_rust_on_s3(base, versitygw.options) == expected
    assert verify_table(table.table.storage).damages == ()


@pytest.mark.nightly  # on a disk the same runs each time
@pytest.mark.parametrize("table_type", TYPES)
def test_a_job_of_spark_4_writes_by_the_format_what_the_jvm_goes_on_with(
    spark: Any, data_source_job: Any, jvm_on_s3: Jvm, versitygw: Server, base: str, table_type: str, zookeeper_lock: Any
) -> None:
    ours, theirs = zookeeper_lock
    kind = {TABLE_TYPE: table_type, "hoodie.write.table.version": str(jvm_on_s3.table_version)}
    options = {**versitygw.options, **SHARED, **TYPES[table_type], **ours, **kind}
    first, second = make_rows(range(40), 1, "first"), make_rows(range(20, 60), 2, "second")
    assert data_source_job(base, options, first) == first
    assert data_source_job(base, options, second) == merge(first, second) == jvm_on_s3.read_path(base)
    third = make_rows(range(50, 70), 3, "jvm")
    named = {key.replace(".", "__"): value for key, value in {**TYPES[table_type], **theirs}.items()}
    jvm_on_s3.write(HoodieTable.load(spark, base, options=versitygw.options), third, **named)
    expected = merge(first, second, third)
    assert data_source_job(base, options) == jvm_on_s3.read_path(base) == expected
    assert read_rust_on_s3(base, versitygw.options) == expected


@pytest.mark.nightly  # on a disk the same runs each time
def test_the_jvm_and_ours_write_the_same_file_groups_at_once(
    spark: Any, frame: Any, jvm_on_s3: Jvm, versitygw: Server, base: str, zookeeper_lock: Any
) -> None:
    """Neither blocks the other; of each key the newest row stays, whoever was first."""
    ours, theirs = zookeeper_lock
    version = {"hoodie.write.table.version": str(jvm_on_s3.table_version)}
    options = {**versitygw.options, **OURS, **TOGETHER, **ours, **version}
    settings = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
    table = HoodieTable.create(spark, base, table_type="MERGE_ON_READ", options=options, **settings)
    table.insert(frame(rows(KEYS, 1, "first")))
    named = {**THEIRS, **{key.replace(".", "__"): value for key, value in theirs.items()}}
    writing = jvm_on_s3.begin_write(table, [*rows(KEYS[:6], 3, "jvm"), *rows(KEYS[6:], 2, "jvm")], **named)
    table.upsert(frame([*rows(KEYS[:6], 2, "ours"), *rows(KEYS[6:], 3, "ours")]))
    writing.result(DEADLINE_S)
    expected = in_order([*rows(KEYS[:6], 3, "jvm"), *rows(KEYS[6:], 3, "ours")])
    assert collect(table.read()) == jvm_on_s3.read_path(base) == expected
    assert table.compaction.run() is not None
    assert collect(table.read()) == jvm_on_s3.read_path(base) == expected
    assert read_rust_on_s3(base, versitygw.options) == expected


def test_spark_reads_large_files_where_its_connector_opens_them(
    make: Any, frame: Any, versitygw: Server, base: str
) -> None:
    """And Arrow reads them where it does not, as with the wrong secret."""
    table = make("COPY_ON_WRITE")
    expected = make_rows(range(40), 1, "ours")
    table.insert(frame(expected))
    script = Path(connector_reader.__file__)
    given = json.dumps({"options": {**versitygw.options, **OURS}, "spark": name_s3a_settings(versitygw.options)})
    words = [sys.executable, str(script), base]
    done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["wrong"]["files"] == []
    assert len(told["right"]["files"]) == 2
    assert all(file.startswith(f"s3a://{base.partition('://')[2]}/") for file in told["right"]["files"])
    assert [tuple(row) for row in told["wrong"]["rows"]] == [tuple(row) for row in told["right"]["rows"]] == expected
