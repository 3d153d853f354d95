"""Tables that Hudi's schema on read changed: they are read and written as JVM Hudi does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from other_readers import DEADLINE_S, OURS

from hudi_locks.errors import BadInput, WriteAborted, WriteConflict
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop

DROPS = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop"
ON_READ = ("hoodie.metadata.enable=false", "hoodie.schema.on.read.enable=true", f"{DROPS}=true")
IN_VERSION_6 = ("hoodie.write.table.version=6", "hoodie.write.auto.upgrade=false")
ROW_BY_ROW = "spark.sql.parquet.enableVectorizedReader=false"
"""Without it release 0.15.0 fails on what any writer wrote after ALTER TABLE, itself too."""


@pytest.fixture
def on_read(jvm: Any, path: str) -> Iterator[Any]:
    """The JVM with schema on read, in a session that other tests share."""
    is_oldest = jvm.version == "0.15.0"
    settings = (*ON_READ, *(IN_VERSION_6 * (jvm.table_version == 6)), *([ROW_BY_ROW] * is_oldest))
    for setting in settings:
        jvm.sql(f"set {setting}")
    yield jvm
    for setting in settings:
        jvm.sql(f"reset {setting.partition('=')[0]}")
    for name in ("altered", "renamed"):
        jvm.sql(f"drop table if exists {name}")
    if is_oldest:  # its session may keep the columns of one table for the next
        jvm.restart()
    assert f"hoodie.table.version={jvm.table_version}\n" in Path(path, ".hoodie/hoodie.properties").read_text()


@pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"])
def test_a_column_that_is_renamed_while_we_write_is_not_emptied(
    spark: Any, on_read: Any, path: str, after_job: Callable[..., None]
) -> None:
    on_read.sql(
        f"create table renamed (id string, ts bigint, x string) using hudi location '{path}' "
        "tblproperties (primaryKey = 'id', preCombineField = 'ts')"
    )
    on_read.sql("insert into renamed values ('a', 1, 'x1'), ('b', 1, 'x2')")
    ours = HoodieTable.load(spark, path, options=OURS)
    after_job(lambda: on_read.sql("alter table renamed rename column x to y"))
    with pytest.raises(WriteConflict, match="The columns of the table changed"):
        ours.upsert(spark.createDataFrame([("a", 2, "x3")], "id string, ts bigint, x string"))
    with pytest.raises(BadInput, match="column 'y' of the table is missing"):
        ours.upsert(spark.createDataFrame([("a", 3, "later")], "id string, ts bigint, x string"))
    ours.upsert(spark.createDataFrame([("a", 3, "later")], "id string, ts bigint, y string"))
    assert sorted(map(tuple, on_read.sql("select id, y from renamed"))) == [("a", "later"), ("b", "x2")]


COLUMNS = "id string, ts bigint, x bigint, z string, d string"
BUNDLES = [
    pytest.param(("0.15.0", 6), marks=pytest.mark.nightly, id="0.15.0-v6"),
    pytest.param(("1.2.0", 6), id="1.2.0-v6"),
    pytest.param(("1.0.2", 8), marks=pytest.mark.nightly, id="1.0.2-v8"),
    pytest.param(("1.2.0", 9), id="1.2.0-v9"),
]
ALTERED = (
    "alter table {name} rename column y to z",
    "alter table {name} alter column x type bigint",
    "alter table {name} drop column d",
    "alter table {name} add columns (d string)",
)
SHOWN = ("id", "ts", "x", "z", "d")


# Not release 0.15.0: a session of it keeps the columns of one table for the next after such reads.
@pytest.mark.parametrize("jvm", BUNDLES[1:], indirect=True)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_columns_that_were_renamed_retyped_and_added_anew_are_read(
    spark: Any, on_read: Any, path: str, kind: str
) -> None:
    make_altered(on_read, path, kind)
    assert_equal(spark, on_read, path)
    on_read.sql("update altered set z = 'new', d = 'new', ts = 3 where id = 'a'")
    on_read.sql("insert into altered values ('e', 1, 5000000000, 'ze', 'de')")
    assert_equal(spark, on_read, path)
    table = HoodieTable.load(spark, path)
    assert sorted(row.id for row in table.read(columns=["id"], where="d is null").collect()) == ["b", "c", "s"]
    assert [row.z for row in table.read(columns=["z"], where="x > 80").collect()] == ["ze"]
    for commit in table.table.timeline().completed(("commit", "deltacommit")):
        told = {"hoodie.schema.on.read.enable": "true", "as.of.instant": commit.requested}
        theirs = on_read.ask("read", path=path, options=told, columns=["*"]).result(DEADLINE_S)
        assert sorted(map(list, table.as_of(requested=commit.requested).collect())) == sorted(theirs)
    span = {"hoodie.schema.on.read.enable": "true", "hoodie.datasource.query.type": "incremental"}
    span["hoodie.datasource.read.begin.instanttime"] = "000"
    theirs = on_read.ask("read", path=path, options=span, columns=list(SHOWN)).result(DEADLINE_S)
    assert sorted(map(list, table.incremental("0").select(*SHOWN).collect()), key=repr) == sorted(theirs, key=repr)
    changed = table.change_data("0", meta_columns=False).select("op", "after.id", "after.z").collect()
    assert {("i", "a", "new"), ("i", "b", "yb")} <= set(map(tuple, changed))


def make_altered(jvm: Any, path: str, kind: str) -> None:
    make_plain(jvm, path, kind)
    alter(jvm)


def make_plain(jvm: Any, path: str, kind: str) -> None:
    """Rows in base files, and in logs of a merge-on-read table, from before their columns were changed."""
    first = [["a", 1, 7, "ya", "da"], ["b", 1, 8, "yb", "db"], ["c", 1, 9, "yc", None]]
    settings = {
        "hoodie.table.name": "altered",
        "hoodie.write.table.version": str(jvm.table_version),  # which CREATE TABLE passes over
        "hoodie.datasource.write.table.type": {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}[kind],
        "hoodie.datasource.write.operation": "insert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    columns = "id string, ts bigint, x int, y string, d string"
    jvm.ask("write", path=path, rows=first, schema=columns, options=settings, gate="").result(DEADLINE_S)
    jvm.sql(f"create table altered using hudi location '{path}'")
    jvm.sql("insert into altered values ('s', 1, 1, 'ys', 'ds')")
    jvm.sql("update altered set x = 80, ts = 2 where id = 'b'")


def alter(jvm: Any) -> None:
    for statement in ALTERED:
        jvm.sql(statement.format(name="altered"))


@pytest.mark.parametrize("jvm", BUNDLES, indirect=True)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_every_row_that_we_write_anew_keeps_its_renamed_columns(spark: Any, on_read: Any, path: str, kind: str) -> None:
    make_altered(on_read, path, kind)
    rows = {"a": (1, 7, "ya", None), "b": (2, 80, "yb", None), "c": (1, 9, "yc", None), "s": (1, 1, "ys", None)}

    def write(operation: str, **changed: tuple[Any, ...]) -> None:
        with HoodieTable.load(spark, path, options=OURS) as ours:
            frame = spark.createDataFrame([(key, *row) for key, row in changed.items()], COLUMNS)
            getattr(ours, operation)(frame.coalesce(1))
        rows.update(changed)
        check()

    def check() -> None:
        wanted = sorted((key, *row) for key, row in rows.items())
        found = HoodieTable.load(spark, path).read().select(*SHOWN).collect()
        assert sorted(map(tuple, found)) == wanted
        assert sorted(map(tuple, on_read.sql(f"select {', '.join(SHOWN)} from altered"))) == wanted

    check()
    write("upsert", a=(3, 70, "za", "new"), n=(1, 5_000_000_000, "zn", "dn"))
    write("insert", o=(1, 2, "zo", None))
    write("bulk_insert", p=(1, 3, "zp", "dp"))
    with HoodieTable.load(spark, path, options=OURS) as ours:
        ours.delete(spark.createDataFrame([("c",)], "id string"))
        rows.pop("c")
        check()
        assert (ours.compaction if kind == "mor" else ours.clustering).run() is not None
    check()
    on_read.sql("update altered set z = 'theirs', ts = 9 where id = 'b'")
    rows["b"] = (9, 80, "theirs", None)
    write("upsert", s=(5, 4, "zs", "ds"))
    if kind == "mor":
        with HoodieTable.load(spark, path, options=OURS) as ours:
            assert ours.clustering.run() is not None
        check()
    rows.clear()
    write("insert_overwrite_table", q=(1, 1, "zq", None))


@pytest.mark.parametrize("jvm", BUNDLES, indirect=True)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_jvm_reads_and_writes_a_table_whose_columns_we_changed(
    spark: Any, on_read: Any, path: str, kind: str
) -> None:
    options = {**OURS, "hoodie.write.table.version": str(on_read.table_version)}
    settings: dict[str, Any] = {
        "name": "altered",
        "record_key": "id",
        "ordering": "ts",
        "table_type": kind,
        "options": options,
    }
    first = "id string, ts bigint, x int, y string, d string, m decimal(6,2), s struct<i: int, l: array<string>>"
    ours = HoodieTable.create(spark, path, **settings)
    made = [("a", 1, 7, "ya", "da", Decimal("1.25"), (1, ["l"])), ("b", 1, 8, "yb", "db", None, None)]
    ours.upsert(spark.createDataFrame(made, first).coalesce(1))
    ours.upsert(spark.createDataFrame([("b", 2, 80, "yb2", "db2", None, None)], first))
    ours.schema.rename("y", "z")
    ours.schema.widen("x", "bigint")
    ours.schema.drop("d")
    ours.schema.add_column("d", "struct<i: int, j: string>", after="id")
    ours.schema.widen("m", "decimal(12,3)")
    shown: tuple[str, ...] = ("id", "d.j", "ts", "x", "z", "cast(m as string)", "s.i", "s.l")
    rows: dict[str, tuple[Any, ...]] = {"a": (None, 1, 7, "ya", "1.250", 1, ["l"])}
    rows["b"] = (None, 2, 80, "yb2", None, None, None)

    def check() -> None:
        wanted = sorted([key, *row] for key, row in rows.items())
        found = [list(row) for row in HoodieTable.load(spark, path).read().selectExpr(*shown).collect()]
        assert sorted(found) == wanted
        assert sorted(on_read.sql(f"select {', '.join(shown)} from altered")) == wanted

    on_read.sql(f"create table altered using hudi location '{path}'")
    check()
    on_read.sql("update altered set z = 'theirs', ts = 3, x = 5000000000 where id = 'a'")
    rows["a"] = (None, 3, 5_000_000_000, "theirs", "1.250", 1, ["l"])
    check()
    now = f"{first.replace('y string, d string', 'z string').replace('x int', 'x bigint')}, d struct<i: int, j: string>"
    now = now.replace("decimal(6,2)", "decimal(12,3)")
    with HoodieTable.load(spark, path, options=options) as again:
        again.upsert(spark.createDataFrame([("c", 1, 1, "zc", Decimal("2.125"), (2, []), (3, "j"))], now))
    rows["c"] = ("j", 1, 1, "zc", "2.125", 2, [])
    on_read.sql("alter table altered rename column z to w")
    shown = tuple("w" if name == "z" else name for name in shown)
    check()


def assert_equal(spark: Any, jvm: Any, path: str) -> None:
    """Whether we read what JVM Hudi reads."""
    found = [tuple(row) for row in HoodieTable.load(spark, path).read().select(*SHOWN).collect()]
    assert sorted(found) == sorted(map(tuple, jvm.sql(f"select {', '.join(SHOWN)} from altered")))


@pytest.mark.nightly
@pytest.mark.parametrize("jvm", BUNDLES, indirect=True)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_services_of_the_jvm_keep_renamed_columns_beside_what_we_wrote(
    spark: Any, on_read: Any, path: str, kind: str
) -> None:
    make_altered(on_read, path, kind)
    with HoodieTable.load(spark, path, options=OURS) as ours:
        ours.upsert(spark.createDataFrame([("a", 5, 5, "za", "da5")], COLUMNS))
    if kind == "mor":
        for step in ("schedule", "run"):
            on_read.sql(f"call run_compaction(op => '{step}', table => 'altered')")
    else:
        on_read.sql("call run_clustering(table => 'altered')")
    assert_equal(spark, on_read, path)
    with HoodieTable.load(spark, path, options=OURS) as ours:
        ours.upsert(spark.createDataFrame([("b", 6, 6, "zb", "db6")], COLUMNS))
    assert_equal(spark, on_read, path)
    found = {row.id: row.z for row in HoodieTable.load(spark, path).read().collect()}
    assert found == {"a": "za", "b": "zb", "c": "yc", "s": "ys"}


@pytest.mark.nightly
@pytest.mark.parametrize("jvm", BUNDLES[:1], indirect=True)
def test_a_compaction_of_version_6_that_was_planned_before_is_not_for_the_jvm_to_run(
    spark: Any, on_read: Any, path: str
) -> None:
    make_plain(on_read, path, "mor")
    with HoodieTable.load(spark, path, options=OURS) as ours:
        planned = str(ours.compaction.schedule())
    alter(on_read)
    told = r"planned before ALTER TABLE.*empties renamed columns"
    with HoodieTable.load(spark, path, options=OURS) as ours, pytest.raises(WriteAborted, match=told):
        ours.compaction.execute(planned)
    assert_equal(spark, on_read, path)
    on_read.sql(f"call run_compaction(op => 'run', table => 'altered', timestamp => {planned})")
    [base] = (file for file in Path(path).glob(f"*_{planned}.parquet"))
    assert set(pq.read_table(base, columns=["z"]).column("z").to_pylist()) == {None}
