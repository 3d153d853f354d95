"""`hudi-locks cluster`, as far as it needs no Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transaction_harness import write_file

from hudi_locks.format import BaseFileName, CommitMetadata, IOType, WriteStat
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table, TableConfig, create_partition_metadata
from hudi_locks.transaction import Transactions

SCHEMA = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": ["null", "string"], "default": null}]}'
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table with two small file groups."""
    extra = {"hudi_locks.foreign_writers": "false"}
    table = Table.create(LocalStorage(str(tmp_path / "table")), TableConfig("t", ("id",), ("part",), extra=extra))
    create_partition_metadata(table.storage, "p", instant="0")
    with Transactions(table, None).begin("commit", "INSERT") as tx:
        stats = []
        for group in ("a-0", "b-0"):
            name = str(BaseFileName(group, tx.instant))
            ticket = write_file(tx.files, "p", name, b"rows", io_type=IOType.CREATE)
            stats.append(WriteStat("p", group, f"p/{name}", ticket=ticket))
        assert tx.publish(CommitMetadata.of(stats, "INSERT", schema=SCHEMA)).is_committed
    return table.storage.base


def test_a_plan_is_made_shown_and_taken_back(hudi_locks: Command, path: str) -> None:
    assert hudi_locks("cluster", path, "--list") == (0, "there is nothing to do\n", "")
    status, out, _ = hudi_locks("cluster", path, "--schedule", "--sort-by", "id", "--json")
    [planned] = json.loads(out)
    assert (status, planned["state"]) == (0, "scheduled")
    _, out, _ = hudi_locks("cluster", path, "--list")
    assert out == f"clustering {planned['instant']}: state waits, file groups 2, planned by hudi-locks\n"
    assert hudi_locks("cluster", path, "--schedule")[1] == "there is nothing to do\n"
    _, out, _ = hudi_locks("cluster", path, "--abort", planned["instant"])
    assert out == f"clustering {planned['instant']}: state aborted\n"
    assert hudi_locks("cluster", path, "--list")[1] == "there is nothing to do\n"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--schedule", "--list"], 2, "exclude each other"),
        (["--abort", "20240101000000000"], 1, "no pending clustering; there are: none"),
        (["--schedule", "--sort-by", "nope"], 1, "no column 'nope' to sort by; the table has id"),
        (["--schedule", "-o", "hoodie.clustering.inlien=true"], 2, "did you mean hoodie.clustering.inline"),
    ],
)
def test_what_cannot_be_done_is_said(
    hudi_locks: Command, path: str, words: list[str], status: int, message: str
) -> None:
    found: Any = hudi_locks("cluster", path, *words)
    assert found[0] == status
    assert message in found[2]
