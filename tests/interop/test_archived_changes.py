"""Incremental reads of tables of version 6 from commits that are archived: what JVM Hudi shows by a full scan."""

from __future__ import annotations

from typing import Any

import pytest
from other_readers import DEADLINE_S, ONE_CLOCK, OURS, SCHEMA, Jvm

from hudi_locks.errors import ConfigError, TableError
from hudi_locks.spark import HoodieTable, read
from hudi_locks.timeline.archive import list_archived_times

pytestmark = pytest.mark.interop

QUERY = "hoodie.datasource.query.type"
BEGIN, END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"
FULL_SCAN = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
COLUMNS = ("_hoodie_commit_time", "id", "ts", "value", "label")
KEPT = {
    **ONE_CLOCK,
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.write.table.version": "6",
    "hoodie.metadata.enable": "false",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.write.concurrency.mode": "single_writer",
    "hoodie.clean.failed.writes.policy": "EAGER",
}
LOGGED = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "3"}
KINDS = {"COPY_ON_WRITE": {}, "MERGE_ON_READ": LOGGED}
WRITES = 7


class History:
    """A table of which JVM Hudi archived the first commits; each wrote a row that no other wrote.

    Attributes:
        times: Completion time of each write, by its requested time, in order.
    """

    def __init__(self, jvm: Jvm, spark: Any, path: str, kind: str) -> None:
        self.jvm, self.spark, self.path = jvm, spark, path
        self.times: dict[str, str] = {}
        options = {**KEPT, **KINDS[kind], "hoodie.datasource.write.table.type": kind}
        for n in range(WRITES):
            again = [[f"k{number}", "eu", n, float(n), f"w{n}"] for number in range(n % 3, 6, 2)]
            rows = [*again, [f"only{n}", "eu", n, 0.0, f"w{n}"]]
            jvm.ask("write", path=path, rows=rows, schema=SCHEMA, options=options, gate="").result(DEADLINE_S)
            done = self.open().table.timeline().completed(("commit", "deltacommit"))
            self.times |= {one.requested: str(one.completion) for one in done if one.requested not in self.times}

    def open(self) -> HoodieTable:
        return HoodieTable.load(self.spark, self.path, options=OURS)

    def list_archived(self) -> list[str]:
        table = self.open().table
        return sorted(list_archived_times(table.storage, table.layout, completed_after="20200101000000000"))

    def theirs(self, begin: str, **more: str) -> list[tuple[Any, ...]]:
        asked = {QUERY: "incremental", BEGIN: begin, FULL_SCAN: "true", **more}
        found = self.jvm.ask("read", path=self.path, options=asked, columns=list(COLUMNS)).result(DEADLINE_S)
        return sorted(map(tuple, found), key=repr)

    def ours(self, begin: str, **more: str) -> list[tuple[Any, ...]]:
        found = read(self.spark, self.path, {QUERY: "incremental", BEGIN: begin, **more})
        return sorted(map(tuple, found.select(*COLUMNS).collect()), key=repr)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("jvm", [("1.2.0", 9), pytest.param(("0.15.0", 6), marks=pytest.mark.nightly)], indirect=True)
def test_what_archived_commits_wrote_is_shown_as_the_jvm_shows_it(jvm: Jvm, spark: Any, path: str, kind: str) -> None:
    table = History(jvm, spark, path, kind)
    archived = table.list_archived()
    assert len(archived) >= 3
    shown = table.ours("0", **{FULL_SCAN: "true"})
    assert shown == table.theirs("000")
    assert {f"only{n}" for n in range(WRITES)} <= {row[1] for row in shown}
    for requested, completion in table.times.items():
        assert table.ours(completion) == table.theirs(requested), requested
        rows = table.open().incremental(completion).select(*COLUMNS).collect()
        assert sorted(map(tuple, rows), key=repr) == table.ours(completion)
    with pytest.raises(ConfigError, match=r"fulltablescan\.enable=false is not offered: rows of archived commits"):
        table.ours("0", **{FULL_SCAN: "false"})
    with pytest.raises(TableError, match=r"are archived, and .* was cleaned"):
        table.ours("0", **{END: list(table.times.values())[1]})
