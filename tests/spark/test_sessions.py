"""Which Spark sessions do: what runs with nothing set, and what is refused at once, with one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import SessionRefused
from hudi_locks.spark import HoodieTable
from hudi_locks.spark._compat import SWITCHES
from hudi_locks.spark.index import bucket_index
from hudi_locks.spark.session import prepare_session, typed_task_errors

pytestmark = pytest.mark.spark

README = """
import sys
from pyspark.sql import SparkSession
from hudi_locks.errors import HudiLocksError
from hudi_locks.spark import HoodieTable

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
frame = spark.sql("select id, 'x' as city, 1L as ts from values 'a', 'b' as t(id)")
shared = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "filesystem",
    "hoodie.write.num.retries.on.conflict.failures": 3,
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": 1,
}
try:
    table = HoodieTable.create(
        spark, sys.argv[1], name="trips", record_key="id", partition_by="city", ordering="ts",
        table_type="MERGE_ON_READ", options=shared
    )
    table.upsert(frame)
    result = table.upsert(frame)
    print("rows", table.read().count(), table.incremental(result.completion_time).count())
except HudiLocksError as error:
    print(type(error).__name__, error)
"""


def run_script(tmp_path: Path, **variables: str) -> str:
    """What the README's lines print, run by this interpreter's own path, where `python3` of the PATH lacks packages."""
    bare = tmp_path / "bin"
    bare.mkdir(exist_ok=True)
    (bare / "python3").write_text("#!/bin/sh\nexec /usr/bin/env -i /nonexistent/python3\n")
    (bare / "python3").chmod(0o755)
    script = tmp_path / "script.py"
    script.write_text(README)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "PYTHONPATH"))}
    environment = {**kept, "PATH": f"{bare}:{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1", **variables}
    command = [sys.executable, str(script), str(tmp_path / "trips")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False).stdout


def test_the_lines_of_the_readme_run_with_nothing_set(tmp_path: Path) -> None:
    assert run_script(tmp_path) == "rows 2 0\n"


def test_workers_that_lack_the_package_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    said = run_script(tmp_path, PYSPARK_PYTHON=str(tmp_path / "bin" / "python3"))
    assert said.startswith("SessionRefused ")
    assert said.count("\n") == 1
    assert "set PYSPARK_PYTHON" in said
    assert not (tmp_path / "trips").exists()


class ConnectSession:
    """As a session of Spark Connect looks from outside: it has no SparkContext."""

    __module__ = "pyspark.sql.connect.session"

    @property
    def sparkContext(self) -> Any:  # noqa: N802  # Spark's name
        raise AssertionError("Spark Connect has none")


class ConnectFrame:
    sparkSession = ConnectSession()  # noqa: N815  # Spark's name


def test_spark_connect_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    from hudi_locks.spark import write

    session: Any = ConnectSession()
    frame: Any = ConnectFrame()
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    tries: list[Callable[[], Any]] = [
        lambda: HoodieTable.create(session, str(tmp_path / "t"), name="t", record_key="id"),
        lambda: HoodieTable.load(session, str(tmp_path / "t")),
        lambda: write(frame, str(tmp_path / "t"), options),
    ]
    for attempt in tries:
        with pytest.raises(SessionRefused, match=r"Spark Connect.*to read alone, register"):
            attempt()
    assert list(tmp_path.iterdir()) == []


class StoppedContext:
    """As a SparkContext is after `stop`."""

    _jsc = None


class StoppedSession:
    sparkContext = StoppedContext()  # noqa: N815  # Spark's name


def test_a_stopped_session_is_said_in_one_sentence(create: Callable[..., HoodieTable], frame: Any) -> None:
    table = create()
    rows = frame([("a", "1", 1, 1.0)])
    table.upsert(rows)
    stopped: Any = StoppedSession()
    table.spark = stopped
    for use in (
        table.read,
        lambda: table.upsert(rows),
        lambda: table.delete_partitions(["1"]),
        lambda: table.clustering.run(),
    ):
        with pytest.raises(SessionRefused, match="was stopped"):
            use()
    with pytest.raises(SessionRefused, match="was stopped"):
        HoodieTable.load(stopped, table.path)


def test_a_session_is_asked_for_its_configuration_once(
    spark: Any, create: Callable[..., HoodieTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create().path
    HoodieTable.load(spark, path)
    asked: list[object] = []
    monkeypatch.setattr(type(spark.sparkContext), "getConf", asked.append)
    for _ in range(3):
        HoodieTable.load(spark, path).read()
    assert asked == []


def test_a_living_session_passes(spark: Any) -> None:
    prepare_session(spark)
    assert spark.sparkContext.pythonExec == sys.executable


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("SerializationError: Caused by\nModuleNotFoundError: No module named 'hudi_locks'", "have no hudi_locks"),
        ("ModuleNotFoundError: No module named 'pyarrow'", "have no pyarrow"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11", "version"),
        ('Cannot run program "python3": error=2, No such file or directory', "python3"),
    ],
)
def test_what_spark_says_of_unfit_workers_becomes_one_sentence(said: str, advice: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(SessionRefused, match=advice) as caught, typed_task_errors():
        raise PySparkException(said)
    assert "PYSPARK_PYTHON" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_is_lost_without_what_is_private_in_pyspark(
    spark: Any, create: Callable[..., HoodieTable], frame: Any, rows_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(bucket_index, "reread_shuffled", lambda rows: asked.append(rows))
    table = create(options={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 2})
    rows = [("a", "1", 1, 1.0), ("b", "2", 1, 2.0)]
    table.upsert(frame(rows))
    assert len(asked) == 1
    for key in SWITCHES.values():
        spark.conf.set(key, "false")
    try:
        table.upsert(frame([("a", "1", 2, 3.0)]))
    finally:
        for key in SWITCHES.values():
            spark.conf.unset(key)
    assert len(asked) == 1
    assert rows_of(table) == [("a", "1", 2, 3.0), ("b", "2", 1, 2.0)]
