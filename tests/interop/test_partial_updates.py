"""JVM Hudi and we fill the same columns of the same rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop

Row = tuple[Any, ...]
PARTIAL = {
    "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS",
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.bucket.index.hash.field": "id",
}
THEIRS = {
    **{key.replace(".", "__"): value for key, value in PARTIAL.items()},
    "hoodie__datasource__write__table__type": "MERGE_ON_READ",
    "hoodie__compact__inline": "false",
    "hoodie__datasource__compaction__async__enable": "false",
}


def test_both_fill_the_same_columns_before_and_after_a_compaction(
    jvm: Any, create: Callable[..., HoodieTable], frame: Callable[..., Any]
) -> None:
    if jvm.table_version < 9:
        pytest.skip("unsupported: tables of version 8 know no partial updates")
    table = create(table_type="MERGE_ON_READ", options=PARTIAL)
    table.upsert(frame([("a", "eu", 5, 1.0, None), ("b", "eu", 5, None, "b"), ("c", "eu", 5, 5.0, "c")]))
    table.upsert(frame([("a", "eu", 6, None, "new"), ("b", "eu", 2, 2.0, "old")]))
    jvm.write(table, [("c", "eu", 7, None, "theirs"), ("d", "eu", 1, None, "d")], **THEIRS)
    table.upsert(frame([("d", "eu", 0, 4.0, "late")]))
    expected = [
        ("a", "eu", 6, 1.0, "new"),
        ("b", "eu", 5, 2.0, "b"),
        ("c", "eu", 7, 5.0, "theirs"),
        ("d", "eu", 1, 4.0, "d"),
    ]
    assert rows_of(table) == jvm.read(table) == expected
    options = "hoodie.datasource.write.recordkey.field=id"
    jvm.sql(f"call run_compaction(path => '{table.path}', op => 'scheduleAndExecute', options => '{options}')")
    table.upsert(frame([("a", "eu", 3, 9.0, "older"), ("b", "eu", 8, None, "newer")]))
    expected[1] = ("b", "eu", 8, 2.0, "newer")
    assert rows_of(table) == jvm.read(table) == expected


def rows_of(table: HoodieTable) -> list[Row]:
    found = table.read().select("id", "region", "ts", "value", "label").collect()
    return sorted((tuple(row) for row in found), key=repr)
