"""Writers whose executors are processes of their own: Spark's local cluster, and a master with two workers."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyspark
import pytest
from waiting import until

from hudi_locks.errors import SessionRefused
from hudi_locks.spark import executors
from hudi_locks.spark.executors import _judge, _Sight

pytestmark = pytest.mark.spark
SCRIPT = Path(__file__).with_name("cluster_writer.py")
_ADDRESS = re.compile(r"Starting Spark master at (spark://\S+)")
LOCAL_CLUSTER = "local-cluster[2,2,512]"


def run(master: str, folder: Path, what: str, **more: str) -> dict[str, Any]:
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **more}
    command = [sys.executable, str(SCRIPT), master, str(folder), what]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-4_000:]
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A master and two workers on loopback."""
    folder = tmp_path_factory.mktemp("standalone")
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder / "work")}

    def start(name: str, role: str, *words: str) -> Path:
        log = folder / f"{name}.log"
        command = [str(program), f"org.apache.spark.deploy.{role}", "--host", "127.0.0.1", "--port", "0", *words]
        with log.open("w") as said:
            process = subprocess.Popen([*command, "--webui-port", "0"], env=environment, stdout=said, stderr=said)
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)
        return log

    with ExitStack() as stack:
        log = start("master", "master.Master")
        assert until(lambda: _ADDRESS.search(log.read_text())), log.read_text()
        master = _ADDRESS.findall(log.read_text())[0]
        logs = [start(name, "worker.Worker", "--cores", "2", "--memory", "600m", master) for name in ("one", "two")]
        for log in logs:
            assert until(lambda log=log: "Successfully registered with master" in log.read_text()), log.read_text()  # type: ignore[misc]
        yield master


@pytest.mark.parametrize("what", ["copy-on-write", pytest.param("merge-on-read", marks=pytest.mark.nightly)])
def test_a_master_with_two_workers_writes_serves_and_reads(standalone: str, tmp_path: Path, what: str) -> None:
    found = run(standalone, tmp_path, what, PYSPARK_PYTHON=sys.executable)
    assert found["rows"]
    assert found["served"]
    assert found["executors"] == 2
    seen = f"{re.escape(socket.gethostname())} does not see the table {re.escape(found['path'])}, which the driver sees"
    assert re.fullmatch(rf"{seen}; give a path [^\n]*", found["unseen"])


def test_executors_without_the_package_are_refused_in_one_sentence(standalone: str, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    found = run(standalone, tmp_path / "tables", "refuse", PYSPARK_PYTHON=str(bare))
    assert found["error"] == "SessionRefused"
    assert re.fullmatch(r"Spark's Python workers have no \w+; set PYSPARK_PYTHON, or [^\n]*", found["message"])


def test_an_executor_that_is_killed_leaves_one_file_for_each_group(tmp_path: Path) -> None:
    found = run(LOCAL_CLUSTER, tmp_path, "survive")
    assert found["killed"]
    assert found["rows"]
    assert sorted(found["files"].values()) == [3, 6]


def test_another_release_on_an_executor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_find_release", lambda: "1.2.0")
    _judge([_Sight("a", "1.2.0", sees_table=True), _Sight("b", "", sees_table=True)], "/t")
    with pytest.raises(SessionRefused, match=r"b runs hudi-locks 1\.1\.0, and the driver 1\.2\.0; set PYSPARK"):
        _judge([_Sight("a", "1.2.0", sees_table=True), _Sight("b", "1.1.0", sees_table=True)], "/t")


def test_what_a_store_says_on_an_executor_is_told_without_secrets() -> None:
    sights = [_Sight("a", "", sees_table=False, error="denied for https://me:secret@host/")]
    with pytest.raises(SessionRefused, match="a cannot look at the table s3a://b/t: denied") as caught:
        _judge(sights, "s3a://b/t")
    assert "secret" not in str(caught.value)
