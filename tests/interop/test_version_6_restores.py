"""Merge-on-read tables of version 6 that this package takes back in time, beside JVM Hudi, whose logs stay behind."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from metadata_turns import BY_BUCKET, BY_KEY
from old_turns import BY_RECORD, FIRST, OLD, THEIRS, begin, let_time_pass, open_several
from other_readers import JvmError
from paused_writes import paused
from table_lives import merge

from hudi_locks.format import MetadataPartition
from hudi_locks.metadata_table import MetadataTable
from hudi_locks.table import list_data_files
from hudi_locks.transaction import StopPoint

pytestmark = [
    pytest.mark.interop,
    pytest.mark.parametrize("jvm", OLD, indirect=True, ids=["0.15.0-v6", "1.2.0-v6"]),
]

LOGS = {"hoodie__compact__inline": "false"}
LOGGED = (BY_KEY, pytest.param(BY_BUCKET, marks=pytest.mark.nightly))


@pytest.mark.parametrize("kind", LOGGED)
@pytest.mark.parametrize("is_run", [True, False])
def test_a_compaction_that_was_planned_before_outlives_the_restore(
    spark: Any, jvm: Any, path: str, kind: str, is_run: bool
) -> None:
    table = begin(jvm, spark, path, kind)
    planned = table.open().compaction.schedule()
    assert planned is not None
    table.asks_rust = False
    with table.unwatched():
        table.open(**LOGS).upsert(table.frame(("a", "eu", 3, 3.0, "ours"), ("n", "us", 3, 3.0, "ours")))
        table.expected = merge(table.expected, (("a", "eu", 3, 3.0, "ours"), ("n", "us", 3, 3.0, "ours")))
    kept, before = table.open().services.savepoints.create(), table.expected
    with table.unwatched():
        table.theirs(("a", "eu", 4, 4.0, "theirs"), ("k", "new", 4, 4.0, "theirs"), **LOGS, **THEIRS)
        if is_run:
            assert table.open().compaction.execute(planned) is not None
        table.theirs(("a", "eu", 5, 5.0, "theirs"), ("o", "other", 5, 5.0, "theirs"), **LOGS, **THEIRS)
    assert table.open().services.restore(kept.instant).deleted >= 3
    table.expected = before
    table.check()
    table.theirs(("a", "eu", 6, 6.0, "theirs"), ("q", "us", 6, 6.0, "theirs"), **LOGS, **THEIRS)
    if not is_run:
        assert table.open().compaction.execute(planned) is not None
        table.check()
    table.asks_rust = True
    table.ours(("a", "eu", 7, 7.0, "ours"))
    assert table.open().compaction.run() is not None
    table.theirs(("o", "other", 8, 8.0, "theirs"), **THEIRS)


@pytest.mark.parametrize("kind", LOGGED)
def test_a_restore_of_the_jvm_that_failed_is_finished(spark: Any, jvm: Any, path: str, kind: str) -> None:
    if jvm.version != "0.15.0":
        pytest.skip("unsupported: later releases do not fail there")
    table = begin(jvm, spark, path, kind)
    kept, before = table.open().services.savepoints.create(), table.expected
    with table.unwatched():
        for ts in range(3, 8):  # so many that the JVM compacts its metadata table, and cannot go back behind that
            table.theirs(("a", "eu", ts, 4.0, "theirs"), ("b", "eu", ts, None, "theirs"), **THEIRS)
    with pytest.raises(JvmError, match="no base file in MDT"):
        jvm.sql(f"call rollback_to_savepoint(path => '{path}', instant_time => '{kept.instant}')")
    assert table.open().table.timeline().pending(("restore",))
    table.open().services.restore(kept.instant)
    assert table.open().table.timeline().pending() == ()
    table.expected = before
    table.check()
    table.theirs(("a", "eu", 9, 6.0, "theirs"), **THEIRS)
    table.ours(("b", "eu", 10, 7.0, "ours"))


@pytest.mark.nightly
@pytest.mark.parametrize("point", [StopPoint.SERVICE_INFLIGHT, StopPoint.RESTORE_UNDONE, StopPoint.SERVICE_DONE])
def test_a_restore_of_ours_that_died_is_gone_on_from(spark: Any, jvm: Any, path: str, point: StopPoint) -> None:
    table = begin(jvm, spark, path, BY_KEY)
    kept, before = table.open().services.savepoints.create(), table.expected
    with table.unwatched():
        table.theirs(("a", "eu", 3, 4.0, "theirs"), ("q", "us", 3, None, "theirs"), **LOGS, **THEIRS)
        table.ours(("a", "eu", 4, 4.0, "ours"), ("z", "last", 4, None, "ours"))
    service = open_several(table)
    dead = type(table)(jvm, spark, f"{path}-dead", BY_KEY, expected=before)
    with paused(service, point, lambda: service.services.restore(kept.instant)):
        shutil.copytree(path, dead.path)
    let_time_pass(dead.path)
    dead.open().services.restore(kept.instant)
    dead.check()
    dead.theirs(("a", "eu", 9, 6.0, "theirs"), **THEIRS)
    dead.ours(("q", "us", 10, 7.0, "ours"))


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", BY_KEY])
def test_a_record_index_is_made_anew_after_it(spark: Any, jvm: Any, path: str, kind: str) -> None:
    table = type(begin(jvm, spark, f"{path}-other", kind))(jvm, spark, path, kind)
    table.theirs(*FIRST, **BY_RECORD, **THEIRS)
    kept, before = table.open().services.savepoints.create(), table.expected
    with table.unwatched():
        table.theirs(("a", "eu", 3, 4.0, "theirs"), ("q", "us", 3, None, "theirs"), **BY_RECORD, **THEIRS)
    ours = {"hoodie__index__type": "RECORD_INDEX", **BY_RECORD, **THEIRS}
    assert table.open(**ours).services.restore(kept.instant).indexed_keys == len(before)
    table.expected = before
    table.check()
    made = MetadataTable.of(table.open().table.storage, table.open().table.config)
    assert made is not None
    assert MetadataPartition.RECORD_INDEX in made.parts
    table.theirs(("q", "us", 4, 2.0, "theirs"), ("a", "eu", 4, 3.0, "theirs"), **BY_RECORD, **THEIRS)
    assert list_data_files(table.open().table.storage).bases
