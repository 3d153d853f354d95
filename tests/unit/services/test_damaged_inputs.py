"""Services refuse a table of which files are lost or cut off before they begin anything."""

from __future__ import annotations

from typing import Any

import pytest
from clustering_harness import ClusteringHarness
from compaction_harness import CompactionHarness

from hudi_locks.errors import DamagedTable
from hudi_locks.format import BaseFileName, LogFileName
from hudi_locks.services import TableServices
from hudi_locks.table import create_partition_metadata, latest_base_files


def names(harness: Any) -> list[str]:
    return sorted(path for path, _ in harness.storage.walk("") if not path.endswith("/head"))


def test_an_emptied_log_is_not_compacted(harness: Any) -> None:
    service = CompactionHarness.at(harness)
    first = service.append("g-0")
    service.append("g-0")
    compaction = service.compaction()
    assert compaction.schedule()
    sound = harness.storage.read(log := f"p/{LogFileName('g-0', first)}")
    harness.storage.replace(log, b"")
    before = names(harness)
    with pytest.raises(DamagedTable, match="has 0 bytes"):
        compaction.take()
    with pytest.raises(DamagedTable, match="has 0 bytes"):
        compaction.schedule()
    assert names(harness) == before
    harness.storage.replace(log, sound)
    assert service.run(compaction)


def test_a_lost_base_file_is_not_left_out_of_clustering_and_savepoints(harness: Any) -> None:
    service = ClusteringHarness.at(harness)
    service.commit("g-0", "h-0")
    last = service.commit("g-0")
    clustering = service.clustering()
    assert clustering.schedule()
    sound = harness.storage.read(path := f"p/{BaseFileName('g-0', last)}")
    harness.storage.delete(path)
    before = names(harness)
    for act in (clustering.take, TableServices(harness.open(), {}).savepoints.create):
        with pytest.raises(DamagedTable, match="is gone"):
            act()
        assert names(harness) == before
    harness.storage.replace(path, sound)
    assert service.run(clustering)


def test_a_restore_is_the_way_out_of_a_lost_file(harness: Any) -> None:
    create_partition_metadata(harness.storage, "p", instant="0")
    harness.put("p/g-0")
    services = TableServices(harness.open(), {})
    kept = services.savepoints.create()
    lost = harness.put("p/g-0")
    harness.storage.delete(f"p/{BaseFileName('g-0', lost)}")
    with pytest.raises(DamagedTable, match="restore the table to a savepoint"):
        latest_base_files(harness.storage, harness.timeline())
    assert services.restore(kept.instant).undone == (lost,)
    assert [file.instant for file in latest_base_files(harness.storage, harness.timeline())] == [kept.instant]
