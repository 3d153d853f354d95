"""Tables that Hudi's schema on read changed: they are read as JVM Hudi reads them, and not written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from other_readers import OURS

from hudi_locks.errors import UnsupportedTable
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop

WIDENED = "id string, ts bigint, x bigint, later string"
DROPS = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop"


@pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"])
def test_a_changed_type_is_read_and_not_written(spark: Any, jvm: Any, path: str) -> None:
    jvm.sql("set hoodie.metadata.enable=false")
    jvm.sql("set hoodie.schema.on.read.enable=true")
    try:
        jvm.sql(
            f"create table altered (id string, ts bigint, x int) using hudi location '{path}' "
            "tblproperties (primaryKey = 'id', preCombineField = 'ts')"
        )
        jvm.sql("insert into altered values ('a', 1, 7)")
        jvm.sql("alter table altered add columns (later string)")
        rows = HoodieTable.load(spark, path).read(meta_columns=False).collect()
        assert [tuple(row) for row in rows] == [("a", 1, 7, None)]
        jvm.sql("alter table altered alter column x type bigint")
        rows = HoodieTable.load(spark, path).read(meta_columns=False).collect()
        assert [tuple(row) for row in rows] == [("a", 1, 7, None)]
        with pytest.raises(UnsupportedTable, match="x was int and is long"):
            HoodieTable.load(spark, path, options=OURS).upsert(spark.createDataFrame([("a", 2, 8, "b")], WIDENED))
        assert jvm.sql("select x from altered") == [[7]]
    finally:
        jvm.sql("set hoodie.schema.on.read.enable=false")
        jvm.sql("reset hoodie.metadata.enable")  # of the session, which other tests share
        jvm.sql("drop table if exists altered")


@pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"])
def test_a_column_that_is_renamed_while_we_write_is_not_emptied(
    spark: Any, jvm: Any, path: str, after_job: Callable[..., None]
) -> None:
    for setting in ("hoodie.metadata.enable=false", "hoodie.schema.on.read.enable=true", f"{DROPS}=true"):
        jvm.sql(f"set {setting}")
    try:
        jvm.sql(
            f"create table renamed (id string, ts bigint, x string) using hudi location '{path}' "
            "tblproperties (primaryKey = 'id', preCombineField = 'ts')"
        )
        jvm.sql("insert into renamed values ('a', 1, 'x1'), ('b', 1, 'x2')")
        ours = HoodieTable.load(spark, path, options=OURS)
        ours.upsert(spark.createDataFrame([("a", 2, "x3")], "id string, ts bigint, x string"))
        after_job(lambda: jvm.sql("alter table renamed rename column x to y"))
        for columns in ("id string, ts bigint, x string", "id string, ts bigint, y string"):
            with pytest.raises(UnsupportedTable, match="x was renamed to y"):
                ours.upsert(spark.createDataFrame([("a", 3, "later")], columns))
        with pytest.raises(UnsupportedTable, match="x was renamed to y"):
            ours.clustering.run()
        assert sorted(map(tuple, jvm.sql("select id, y from renamed"))) == [("a", "x3"), ("b", "x2")]
    finally:
        for setting in ("hoodie.schema.on.read.enable", DROPS, "hoodie.metadata.enable"):
            jvm.sql(f"reset {setting}")
        jvm.sql("drop table if exists renamed")


ALTERED = (
    "alter table {name} rename column y to z",
    "alter table {name} alter column x type bigint",
    "alter table {name} drop column d",
    "alter table {name} add columns (d string)",
)
SHOWN = ("id", "ts", "x", "z", "d")


@pytest.mark.parametrize(
    "jvm", [pytest.param(("1.0.2", 8), marks=pytest.mark.nightly), ("1.2.0", 9)], indirect=True, ids=["1.0.2", "1.2.0"]
)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_columns_that_were_renamed_retyped_and_added_anew_are_read(spark: Any, jvm: Any, path: str, kind: str) -> None:
    name = f"altered_{kind}"
    for setting in ("hoodie.metadata.enable=false", "hoodie.schema.on.read.enable=true", f"{DROPS}=true"):
        jvm.sql(f"set {setting}")
    try:
        jvm.sql(
            f"create table {name} (id string, ts bigint, x int, y string, d string) using hudi location '{path}' "
            f"tblproperties (primaryKey = 'id', preCombineField = 'ts', type = '{kind}')"
        )
        jvm.sql(f"insert into {name} values ('a', 1, 7, 'ya', 'da'), ('b', 1, 8, 'yb', 'db'), ('c', 1, 9, 'yc', null)")
        jvm.sql(f"update {name} set x = 80, ts = 2 where id = 'b'")
        for statement in ALTERED:
            jvm.sql(statement.format(name=name))
        assert_equal(spark, jvm, path, name)
        jvm.sql(f"update {name} set z = 'new', d = 'new', ts = 3 where id = 'a'")
        jvm.sql(f"insert into {name} values ('e', 1, 5000000000, 'ze', 'de')")
        assert_equal(spark, jvm, path, name)
        table = HoodieTable.load(spark, path)
        assert sorted(row.id for row in table.read(columns=["id"], where="d is null").collect()) == ["b", "c"]
        assert [row.z for row in table.read(columns=["z"], where="x > 80").collect()] == ["ze"]
        for ask in (table.incremental, table.change_data):
            with pytest.raises(UnsupportedTable, match="y was renamed to z"):
                ask("0")
    finally:
        for setting in ("hoodie.schema.on.read.enable", DROPS, "hoodie.metadata.enable"):
            jvm.sql(f"reset {setting}")
        jvm.sql(f"drop table if exists {name}")


def assert_equal(spark: Any, jvm: Any, path: str, name: str) -> None:
    """Whether we read what JVM Hudi reads."""
    found = [tuple(row) for row in HoodieTable.load(spark, path).read().select(*SHOWN).collect()]
    assert sorted(found) == sorted(map(tuple, jvm.sql(f"select {', '.join(SHOWN)} from {name}")))
