"""Bulk inserts into tables with buckets: what either side loads the other reads, and goes on with."""

from __future__ import annotations

from typing import Any

import pytest
from metadata_turns import BY_BUCKET, BY_RING, COPIED_BUCKETS, Shared
from table_lives import merge

from hudi_locks.errors import UnsupportedTable

pytestmark = pytest.mark.interop

FIRST = [("a", "eu", 1, 1.0, "ours"), ("b", "eu", 1, 2.0, None), ("c", "eu", 1, 3.0, "ours"), ("d", "us", 1, 4.0, "x")]


def load(table: Shared, *rows: Any) -> None:
    """By us; a key of which a greater ordering value is there stays."""
    table.open().bulk_insert(table.frame(*rows))
    table.expected = merge(table.expected, rows)
    table.check()


@pytest.mark.parametrize("kind", [COPIED_BUCKETS, BY_BUCKET, BY_RING, "MERGE_ON_READ"])
def test_both_go_on_after_either_loaded(spark: Any, jvm: Any, path: str, kind: str) -> None:
    """A bulk insert of the JVM beside writers that do not block gives a bucket another id than its upserts do."""
    table = Shared(jvm, spark, path, kind)
    with table.unwatched():
        table.theirs(("z", "last", 1, 0.0, "theirs"), operation="upsert" if kind == "MERGE_ON_READ" else "bulk_insert")
        load(table, *FIRST)
    with table.unwatched():
        table.theirs(("a", "eu", 2, 5.0, "theirs"), ("e", "us", 2, 6.0, "theirs"), ("f", "new", 2, 7.0, None))
        again = (("b", "eu", 3, 8.0, "again"), ("f", "new", 3, 9.0, "again")) if kind.startswith("MERGE") else ()
        load(table, ("h", "eu", 3, 1.0, "ours"), ("g", "other", 3, 1.0, "ours"), *again)
    with table.unwatched():
        table.theirs(("g", "other", 4, 2.0, "theirs"), ("z", "last", 4, 2.0, "theirs"), ("b", "eu", 4, 0.0, "theirs"))
        table.ours(("g", "other", 5, 3.0, "ours"), ("z", "last", 5, 3.0, "ours"), ("d", "us", 5, 3.0, "ours"))
    with table.unwatched():
        if kind.startswith("MERGE"):
            assert table.open().compaction.run() is not None
        table.theirs(("c", "eu", 6, 4.0, "theirs"))


def test_a_bucket_to_which_the_jvm_gave_a_second_file_group_is_read_and_not_written(
    spark: Any, jvm: Any, path: str
) -> None:
    table = Shared(jvm, spark, path, BY_BUCKET)
    with table.unwatched():
        table.theirs(("a", "eu", 1, 1.0, "theirs"), ("b", "eu", 1, 1.0, "theirs"), operation="bulk_insert")
        table.theirs(("c", "eu", 1, 1.0, "theirs"), ("d", "eu", 1, 1.0, "theirs"), operation="bulk_insert")
    with pytest.raises(UnsupportedTable, match=r"serves too.*load all rows of the table into a new one"):
        table.open().bulk_insert(table.frame(("e", "eu", 1, 1.0, "ours")))
