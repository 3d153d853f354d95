"""Upgrade and downgrade from the command line, on a folder of this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_locks.format import BaseFileName, CommitMetadata, WriteStat
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig
from hudi_locks.transaction import Transactions

Run = Callable[..., tuple[int, str, str]]
LOCK = ("-o", "hoodie.write.lock.provider=filesystem")


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table of version 6 with one commit."""
    extra = {"hudi_locks.foreign_writers": "false"}
    table = Table.create(open_storage(str(tmp_path / "table")), TableConfig("t", ("id",), (), version=6, extra=extra))
    table.storage.create_if_absent(".hoodie_partition_metadata", b"")
    tx = Transactions(table, None).begin("commit", "UPSERT")
    name = str(BaseFileName("g-0", tx.instant))
    table.storage.replace(name, b"rows")
    assert tx.publish(CommitMetadata.of([WriteStat("", "g-0", name)], "UPSERT", schema="{}")).is_committed
    return str(tmp_path / "table")


def test_an_upgrade_says_what_it_did_and_what_to_do_next(hudi_locks: Run, path: str) -> None:
    status, told, _ = hudi_locks("upgrade", path, *LOCK)
    assert status == 0
    assert "version 6 became 9; rows are merged by COMMIT_TIME_ORDERING" in told
    assert "1 instants of its timeline and 0 archived ones were brought over" in told
    assert "start its writers anew" in told
    assert Table.load(open_storage(path)).config.version == 9
    assert "it is of version 9 already" in hudi_locks("upgrade", path, *LOCK)[1]
    [*_, entry] = json.loads(hudi_locks("audit", "ls", path, "--json")[1])
    assert (entry["decision"], entry["action"]) == ("VERSION", "version 6 to 9")
    assert entry["fencing_token"], "that of the lock under which it was decided"
    assert "legacy.payload.class" not in hudi_locks("verify", path)[1], "a key that Hudi knows"


def test_a_downgrade_says_the_same(hudi_locks: Run, path: str) -> None:
    hudi_locks("upgrade", path, "--to", "9", *LOCK)
    found = json.loads(hudi_locks("downgrade", path, "--to", "6", *LOCK, "--json")[1])
    assert (found["before"], found["after"], found["instants"], found["made"]) == (9, 6, 1, [])
    assert len(Table.load(open_storage(path)).timeline().completed()) == 1


def test_the_wrong_direction_is_refused_with_the_command_for_the_other(hudi_locks: Run, path: str) -> None:
    status, _, told = hudi_locks("downgrade", path, "--to", "8", *LOCK)
    assert status == 2
    assert f"of version 6, and 8 is a later one: hudi-locks upgrade {path} --to 8" in told
    status, _, told = hudi_locks("upgrade", path, "--to", "7", *LOCK)
    assert status == 2
    assert "table version 7 is none of 6, 8, 9" in told
