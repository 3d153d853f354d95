"""A Hive Metastore after our writes has what JVM Hudi's sync would have put there, and Spark reads by it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from catalog_dumps import Metastore
from every_type import spark_query
from hudi_locks_conformance.servers import LocalServer, ServerUnavailable
from other_readers import ONE_CLOCK, Jvm

from hudi_locks.catalog import CatalogSync
from hudi_locks.config import Options
from hudi_locks.spark import HoodieTable, write
from hudi_locks.table import Table

pytestmark = pytest.mark.interop

TABLE = {
    **ONE_CLOCK,
    "hoodie.table.name": "Trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
}
SCHEMA = "id string, region string, ts long"
KINDS: dict[str, dict[str, str]] = {
    "copy on write": {},
    "hive style, escaped": {
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    },
    "no partitions": {"hoodie.datasource.write.partitionpath.field": ""},
    "two partition columns": {"hoodie.datasource.write.partitionpath.field": "region,ts"},
    "merge on read": {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "read optimized alone": {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.hive_sync.table.strategy": "RO",
    },
    "with logs alone": {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.hive_sync.table.strategy": "RT",
    },
    "without a plain name": {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.meta.sync.sync_snapshot_with_table_name": "false",
        "hoodie.datasource.hive_sync.skip_ro_suffix": "true",
    },
    "as owners tell it": {
        "hoodie.datasource.hive_sync.omit_metadata_fields": "true",
        "hoodie.datasource.hive_sync.sync_as_datasource": "false",
        "hoodie.datasource.hive_sync.support_timestamp": "true",
        "hoodie.datasource.hive_sync.table_properties": "team=data\nowner = us",
        "hoodie.datasource.hive_sync.serde_properties": "a=b",
        "hoodie.datasource.hive_sync.partition_fields": "country",
        "hoodie.datasource.hive_sync.table": "Other",
        "hoodie.datasource.hive_sync.schema_string_length_thresh": "300",
    },
}


@pytest.fixture
def metastore(hive_metastore: LocalServer) -> str:
    return hive_metastore.options["hoodie.write.lock.hivemetastore.uris"]


def ask_for(uris: str, database: str) -> dict[str, str]:
    return {
        "hoodie.datasource.hive_sync.enable": "true",
        "hoodie.datasource.hive_sync.mode": "hms",
        "hoodie.datasource.hive_sync.metastore.uris": uris,
        "hoodie.datasource.hive_sync.database": database,
    }


@pytest.fixture
def database() -> str:
    """A name of its own for each test."""
    return f"lake_{uuid.uuid4().hex[:12]}"


def sync(table: HoodieTable, options: dict[str, str]) -> tuple[str, ...]:
    """As a job of its own."""
    [found] = CatalogSync.of(Options(options), Table.load(table.table.storage))
    return found.run().tables


@pytest.mark.parametrize(
    "kind",
    [
        "copy on write",
        "merge on read",
        "as owners tell it",
        *(pytest.param(kind, marks=pytest.mark.nightly) for kind in [*KINDS][1:-1] if kind != "merge on read"),
    ],
)
def test_the_metastore_has_what_the_sync_of_the_jvm_puts_there(
    spark: Any, jvm: Jvm, path: str, metastore: str, database: str, kind: str
) -> None:
    told = {**TABLE, "hoodie.write.table.version": str(jvm.table_version), **KINDS[kind]}
    theirs, ours = f"{database}_theirs", f"{database}_ours"
    look = Metastore(metastore)

    def compare() -> list[str]:
        sync(HoodieTable.load(spark, path), {**told, **ask_for(metastore, ours)})
        names = look.list_tables(theirs)
        assert look.list_tables(ours) == names
        for name in names:
            dumps = [look.dump(database, name) for database in (ours, theirs)]
            assert forgive(jvm, dumps[0]) == forgive(jvm, dumps[1]), name
        return names

    options = {**told, **ask_for(metastore, theirs)}
    jvm.ask("write_query", path=path, query=spark_query("a", 1), options=options).result(600)
    assert compare()
    more = spark_query("b", 2).replace("'r' region", "'s t' region") + ", cast(null as string) more"
    jvm.ask("write_query", path=path, query=more, options=options).result(600)
    compare()


def forgive(jvm: Jvm, dump: Mapping[str, Any]) -> Mapping[str, Any]:
    """What must be equal.

    Where Spark is told nothing, partitions that the JVM adds as it makes the table lack its path, and later ones have
    it. Older bundles tell Spark that elements of each array may be null.
    """
    if not dump["schema"]:
        return {**dump, "partitions": {values: {**store, "serde": ""} for values, store in dump["partitions"].items()}}
    if jvm.version == "1.2.0":
        return dump
    return {
        **dump,
        "schema": json.loads(json.dumps(dump["schema"]).replace('"containsNull": false', '"containsNull": true')),
    }


@pytest.mark.parametrize("kind", [pytest.param("COPY_ON_WRITE", marks=pytest.mark.nightly), "MERGE_ON_READ"])
def test_spark_reads_by_what_writers_of_both_kinds_told(
    spark: Any, jvm_on_hive: tuple[Jvm, str], path: str, database: str, kind: str
) -> None:
    jvm, uris = jvm_on_hive
    options = {**TABLE, **ask_for(uris, database), "hoodie.write.table.version": "9"}
    options |= {"hoodie.datasource.write.table.type": kind, "hoodie.datasource.write.hive_style_partitioning": "true"}

    def theirs(*rows: tuple[str, str, int]) -> None:
        jvm.ask("write", path=path, rows=[list(row) for row in rows], schema=SCHEMA, options=options, gate="").result(
            240
        )

    def seen(where: str = "true") -> list[list[Any]]:
        jvm.ask("sql", statement=f"refresh table {database}.trips").result(600)
        found = jvm.ask("sql", statement=f"select id, region, ts from {database}.trips where {where} order by id")
        return list(found.result(600))

    theirs(("a", "eu", 1), ("b", "us", 1))
    result = write(spark.createDataFrame([("a", "eu", 2), ("c", "new", 1)], SCHEMA), path, options, "append")
    assert result is not None
    assert result.warnings == ()
    assert seen() == [["a", "eu", 2], ["b", "us", 1], ["c", "new", 1]]
    assert seen("region = 'new'") == [["c", "new", 1]]
    theirs(("d", "last", 1))
    with HoodieTable.load(spark, path, options=options) as table:
        table.delete_partitions(["region=us"])
    told = Metastore(uris).dump(database, "trips")
    assert sorted(told["partitions"]) == [("eu",), ("last",), ("new",)]
    sync(HoodieTable.load(spark, path), {**options, **ask_for(uris, f"{database}_anew")})
    assert Metastore(uris).dump(f"{database}_anew", "trips")["partitions"] == told["partitions"]
    assert seen() == [["a", "eu", 2], ["c", "new", 1], ["d", "last", 1]]


@pytest.fixture(scope="module")
def jvm_on_hive(hive_metastore: LocalServer) -> Iterator[tuple[Jvm, str]]:
    """JVM Hudi with the metastore as Spark's catalog."""
    uris = hive_metastore.options["hoodie.write.lock.hivemetastore.uris"]
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": uris,
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }
    try:
        agent = Jvm("1.2.0", 9, settings)
    except ServerUnavailable as error:
        pytest.skip(str(error))
    yield agent, uris
    agent.close()


@pytest.fixture
def rows(spark: Any) -> Any:
    return spark.createDataFrame([("a", "eu", 1)], SCHEMA)


def test_a_catalog_that_cannot_be_reached_is_a_warning_and_the_write_is_there(spark: Any, path: str, rows: Any) -> None:
    result = write(rows, path, {**TABLE, **ask_for("thrift://127.0.0.1:1", "lake")}, "append")
    assert result is not None
    assert [text for text in result.warnings if "no metastore can be reached: thrift://127.0.0.1:1" in text]
    assert HoodieTable.load(spark, path).read().count() == 1


def test_a_table_of_another_place_is_left_alone(
    spark: Any, path: str, rows: Any, metastore: str, database: str
) -> None:
    options = {**TABLE, **ask_for(metastore, database)}
    write(rows, path, options, "append")
    before = Metastore(metastore).dump(database, "trips")
    result = write(rows, f"{path}_other", options, "append")
    assert result is not None
    assert [text for text in result.warnings if path in text and "hoodie.datasource.hive_sync.table" in text]
    assert Metastore(metastore).dump(database, "trips") == before


def test_a_database_is_not_made_where_the_owner_says_so(path: str, rows: Any, metastore: str, database: str) -> None:
    options = {**TABLE, **ask_for(metastore, database), "hoodie.datasource.hive_sync.auto_create_database": "false"}
    result = write(rows, path, options, "append")
    assert result is not None
    assert [text for text in result.warnings if f"there is no database {database}" in text]


def test_a_catalog_is_left_alone_while_nothing_changes_if_asked(
    spark: Any, path: str, metastore: str, database: str
) -> None:
    options = {**TABLE, **ask_for(metastore, database), "hoodie.datasource.meta_sync.condition.sync": "true"}
    options |= {"hoodie.datasource.write.partitionpath.field": "", "hoodie.datasource.hive_sync.batch_num": "1"}
    write(spark.createDataFrame([("a", "eu", 1)], SCHEMA), path, options, "append")
    before = Metastore(metastore).dump(database, "trips")
    write(spark.createDataFrame([("b", "eu", 1)], SCHEMA), path, options, "append")
    assert Metastore(metastore).dump(database, "trips") == before
    write(spark.createDataFrame([("c", "eu", 1, 2)], f"{SCHEMA}, more int"), path, options, "append")
    assert Metastore(metastore).dump(database, "trips")["store"]["columns"][-1] == ("more", "int", "")


def test_all_partitions_are_compared_if_asked(spark: Any, path: str, metastore: str, database: str) -> None:
    """Those that are missing come, and those that no folder has go."""
    options = {**TABLE, **ask_for(metastore, database), "hoodie.meta.sync.incremental": "false"}
    options |= {"hoodie.datasource.hive_sync.batch_num": "1"}
    look = Metastore(metastore)
    made = [(f"k{number}", f"r{number}", 1) for number in range(3)]
    write(spark.createDataFrame(made, SCHEMA), path, options, "append")
    look.rename_partition(database, "trips", ("r0",), ("gone",))
    write(spark.createDataFrame([("a", "r1", 2)], SCHEMA), path, options, "append")
    assert sorted(look.dump(database, "trips")["partitions"]) == [("r0",), ("r1",), ("r2",)]
