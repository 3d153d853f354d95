"""`hudi-locks compact`, as far as it needs no Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from transaction_harness import write_file

from hudi_locks.format import CommitMetadata, IOType, LogFileName, WriteStat
from hudi_locks.services import Compaction
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table, TableConfig, create_partition_metadata
from hudi_locks.transaction import Transactions

GROUP = "00000000-0000-0000-0000-000000000000-0"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table with one log."""
    extra = {"hudi_locks.foreign_writers": "false", "hoodie.index.type": "BUCKET"}
    config = TableConfig("t", ("id",), ("part",), table_type="MERGE_ON_READ", extra=extra)
    table = Table.create(LocalStorage(str(tmp_path / "table")), config)
    create_partition_metadata(table.storage, "p", instant="0")
    with Transactions(table, None).begin("deltacommit", "INSERT") as tx:
        name = str(LogFileName(GROUP, tx.instant))
        ticket = write_file(tx.files, "p", name, b"rows", io_type=IOType.CREATE)
        stat = WriteStat("p", GROUP, f"p/{name}", log_version=1, ticket=ticket)
        assert tx.publish(CommitMetadata.of([stat], "INSERT", schema=None)).is_committed
    return table


def test_a_plan_is_made_once(hudi_locks: Command, table: Table) -> None:
    status, out, _ = hudi_locks("compact", table.storage.base, "--schedule", "--json")
    [planned] = json.loads(out)
    assert (status, planned["state"]) == (0, "scheduled")
    plan = Compaction(table, Transactions(table, None)).read_plan(planned["instant"])
    assert plan.file_groups == {("p", GROUP)}
    assert hudi_locks("compact", table.storage.base, "--schedule") == (0, "there is nothing to do\n", "")
    status, out, _ = hudi_locks("compact", table.storage.base, "--abort", planned["instant"])
    assert (status, out) == (0, f"compaction {planned['instant']}: state aborted\n")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--schedule", "--run", "1"], 2, "exclude each other"),
        (["--schedule", "-o", "hoodie.wirte.lock.provider=noop"], 2, "did you mean hoodie.write.lock.provider"),
    ],
)
def test_what_cannot_be_done_is_said(
    hudi_locks: Command, table: Table, words: list[str], status: int, message: str
) -> None:
    found, _, err = hudi_locks("compact", table.storage.base, *words)
    assert found == status
    assert message in err


def test_a_copy_on_write_table_is_refused(hudi_locks: Command, tmp_path: Path) -> None:
    plain = Table.create(LocalStorage(str(tmp_path / "plain")), TableConfig("t", ("id",)))
    status, _, err = hudi_locks("compact", plain.storage.base, "--schedule")
    assert status == 1
    assert "copy-on-write table, which has no logs" in err
