"""Tables of a JVM that writes the time of its own zone: ours go on in the same, without being told which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from other_readers import OURS, SCHEMA, THEIRS, Jvm

from hudi_locks.spark import HoodieTable

pytestmark = pytest.mark.interop

ROWS = [("a", "eu", 1, 1.0, "theirs"), ("b", "us", 1, 1.0, "theirs")]


@pytest.fixture
def far_away(jvm: Jvm) -> Iterator[Jvm]:
    jvm.ask("live_in", zone="Asia/Kolkata").result(60)
    yield jvm
    jvm.ask("live_in", zone="UTC").result(60)


def test_both_write_in_the_zone_of_the_jvm(far_away: Jvm, spark: Any, path: str, frame: Any, all_read: Any) -> None:
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
    assert all_read(table) == expected
    completed = [str(instant.completion) for instant in table.table.timeline().completed()]
    assert completed[0] < str(ours.completion_time) < completed[-1]
