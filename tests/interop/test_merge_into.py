"""Our merge and the MERGE INTO of JVM Hudi make the same of two copies of one table."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from other_readers import Jvm

from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop

GIVEN = "id string, month string, ts long, amount double, gone boolean"
SOURCE = [
    ("a", "1", 2, 10.0, False),
    ("b", "1", 2, 0.0, True),
    ("c", "2", 2, -1.0, False),
    ("n", "3", 5, 5.0, False),
    ("o", "3", 5, 1.0, True),
    ("p", "1", 5, 7.0, False),
]
VALUES = {"cow": "target.value + source.amount", "mor": "2 * source.amount"}
"""JVM Hudi gives rows of a merge-on-read table no value that comes from the table."""
MERGE = """
merge into {name} target using ({source}) source on target.id = source.id and target.month = source.month
when matched and source.gone then delete
when matched and source.amount > 0 then update set
    id = source.id, month = source.month, ts = source.ts, value = {value}
when not matched and not source.gone then
    insert (id, ts, value, month) values (source.id, source.ts, source.amount, source.month)
"""


@pytest.fixture
def twins(jvm: Jvm, path: str, kind: str) -> Iterator[tuple[str, str]]:
    """The name of a table of the JVM at `path`, and the path of its copy."""
    name = f"merged_{uuid.uuid4().hex}"
    jvm.sql(
        f"create table {name} (id string, ts bigint, value double, month string) using hudi partitioned by (month)"
        f" location '{path}' tblproperties (type = '{kind}', primaryKey = 'id', preCombineField = 'ts')"
    )
    # Else rows that MERGE INTO changes in a merge-on-read table come back with nulls for columns that it does not name.
    jvm.sql("set hoodie.spark.sql.merge.into.partial.updates=false")
    jvm.sql(f"insert into {name} values ('a', 1, 1.0, '1'), ('b', 1, 2.0, '1'), ('c', 1, 3.0, '2'), ('d', 1, 4.0, '2')")
    shutil.copytree(path, f"{path}_copy")
    yield name, f"{path}_copy"
    jvm.sql("reset hoodie.spark.sql.merge.into.partial.updates")  # of the session, which other tests share
    jvm.sql(f"drop table if exists {name}")


@pytest.mark.parametrize("jvm", [("1.2.0", 9)], indirect=True, ids=["1.2.0-v9"])
@pytest.mark.parametrize("kind", ["cow", pytest.param("mor", marks=pytest.mark.nightly)])
def test_both_make_the_same_of_a_table(spark: Any, jvm: Jvm, path: str, twins: tuple[str, str], kind: str) -> None:
    name, copy = twins
    rows = " union all ".join(
        f"select '{key}' id, '{month}' month, {ts}L ts, {amount}D amount, {str(gone).lower()} gone"
        for key, month, ts, amount, gone in SOURCE
    )
    jvm.sql(MERGE.format(name=name, source=rows, value=VALUES[kind]))
    table = HoodieTable.load(spark, copy)
    merge = table.merge(spark.createDataFrame(SOURCE, GIVEN), on=["id", "month"]).when_matched_delete("source.gone")
    changed = {"ts": "source.ts", "value": VALUES[kind]}
    merge = merge.when_matched_update("source.amount > 0", values=changed)
    inserted = {"id": "source.id", "ts": "source.ts", "value": "source.amount", "month": "source.month"}
    merge.when_not_matched_insert("not source.gone", values=inserted).execute()
    theirs, ours = (read(jvm, one) for one in (path, copy))
    assert (
        ours
        == theirs
        == [
            ["a", "1", 2, 11.0 if kind == "cow" else 20.0],
            ["c", "2", 1, 3.0],
            ["d", "2", 1, 4.0],
            ["n", "3", 5, 5.0],
            ["p", "1", 5, 7.0],
        ]
    )
    assert verify_table(table.table.storage).damages == ()


def read(jvm: Jvm, path: str) -> list[list[Any]]:
    told = {"path": path, "columns": ["id", "month", "ts", "value"], "options": {}}
    return sorted(jvm.ask("read", **told).result(600), key=repr)
