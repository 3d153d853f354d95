"""Columns whose type a write of the JVM widened, while older base files keep the narrow one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from other_readers import DEADLINE_S, THEIRS

from hudi_locks.errors import UnsupportedTable
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop

Create = Callable[..., HoodieTable]
WIDENED = {
    "int_long": ("7", "7L"),
    "int_float": ("16777217", "cast(2 as float)"),
    "int_double": ("7", "2.5D"),
    "long_float": ("16777217L", "cast(2 as float)"),
    "long_double": ("9007199254740993L", "2.5D"),
    "float_double": ("cast(0.1 as float)", "0.1D"),
    "int_string": ("7", "'x'"),
    "long_string": ("-7L", "'x'"),
    "float_string": ("cast(1e10 as float)", "'x'"),
    "double_string": ("1e-7D", "'x'"),
    "decimal": ("cast(1.5 as decimal(3,1))", "cast(1.5 as decimal(4,1))"),
}
"""Values of the first write and of the second."""
LOGGED = ("int_long", "long_float", "float_double", "int_string", "float_string")
BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.bucket.index.hash.field": "id",
}
OPTIONS = {
    **THEIRS,
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}


def write(jvm: Any, path: str, key: str, region: str, values: Mapping[str, str], **changes: str) -> None:
    """One row, by the JVM; `changes` have `__` for each dot."""
    columns = ", ".join(f"{value} {name}" for name, value in values.items())
    extra = {name.replace("__", "."): value for name, value in changes.items()}
    options = {**OPTIONS, "hoodie.write.table.version": str(jvm.table_version), **extra}
    query = f"select '{key}' id, '{region}' region, 1L ts, {columns}"
    jvm.ask("write_query", path=path, query=query, options=options).result(DEADLINE_S)


def old(names: Any = WIDENED) -> dict[str, str]:
    return {name: WIDENED[name][0] for name in names}


def new(names: Any = WIDENED) -> dict[str, str]:
    return {name: WIDENED[name][1] for name in names}


def show(names: Any = WIDENED) -> list[str]:
    return [f"to_json(struct(id, {', '.join(names)}))", *(f"typeof({name})" for name in names)]


def theirs(jvm: Any, path: str, names: Any = WIDENED) -> list[Any]:
    found: list[Any] = jvm.ask("read", path=path, options={}, columns=show(names)).result(DEADLINE_S)
    return sorted(found)


def ours(rows: Any, names: Any = WIDENED) -> list[Any]:
    return sorted(list(row) for row in rows.selectExpr(*show(names)).collect())


def test_older_files_are_read_as_the_jvm_reads_them(jvm: Any, create: Create, spark: Any, path: str) -> None:
    table = create()
    write(jvm, path, "a", "r", old())
    write(jvm, path, "b", "s", new())
    write(jvm, path, "c", "q", old())
    expected = theirs(jvm, path)
    assert len(expected) == 3
    assert ours(table.read()) == expected
    assert ours(table.as_of(table.table.timeline().newest_time())) == expected
    assert ours(table.incremental("0")) == expected
    assert ours(table.change_data("0").select("after.*")) == expected
    assert [row.id for row in table.read(where="region = 'r'").where("int_long > 6 and long_float > 0").collect()] == [
        "a"
    ]
    assert [
        tuple(row) for row in table.read(columns=["int_long"], partitions="region=r", meta_columns=False).collect()
    ] == [(7,)]
    table.upsert(spark.sql("select 'd' id, 'r' region, 1L ts, " + ", ".join(f"{v} {n}" for n, v in new().items())))
    expected = theirs(jvm, path)
    assert len(expected) == 4
    assert ours(table.read()) == expected


def test_clustering_writes_older_files_in_the_new_types(jvm: Any, create: Create, path: str) -> None:
    table = create()
    write(jvm, path, "a", "r", old())
    apart = {"hoodie__parquet__small__file__limit": "0", "hoodie__datasource__write__operation": "insert"}
    write(jvm, path, "b", "r", new(), **apart)
    before = theirs(jvm, path)
    assert ours(table.read()) == before
    assert table.clustering.run() is not None
    assert theirs(jvm, path) == ours(table.read()) == before


def test_numbers_with_a_fraction_that_became_text_are_refused_where_logs_are_merged(
    jvm: Any, create: Create, path: str
) -> None:
    table = create(table_type="MERGE_ON_READ", options=BUCKETS)
    for key, values in [("a", old(LOGGED)), ("a", new(LOGGED))]:
        write(jvm, path, key, "r", values, **BUCKETS, hoodie__datasource__write__table__type="MERGE_ON_READ")
    kept = [name for name in LOGGED if name != "float_string"]
    with pytest.raises(UnsupportedTable, match=r"column 'float_string' is float in .* and string in the table now"):
        table.read()
    assert ours(table.read(columns=["id", *kept]), kept) == theirs(jvm, path, kept)
