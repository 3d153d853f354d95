"""Table services beside the JVM: each reads what the other left, and goes on from there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_tables import KEEP, THEIR_SERVICES, archive_now, archived

from hudi_locks.format import BaseFileName
from hudi_locks.spark import HoodieTable
from hudi_locks.table import list_partitions

pytestmark = pytest.mark.interop

Row = tuple[Any, ...]
Create = Callable[..., HoodieTable]
Frame = Callable[..., Any]
AllRead = Callable[[HoodieTable], list[Row]]
ROWS: list[Row] = [("a", "us_west", 1, 1.5, "first"), ("b", "us_west", 1, None, None), ("c", "eu", 1, 0.5, "")]


def updated(n: int) -> list[Row]:
    return [("a", "us_west", n, float(n), f"update {n}")]


def state(n: int) -> list[Row]:
    return sorted([*updated(n), *ROWS[1:]], key=repr)


def versions(table: HoodieTable) -> list[str]:
    """Instants of the files of the group that is updated."""
    names = [BaseFileName.parse(file.name) for file in Path(table.path, "region=us_west").glob("*.parquet")]
    return sorted(name.instant for name in names if name)


def test_cleaning_and_archival_of_both_kinds_go_on_from_each_other(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead
) -> None:
    table = create(options={**KEEP, "hoodie.archive.automatic": "false"})
    table.bulk_insert(frame(ROWS))
    times = [table.upsert(frame(updated(n))).instant for n in range(2, 6)]
    assert versions(table) == times[-2:]
    assert archive_now(table) > 0
    ours = jvm.archived(table)
    assert ours == archived(table)
    assert {action for _, _, action in ours} <= {"commit", "clean"}
    assert all_read(table) == state(5)

    for n in (6, 7, 8):
        jvm.write(table, updated(n), **THEIR_SERVICES)
    assert len(versions(table)) == 2
    theirs = jvm.archived(table)
    assert len(theirs) > len(ours)
    assert theirs == archived(table)
    assert all_read(table) == state(8)

    times = [table.upsert(frame(updated(n))).instant for n in (9, 10, 11)]
    assert versions(table) == times[-2:]
    assert archive_now(table) > 0
    assert jvm.archived(table) == archived(table)
    assert len(archived(table)) > len(theirs)
    jvm.write(table, updated(12), **THEIR_SERVICES)
    assert all_read(table) == state(12)
    assert set(list_partitions(table.table.storage)) == {"region=eu", "region=us_west"}


def test_savepoints_and_restores_of_both_kinds_are_understood(
    jvm: Any, create: Create, frame: Frame, all_read: AllRead
) -> None:
    table = create(options=KEEP)
    table.bulk_insert(frame(ROWS))
    table.upsert(frame(updated(2)))
    kept = table.services.savepoints.create(user="ours", comments="before")
    for n in (3, 4, 5):
        jvm.write(table, updated(n), **THEIR_SERVICES)
    assert kept.instant in versions(table)
    assert table.services.restore(kept.instant).savepoint == kept.instant
    assert versions(table)[-1] == kept.instant
    assert all_read(table) == state(2)

    jvm.write(table, updated(6))
    table.upsert(frame(updated(7)))
    assert all_read(table) == state(7)
    jvm.sql(f"call rollback_to_savepoint(path => '{table.path}', instant_time => '{kept.instant}')")
    assert all_read(table) == state(2)
    table.upsert(frame(updated(8)))
    assert all_read(table) == state(8)
