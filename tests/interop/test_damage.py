"""What services of the JVM take away is no damage to our readers, writers and `verify`; what is lost is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bucketed_tables import THEIRS, TOGETHER, rows, run_compaction
from other_readers import OURS, SCHEMA
from small_tables import THEIR_SERVICES

from hudi_locks.errors import DamagedTable
from hudi_locks.format import LogFileName
from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.interop

Row = tuple[Any, ...]
Create = Callable[..., HoodieTable]
Frame = Callable[..., Any]
AllRead = Callable[[HoodieTable], list[Row]]


def judged(table: HoodieTable) -> list[str]:
    return [str(finding) for finding in verify_table(table.table.storage).damages]


def test_what_the_jvm_replaces_clusters_cleans_and_archives_is_no_damage(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead
) -> None:
    table = create()
    for n in range(4):
        jvm.write(
            table, [(f"k{n}", region, n, 1.0, "x") for region in ("eu", "us", "asia")], "insert", **THEIR_SERVICES
        )
        assert judged(table) == []
    assert len(all_read(table)) == 12
    jvm.write(table, [("k0", "eu", 9, 1.0, "over")], "insert_overwrite", **THEIR_SERVICES)
    assert len(all_read(table)) == 9
    jvm.write(
        table, [], "delete_partition", hoodie__datasource__write__partitions__to__delete="region=us", **THEIR_SERVICES
    )
    assert len(all_read(table)) == 5
    jvm.cluster(table, "scheduleAndExecute")
    for n in range(5, 12):
        jvm.write(table, [("k0", "eu", 10 + n, 1.0, "later")], "upsert", **THEIR_SERVICES)
        assert table.read().count() == 5
        assert judged(table) == []
    table.upsert(frame([("k0", "asia", 50, 1.0, "ours")]))
    assert len(all_read(table)) == 5
    assert judged(table) == []


@pytest.mark.nightly
def test_compactions_and_cleans_of_the_jvm_leave_no_damage_and_a_cut_log_is_some(
    jvm: Any, create: Create, frame: Frame
) -> None:
    table = create(table_type="MERGE_ON_READ", options=TOGETHER)
    services = {**THEIRS, **THEIR_SERVICES}
    for n in range(1, 7):
        jvm.write(table, rows(["a", "b", "c"], n, "theirs"), **services)
        if n % 2 == 0:
            run_compaction(jvm, table, "scheduleAndExecute")
        assert {row.ts for row in table.read().collect()} == {n}
        assert judged(table) == []
    table.upsert(frame(rows(["a"], 9, "ours")))
    jvm.write(table, rows(["b", "c"], 9, "theirs"), **services)
    assert {row.ts for row in table.read().collect()} == {9}
    logs = newest(table)
    assert len(logs) >= 2
    for log in logs:
        sound = log.read_bytes()
        log.write_bytes(b"")
        with pytest.raises(DamagedTable, match="has 0 bytes"):
            table.read()
        assert judged(table)
        log.write_bytes(sound)
    assert judged(table) == []


@pytest.mark.nightly
def test_statistics_that_a_rollback_of_the_jvm_after_its_restore_made_hide_rows_until_they_are_made_anew(
    jvm: Any, spark: Any, path: str
) -> None:
    if jvm.version != "1.2.0":
        pytest.skip("unsupported: only this release is known to do so")
    with_it = {"hoodie.metadata.enable": "true"}
    for ts in (1, 2):
        jvm.put(path, rows(["a", "b"], ts, "theirs"), SCHEMA, options=with_it, operation="insert_overwrite")
    table = HoodieTable.load(spark, path, options=OURS)
    kept = table.services.savepoints.create().instant
    jvm.put(path, rows(["a", "b"], 3, "theirs"), SCHEMA, options=with_it, operation="insert_overwrite")
    jvm.sql(f"create table hiding using hudi location '{path}'")
    jvm.sql(f"call rollback_to_savepoint(table => 'hiding', instant_time => '{kept}')")
    table.services.savepoints.delete(kept)
    jvm.sql(f"call rollback_to_instant(table => 'hiding', instant_time => '{kept}')")
    asked = {"path": path, "options": with_it, "columns": ["id"], "where": "ts = 1"}
    assert jvm.ask("read", **asked).result(600) == []
    assert any("statistics of its partition" in told for told in judged(table))
    table.services.make_metadata_table(anew=True)
    assert judged(table) == []
    assert sorted(jvm.ask("read", **asked).result(600)) == [["a"], ["b"]]


def newest(table: HoodieTable) -> list[Path]:
    """Logs of writes that were completed since the last compaction was planned."""
    timeline = table.table.timeline()
    last = max((instant.requested for instant in timeline.completed(("commit",))), default="")
    since = {instant.requested for instant in timeline.completed(("deltacommit",)) if str(instant.completion) > last}
    found = ((file, LogFileName.parse(file.name)) for file in Path(table.path, "region=eu").iterdir())
    return [file for file, name in found if name is not None and name.instant in since]
