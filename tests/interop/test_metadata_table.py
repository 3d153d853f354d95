"""Tables with a metadata table: it is read and verified, and our commits show in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from every_type import spark_query

from hudi_locks.format import METADATA_FOLDER, MetadataPartition
from hudi_locks.metadata_table import MetadataTable, describe_range, read_ranges
from hudi_locks.services import drop_metadata_table
from hudi_locks.spark import HoodieTable
from hudi_locks.table import list_base_files, list_data_files, list_partitions
from hudi_locks.transaction.context import TableContext
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop

Row = tuple[str, str, int, float, str]
SCHEMA = "id string, region string, ts long, value double, label string"
FIRST: list[Row] = [("a", "eu", 1, 1.0, "theirs"), ("b", "eu", 1, 1.0, "theirs")]
SECOND: list[Row] = [("c", "us", 1, 1.0, "ours")]
OWN_TIMELINE = f"{METADATA_FOLDER}/.hoodie/timeline"
WITH_IT, WITHOUT_IT = {"hoodie__metadata__enable": "true"}, {"hoodie__metadata__enable": "false"}


DEFAULTS = {
    "hoodie.table.name": "t",
    "hoodie.metadata.enable": "true",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}


def write_theirs(jvm: Any, path: str, rows: list[Row], **changes: str) -> None:
    given = {key.replace("__", "."): value for key, value in changes.items()}
    options = {**DEFAULTS, "hoodie.write.table.version": str(jvm.table_version), **given}
    told = {"rows": [list(row) for row in rows], "schema": SCHEMA, "options": options, "gate": ""}
    jvm.ask("write", path=path, **told).result(600)


@pytest.fixture
def theirs(spark: Any, jvm: Any, path: str) -> HoodieTable:
    """A table that the JVM made with its defaults, metadata table and all."""
    write_theirs(jvm, path, FIRST)
    return HoodieTable.load(spark, path)


def test_readers_that_ask_for_a_metadata_table_see_our_commits_in_tables_of_ours(
    jvm: Any, create: Callable[..., HoodieTable], frame: Callable[..., Any]
) -> None:
    table = create()
    table.upsert(frame(FIRST))
    table.upsert(frame(SECOND))
    assert jvm.read(table, **WITH_IT) == jvm.read(table, **WITHOUT_IT) == FIRST + SECOND


def test_a_commit_that_the_metadata_table_does_not_know_would_be_invisible(
    spark: Any, jvm: Any, theirs: HoodieTable, frame: Callable[..., Any], rust: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a dropped one is to be gone for all."""
    with monkeypatch.context() as unaware:
        unaware.setattr(TableContext, "find_metadata_table", lambda _: None)
        assert theirs.upsert(frame(SECOND)).rows_inserted == 1
    assert jvm.read(theirs, **WITH_IT) == FIRST
    assert rust(theirs) == FIRST
    assert drop_metadata_table(theirs.path) == ("column_stats", "files", "partition_stats")
    ours = HoodieTable.load(spark, theirs.path)
    assert ours.upsert(frame([("d", "us", 1, 1.0, "ours")])).rows_inserted == 1
    expected = [*FIRST, *SECOND, ("d", "us", 1, 1.0, "ours")]
    assert jvm.read(ours, **WITH_IT) == jvm.read(ours, **WITHOUT_IT) == rust(ours) == expected


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_metadata_table_of_the_jvm_names_what_is_there_through_compactions_and_cleans(
    spark: Any, jvm: Any, path: str, table_type: str
) -> None:
    often = {
        "hoodie__metadata__compact__max__delta__commits": "3",
        "hoodie__clean__commits__retained": "1",
        "hoodie__datasource__write__table__type": table_type,
    }
    if table_type == "MERGE_ON_READ":
        often |= {"hoodie__compact__inline": "true", "hoodie__compact__inline__max__delta__commits": "2"}
    for ts in range(1, 7):
        rows = [("a", "eu", ts, float(ts), "theirs"), (f"n{ts}", f"r{ts % 3}", ts, 0.5, "theirs")]
        write_theirs(jvm, path, rows, **often)
    table = HoodieTable.load(spark, path).table
    metadata_table = MetadataTable.of(table.storage, table.config)
    assert metadata_table is not None
    told = metadata_table.view(table.timeline()).files
    files = list_data_files(table.storage, list_partitions(table.storage)).both
    named = {(partition, name, size) for partition, sizes in told.items() for name, size in sizes.items()}
    assert named == {(file.partition, file.path.rpartition("/")[2], file.size) for file in files}
    assert any(name.endswith(".hfile") for name in table.storage.list_names(".hoodie/metadata/files"))
    assert any(instant.action == "clean" for instant in table.timeline().completed())
    report = verify_table(table.storage)
    assert report.damages == ()
    assert report.checked["files in the metadata table"] == len(files)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_statistics_by_footers_are_those_of_the_jvm_for_every_type(
    spark: Any, jvm: Any, path: str, table_type: str
) -> None:
    options = {
        **DEFAULTS,
        "hoodie.write.table.version": str(jvm.table_version),
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.metadata.index.column.stats.max.columns.to.index": "100",
    }
    query = f"{spark_query('a', 1)} union all {spark_query('n', 1, with_values=False)}"
    jvm.ask("write_query", path=path, query=query, options=options).result(600)
    table = HoodieTable.load(spark, path).table
    metadata_table = MetadataTable.of(table.storage, table.config)
    assert metadata_table is not None
    records = metadata_table.view(table.timeline()).read(MetadataPartition.COLUMN_STATS).values()
    told = {record.statistics.column: record.statistics for record in records if record.statistics is not None}
    [file] = list_base_files(table.storage, list_partitions(table.storage))
    found = read_ranges(table.storage, file.path, list(told))
    name = file.path.rpartition("/")[2]
    assert len(told) == {8: 19, 9: 20}[jvm.table_version]
    assert told == {
        column: describe_range(found[column], column, file_name=name, version=jvm.table_version) for column in told
    }


def test_rows_that_the_jvm_hides_behind_its_range_of_a_column_with_nan_are_told(
    spark: Any, jvm: Any, path: str
) -> None:
    query = "select 'a' id, 'eu' region, 1L ts, cast('NaN' as double) value union all select 'b', 'eu', 1L, 2.0D"
    options = {**DEFAULTS, "hoodie.write.table.version": str(jvm.table_version)}
    jvm.ask("write_query", path=path, query=query, options=options).result(600)
    seen = {
        skipping: jvm.ask(
            "read",
            path=path,
            options={"hoodie.enable.data.skipping": skipping, "hoodie.metadata.enable": "true"},
            columns=["id"],
            where="value > 1",
        ).result(600)
        for skipping in ("true", "false")
    }
    assert sorted(seen["false"]) == [["a"], ["b"]]
    assert seen["true"] == []
    damages = verify_table(HoodieTable.load(spark, path).table.storage).damages
    whose = {damage.expected.removeprefix("a range of value in the statistics of ") for damage in damages}
    assert whose == {"the file that holds its values", "its partition that holds its values"}


def test_where_the_columns_with_statistics_changed_the_jvm_hides_rows_by_ranges_of_partitions_and_we_do_not(
    spark: Any, jvm: Any, path: str
) -> None:
    """Ranges of files are asked alone: those of a partition lack the files of which the column has none."""
    columns = "hoodie__metadata__index__column__stats__column__list"
    apart = {"hoodie__parquet__small__file__limit": "0", "hoodie__datasource__write__operation": "insert"}
    write_theirs(jvm, path, [("a", "eu", 1, 1.0, "theirs")], **{columns: "value"}, **apart)
    write_theirs(jvm, path, [("b", "eu", 100, 2.0, "theirs")], **{columns: "value,ts"}, **apart)
    table = HoodieTable.load(spark, path)
    where = "ts < 50"
    assert [row.id for row in table.read(where=where).collect()] == ["a"]
    told = {"path": path, "columns": ["id"], "where": where}
    found = [jvm.ask("read", **told, options={"hoodie.metadata.enable": it}).result(600) for it in ("true", "false")]
    assert found == [[], [["a"]]]
    report = verify_table(table.table.storage)
    assert [(one.kind, "partition" in one.expected) for one in report.damages] == [("metadata-table", True)]


def test_verification_tells_what_the_metadata_table_misses_and_names_in_vain(
    theirs: HoodieTable, frame: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as unaware:
        unaware.setattr(TableContext, "find_metadata_table", lambda _: None)
        theirs.upsert(frame(SECOND))
    [lost] = Path(theirs.path, "region=eu").glob("*.parquet")
    lost.unlink()
    [missed] = Path(theirs.path, "region=us").glob("*.parquet")
    damages = {
        (d.path, d.found.split(",")[0]) for d in verify_table(theirs.table.storage).damages if "metadata" in d.kind
    }
    assert damages == {(f"region=eu/{lost.name}", "no such file"), (f"region=us/{missed.name}", "no such name")}
