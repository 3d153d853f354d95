"""Tables of a JVM that writes the time of its own zone: ours go on in the same, without being told which."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from other_readers import COLUMNS, OURS, SCHEMA, THEIRS, Jvm, read_rust

from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop

ROWS = [("a", "eu", 1, 1.0, "theirs"), ("b", "us", 1, 1.0, "theirs")]


@pytest.fixture
def far_away() -> Iterator[Jvm]:
    """A JVM of its own: one never writes an earlier time than its last, so that it could not go back to UTC."""
    with closing(Jvm("1.2.0", 9)) as agent:
        agent.ask("live_in", zone="Asia/Kolkata").result(600)
        yield agent


def test_both_write_in_the_zone_of_the_jvm(far_away: Jvm, spark: Any, path: str, frame: Any) -> None:
    options = {
        **THEIRS,
        "hoodie.table.name": "t",
        "hoodie.write.table.version": str(far_away.table_version),
        "hoodie.table.timeline.timezone": "LOCAL",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.precombine.field": "ts",
    }

    def write_theirs(rows: list[tuple[Any, ...]]) -> None:
        listed = [list(row) for row in rows]
        far_away.ask("write", path=path, rows=listed, schema=SCHEMA, options=options, gate="").result(300)

    write_theirs(ROWS)
    table = HoodieTable.load(spark, path, options=OURS)
    assert table.table.config.zone == "UTC+05:30"
    ours = table.upsert(frame([("a", "eu", 2, 2.0, "ours")]))
    write_theirs([("b", "us", 3, 3.0, "theirs again")])
    expected = [("a", "eu", 2, 2.0, "ours"), ("b", "us", 3, 3.0, "theirs again")]
    assert sorted(tuple(row) for row in table.read().select(*COLUMNS).collect()) == expected
    assert far_away.read(table) == read_rust(table.path) == expected
    assert verify_table(table.table.storage).damages == ()
    completed = [str(instant.completion) for instant in table.table.timeline().completed()]
    assert completed[0] < str(ours.completion_time) < completed[-1]
