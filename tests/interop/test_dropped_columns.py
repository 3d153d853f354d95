"""Tables whose files lack the partition columns: JVM Hudi and this package write them in turns, and show them alike."""

from __future__ import annotations

from typing import Any

import pytest
from other_readers import DEADLINE_S, OURS, SCHEMA, THEIRS, Jvm

from hudi_locks.spark import HoodieTable, write
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop

WRITE = "hoodie.datasource.write."
SHOWN = ("id", "cast(ts as string)", "value", "region", "label")
KINDS = {
    "one": {WRITE + "partitionpath.field": "region"},
    "two": {WRITE + "partitionpath.field": "region,ts", WRITE + "precombine.field": "value"},
    "hive": {
        WRITE + "partitionpath.field": "region",
        WRITE + "hive_style_partitioning": "true",
        WRITE + "partitionpath.urlencode": "true",
    },
}
Rows = list[tuple[Any, ...]]


@pytest.mark.parametrize("kind", KINDS)
def test_both_write_in_turns(spark: Any, jvm: Jvm, path: str, kind: str) -> None:
    options = {
        **THEIRS,
        "hoodie.table.name": "t",
        "hoodie.write.table.version": str(jvm.table_version),
        "hoodie.metadata.enable": "true",
        WRITE + "recordkey.field": "id",
        WRITE + "precombine.field": "ts",
        WRITE + "drop.partition.columns": "true",
        **KINDS[kind],
    }

    def theirs(rows: Rows, operation: str = "upsert") -> None:
        given = {**options, WRITE + "operation": operation}
        listed = [list(row) for row in rows]
        jvm.ask("write", path=path, rows=listed, schema=SCHEMA, options=given, gate="").result(DEADLINE_S)

    def ours(rows: Rows, operation: str = "upsert") -> None:
        given = {**options, **OURS, WRITE + "operation": operation}
        write(spark.createDataFrame(rows, SCHEMA).coalesce(1), path, given, mode="append")

    def read() -> Rows:
        found = HoodieTable.load(spark, path).read().selectExpr(*SHOWN)
        rows = sorted((tuple(row) for row in found.collect()), key=repr)
        for told in ("true", "false"):
            asked = {"path": path, "options": {"hoodie.metadata.enable": told}, "columns": list(SHOWN)}
            assert sorted(map(tuple, jvm.ask("read", **asked).result(DEADLINE_S)), key=repr) == rows
        assert verify_table(HoodieTable.load(spark, path).table.storage).damages == ()
        return rows

    theirs([("a", "x y", 1, 1.0, "old"), ("b", "z", 1, 1.0, "old"), ("c", None, 1, 1.0, "old")])
    assert [row[3] for row in read()] == ["x y", "z", None]
    ours([("a", "x y", 1, 2.0, "ours"), ("d", "w", 1, 2.0, "ours"), ("e", None, 1, 2.0, "ours")])
    theirs([("b", "z", 1, 3.0, "theirs"), ("d", "w", 1, 3.0, "theirs")])
    ours([("c", None, 1, 9.0, "")], "delete")
    assert read() == [
        ("a", "1", 2.0, "x y", "ours"),
        ("b", "1", 3.0, "z", "theirs"),
        ("d", "1", 3.0, "w", "theirs"),
        ("e", "1", 2.0, None, "ours"),
    ]
    ours([("f", "z", 1, 4.0, "ours")], "insert_overwrite")
    theirs([("f", "z", 1, 5.0, "theirs"), ("g", "z", 1, 5.0, "theirs")])
    assert [(row[0], row[2]) for row in read()] == [("a", 2.0), ("d", 3.0), ("e", 2.0), ("f", 5.0), ("g", 5.0)]
