"""Hudi by others: the JVM bundle in a process of its own, and hudi-rs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FuturesTimeout
from pathlib import Path
from typing import Any

from hudi_locks_conformance.servers import fetch_bundle, fetch_s3a

from hudi_locks.spark import HoodieTable

__all__ = [
    "COLUMNS",
    "DEADLINE_S",
    "MANY",
    "ONE_CLOCK",
    "OURS",
    "SCHEMA",
    "THEIRS",
    "Jvm",
    "JvmError",
    "Rows",
    "name_s3a_settings",
    "open_jvm_on_s3",
    "read_rust",
    "read_rust_on_s3",
]

DEADLINE_S = 600
MANY = 20 if os.environ.get("HUDI_LOCKS_NIGHTLY") else 10
"""So many commits of each side show that nothing depends on how many there are."""
SCHEMA = "id string, region string, ts long, value double, label string"
COLUMNS = ("id", "region", "ts", "value", "label")
ONE_CLOCK = {"hoodie.time.generator.max_expected_clock_skew_ms": "1"}
"""For writers of both kinds that run on this machine: by default each waits for 200 ms whenever it takes a time."""
OURS = {
    **ONE_CLOCK,
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "filesystem",
    "hoodie.write.lock.wait_time_ms_between_retry": "50",
}
_ENDPOINT = "hudi_locks.storage.endpoint_url"
_KEY, _SECRET = "hoodie.aws.access.key", "hoodie.aws.secret.key"
THEIRS = {**OURS, "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}
Rows = Sequence[tuple[Any, ...]]
_TABLE_VERSIONS = {"1.0.2": 8}
"""That a bundle writes, where it is not 9."""


class JvmError(Exception):
    """What JVM Hudi threw: the class names from the outermost exception to the root, and the message."""


class _Answer(Future[Any]):
    """Of a JVM, which shows what each of its threads does when the answer does not come in time."""

    def __init__(self, jvm: Jvm) -> None:
        super().__init__()
        self._jvm = jvm

    def result(self, timeout: float | None = None) -> Any:
        try:
            return super().result(timeout)
        except FuturesTimeout:
            if self.done():
                raise
            threads = self._jvm.show_threads()
            raise JvmError(f"no answer within {timeout} s; the JVM's threads then:\n{threads}") from None


class Jvm:
    """Talks to an agent. One that died is started anew for the next operation, with a warning that shows its log."""

    def __init__(self, version: str, table_version: int, settings: Mapping[str, str] | None = None) -> None:
        self.version = version
        self._settings = dict(settings or {})
        self.table_version = table_version
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115  # it lasts as long as this
        self._start()

    def _start(self) -> None:
        agent = str(Path(__file__).with_name("jvm_agent.py"))
        command = [sys.executable, agent, str(fetch_bundle(self.version)), json.dumps(self._settings)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints, text=True
        )
        started: Future[Any] = Future()
        self._waiting = {"started": started}
        threading.Thread(target=self._listen, args=(self._process, self._waiting), daemon=True).start()
        started.result(DEADLINE_S)

    def _listen(self, process: subprocess.Popen[str], waiting: dict[str, Future[Any]]) -> None:
        assert process.stdout
        for line in process.stdout:
            answer = json.loads(line)
            asked = waiting.pop(answer["id"])
            if "error" in answer:
                asked.set_exception(JvmError(f"{' > '.join(answer['error'])}: {answer['message']}"))
            else:
                asked.set_result(answer["result"])
        process.wait()
        while waiting:
            asked = waiting.popitem()[1]
            asked.set_exception(JvmError(f"the JVM of bundle {self.version} ended: {self._last_words()}"))

    def _last_words(self) -> str:
        self._complaints.seek(0)
        return self._complaints.read()[-2000:]

    def ask(self, op: str, **arguments: Any) -> Future[Any]:
        """Begin an operation."""
        if self._process.poll() is not None:
            told = f"server JVM Hudi {self.version} died and is started anew: {self._last_words()}"
            warnings.warn(told, stacklevel=2)
            self._start()
        waiting = _Answer(self)
        self._waiting[str(id(waiting))] = waiting
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"id": str(id(waiting)), "op": op, **arguments}) + "\n")
        self._process.stdin.flush()
        return waiting

    def show_threads(self) -> str:
        """The stack of each of its threads."""
        self._complaints.seek(0, os.SEEK_END)
        before = self._complaints.tell()
        self.ask("show_threads").result(60)
        self._complaints.seek(before)
        return self._complaints.read()

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

    def put(self, path: str, rows: Rows, schema: str, *, options: Mapping[str, str], operation: str = "upsert") -> None:
        """Write rows to the table at `path`, keyed by id, region and ts, which is made if there is none."""
        given = {
            **THEIRS, **options,
            "hoodie.table.name": "t",
            "hoodie.write.table.version": str(self.table_version),
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "region",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.operation": operation,
        }  # fmt: skip
        listed = [list(row) for row in rows]
        self.ask("write", path=path, rows=listed, schema=schema, options=given, gate="").result(DEADLINE_S)

    def read(self, table: HoodieTable, **options: str) -> list[tuple[Any, ...]]:
        """The rows as the JVM sees them; keys of `options` have `__` for each dot."""
        return self.read_path(table.path, {key.replace("__", "."): value for key, value in options.items()})

    def read_path(self, path: str, options: Mapping[str, str] | None = None) -> list[tuple[Any, ...]]:
        """The same of a table that no object of ours stands for."""
        found = self.ask("read", path=path, options=dict(options or {}), columns=list(COLUMNS)).result(DEADLINE_S)
        return sorted((tuple(row) for row in found), key=repr)

    def cluster(self, table: HoodieTable, op: str, **arguments: str) -> list[list[Any]]:
        """Hudi's procedure `run_clustering`: op is schedule or execute."""
        named = {"path": table.path, "op": op, **arguments}
        given = ", ".join(f"{name} => '{value}'" for name, value in named.items())
        found: list[list[Any]] = self.ask("sql", statement=f"call run_clustering({given})").result(DEADLINE_S)
        return found

    def sql(self, text: str) -> list[list[Any]]:
        """Run a statement, such as `call` of a procedure."""
        found: list[list[Any]] = self.ask("sql", statement=text).result(DEADLINE_S)
        return found

    def call(self, text: str, options: Mapping[str, str]) -> list[list[Any]]:
        """The same in a session that has these options; nothing else may be under way in it."""
        found: list[list[Any]] = self.ask("call", statement=text, options=dict(options)).result(DEADLINE_S)
        return found

    def archived(self, table: HoodieTable) -> list[list[str]]:
        """Requested time, completion time and action of every instant that the history tells the JVM of."""
        found: list[list[str]] = self.ask("archived", path=table.path).result(DEADLINE_S)
        return sorted(found)

    def expected_skew(self, options: Mapping[str, str]) -> int:
        """How long, in ms, a JVM writer with these options waits for the clocks of others."""
        return int(self.ask("expected_skew", options=dict(options)).result(DEADLINE_S))

    def mark(
        self, path: str, requested: str, port: int, names: Sequence[Sequence[str]], *, early: bool = False
    ) -> dict[str, list[Any]]:
        """Make markers by Hudi's own client of a timeline server; see the agent."""
        given = {"path": path, "requested": requested, "port": port, "early": early}
        found: dict[str, list[Any]] = self.ask("mark", names=[list(name) for name in names], **given).result(DEADLINE_S)
        return found

    def unmark(self, path: str, requested: str, port: int) -> list[bool]:
        """Remove a marker folder by Hudi's own client; see the agent."""
        found: list[bool] = self.ask("unmark", path=path, requested=requested, port=port).result(DEADLINE_S)
        return found

    def restart(self) -> None:
        """Leave what its session remembers behind."""
        self.close()
        self._start()

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(DEADLINE_S)


def open_jvm_on_s3(options: Mapping[str, str], version: str = "1.2.0") -> Jvm:
    """A JVM that opens s3a; folder markers stay, since versitygw refuses to remove those of folders in use.

    Args:
        options: Of versitygw, by our names.
        version: Of the bundle.

    Raises:
        ServerUnavailable: This machine lacks a tool.
    """
    return Jvm(version, _TABLE_VERSIONS.get(version, 9), name_s3a_settings(options))


def name_s3a_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Settings of a Spark session that opens s3a; with the options of versitygw, by our names."""
    told = {
        "endpoint": options[_ENDPOINT],
        "access.key": options[_KEY],
        "secret.key": options[_SECRET],
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "directory.marker.retention": "keep",
    }
    jars = ",".join(map(str, fetch_s3a()))
    return {"jars": jars, **{f"spark.hadoop.fs.s3a.{key}": told[key] for key in told}}


def read_rust_on_s3(path: str, options: Mapping[str, str]) -> list[tuple[Any, ...]]:
    """The rows of a table on S3 as hudi-rs sees them; with the options of versitygw, by our names."""
    from hudi import HudiReadOptions, HudiTableBuilder

    told = {
        "aws_endpoint": options[_ENDPOINT],
        "aws_access_key_id": options[_KEY],
        "aws_secret_access_key": options[_SECRET],
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
    }
    return _collect_rust(HudiTableBuilder.from_base_uri(path).with_storage_options(told), HudiReadOptions())


def read_rust(path: str, **options: str) -> list[tuple[Any, ...]]:
    """The rows as hudi-rs sees them; options `as_of`, or `begin` and `end`."""
    from hudi import HudiQueryType, HudiReadOptions, HudiTableBuilder

    asked = HudiReadOptions()
    if "as_of" in options:
        asked = asked.with_as_of_timestamp(options["as_of"])
    if "begin" in options:
        asked = asked.with_query_type(HudiQueryType.Incremental).with_start_timestamp(options["begin"])
        asked = asked.with_end_timestamp(options["end"])
    return _collect_rust(HudiTableBuilder.from_base_uri(path), asked)


def _collect_rust(builder: Any, asked: Any) -> list[tuple[Any, ...]]:
    import pyarrow as pa

    batches = [pa.record_batch(batch) for batch in builder.build().read(asked)]
    return sorted((tuple(row[name] for name in COLUMNS) for b in batches for row in b.to_pylist()), key=repr)
