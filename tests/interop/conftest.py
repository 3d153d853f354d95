"""The JVM bundle in a process of its own, hudi-rs and our pipeline, side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance.servers import ServerUnavailable, fetch_bundle

from hudi_locks.spark import HoodieTable

DEADLINE_S = 120
BUNDLES = [("1.0.2", 8), ("1.2.0", 9)]
SCHEMA = "id string, region string, ts long, value double, label string"
COLUMNS = ("id", "region", "ts", "value", "label")
OURS = {
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "filesystem",
    "hoodie.write.lock.wait_time_ms_between_retry": "50",
}
THEIRS = {**OURS, "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}
Rows = Sequence[tuple[Any, ...]]


class JvmError(Exception):
    """What JVM Hudi threw: the class names from the outermost exception to the root, and the message."""


class Jvm:
    """Talks to an agent."""

    def __init__(self, version: str, table_version: int) -> None:
        self.version = version
        self.table_version = table_version
        command = [sys.executable, str(Path(__file__).with_name("jvm_agent.py")), str(fetch_bundle(version))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        started: Future[Any] = Future()
        self._waiting = {"started": started}
        threading.Thread(target=self._listen, daemon=True).start()
        started.result(DEADLINE_S)

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            answer = json.loads(line)
            waiting = self._waiting.pop(answer["id"])
            if "error" in answer:
                waiting.set_exception(JvmError(f"{' > '.join(answer['error'])}: {answer['message']}"))
            else:
                waiting.set_result(answer["result"])

    def ask(self, op: str, **arguments: Any) -> Future[Any]:
        """Begin an operation."""
        waiting: Future[Any] = Future()
        self._waiting[str(id(waiting))] = waiting
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"id": str(id(waiting)), "op": op, **arguments}) + "\n")
        self._process.stdin.flush()
        return waiting

    def begin_write(
        self, table: HoodieTable, rows: Rows, operation: str = "upsert", *, gate: str = "", **extra: str
    ) -> Future[Any]:
        """Begin a write as a good peer does; keys of `extra` have `__` for each dot."""
        config = table.table.config
        options = {
            **THEIRS,
            "hoodie.table.name": config.name,
            "hoodie.write.table.version": str(config.version),
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": ",".join(config.record_key_fields),
            "hoodie.datasource.write.partitionpath.field": ",".join(config.partition_fields),
            "hoodie.datasource.write.hive_style_partitioning": str(config.hive_style).lower(),
            "hoodie.datasource.write.precombine.field": ",".join(config.ordering_fields),
            **{key.replace("__", "."): value for key, value in extra.items()},
        }
        listed = [list(row) for row in rows]
        return self.ask("write", path=table.path, rows=listed, schema=SCHEMA, options=options, gate=gate)

    def write(self, table: HoodieTable, rows: Rows, operation: str = "upsert", **extra: str) -> None:
        """Write and wait."""
        self.begin_write(table, rows, operation, **extra).result(DEADLINE_S)

    def read(self, table: HoodieTable, **options: str) -> list[tuple[Any, ...]]:
        """The rows as the JVM sees them; keys of `options` have `__` for each dot."""
        named = {key.replace("__", "."): value for key, value in options.items()}
        found = self.ask("read", path=table.path, options=named, columns=list(COLUMNS)).result(DEADLINE_S)
        return sorted((tuple(row) for row in found), key=repr)

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(DEADLINE_S)


@pytest.fixture(scope="session", params=BUNDLES, ids=lambda bundle: f"{bundle[0]}-v{bundle[1]}")
def jvm(request: pytest.FixtureRequest) -> Iterator[Jvm]:
    """One agent for each bundle: a JVM cannot hold two."""
    import pyspark

    if not pyspark.__version__.startswith("3.5."):
        pytest.skip(f"the bundles are for Spark 3.5, and this is {pyspark.__version__}: run tox -e interop")
    try:
        agent = Jvm(*request.param)
    except ServerUnavailable as error:
        pytest.skip(str(error))
    yield agent
    agent.close()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def create(spark: Any, jvm: Jvm, path: str) -> Callable[..., HoodieTable]:
    """A new table of ours, of the version that the bundle writes."""

    def make(**changes: Any) -> HoodieTable:
        options = {**OURS, "hoodie.write.table.version": str(jvm.table_version), **changes.pop("options", {})}
        options.setdefault("hoodie.datasource.write.hive_style_partitioning", "true")
        settings = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts", **changes}
        return HoodieTable.create(spark, path, options=options, **settings)

    return make


@pytest.fixture
def frame(spark: Any) -> Callable[[Rows], Any]:
    return lambda rows: spark.createDataFrame(list(rows), SCHEMA).coalesce(1)


def read_rust(table: HoodieTable, **options: str) -> list[tuple[Any, ...]]:
    """The rows as hudi-rs sees them; options `as_of`, or `begin` and `end`."""
    import pyarrow as pa
    from hudi import HudiQueryType, HudiReadOptions, HudiTableBuilder

    asked = HudiReadOptions()
    if "as_of" in options:
        asked = asked.with_as_of_timestamp(options["as_of"])
    if "begin" in options:
        asked = asked.with_query_type(HudiQueryType.Incremental).with_start_timestamp(options["begin"])
        asked = asked.with_end_timestamp(options["end"])
    batches = [pa.record_batch(batch) for batch in HudiTableBuilder.from_base_uri(table.path).build().read(asked)]
    return sorted((tuple(row[name] for name in COLUMNS) for b in batches for row in b.to_pylist()), key=repr)


@pytest.fixture
def rust() -> Callable[..., list[tuple[Any, ...]]]:
    return read_rust


@pytest.fixture
def all_read(jvm: Jvm) -> Callable[[HoodieTable], list[tuple[Any, ...]]]:
    """The rows of a table, after the JVM, hudi-rs and our reader agreed on them."""

    def read(table: HoodieTable) -> list[tuple[Any, ...]]:
        ours = sorted((tuple(row) for row in table.read().select(*COLUMNS).collect()), key=repr)
        assert jvm.read(table) == ours
        assert read_rust(table) == ours
        return ours

    return read


class Gate:
    """A named pipe at which a JVM writer waits in the middle of its write."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        os.mkfifo(path)

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Inside the block the writer waits; at its end it goes on."""
        opened: Future[int] = Future()
        threading.Thread(target=lambda: opened.set_result(os.open(self.path, os.O_WRONLY)), daemon=True).start()
        pipe = opened.result(DEADLINE_S)
        try:
            yield
        finally:
            Path(f"{self.path}.passed").touch()
            os.close(pipe)


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")
