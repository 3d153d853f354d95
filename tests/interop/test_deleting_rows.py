"""Rows that are deletes, written and read by both kinds of writers: `_hoodie_is_deleted`, and a table's own marker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from other_readers import COLUMNS, OURS, SCHEMA, Jvm

from hudi_locks.errors import BadInput
from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop

PAYLOADS = "org.apache.hudi.common.model."
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
}
FLAG = f"{SCHEMA}, _hoodie_is_deleted boolean"
MARKED = f"{SCHEMA}, Op string"
Row = tuple[Any, ...]


def row(key: str, ts: int, label: str = "") -> Row:
    return (key, "eu", ts, float(ts), label)


class Shared:
    """A table that both kinds of writers write to."""

    def __init__(self, jvm: Jvm, spark: Any, path: str, schema: str, kind: str, **options: str) -> None:
        self.jvm, self.spark, self.path, self.schema = jvm, spark, path, schema
        self.shape = {"hoodie.datasource.write.table.type": kind, "hoodie.table.type": kind}
        self.shape |= BUCKETS if kind == TYPES[1] else {}
        self.options = options

    def theirs(self, rows: list[Row], operation: str = "upsert") -> None:
        self.jvm.put(self.path, rows, self.schema, options={**self.shape, **self.options}, operation=operation)

    def ours(self, rows: list[Row], operation: str = "upsert", **options: str) -> HoodieTable:
        with HoodieTable.load(self.spark, self.path, options={**OURS, **self.shape, **options}) as table:
            getattr(table, operation)(self.spark.createDataFrame(rows, self.schema).coalesce(1))
            return table


@pytest.fixture(params=TYPES)
def shared(request: pytest.FixtureRequest, jvm: Jvm, spark: Any, path: str) -> Callable[..., Shared]:
    return lambda schema, **options: Shared(jvm, spark, path, schema, request.param, **options)


def test_a_row_with_the_flag_is_a_delete_to_everybody(shared: Callable[..., Shared], all_read: Any) -> None:
    both = shared(FLAG)
    both.theirs([(*row(key, 5), False) for key in "abcde"])
    table = both.ours([(*row("a", 6), True), (*row("b", 4), True), (*row("c", 5), True), (*row("x", 6), True)])
    assert all_read(table) == [row("b", 5), row("d", 5), row("e", 5)]
    both.theirs([(*row("d", 6), True), (*row("b", 5), None), (*row("a", 5), False)])
    left = [row("b", 5), row("e", 5)] if both.shape["hoodie.datasource.write.table.type"] == TYPES[1] else None
    assert all_read(table) == (left or [row("a", 5), row("b", 5), row("e", 5)])
    table = both.ours([(*row("e", 9), True), (*row("e", 8), False), (*row("f", 9), False)], "insert")
    shown = all_read(table)
    assert row("f", 9) in shown
    assert row("e", 9) not in shown


def test_an_initial_load_leaves_deletes_out(shared: Callable[..., Shared], jvm: Jvm, all_read: Any) -> None:
    both = shared(FLAG)
    both.theirs([(*row("z", 1), False)])
    table = both.ours([(*row("a", 5), True), (*row("b", 5), False), (*row("c", 5), None)], "insert")
    assert all_read(table) == [row("b", 5), row("c", 5), row("z", 1)]


def test_our_compaction_leaves_out_what_the_flag_took(shared: Callable[..., Shared], all_read: Any) -> None:
    both = shared(FLAG)
    if both.shape["hoodie.datasource.write.table.type"] == TYPES[0]:
        both.theirs([(*row("a", 5), False)])
        both.ours([(*row("a", 6), True), (*row("b", 6), False)], "bulk_insert")
        table = both.ours([(*row("a", 7), True)])
        assert all_read(table) == [row("b", 6)]
        return
    both.theirs([(*row(key, 5), False) for key in "abc"])
    both.ours([(*row("a", 6), True), (*row("b", 4), True)])
    both.theirs([(*row("c", 6), True)])
    with HoodieTable.load(both.spark, both.path, options={**OURS, **both.shape}) as table:
        table.compaction.run()
        assert all_read(table) == [row("b", 5)]


def test_a_marker_of_the_table_is_one_to_us(shared: Callable[..., Shared], jvm: Jvm, all_read: Any) -> None:
    marker = {"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"}
    both = shared(MARKED, **marker)
    both.theirs([(*row(key, 5), "I") for key in "abc"])
    given = marker if jvm.table_version < 9 else {}  # which keep no property of it
    table = both.ours([(*row("a", 6), "D"), (*row("b", 4), "D"), (*row("c", 6), "U")], **given)
    assert all_read(table) == [row("b", 5), row("c", 6)]
    both.theirs([(*row("c", 7), "D")])
    assert all_read(table) == [row("b", 5)]
    if jvm.table_version >= 9:
        with pytest.raises(BadInput, match=r"delete\.field=other.*was made with Op"):
            both.ours([], **{"hoodie.payload.delete.field": "other", "hoodie.payload.delete.marker": "D"})


def test_changes_of_the_migration_service_are_applied(
    shared: Callable[..., Shared], jvm: Jvm, all_read: Callable[[HoodieTable], list[Row]]
) -> None:
    both = shared(MARKED, **{"hoodie.datasource.write.payload.class": PAYLOADS + "AWSDmsAvroPayload"})
    has_logs = both.shape["hoodie.datasource.write.table.type"] == TYPES[1]
    both.theirs([(*row(key, 5), "I") for key in "abc"])
    table = both.ours([(*row("a", 4), "D"), (*row("b", 6), "U")])

    def read() -> list[Row]:
        if jvm.table_version >= 9 or not has_logs:
            return all_read(table)
        found = sorted(tuple(one) for one in table.read().select(*COLUMNS).collect())  # hudi-rs merges no such logs
        assert jvm.read(table) == found
        return found

    assert read() == [row("b", 6), row("c", 5)]
    both.theirs([(*row("b", 7), "D"), (*row("d", 3), "I")])
    assert read() == [row("c", 5), row("d", 3)]
