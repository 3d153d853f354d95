"""Table services of tables of version 6 by this package, beside JVM Hudi and in turns with its own."""

from __future__ import annotations

import os
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from metadata_turns import BY_BUCKET, BY_KEY, Row, Shared, name_options
from old_turns import BY_RECORD, FIRST, OLD, THEIRS, begin, compact, let_time_pass, open_several
from other_readers import SCHEMA, JvmError
from paused_writes import paused
from small_tables import KEEP, THEIR_SERVICES, archive_now, archived
from table_lives import merge

from hudi_locks.errors import UnsupportedTable, WriteAborted, WriteConflict
from hudi_locks.metadata_table import OLD_METADATA_LAYOUT
from hudi_locks.table import list_data_files
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import StopPoint
from hudi_locks.verification import verify_table

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("jvm", OLD, indirect=True, ids=["0.15.0-v6", "1.2.0-v6"]),
]

OURS = {key.replace(".", "__"): value for key, value in KEEP.items()}


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", BY_KEY])
def test_both_archive_in_turns_and_know_what_the_other_archived(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = begin(jvm, spark, path, kind)
    replaced = [row for row in table.expected if row[1] == "new"]
    table.open().insert_overwrite(table.frame(("o", "new", 3, 0.5, "over")))
    table.expected = sorted([("o", "new", 3, 0.5, "over"), *(r for r in table.expected if r not in replaced)])
    for ts in range(4, 10):  # so many that the JVM compacts its metadata table
        table.theirs(("b", "eu", ts, 3.0, "theirs"), **THEIRS)
    table.open(**OURS).services.clean()
    assert archive_now(table.open(**OURS)) > 0
    ours = archived(table.open())
    assert {action for _, _, action in ours} >= {"commit" if kind == "COPY_ON_WRITE" else "deltacommit"}
    assert jvm.archived(table.open()) == ours
    table.check()

    for ts in range(10, 15):
        table.theirs(("b", "eu", ts, 4.0, "theirs"), **THEIRS, **THEIR_SERVICES)
    theirs = archived(table.open())
    assert len(theirs) > len(ours)
    assert jvm.archived(table.open()) == theirs

    table.ours(("a", "eu", 15, 5.0, "ours"))
    for ts in range(16, 20):
        table.theirs(("m", "us", ts, 4.0, "theirs"), **THEIRS)
    assert archive_now(table.open(**OURS)) > 0
    assert jvm.archived(table.open()) == archived(table.open())
    assert len(archived(table.open())) > len(theirs)
    table.ours(("k", "new", 21, 1.0, "ours"))
    table.theirs(("k", "new", 22, 2.0, "theirs"), **THEIRS, **THEIR_SERVICES)


LOGS = {"hoodie__compact__inline": "false"}
"""Without it a batch writer of JVM Hudi runs each plan that waits."""


def log(table: Shared, *rows: Row) -> None:
    """A write of ours that no compaction follows."""
    table.open(**LOGS).upsert(table.frame(*rows))
    table.expected = merge(table.expected, rows)
    table.check()


LOGGED = (BY_KEY, pytest.param(BY_BUCKET, marks=pytest.mark.nightly))


@pytest.mark.parametrize("kind", LOGGED)
def test_what_either_writes_while_our_compaction_waits_lies_on_top_of_it(
    spark: Any, jvm: Any, path: str, kind: str
) -> None:
    table = begin(jvm, spark, path, kind)
    table.theirs(("a", "eu", 3, 3.0, "theirs"), ("c", "us", 3, 3.0, "theirs"), **THEIRS)
    planned = table.open().compaction.schedule()
    assert planned is not None
    table.asks_rust = False
    table.check()
    table.theirs(("a", "eu", 4, 4.0, "theirs"), ("n", "eu", 4, 4.0, "theirs"), **LOGS, **THEIRS)
    log(table, ("a", "eu", 5, 5.0, "ours"), ("c", "us", 5, 5.0, "ours"))
    above = [log for log in list_data_files(table.open().table.storage).logs if log.instant == planned]
    assert len(above) > 2, "logs are not named by the compaction that is planned"
    with pytest.raises(UnsupportedTable, match="is not taken back"):
        table.open().compaction.abort(planned)
    done = table.open().compaction.execute(planned)
    assert done is not None
    assert done.instant == planned
    table.asks_rust = True
    table.check()
    table.theirs(("a", "eu", 6, 6.0, "theirs"), ("b", "eu", 6, 6.0, "theirs"), **LOGS, **THEIRS)
    compact(table, "schedule")
    table.asks_rust = False
    assert table.open().compaction.execute() is None, "a plan of the JVM is its own"
    log(table, ("b", "eu", 7, 7.0, "ours"))
    compact(table, "execute")
    table.asks_rust = True
    table.check()
    table.ours(("m", "us", 8, 8.0, "ours"))
    assert table.open().compaction.run() is not None
    table.check()
    gone = [row for row in table.expected if row[0] in ("a", "k")]
    table.open().delete(table.frame(*((*row[:2], 9, *row[3:]) for row in gone)))
    table.expected = [row for row in table.expected if row not in gone]
    assert table.open().compaction.run() is not None
    table.theirs(("b", "eu", 10, 10.0, "theirs"), **LOGS, **THEIRS)
    planned = table.open().compaction.schedule()
    table.theirs(("b", "eu", 11, 11.0, "theirs"), **THEIRS)  # a writer that compacts, as by default, runs any plan
    assert [one.requested for one in table.open().table.timeline().completed(("commit",))][-1] == planned
    table.ours(("b", "eu", 12, 12.0, "ours"))


DEATHS = (StopPoint.RESUME_INFLIGHT, StopPoint.PUBLISH_CHECKED, StopPoint.PUBLISH_CLAIMED, StopPoint.PUBLISH_NAMED)


@pytest.mark.nightly
@pytest.mark.parametrize("point", DEATHS, ids=lambda point: point.value)
def test_a_compaction_that_died_is_run_again_under_its_time(spark: Any, jvm: Any, path: str, point: StopPoint) -> None:
    table = begin(jvm, spark, path, BY_KEY)
    service = open_several(table)
    dead = Shared(jvm, spark, f"{path}-dead", BY_KEY, expected=table.expected)
    with paused(service, point, service.compaction.run):
        shutil.copytree(path, dead.path)
    let_time_pass(dead.path)
    (begun,) = dead.open().table.timeline().pending(("compaction",))
    dead.asks_rust = False
    runs_it = {} if point is StopPoint.PUBLISH_NAMED else LOGS  # a JVM writer that compacts takes it over
    dead.theirs(("a", "eu", 10, 4.0, "theirs"), ("b", "eu", 10, 4.0, "theirs"), **runs_it, **THEIRS)
    dead.open().compaction.execute()
    assert dead.open().table.timeline().is_completed(begun.requested)
    assert not dead.open().table.timeline().pending(("compaction",))
    dead.asks_rust = True
    dead.ours(("a", "eu", 11, 5.0, "ours"))


@pytest.mark.nightly
def test_a_jvm_write_that_began_before_the_plan_is_waited_for(spark: Any, jvm: Any, path: str, gate: Any) -> None:
    table = begin(jvm, spark, path, BY_KEY)
    told = {"rows": [["a", "eu", 3, 3.0, "early"]], "schema": SCHEMA, "options": name_options(table, "upsert", THEIRS)}
    early = jvm.ask("write", path=path, **told, gate=gate.path)
    with gate.closed():
        while not table.open().table.timeline().pending(("deltacommit",)):
            Path(path).exists()
        assert table.open().compaction.schedule() is None, "a single writer plans nothing beside a write"
        planned = open_several(table).compaction.schedule()
        with pytest.raises(WriteAborted, match="began before the plan could be seen"):
            open_several(table).compaction.execute(planned)
    with pytest.raises(JvmError, match=r"ConcurrentModification|WriteConflict"):
        early.result(600)
    let_time_pass(path)
    table.open().services.sweep()
    assert table.open().compaction.execute(planned) is not None
    table.check()
    table.theirs(("a", "eu", 4, 4.0, "theirs"), **THEIRS)


@pytest.mark.nightly
def test_our_clustering_is_respected_and_read_and_so_is_that_of_the_jvm(spark: Any, jvm: Any, path: str) -> None:
    table = begin(jvm, spark, path, "COPY_ON_WRITE")
    small = {"hoodie__parquet__small__file__limit": "0"}
    for number in range(2):
        table.theirs((f"n{number}", "eu", 3, 3.0, "theirs"), operation="insert", **small, **THEIRS)
    planned = table.open().clustering.schedule()
    assert planned is not None
    assert Path(path, f".hoodie/{planned}.replacecommit.requested").exists()
    table.theirs(("z", "other", 4, 4.0, "theirs"), **THEIRS)
    with pytest.raises(JvmError, match=r"Clustering|ConcurrentModification|WriteConflict"):
        table.theirs(("a", "eu", 4, 4.0, "theirs"), **THEIRS)
    let_time_pass(path)
    table.ours(("m", "us", 5, 5.0, "ours"))
    done = table.open().clustering.execute(planned)
    assert done is not None
    assert done.file_groups_replaced >= 3
    table.check()
    table.theirs(("a", "eu", 6, 6.0, "theirs"), ("n1", "eu", 6, 6.0, "theirs"), **THEIRS)
    table.theirs(("n2", "eu", 7, 7.0, "theirs"), operation="insert", **small, **THEIRS)
    jvm.cluster(table.open(), "schedule", options="hoodie.write.table.version=6")
    assert table.open().clustering.execute() is None, "a plan of the JVM is its own"
    with pytest.raises(WriteConflict):
        table.open(hoodie__write__num__retries__on__conflict__failures="0").upsert(
            table.frame(("a", "eu", 8, 8.0, "ours"))
        )
    jvm.cluster(table.open(), "execute", options="hoodie.write.table.version=6")
    table.check()
    table.ours(("a", "eu", 9, 9.0, "ours"))
    table.open(**OURS).services.clean()
    for ts in range(10, 14):
        table.theirs(("b", "eu", ts, 3.0, "theirs"), **THEIRS)
    assert archive_now(table.open(**OURS)) > 0
    assert jvm.archived(table.open()) == archived(table.open())
    table.check()


@pytest.mark.parametrize("aborts", [False, True])
def test_our_clustering_of_logs_is_respected_and_both_write_on_after_it(
    spark: Any, jvm: Any, path: str, aborts: bool
) -> None:
    table = begin(jvm, spark, path, BY_KEY)
    apart = {**LOGS, **THEIRS, "hoodie__parquet__small__file__limit": "0"}
    with table.unwatched():
        table.theirs(("d", "eu", 3, 3.0, "theirs"), ("e", "eu", 3, 4.0, "theirs"), **apart)
        table.theirs(("a", "eu", 4, 6000.0, "theirs"), ("d", "eu", 4, -9.0, "theirs"), **apart)
    log(table, ("e", "eu", 5, 5.0, "ours"), ("c", "us", 5, 5.0, "ours"))
    planned = table.open().clustering.schedule()
    assert planned is not None
    with pytest.raises(JvmError, match=r"Clustering|ConcurrentModification|WriteConflict"):
        table.theirs(("a", "eu", 6, 4.0, "theirs"), **apart)
    with pytest.raises(WriteConflict):
        open_several(table, hoodie__write__num__retries__on__conflict__failures="0").upsert(
            table.frame(("a", "eu", 6, 8.0, "ours"))
        )
    let_time_pass(path)
    if aborts:
        table.open().clustering.abort(planned)
        assert table.open().clustering.execute() is None
        table.check()
        planned = table.open().clustering.schedule()
    table.theirs(("z", "other", 6, 4.0, "theirs"), **apart)
    done = table.open().clustering.execute(planned)
    assert done is not None
    assert (done.file_groups, done.file_groups_replaced) == (1, 2)
    table.check()
    assert list_data_files(table.open().table.storage, ["region=eu"]).logs, "cleaned before anybody could read on"
    table.theirs(("a", "eu", 7, 6.0, "theirs"), ("e", "eu", 7, 6.0, "theirs"), **apart)
    log(table, ("d", "eu", 8, 7.0, "ours"), ("z", "other", 8, 7.0, "ours"))
    assert table.open().compaction.run() is not None
    table.open(**OURS).services.clean()
    table.check()
    table.theirs(("d", "eu", 9, 9.0, "theirs"), **apart)


COMPACT_AFTER = "hoodie__metadata__compact__max__delta__commits"


def list_compactions(table: Shared) -> list[str]:
    """Of the metadata table."""
    own = Timeline.load(table.open().table.storage, OLD_METADATA_LAYOUT)
    return [one.requested for one in own.completed(("commit",))]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", pytest.param(BY_KEY, marks=pytest.mark.nightly)])
def test_we_compact_the_metadata_table_and_both_go_on_from_it(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = Shared(jvm, spark, path, kind)
    table.theirs(*FIRST, **BY_RECORD, **THEIRS)
    ours = {"hoodie__index__type": "RECORD_INDEX", **BY_RECORD, **LOGS, **OURS}
    soon = {**ours, COMPACT_AFTER: "3"}
    for ts in range(2, 9):
        with table.unwatched() if ts % 3 else nullcontext():
            mine = (("a", "eu", ts, 1.5, "ours"), (f"m{ts}", "us", ts, None, "ours"))
            table.open(**soon).upsert(table.frame(*mine))
            table.expected = merge(table.expected, mine)
    done = list_compactions(table)
    assert len(done) >= 2
    assert all(len(time) == 20 and time.endswith("001") for time in done)
    table.theirs(("m2", "us", 10, 2.5, "theirs"), ("a", "eu", 10, 1.0, "theirs"), **BY_RECORD, **LOGS, **THEIRS)
    gone = [row for row in table.expected if row[0] in ("m3", "c")]
    table.open(**soon).delete(table.frame(*((*row[:2], 11, *row[3:]) for row in gone)))
    table.expected = [row for row in table.expected if row not in gone]
    table.check()

    assert archive_now(table.open(**soon)) > 0, "archival ends at the last compaction of the metadata table"
    assert jvm.archived(table.open()) == archived(table.open())
    table.theirs(("m4", "us", 12, 2.5, "theirs"), **BY_RECORD, **LOGS, **THEIRS)


@pytest.mark.parametrize("goes_on", ["jvm", "we"])
def test_a_compaction_of_the_metadata_table_that_died_is_run_by_either(
    spark: Any, jvm: Any, path: str, goes_on: str
) -> None:
    table = Shared(jvm, spark, path, "COPY_ON_WRITE")
    table.theirs(*FIRST, **BY_RECORD, **THEIRS)
    ours = {"hoodie__index__type": "RECORD_INDEX", **BY_RECORD, **THEIRS, COMPACT_AFTER: "1000"}
    soon = {**ours, COMPACT_AFTER: "2"}
    for ts in range(2, 4):
        table.open(**ours).upsert(table.frame(("a", "eu", ts, 1.5, "ours"), (f"m{ts}", "us", ts, None, "ours")))
        table.expected = merge(table.expected, (("a", "eu", ts, 1.5, "ours"), (f"m{ts}", "us", ts, None, "ours")))
    service = table.open(**soon)
    dead = Shared(jvm, spark, f"{path}-dead", "COPY_ON_WRITE", expected=table.expected)
    with paused(service, StopPoint.SERVICE_INFLIGHT, service.services.serve_metadata_table):
        shutil.copytree(path, dead.path)
    let_time_pass(dead.path)
    own = Timeline.load(dead.open().table.storage, OLD_METADATA_LAYOUT)
    (begun,) = own.pending(("compaction",))
    if goes_on == "jvm":
        dead.theirs(("a", "eu", 5, 2.5, "theirs"), ("b", "eu", 5, 1.0, "theirs"), **BY_RECORD, **THEIRS)
    else:
        mine = (("a", "eu", 5, 2.5, "ours"), ("b", "eu", 5, 1.0, "ours"))
        dead.open(**ours).upsert(dead.frame(*mine))
        dead.expected = merge(dead.expected, mine)
        dead.check()
        os.utime(Path(dead.path, OLD_METADATA_LAYOUT.path(begun.as_requested())), (0, 0))
        done = dead.open(**soon).services.serve_metadata_table().compactions
        assert done[:1] == (begun.requested,), done
    assert begun.requested in list_compactions(dead)
    dead.check()
    dead.theirs(("m2", "us", 6, 2.0, "theirs"), **BY_RECORD, **THEIRS)
    dead.open(**ours).upsert(dead.frame(("m3", "us", 7, 2.0, "ours")))
    dead.expected = merge(dead.expected, (("m3", "us", 7, 2.0, "ours"),))
    dead.check()
    assert verify_table(dead.open().table.storage, reads_keys=True).damages == ()
