"""A timeline server from the command line."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.cli.serve import _add_index
from hudi_locks.markers import read_markers
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig
from hudi_locks.timeline_server import TOKEN_VARIABLE, Endpoint, Unreachable

NOW = "20260101000000002"
NAME = f"p/g-0_0-0-0_{NOW}.parquet.marker.CREATE"
TOKEN = "what-nobody-sees"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def path(tmp_path: Path) -> str:
    Table.create(open_storage(str(tmp_path / "table")), TableConfig("t", ("id",), ()))
    return str(tmp_path / "table")


@pytest.fixture
def served(path: str, start: Callable[..., Any]) -> tuple[Any, str]:
    """A process that serves, and what it said when it was ready."""
    code = "import sys; from hudi_locks.cli import main; main(sys.argv[1:])"
    process = start(code, "serve", path, "--port", "0", **{TOKEN_VARIABLE: TOKEN})
    return process, process.stdout.readline()


def test_it_serves_until_it_is_told_to_stop(path: str, served: Any) -> None:
    process, said = served
    assert f"serving the markers of {path} at http://127.0.0.1:" in said
    endpoint = Endpoint(said.split()[-1], path, TOKEN)
    assert endpoint.create_all(NOW, [NAME], detects=True) is None
    with pytest.raises(Unreachable, match="401"):
        Endpoint(endpoint.url, path, "another").create_all(NOW, [NAME], detects=True)
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "stopped\n")
    assert TOKEN not in said + rest
    assert [str(name) for name in read_markers(open_storage(path), NOW).names] == [NAME]
    with pytest.raises(Unreachable):
        endpoint.check(NOW)


def test_it_does_not_serve_without_a_token_unless_told_so(
    hudi_locks: Run, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    status, _, error = hudi_locks("serve", path)
    assert status == 2
    assert "--token-file" in error


def test_no_class_that_the_table_names_is_loaded(tmp_path: Path) -> None:
    """Whoever may write a table's properties would otherwise choose what runs on the machine of whoever serves it."""
    extra = {
        "hoodie.write.concurrency.early.conflict.detection.enable": "true",
        "hoodie.write.concurrency.early.conflict.detection.strategy": "no.such.module:Strategy",
        "hoodie.index.type": "BUCKET",
    }
    table = Table.create(open_storage(str(tmp_path / "named")), TableConfig("t", ("id",), (), extra=extra))
    assert _add_index(table, {"a": 1}) == {"hoodie.index.type": "BUCKET", "a": 1}
    assert _add_index(table, {"hoodie.index.type": "SIMPLE"}) == {"hoodie.index.type": "SIMPLE"}
