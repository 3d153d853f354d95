"""Tables of which a file is lost or cut off: nothing is shown of them, and nothing built on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_locks.errors import DamagedTable
from hudi_locks.spark import HoodieTable
from hudi_locks.verification import verify_table

pytestmark = pytest.mark.spark

LOGS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "in_process",
}
Frame = Callable[..., Any]
Create = Callable[..., HoodieTable]
RowsOf = Callable[..., list[tuple[Any, ...]]]


def completed(table: HoodieTable) -> list[str]:
    return [instant.requested for instant in table.table.timeline().completed_between("")]


def refused(act: Callable[[], Any], file: Path) -> None:
    with pytest.raises(DamagedTable, match="hudi-locks verify") as caught:
        act()
    assert file.name in str(caught.value.path)


@pytest.mark.parametrize("harm", [Path.unlink, lambda file: file.write_bytes(b"")])
def test_a_lost_base_file_is_neither_read_over_nor_built_on(
    create: Create, frame: Frame, rows_of: RowsOf, path: str, harm: Callable[[Path], Any]
) -> None:
    table = create()
    first = table.upsert(frame([("a", "1", 1, 1.0), ("b", "2", 1, 1.0)]))
    second = table.upsert(frame([("a", "1", 2, 2.0)]))
    assert verify_table(table.table.storage).findings == ()
    [file] = Path(path).glob(f"1/*_{second.instant}.parquet")
    sound, before = file.read_bytes(), completed(table)
    harm(file)
    for act in (
        table.read,
        lambda: table.as_of(second.completion_time),
        lambda: table.incremental(first.completion_time),
        lambda: table.change_data(first.completion_time),
        lambda: table.upsert(frame([("a", "1", 3, 3.0)])),
        lambda: table.delete(frame([("a", "1")], "id string, month string")),
        lambda: table.clustering.run(),
        lambda: table.services.savepoints.create(),
    ):
        refused(act, file)
    assert rows_of(table.as_of(first.completion_time), "id", "ts") == [("a", 1), ("b", 1)]
    assert rows_of(table.read(partitions="2"), "id", "ts") == [("b", 1)]
    assert completed(table) == before
    assert {finding.path for finding in verify_table(table.table.storage).damages} == {f"1/{file.name}"}
    file.write_bytes(sound)
    table.upsert(frame([("a", "1", 3, 3.0)]))
    assert rows_of(table, "id", "ts") == [("a", 3), ("b", 1)]


@pytest.mark.parametrize("harm", [Path.unlink, lambda file: file.write_bytes(b"")])
def test_a_lost_log_is_neither_read_over_nor_compacted(
    create: Create, frame: Frame, rows_of: RowsOf, path: str, harm: Callable[[Path], Any]
) -> None:
    table = create(table_type="MERGE_ON_READ", options=LOGS)
    first = table.upsert(frame([("a", "1", 1, 1.0), ("b", "1", 1, 1.0)]))
    second = table.upsert(frame([("a", "1", 2, 2.0)]))
    table.upsert(frame([("b", "1", 3, 3.0)]))
    assert verify_table(table.table.storage).findings == ()
    [file] = Path(path).glob(f"1/.*_{second.instant}.log.*")
    sound = file.read_bytes()
    harm(file)
    for act in (
        table.read,
        lambda: table.as_of(second.completion_time),
        lambda: table.incremental(first.completion_time),
        lambda: table.compaction.run(),
        lambda: table.log_compaction.run(),
    ):
        refused(act, file)
    assert rows_of(table.as_of(first.completion_time), "id", "ts") == [("a", 1), ("b", 1)]
    file.write_bytes(sound)
    assert table.compaction.run() is not None
    assert rows_of(table, "id", "ts") == [("a", 2), ("b", 3)]
    assert verify_table(table.table.storage).is_sound
