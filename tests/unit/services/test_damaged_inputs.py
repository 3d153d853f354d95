"""Services refuse a table of which files are lost or cut off before they begin anything."""

from __future__ import annotations

from typing import Any

import pytest
from clustering_desk import ClusteringDesk
from compaction_desk import CompactionDesk

from hudi_locks.errors import DamagedTable
from hudi_locks.format import BaseFileName, LogFileName
from hudi_locks.services import TableServices
from hudi_locks.table import create_partition_metadata, latest_base_files


def names(desk: Any) -> list[str]:
    return sorted(path for path, _ in desk.storage.walk("") if not path.endswith("/head"))


def test_an_emptied_log_is_not_compacted(desk: Any) -> None:
    at_desk = CompactionDesk.at(desk)
    first = at_desk.append("g-0")
    at_desk.append("g-0")
    compaction = at_desk.compaction()
    assert compaction.schedule()
    sound = desk.storage.read(log := f"p/{LogFileName('g-0', first)}")
    desk.storage.replace(log, b"")
    before = names(desk)
    with pytest.raises(DamagedTable, match="has 0 bytes"):
        compaction.take()
    with pytest.raises(DamagedTable, match="has 0 bytes"):
        compaction.schedule()
    assert names(desk) == before
    desk.storage.replace(log, sound)
    assert at_desk.run(compaction)


def test_a_lost_base_file_is_not_left_out_of_clustering_and_savepoints(desk: Any) -> None:
    at_desk = ClusteringDesk.at(desk)
    at_desk.commit("g-0", "h-0")
    last = at_desk.commit("g-0")
    clustering = at_desk.clustering()
    assert clustering.schedule()
    sound = desk.storage.read(path := f"p/{BaseFileName('g-0', last)}")
    desk.storage.delete(path)
    before = names(desk)
    for act in (clustering.take, TableServices(desk.open(), {}).savepoints.create):
        with pytest.raises(DamagedTable, match="is gone"):
            act()
        assert names(desk) == before
    desk.storage.replace(path, sound)
    assert at_desk.run(clustering)


def test_a_restore_is_the_way_out_of_a_lost_file(desk: Any) -> None:
    create_partition_metadata(desk.storage, "p", instant="0")
    desk.put("p/g-0")
    services = TableServices(desk.open(), {})
    kept = services.savepoints.create()
    lost = desk.put("p/g-0")
    desk.storage.delete(f"p/{BaseFileName('g-0', lost)}")
    with pytest.raises(DamagedTable, match="restore the table to a savepoint"):
        latest_base_files(desk.storage, desk.timeline())
    assert services.restore(kept.instant).undone == (lost,)
    assert [file.instant for file in latest_base_files(desk.storage, desk.timeline())] == [kept.instant]
