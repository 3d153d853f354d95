"""Why tables with a metadata table are refused: what readers that go by it see of a writer that does not keep it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import UnsupportedTable
from hudi_locks.spark import HoodieTable
from hudi_locks.table import table as tables

pytestmark = pytest.mark.interop

Row = tuple[str, str, int, float, str]
SCHEMA = "id string, region string, ts long, value double, label string"
FIRST: list[Row] = [("a", "eu", 1, 1.0, "theirs"), ("b", "eu", 1, 1.0, "theirs")]
SECOND: list[Row] = [("c", "us", 1, 1.0, "ours")]
WITH_IT, WITHOUT_IT = {"hoodie__metadata__enable": "true"}, {"hoodie__metadata__enable": "false"}


@pytest.fixture
def theirs(spark: Any, jvm: Any, path: str) -> HoodieTable:
    """A table that the JVM made with its defaults, metadata table and all."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.metadata.enable": "true",
        "hoodie.write.table.version": str(jvm.table_version),
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    rows = [list(row) for row in FIRST]
    jvm.ask("write", path=path, rows=rows, schema=SCHEMA, options=options, gate="").result(240)
    return HoodieTable.load(spark, path)


def turn_off(path: str) -> None:
    """The three steps that the refusal names."""
    shutil.rmtree(Path(path, ".hoodie/metadata"))
    properties = Path(path, ".hoodie/hoodie.properties")
    kept = [line for line in properties.read_text().splitlines() if "metadata.partitions" not in line]
    properties.write_text("\n".join([*kept, "hoodie.metadata.enable=false", ""]))
    Path(path, ".hoodie/.hoodie.properties.crc").unlink(missing_ok=True)


def test_readers_that_ask_for_a_metadata_table_see_our_commits_in_tables_of_ours(
    jvm: Any, create: Callable[..., HoodieTable], frame: Callable[..., Any]
) -> None:
    table = create()
    table.upsert(frame(FIRST))
    table.upsert(frame(SECOND))
    assert jvm.read(table, **WITH_IT) == jvm.read(table, **WITHOUT_IT) == FIRST + SECOND


def test_a_commit_that_the_metadata_table_does_not_know_would_be_invisible_and_is_refused(
    spark: Any, jvm: Any, theirs: HoodieTable, frame: Callable[..., Any], rust: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnsupportedTable, match=r"delete \.hoodie/metadata") as caught:
        theirs.upsert(frame(SECOND))
    assert caught.value.key == "hoodie.table.metadata.partitions"
    with monkeypatch.context() as unchecked:
        unchecked.setattr(tables, "check_writable", lambda *_: None)
        assert theirs.upsert(frame(SECOND)).rows_inserted == 1
    assert jvm.read(theirs, **WITH_IT) == FIRST
    assert rust(theirs) == FIRST
    turn_off(theirs.path)
    ours = HoodieTable.load(spark, theirs.path)
    assert ours.upsert(frame([("d", "us", 1, 1.0, "ours")])).rows_inserted == 1
    expected = [*FIRST, *SECOND, ("d", "us", 1, 1.0, "ours")]
    assert jvm.read(ours, **WITH_IT) == jvm.read(ours, **WITHOUT_IT) == rust(ours) == expected
