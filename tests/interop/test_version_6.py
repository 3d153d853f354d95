"""Merge-on-read tables of version 6, as older releases of JVM Hudi make them: our reader beside the JVM.

Logs are named by the base file below them there, and hold blocks of several writes, also of some that were taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance.servers import ServerUnavailable
from other_readers import COLUMNS, DEADLINE_S, OURS, SCHEMA, THEIRS, Jvm, Rows, read_rust

from hudi_locks.spark import HoodieTable
from hudi_locks.table import list_data_files
from hudi_locks.table.log_rows import find_undone, read_log
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop

PAYLOAD = "hoodie.datasource.write.payload.class"
_PACKAGE = "org.apache.hudi.common.model."
_BY_EVENT_TIME = f"{_PACKAGE}DefaultHoodieRecordPayload"
OPTIONS = {
    **THEIRS,
    "hoodie.write.table.version": "6",
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.write.concurrency.mode": "single_writer",
    "hoodie.clean.failed.writes.policy": "EAGER",
}
INDEXES = {
    "SIMPLE": {"hoodie.index.type": "SIMPLE"},
    "BUCKET": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}
OLD_ARCHIVE = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


def _rows(numbers: range, ts: int, label: str) -> Rows:
    return [(f"k{number:02}", ("eu", "us")[number % 2], ts, float(ts), label) for number in numbers]


class _Steps:
    """What one JVM does to one table, and what another and our reader show of it then."""

    def __init__(self, maker: Jvm, jvm: Jvm, spark: Any, path: str, options: dict[str, str]) -> None:
        self.maker, self.jvm, self.spark, self.path = maker, jvm, spark, path
        self.options = {**OPTIONS, **options}

    @property
    def table(self) -> HoodieTable:
        return HoodieTable.load(self.spark, self.path)

    def put(self, rows: Rows, *, operation: str = "upsert") -> None:
        options = {**self.options, "hoodie.datasource.write.operation": operation}
        given = {"path": self.path, "rows": list(map(list, rows)), "schema": SCHEMA, "options": options, "gate": ""}
        self.maker.ask("write", **given).result(DEADLINE_S)
        assert self.table.table.config.version == 6

    def compact(self, op: str) -> None:
        options = "hoodie.datasource.write.recordkey.field=id,hoodie.compact.inline.max.delta.commits=1"
        order = "hoodie.datasource.write.precombine.field=ts"  # which release 1.0.2 looks for nowhere else
        told = f"{options},{order},hoodie.write.table.version=6,hoodie.metadata.enable=false"
        self.maker.sql(f"call run_compaction(path => '{self.path}', op => '{op}', options => '{told}')")

    def let_die(self) -> None:
        """Leave the newest write as one that died before it was completed; the next one takes it back."""
        timeline = self.table.table.timeline()
        newest = timeline.completed()[-1]
        completed = Path(self.path, timeline.paths[newest])
        completed.with_name(f".{completed.name}.crc").unlink()
        completed.unlink()
        for log in list_data_files(self.table.table.storage).logs:
            entries = read_log(Path(self.path, log.path).read_bytes(), log.path, takes=newest.requested.__eq__)
            if any(entries):
                name = f"{log.file_id}_{log.write_token}_{log.instant}.parquet.marker.APPEND"
                marker = Path(self.path, ".hoodie", ".temp", newest.requested, log.partition, name)
                marker.parent.mkdir(parents=True, exist_ok=True)
                marker.touch()

    def list_undone(self) -> set[str]:
        """Writes that blocks of a rollback name."""
        logs = list_data_files(self.table.table.storage).logs
        return {time for log in logs for time in find_undone(Path(self.path, log.path).read_bytes(), log.path)}

    def read(self) -> list[tuple[Any, ...]]:
        """The rows, on which all readers agree, with the commit that each is of."""
        table, columns = self.table, ("_hoodie_commit_time", *COLUMNS)
        ours = sorted((tuple(row) for row in table.read(meta_columns=True).select(*columns).collect()), key=repr)
        assert self.jvm.read(table) == sorted((row[1:] for row in ours), key=repr)
        theirs = self.jvm.ask("read", path=self.path, options={}, columns=list(columns)).result(DEADLINE_S)
        assert sorted(map(tuple, theirs), key=repr) == ours
        assert verify_table(table.table.storage).damages == ()
        return ours


@pytest.fixture(scope="module", params=["the same", pytest.param("0.15.0", marks=pytest.mark.nightly)])
def older(request: pytest.FixtureRequest) -> Iterator[Jvm | None]:
    """A release that knows no other version than 6; None where the judge makes its tables."""
    if request.param == "the same":
        yield None
        return
    try:
        agent = Jvm(request.param, 6)
    except ServerUnavailable as error:
        pytest.skip(str(error))
    yield agent
    agent.close()


@pytest.fixture
def steps(jvm: Jvm, older: Jvm | None, spark: Any, path: str) -> Callable[..., _Steps]:
    """Of a table whose ordering column decides, unless the options name another payload class."""
    return lambda **options: _Steps(older or jvm, jvm, spark, path, {PAYLOAD: _BY_EVENT_TIME, **options})


def check_moments(table: HoodieTable, jvm: Jvm) -> None:
    """Both show the same as of each write."""
    for instant in table.table.timeline().completed():
        ours = sorted(tuple(row) for row in table.as_of(requested=instant.requested).select(*COLUMNS).collect())
        assert jvm.read(table, **{"as.of.instant": instant.requested}) == ours


@pytest.mark.parametrize("index", INDEXES)
def test_our_reader_shows_what_the_jvm_shows_after_every_step(steps: Callable[..., _Steps], index: str) -> None:
    table = steps(**INDEXES[index])
    table.put(_rows(range(8), 2, "made"))
    assert len(table.read()) == 8
    table.put(_rows(range(3), 3, "newer"))
    table.put([*_rows(range(3, 5), 1, "older"), *_rows(range(20, 22), 4, "added")])
    before = table.read()
    assert {row[-1] for row in before} == {"made", "newer", "added"}
    table.compact("schedule")
    assert table.read() == before
    table.put(_rows(range(2), 5, "above the plan"))
    above = table.read()
    table.compact("execute")
    assert table.read() == above
    table.put(_rows(range(5, 7), 6, ""), operation="delete")
    assert {row[1] for row in above} - {row[1] for row in table.read()} == {"k05", "k06"}
    shown = table.read()
    table.put(_rows(range(3), 7, "taken back"))
    assert {row[-1] for row in table.read()} >= {"taken back"}
    table.let_die()
    assert table.read() == shown
    table.put(_rows(range(1), 8, "after"))
    assert table.list_undone(), "no block of a rollback"
    assert {row[-1] for row in table.read()} == {*(row[-1] for row in shown), "after"}


def test_writes_that_were_archived_count_and_those_that_were_taken_back_do_not(steps: Callable[..., _Steps]) -> None:
    table = steps(**INDEXES["BUCKET"], **OLD_ARCHIVE)
    table.put(_rows(range(8), 2, "made"))
    table.put(_rows(range(3), 3, "taken back"))
    table.let_die()
    table.put(_rows(range(3, 5), 4, "kept"))
    (undone,) = table.list_undone()
    first = table.table.table.timeline().first_active
    for ts in range(5, 15):
        table.put(_rows(range(7, 8), ts, "again"))
    assert table.table.table.timeline().first_active != first, "nothing was archived"
    assert str(table.table.table.timeline().first_active) > undone
    assert {row[-1] for row in table.read()} == {"made", "kept", "again"}


def test_what_a_payload_class_alone_says_of_rows_counts(steps: Callable[..., _Steps]) -> None:
    """Such tables name no merge mode."""
    name = "OverwriteWithLatestAvroPayload"
    table = steps(**INDEXES["SIMPLE"], **{PAYLOAD: f"{_PACKAGE}{name}"})
    table.put(_rows(range(4), 2, "made"))
    table.put(_rows(range(2), 1, "later"))
    assert [row[-1] for row in table.read()].count("later") == 2
    assert table.table.table.config.merge_mode == "COMMIT_TIME_ORDERING"


def test_times_spans_and_read_optimized_queries_are_answered(steps: Callable[..., _Steps], jvm: Jvm) -> None:
    table = steps(**INDEXES["SIMPLE"])
    table.put(_rows(range(4), 2, "made"))
    table.put(_rows(range(2), 3, "newer"))
    table.put(_rows(range(1), 4, "newest"))
    loaded = table.table
    times = [str(instant.completion) for instant in loaded.table.timeline().completed()]

    def labels(rows: Any) -> list[str]:
        return sorted(row["label"] for row in rows.select("label").collect())

    assert labels(loaded.as_of(times[0])) == ["made"] * 4
    assert labels(loaded.as_of(times[1])) == ["made", "made", "newer", "newer"]
    assert labels(loaded.incremental(times[0])) == ["newer", "newest"]
    assert labels(loaded.incremental(times[0], times[1])) == ["newer", "newer"]
    assert labels(loaded.read(read_optimized=True)) == ["made"] * 4
    check_moments(loaded, jvm)


def test_hudi_rs_shows_the_same(steps: Callable[..., _Steps]) -> None:
    table = steps(**INDEXES["SIMPLE"])
    table.put(_rows(range(4), 2, "made"))
    table.put(_rows(range(2), 3, "newer"))
    assert read_rust(table.path) == sorted((row[1:] for row in table.read()), key=repr)


def test_once_a_later_release_has_upgraded_it_it_is_written_still(steps: Callable[..., _Steps], jvm: Jvm) -> None:
    table = steps(**INDEXES["SIMPLE"])
    table.put(_rows(range(4), 2, "made"))
    table.put(_rows(range(2), 3, "newer"))
    later = {name: value for name, value in table.options.items() if name != "hoodie.write.table.version"}
    later["hoodie.write.auto.upgrade"] = "true"
    given = [list(row) for row in _rows(range(5, 6), 4, "upgraded")]
    jvm.ask("write", path=table.path, rows=given, schema=SCHEMA, options=later, gate="").result(DEADLINE_S)
    loaded = HoodieTable.load(table.spark, table.path, options=OURS)
    assert loaded.table.config.version == jvm.table_version
    loaded.upsert(table.spark.createDataFrame(list(_rows(range(1), 5, "ours")), SCHEMA))
    ours = table.read()
    assert sorted(row[-1] for row in ours) == ["made", "made", "newer", "ours", "upgraded"]
    check_moments(table.table, jvm)
