"""Tables of version 6 that JVM Hudi and this package write in turns, with their metadata table.

Names tell no completion time there, logs are named by the base file below them, and the archive is one of logs.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_conformance.servers import Server
from metadata_turns import BY_BUCKET, BY_KEY, OPTIONS, WITH_IT, Shared
from old_turns import BY_RECORD, CLEANS, FIRST, OLD, THEIRS, begin, compact, let_time_pass, open_several
from other_readers import read_rust
from paused_writes import paused
from soak.fleet import FleetPlan
from soak.judgement import read_ours
from soak.services import describe_service
from soak.soaking import render_outcome, soak_fleet
from table_lives import collect, merge

from hudi_locks.errors import UnsupportedTable
from hudi_locks.metadata_table import OLD_METADATA_LAYOUT
from hudi_locks.spark import HoodieTable
from hudi_locks.table import list_data_files
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.archive import is_archived
from hudi_locks.transaction import StopPoint
from hudi_locks.verification import verify_table

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("jvm", OLD, indirect=True, ids=["0.15.0-v6", "1.2.0-v6"]),
]

KINDS = ("COPY_ON_WRITE", BY_KEY, BY_BUCKET)
LOGGED = (BY_KEY, BY_BUCKET)


@pytest.mark.parametrize("kind", KINDS)
def test_both_write_in_turns_and_every_reader_sees_every_row(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = begin(jvm, spark, path, kind)
    table.theirs(("b", "eu", 3, 6000.0, "theirs"), ("n", "new", 3, 0.0, "theirs"), **THEIRS)
    gone = [row for row in table.expected if row[0] in ("c", "n")]
    table.open().delete(table.frame(*((*row[:2], 4, *row[3:]) for row in gone)))
    table.expected = [row for row in table.expected if row not in gone]
    table.check()
    table.ours(("z", "last", 6, 1e9, "ours"), ("c", "us", 6, 8.0, "ours"))
    for ts in range(7, 12):  # so many that the JVM compacts its metadata table, and our next log lies on that
        table.theirs(("k", "new", ts, 1.5, "theirs"), **THEIRS)
    table.ours(("k", "new", 12, -1.0, "ours"), ("b", "eu", 12, -2.0, "ours"))
    own = Timeline.load(table.open().table.storage, OLD_METADATA_LAYOUT)
    assert [one.action for one in own.completed(("commit",))], "the metadata table was not compacted"
    replaced = [row for row in table.expected if row[1] == "eu"]
    table.open().insert_overwrite(table.frame(("o", "eu", 13, 0.5, "over")))
    table.expected = sorted([("o", "eu", 13, 0.5, "over"), *(r for r in table.expected if r not in replaced)])
    table.check()
    table.theirs(("o", "eu", 14, 1.5, "theirs"), ("a", "eu", 14, 2.5, "theirs"), **THEIRS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_of_either_that_died_is_rolled_back_by_the_other(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = begin(jvm, spark, path, kind)
    points = (
        StopPoint.PUBLISH_CLAIMED,
        StopPoint.PUBLISH_METADATA_BEGUN,
        StopPoint.PUBLISH_NAMED,
        StopPoint.PUBLISH_METADATA_COMPLETED,
    )
    for number, point in enumerate(points):
        writer, rows = open_several(table), table.frame(("a", "eu", 3, 3.0, "dead"), ("d", "eu", 3, 3.0, "dead"))
        dead = Shared(jvm, spark, f"{path}-{number}", kind, expected=table.expected)
        with paused(writer, point, lambda writer=writer, rows=rows: writer.upsert(rows)):  # type: ignore[misc]
            shutil.copytree(path, dead.path)
        shutil.rmtree(path)
        shutil.copytree(dead.path, path)
        for place in (path, dead.path):
            let_time_pass(place)
        dead.theirs(("b", "eu", 4, 4.0, "theirs"), **CLEANS, **THEIRS)
        dead.ours(("a", "eu", 5, 5.0, "ours"))
        assert HoodieTable.load(spark, dead.path).table.timeline().completed(("rollback",))
        table.expected = [row for row in table.expected if row[0] != "a"]
        table.expected = sorted([*table.expected, ("a", "eu", 3, 3.0, "dead"), ("d", "eu", 3, 3.0, "dead")])
        table.ours(("m", "us", 6 + number, 6.0, "ours"))  # which finishes what was claimed


@pytest.mark.parametrize("kind", KINDS)
def test_ours_rolls_back_what_a_jvm_left_and_tells_the_metadata_table(
    spark: Any, jvm: Any, path: str, kind: str
) -> None:
    table = begin(jvm, spark, path, kind)
    shown = table.expected
    table.theirs(("a", "eu", 8, 8.0, "dead"), ("e", "eu", 8, 8.0, "dead"), **THEIRS)
    timeline = table.open().table.timeline()
    dead = timeline.completed()[-1]
    completed = Path(path, timeline.paths[dead])
    completed.with_name(f".{completed.name}.crc").unlink()
    completed.unlink()
    table.expected = shown
    table.ours(("b", "eu", 9, 9.0, "ours"))
    assert table.open().table.timeline().completed(("rollback",))
    table.theirs(("e", "eu", 10, 10.0, "theirs"), **THEIRS)


@pytest.mark.parametrize("kind", LOGGED)
def test_a_compaction_that_a_write_did_not_know_of_is_a_conflict(spark: Any, jvm: Any, path: str, kind: str) -> None:
    """Its logs would be named by the base file that is about to be replaced without them."""
    table = begin(jvm, spark, path, kind)
    table.theirs(("a", "eu", 3, 3.0, "theirs"), **THEIRS)
    writer = open_several(table, hoodie__write__num__retries__on__conflict__failures="1")
    with paused(
        writer, StopPoint.BEGIN_INFLIGHT, lambda: writer.upsert(table.frame(("a", "eu", 4, 4.0, "ours")))
    ) as it:
        compact(table, "schedule")
    assert it.error is None, it.error
    assert it.result.retries == 1
    table.expected = [row if row[0] != "a" else ("a", "eu", 4, 4.0, "ours") for row in table.expected]
    without = {"hoodie.metadata.enable": "false"}
    assert collect(table.open().read()) == table.read(WITH_IT) == table.read(without) == table.expected
    (begun,) = table.open().table.timeline().pending(("compaction",))
    above = [log for log in list_data_files(table.open().table.storage).logs if log.instant == begun.requested]
    assert above, "the log is not named by the compaction that is planned"
    compact(table, "execute")
    table.check()
    table.ours(("a", "eu", 5, 5.0, "ours"))


def test_what_the_jvm_archives_is_known_still(spark: Any, jvm: Any, path: str) -> None:
    table = begin(jvm, spark, path, "COPY_ON_WRITE")
    first = table.open().table.timeline().completed()[0].requested
    few = {"hoodie__keep__min__commits": "4", "hoodie__keep__max__commits": "5"}
    clean = {"hoodie__clean__automatic": "true", "hoodie__clean__commits__retained": "2"}
    for ts in range(3, 12):
        table.theirs(("b", "eu", ts, 3.0, "theirs"), **few, **clean, **THEIRS)
    opened = table.open().table
    assert opened.timeline().get(first) is None
    assert is_archived(opened.storage, opened.layout, requested=first)
    assert not is_archived(opened.storage, opened.layout, requested=f"{int(first) + 1}")
    table.ours(("b", "eu", 12, 4.0, "ours"))


@pytest.mark.parametrize("kind", KINDS)
def test_cleans_savepoints_and_restores_are_understood(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = begin(jvm, spark, path, kind)
    services = table.open().services
    kept, before = services.savepoints.create(), table.expected
    table.theirs(("a", "eu", 3, 9000.0, None), ("q", "us", 3, 1.0, "theirs"), **THEIRS)
    table.ours(("a", "eu", 4, 9500.0, "ours"))
    assert services.restore(kept.instant).deleted
    table.expected = before
    table.check()
    services.savepoints.delete(kept.instant)
    table.ours(("a", "eu", 5, 1.0, "ours"))
    if kind != "COPY_ON_WRITE":
        for _ in range(2):
            compact(table, "schedule")
            compact(table, "execute")
            table.ours(("a", "eu", 6, 1.0, "ours"))
    table.ours(("a", "eu", 6, 1.0, "ours"))
    logs = {log.path for log in list_data_files(table.open().table.storage).logs}
    assert table.open(hoodie__clean__commits__retained="1").services.clean().deleted
    left = {log.path for log in list_data_files(table.open().table.storage).logs}
    assert left < logs or kind == "COPY_ON_WRITE"
    table.check()
    table.theirs(("a", "eu", 7, 2.0, "theirs"), **THEIRS)


def test_what_version_6_cannot_have_is_refused_by_name(spark: Any, jvm: Any, path: str) -> None:
    table = begin(jvm, spark, path, BY_BUCKET)
    opened = table.open()
    with pytest.raises(UnsupportedTable, match="of a table of version 6 is left to JVM Hudi"):
        opened.log_compaction.schedule()


@pytest.mark.parametrize("kind", KINDS)
def test_jvm_writers_join_a_table_of_ours(spark: Any, jvm: Any, path: str, kind: str) -> None:
    index = {key: value for key, value in OPTIONS[kind].items() if kind == BY_BUCKET}
    settings = {"name": "t", "record_key": "id", "partition_by": "region", "ordering": "ts"}
    made = {"hoodie.write.table.version": "6", "hoodie.datasource.write.hive_style_partitioning": "true", **index}
    HoodieTable.create(spark, path, table_type=kind.split()[0], options=made, **settings)
    table = Shared(jvm, spark, path, kind)
    by_time = {"hoodie__datasource__write__payload__class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}
    without = {"hoodie__metadata__enable": "false", **by_time, **THEIRS}
    table.ours(*FIRST, ("k", "new", 1, 1.0, "ours"))
    table.theirs(("a", "eu", 2, 2.0, "theirs"), ("m", "us", 2, 2.0, "theirs"), **without)
    table.open().upsert(table.frame(("a", "eu", 1, 9.0, "older"), ("m", "us", 3, 3.0, "ours")))
    table.expected = [row if row[0] != "m" else ("m", "us", 3, 3.0, "ours") for row in table.expected]
    table.check()
    table.theirs(("m", "us", 4, 4.0, "theirs"), ("n", "last", 4, 4.0, "theirs"), **without)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", BY_KEY])
def test_both_keep_the_record_index_and_find_keys_by_it(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = Shared(jvm, spark, path, kind)
    table.theirs(*FIRST, **BY_RECORD, **THEIRS)
    ours = {"hoodie__index__type": "RECORD_INDEX", **THEIRS}
    for ts in range(2, 9):
        mine = (("a", "eu", ts, 1.5, "ours"), (f"m{ts}", "us", ts, None, "ours"))
        table.open(**ours).upsert(table.frame(*mine))
        table.expected = merge(table.expected, mine)
        table.check()
        table.theirs((f"m{ts}", "us", ts, 2.5, "theirs"), ("b", "eu", ts, 1.0, "theirs"), **BY_RECORD, **THEIRS)
    own = Timeline.load(table.open().table.storage, OLD_METADATA_LAYOUT)
    assert [one.action for one in own.completed(("commit",))], "the metadata table was not compacted"
    gone = [row for row in table.expected if row[0] in ("m2", "c")]
    table.open(**ours).delete(table.frame(*((*row[:2], 10, *row[3:]) for row in gone)))
    table.expected = [row for row in table.expected if row not in gone]
    table.check()
    table.theirs(("m2", "us", 11, 2.0, "again"), **BY_RECORD, **THEIRS)
    storage = table.open().table.storage
    assert verify_table(storage, reads_keys=True).damages == ()


@pytest.mark.nightly
@pytest.mark.parametrize("keeps_metadata", [True, False])
def test_writers_of_both_kinds_at_once_leave_what_a_serial_replay_gives(
    tmp_path: Path, jvm: Any, zookeeper: Server, keeps_metadata: bool
) -> None:
    service = describe_service("zookeeper", zookeeper.options)
    facts: dict[str, Any] = {"commits": 6, "seed": 6, "version": 6, "keeps_metadata": keeps_metadata}
    plan = FleetPlan(str(tmp_path / "table"), tmp_path / "events.jsonl", service, **facts)
    readers = {"this package": read_ours, "hudi-rs": read_rust, f"JVM {jvm.version}": jvm.read_path}
    outcome = soak_fleet(plan, [jvm, jvm], readers, print)
    assert outcome.ok, render_outcome(outcome)
