"""Writers whose executors are processes of their own: Spark's local cluster, and a master with two workers."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hudi_locks_providers
import pyspark
import pytest
from waiting import until

import hudi_locks
from hudi_locks.errors import SessionRefused
from hudi_locks.spark import executors
from hudi_locks.spark.executors import _judge, _Sight

pytestmark = pytest.mark.spark
SCRIPT = Path(__file__).with_name("cluster_writer.py")
_ADDRESS = re.compile(r"Starting Spark master at (spark://\S+)")
_PATIENCE_S = 240.0
LOCAL_CLUSTER = "local-cluster[2,2,512]"


def run(
    master: str, folder: Path, what: str, *, words: Sequence[str] = (sys.executable,), **more: str
) -> dict[str, Any]:
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **more}
    command = [*words, str(SCRIPT), master, str(folder), what]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=540, check=False)
    assert done.returncode == 0, done.stderr[-4_000:]
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A master and two workers, each on an address of loopback of its own.

    Spark gives no second attempt of a task to the machine that has the first one, and tells machines by address.
    """
    folder = tmp_path_factory.mktemp("standalone")
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {**os.environ, "SPARK_WORKER_DIR": str(folder / "work")}
    environment.pop("PYTHONPATH", None)  # what is sent to a worker is not to be found beside it

    def start(host: str, role: str, *words: str) -> Path:
        log = folder / f"{role}-{host}.log"
        command = [str(program), f"org.apache.spark.deploy.{role}", "--host", host, "--port", "0", *words]
        own = {**environment, "SPARK_LOCAL_IP": host}
        with log.open("w") as said:
            process = subprocess.Popen([*command, "--webui-port", "0"], env=own, stdout=said, stderr=said)
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)
        return log

    def is_registered(log: Path) -> bool:
        return "Successfully registered with master" in log.read_text()

    with ExitStack() as stack:
        log = start("127.0.0.1", "master.Master")
        assert until(lambda: _ADDRESS.search(log.read_text()), _PATIENCE_S), log.read_text()
        master = _ADDRESS.findall(log.read_text())[0]
        words = ("--cores", "2", "--memory", "600m", master)
        for log in [start(host, "worker.Worker", *words) for host in ("127.0.0.1", "127.0.0.2")]:
            assert until(functools.partial(is_registered, log), _PATIENCE_S), log.read_text()
        yield master


@pytest.mark.nightly
@pytest.mark.parametrize("what", ["copy-on-write", "merge-on-read"])
def test_a_master_with_two_workers_writes_serves_and_reads(standalone: str, tmp_path: Path, what: str) -> None:
    found = run(standalone, tmp_path, what, PYSPARK_PYTHON=sys.executable)
    assert found["rows"]
    assert found["served"]
    assert found["executors"] == 2
    seen = f"{re.escape(socket.gethostname())} does not see the table {re.escape(found['path'])}, which the driver sees"
    assert re.fullmatch(rf"{seen}; give a path [^\n]*", found["unseen"])


@pytest.mark.nightly
@pytest.mark.skipif(pyspark.__version__.startswith("3."), reason="unsupported: PySpark 3.5 has no Python data sources")
def test_a_master_with_two_workers_writes_and_reads_by_the_format(standalone: str, tmp_path: Path) -> None:
    found = run(standalone, tmp_path, "format", PYSPARK_PYTHON=sys.executable)
    assert found == {"rows": {"cow": True, "mor": True}, "executors": 2}


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


@pytest.mark.nightly
def test_a_task_that_stands_still_loses_to_its_second_attempt(standalone: str, tmp_path: Path) -> None:
    found = run(standalone, tmp_path, "stand-still", PYSPARK_PYTHON=sys.executable)
    assert found["stood"]
    assert found["rows"]
    assert sorted(found["files"].values()) == [3, 6]
    assert found["swept"]


@pytest.mark.nightly
def test_executors_that_come_and_go_are_asked_for_what_is_left(standalone: str, tmp_path: Path) -> None:
    found = run(standalone, tmp_path, "elastic", PYSPARK_PYTHON=sys.executable)
    assert found["left"] == 0
    assert found["rows"]
    assert sorted(found["files"].values()) == [3, 6]


@pytest.fixture
def needs(tmp_path: Path) -> Path:
    """What is installed beside this package."""
    folder = tmp_path / "needs"
    folder.mkdir()
    for installed in Path(pyspark.__file__).parents[1].iterdir():
        if not installed.name.startswith(("hudi_locks", "_hudi_locks", "__editable__")):
            (folder / installed.name).symlink_to(installed)
    return folder


@pytest.mark.nightly
def test_the_package_is_sent_as_a_zip(standalone: str, tmp_path: Path, needs: Path) -> None:
    """Its needs are in the workers' Python."""
    python, sent = tmp_path / "python", tmp_path / "hudi_locks.zip"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={needs} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    with zipfile.ZipFile(sent, "w") as archive:
        for name, folder in list_packages().items():
            for file in folder.rglob("*.py"):
                archive.write(file, Path(name, file.relative_to(folder)))
    found = submit(standalone, tmp_path, "--py-files", str(sent), PYSPARK_PYTHON=str(python))
    assert found["rows"]
    assert all(source.endswith("/hudi_locks.zip/hudi_locks/__init__.py") for source in found["sources"]), found


@pytest.mark.nightly
def test_an_environment_that_venv_pack_made_is_sent_as_an_archive(standalone: str, tmp_path: Path) -> None:
    """Without PySpark, which Spark sends itself; its Python is on every machine."""
    home, packed = tmp_path / "home", tmp_path / "home.tar.gz"
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    needed = (str(Path(__file__).parents[2]), "pandas>=2.2,<3", "venv-pack==0.2.0")
    subprocess.run([home / "bin" / "pip", "install", "--quiet", *needed], check=True)
    subprocess.run([home / "bin" / "venv-pack", "--quiet", "-p", home, "-o", packed], check=True)
    shutil.rmtree(home)
    found = submit(standalone, tmp_path, "--archives", f"{packed}#home", PYSPARK_PYTHON="./home/bin/python")
    assert found["rows"]
    inside = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    assert all(source.endswith(f"/home/{inside}/hudi_locks/__init__.py") for source in found["sources"]), found


def list_packages() -> dict[str, Path]:
    return {one.__name__: Path(str(one.__file__)).parent for one in (hudi_locks, hudi_locks_providers)}


def submit(master: str, folder: Path, *words: str, **more: str) -> dict[str, Any]:
    program = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    given = [program, "--master", master, *words]
    return run(master, folder / "tables", "upsert", words=given, PYSPARK_DRIVER_PYTHON=sys.executable, **more)


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
