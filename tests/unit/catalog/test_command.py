"""`hudi-locks sync`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from json_checks import check_json
from memory_catalog import MemoryCatalog

from hudi_locks.cli import main
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table, TableConfig

MODE = "hoodie.datasource.hive_sync.mode"


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["sync", *words])
    return int(ended.value.code or 0)


def test_it_tells_a_catalog_and_says_what(
    golden: Callable[[str], LocalStorage], catalog: MemoryCatalog, capsys: pytest.CaptureFixture[str]
) -> None:
    storage = golden("v9_mor")
    name = Table.load(storage).config.name
    assert run(storage.base, "-o", "hoodie.datasource.hive_sync.database=lake") == 0
    told = f"lake.{name}_ro, lake.{name}_rt, lake.{name}"
    assert (
        capsys.readouterr().out == f"{told}: up to date; {len(catalog.partitions[name])} partitions told, 0 dropped\n"
    )
    assert run(storage.base, "-o", "hoodie.datasource.hive_sync.database=lake", "--json") == 0
    record = [{"tables": told.split(", "), "partitions_told": 0, "partitions_dropped": 0}]
    assert check_json(["sync"], capsys.readouterr().out) == record


def test_a_table_without_a_write_has_no_columns_to_tell(
    tmp_path: object, catalog: MemoryCatalog, capsys: pytest.CaptureFixture[str]
) -> None:
    Table.create(LocalStorage(f"{tmp_path}/t"), TableConfig("t", ("id",)))
    assert run(f"{tmp_path}/t") == 0
    assert "nothing was written to the table yet" in capsys.readouterr().out
    assert catalog.tables == {}


def test_another_way_to_ask_is_a_wrong_command_line(
    golden: Callable[[str], LocalStorage], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(golden("v9_cow").base, "-o", f"{MODE}=jdbc") == 2
    assert f"{MODE}=jdbc is not offered: " in capsys.readouterr().err


def test_a_catalog_that_cannot_be_reached_is_one_line(
    golden: Callable[[str], LocalStorage], capsys: pytest.CaptureFixture[str]
) -> None:
    uris = "hoodie.datasource.hive_sync.metastore.uris=thrift://127.0.0.1:1"
    assert run(golden("v9_cow").base, "-o", uris) == 1
    assert "no metastore can be reached: thrift://127.0.0.1:1" in capsys.readouterr().err.splitlines()[-1]
