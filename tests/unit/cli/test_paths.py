"""What a wrong path looks like, and what the path of a table tells by itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks import LockManager
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table, TableConfig

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def table(tmp_path: Path) -> str:
    extra = {"hudi_locks.foreign_writers": "false"}
    return Table.create(LocalStorage(str(tmp_path / "table")), TableConfig("trips", ("id",), extra=extra)).storage.base


@pytest.mark.parametrize("command", ["show", "doctor"])
@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_is_no_table_is_said_to_be_none(
    hudi_locks: Run, tmp_path: Path, command: str, there: bool
) -> None:
    path = tmp_path / "typo"
    if there:
        path.mkdir()
    status, out, err = hudi_locks(command, str(path), "-p", "filesystem")
    assert (status, out) == (1, "")
    assert err.startswith(f"error: {path} holds no Hudi table")
    assert err.count("\n") == 1
    assert [entry.name for entry in tmp_path.rglob("*")] == (["typo"] if there else [])


def test_a_lock_without_a_table_is_shown_when_it_is_held(hudi_locks: Run, tmp_path: Path) -> None:
    options = {"hoodie.base.path": str(tmp_path / "no table")}
    with LockManager("filesystem", options, application="nightly").lock():
        status, out, _ = hudi_locks("show", str(tmp_path / "no table"), "-p", "filesystem")
    assert status == 0
    assert "nightly" in out


def test_a_service_is_tried_without_a_table_where_the_path_is_an_option(hudi_locks: Run, tmp_path: Path) -> None:
    assert hudi_locks("doctor", "-p", "filesystem", "-o", f"hoodie.base.path={tmp_path}")[0] == 0


@pytest.mark.parametrize(("provider", "option"), [("zookeeper", "lock_key"), ("dynamodb", "partition_key")])
def test_the_key_of_the_lock_is_the_name_of_the_table(
    hudi_locks: Run, table: str, monkeypatch: pytest.MonkeyPatch, provider: str, option: str
) -> None:
    from hudi_locks.lock import load_provider_class

    asked: list[Any] = []
    kind = load_provider_class(provider)
    monkeypatch.setattr(kind, "holder", lambda self, scope: asked.append(self.options["hoodie.table.name"]))
    words = ("-o", "url=127.0.0.1:1", "-o", "base_path=/locks") if provider == "zookeeper" else ()
    assert hudi_locks("show", table, "-p", provider, *words) == (0, "nobody holds the lock on table\n", "")
    assert asked == ["trips"]


@pytest.mark.parametrize("job", [("clean",), ("compact", "--schedule"), ("cluster", "--list"), ("savepoint", "--list")])
def test_jobs_lock_under_the_name_of_the_table(
    hudi_locks: Run, table: str, monkeypatch: pytest.MonkeyPatch, job: tuple[str, ...]
) -> None:
    seen: list[Any] = []
    make = LockManager.from_options

    def note(options: Any, **how: Any) -> LockManager:
        seen.append(options)
        return make(options, **how)

    monkeypatch.setattr(LockManager, "from_options", note)
    hudi_locks(job[0], table, *job[1:], "-o", "hoodie.write.lock.provider=in_process")
    assert [options["hoodie.table.name"] for options in seen] == ["trips"]


@pytest.mark.parametrize("job", ["cluster", "compact"])
def test_a_missing_path_is_said_before_spark_is_asked_for(hudi_locks: Run, tmp_path: Path, job: str) -> None:
    """Unit tests cannot import PySpark: that would be another error."""
    status, _, err = hudi_locks(job, str(tmp_path / "typo"))
    assert status == 1
    assert "holds no Hudi table" in err
    assert list(tmp_path.iterdir()) == []


def test_files_to_ingest_that_are_missing_are_said_before_spark_is_asked_for(hudi_locks: Run, tmp_path: Path) -> None:
    root = tmp_path / "typo"
    words = ("--target-base-path", str(tmp_path / "t"), "--source-class", "json")
    status, _, err = hudi_locks("ingest", *words, "-o", f"hoodie.streamer.source.dfs.root={root}")
    assert status == 2
    assert f"hoodie.streamer.source.dfs.root={root}: there is no such folder" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("job", ["cluster", "compact", "ingest"])
def test_jobs_without_pyspark_say_what_to_install(hudi_locks: Run, table: str, tmp_path: Path, job: str) -> None:
    words = ("--target-base-path", table, "--source-class", "json", "-o", f"hoodie.streamer.source.dfs.root={tmp_path}")
    status, _, err = hudi_locks(job, *(words if job == "ingest" else (table,)))
    assert status == 2
    assert err.count("\n") == 1
    assert "pip install 'hudi-locks[spark]'" in err


@pytest.mark.parametrize("home", ["/nonexistent/java", ""])
def test_a_bad_java_home_is_one_sentence(table: str, home: str) -> None:
    script = (
        "import os, sys\n"
        "from hudi_locks.cli.spark_jobs import check_java\nfrom hudi_locks.errors import ConfigError\n"
        "try:\n    check_java()\nexcept ConfigError as error:\n    print(error)\n"
    )
    environment = {"JAVA_HOME": home, "PATH": "/nonexistent", "PYTHONPATH": ":".join(sys.path)}
    said = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.count("\n") == 1
    assert "JAVA_HOME" in said.stdout
    assert "Java 17" in said.stdout
