"""Columns of every type in logs and base files: JVM Hudi's as we show them, and ours as it shows them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from catalog_dumps import Metastore
from every_type import FROM_AVRO, FROM_SPARK, avro_row, avro_schema_of, spark_query
from hudi_locks_conformance.servers import LocalServer
from other_readers import DEADLINE_S, OURS

from hudi_locks.catalog import CatalogSync
from hudi_locks.config import Options
from hudi_locks.errors import UnsupportedTable
from hudi_locks.spark import HoodieTable
from hudi_locks.table import Table

pytestmark = pytest.mark.interop

Create = Callable[..., HoodieTable]
BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.bucket.index.hash.field": "id",
}
THEIRS = {
    **BUCKETS,
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.compact.inline": "false",
}
FORMS = ["avro", pytest.param("parquet", marks=pytest.mark.nightly)]
WRONG_IN_102 = {"millis", "local", "local_millis", "mapped", "fixed", "again", "price"}
"""Bundle 1.0.2 shows these times as others, or as numbers, and cannot read such bytes in logs."""

WRONG_IN_RUST = {"maps"}
"""hudi-rs 0.5.0 takes the zones "UTC" and "+00:00" of times in maps in lists for two types."""


def show(jvm: Any, path: str, columns: Any) -> list[Any]:
    shown = [f"to_json(struct(id, ts, {','.join(columns)}))", *(f"typeof({name})" for name in columns)]
    return sorted(jvm.ask("read", path=path, options={}, columns=shown).result(DEADLINE_S))


def show_ours(spark: Any, path: str, columns: Any) -> list[Any]:
    shown = [f"to_json(struct(id, ts, {','.join(columns)}))", *(f"typeof({name})" for name in columns)]
    return sorted(list(row) for row in HoodieTable.load(spark, path).read().selectExpr(*shown).collect())


@pytest.mark.parametrize("timestamps", ["false", "true"])
def test_a_catalog_is_told_the_types_that_the_jvm_tells(
    jvm: Any, create: Create, path: str, hive_metastore: LocalServer, timestamps: str
) -> None:
    if jvm.version != "1.2.0":
        pytest.skip("unsupported: older bundles tell some of these types otherwise, or fail at them")
    plain = {"hoodie.datasource.write.hive_style_partitioning": "false"}
    table = create(table_type="MERGE_ON_READ", options={**BUCKETS, **plain})
    given = {"rows": [avro_row("a", 1, FROM_AVRO)], "schema": avro_schema_of(FROM_AVRO), "options": THEIRS | plain}
    jvm.ask("write_avro", path=path, **given).result(DEADLINE_S)
    uris = hive_metastore.options["hoodie.write.lock.hivemetastore.uris"]
    told = {
        "hoodie.datasource.hive_sync.enable": "true",
        "hoodie.datasource.hive_sync.mode": "hms",
        "hoodie.datasource.hive_sync.metastore.uris": uris,
        "hoodie.datasource.hive_sync.support_timestamp": timestamps,
        "hoodie.datasource.hive_sync.partition_fields": "region",
        "hoodie.datasource.hive_sync.table": "t",
    }
    theirs, ours = (f"types_{who}_{uuid.uuid4().hex[:12]}" for who in ("theirs", "ours"))
    database = "hoodie.datasource.hive_sync.database"
    jvm.ask("sync", path=path, options={**told, database: theirs}).result(DEADLINE_S)
    [sync] = CatalogSync.of(Options({**told, database: ours}), Table.load(table.table.storage))
    sync.run()
    dumps = [Metastore(uris).dump(name, "t_rt") for name in (ours, theirs)]
    assert dumps[0]["store"] == dumps[1]["store"]
    assert dumps[0]["schema"] == dumps[1]["schema"]


@pytest.mark.parametrize("form", FORMS)
def test_logs_of_the_jvm_are_read_as_the_jvm_reads_them(spark: Any, jvm: Any, path: str, form: str) -> None:
    """The first write makes a base file, the others logs: a newer row, a new one, and one that is null."""
    options = {
        **THEIRS, "hoodie.write.table.version": str(jvm.table_version), "hoodie.logfile.data.block.format": form,
    }  # fmt: skip
    others = f"{spark_query('b', 1)} union all {spark_query('n', 1, with_values=False)}"
    for query in (spark_query("a", 1), spark_query("a", 2), others):
        jvm.ask("write_query", path=path, query=query, options=options).result(DEADLINE_S)
    found = show_ours(spark, path, FROM_SPARK)
    assert len(found) == 3
    assert found == show(jvm, path, FROM_SPARK)


def test_logs_with_types_of_streamers_are_read_as_the_jvm_reads_them(
    spark: Any, jvm: Any, create: Create, path: str
) -> None:
    create(table_type="MERGE_ON_READ", options=BUCKETS)
    columns = [name for name in FROM_AVRO if jvm.version != "1.0.2" or name not in WRONG_IN_102]
    options = {**THEIRS, "hoodie.datasource.write.hive_style_partitioning": "true"}
    for key, ts in [("a", 1), ("b", 1), ("a", 2)]:
        given = {"rows": [avro_row(key, ts, columns)], "schema": avro_schema_of(columns), "options": options}
        jvm.ask("write_avro", path=path, **given).result(DEADLINE_S)
    found = show_ours(spark, path, columns)
    assert len(found) == 2
    assert found == show(jvm, path, columns)


@pytest.mark.parametrize("form", FORMS)
def test_our_logs_are_read_by_the_jvm_and_by_hudi_rs(
    spark: Any, jvm: Any, create: Create, path: str, form: str
) -> None:
    from hudi import HudiReadOptions, HudiTableBuilder

    table = create(table_type="MERGE_ON_READ", options={**OURS, **BUCKETS, "hoodie.logfile.data.block.format": form})
    columns = [name for name in FROM_SPARK if name not in WRONG_IN_RUST]
    for key, ts, with_values in [("a", 1, True), ("a", 2, True), ("n", 1, False)]:
        table.upsert(spark.sql(spark_query(key, ts, with_values=with_values, without=WRONG_IN_RUST)))
    found = show_ours(spark, path, columns)
    assert len(found) == 2
    assert found == show(jvm, path, columns)
    batches = HudiTableBuilder.from_base_uri(path).build().read(HudiReadOptions())
    shown = ["id", "pairs", "nested", "lists"]
    rust = [row for batch in batches for row in pa.record_batch(batch).select(shown).to_pylist()]
    by_key = {row["id"]: row for row in rust}
    assert by_key["n"] == {"id": "n", "pairs": None, "nested": None, "lists": None}
    nested = {"x": 1, "y": {"m": [("b", b"\x01\x02")], "d": Decimal("1.23")}}
    lists = [("a", [[("b", date(2020, 1, 1))]])]
    assert by_key["a"] == {"id": "a", "pairs": [("a", 1), ("b", None)], "nested": nested, "lists": lists}


def test_types_that_spark_lacks_are_refused_before_the_first_row(
    spark: Any, jvm: Any, create: Create, path: str
) -> None:
    """The JVM's reader fails in the middle: Illegal Parquet type."""
    table = create(table_type="MERGE_ON_READ", options=BUCKETS)
    time = {"name": "clock", "type": {"type": "long", "logicalType": "time-micros"}}
    fields = [{"name": name, "type": "string"} for name in ("id", "region")]
    schema = {"type": "record", "name": "R", "fields": [*fields, {"name": "ts", "type": "long"}, time]}
    options = {**THEIRS, "hoodie.datasource.write.hive_style_partitioning": "true"}
    row = {"id": "a", "region": "r", "ts": 1, "clock": 5}
    given = {"rows": [repr(row).replace("'", '"')], "schema": repr(schema).replace("'", '"'), "options": options}
    jvm.ask("write_avro", path=path, **given).result(DEADLINE_S)
    with pytest.raises(UnsupportedTable, match=r"column 'clock' is of type time64\[us\].*read the others"):
        table.read()
    assert [tuple(row) for row in table.read(columns=["id", "ts"], meta_columns=False).collect()] == [("a", 1)]
