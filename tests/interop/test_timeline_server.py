"""Our timeline server before Hudi's own client, and its markers before a rollback of the JVM."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from other_readers import Rows

from hudi_locks.errors import WriteError
from hudi_locks.markers import ServerFiles, read_markers
from hudi_locks.spark import HoodieTable
from hudi_locks.storage import LocalStorage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.timeline.heartbeat import heartbeat_path
from hudi_locks.timeline_server.standalone import make_standalone

pytestmark = pytest.mark.interop

Create = Callable[..., HoodieTable]
Frame = Callable[[Rows], Any]
EARLIER, NOW = "20260101000000001", "20260101000000002"
EARLY = {"hoodie.write.concurrency.early.conflict.detection.enable": "true"}
NAMES = [
    ["region=eu", f"g-0_0-1-2_{NOW}.parquet", "MERGE"],
    ["", f"h-0_0-1-2_{NOW}.parquet", "CREATE"],
    ["region=eu", f".g-0_{NOW}.log.1_0-1-2", "CREATE"],
]
TEXTS = sorted(f"{partition}/{file}.marker.{kind}".lstrip("/") for partition, file, kind in NAMES)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


@pytest.fixture
def port(storage: LocalStorage) -> Iterator[int]:
    """Of a server for the table, without a token, as JVM clients have none."""
    with make_standalone(storage, LAYOUT_2, EARLY, token="", place=("127.0.0.1", 0)) as server:
        yield int(server.url.rpartition(":")[2])


def test_hudis_client_makes_lists_and_removes_markers(jvm: Any, storage: LocalStorage, port: int) -> None:
    found = jvm.mark(storage.base, NOW, port, NAMES)
    assert found == {
        "made": [True] * 3,
        "all": TEXTS,
        "data_files": sorted(text.partition(".marker")[0] for text in TEXTS),
    }
    assert sorted(str(name) for name in read_markers(storage, NOW).names) == TEXTS
    assert jvm.mark(storage.base, NOW, port, NAMES[:1])["made"] == [False]
    assert jvm.unmark(storage.base, NOW, port) == [True, True, False]


def test_hudis_client_hears_of_a_conflict_and_of_no_other(jvm: Any, storage: LocalStorage, port: int) -> None:
    for requested in (EARLIER, NOW):
        storage.create_if_absent(heartbeat_path(requested), b"")
    ServerFiles(storage, f".hoodie/.temp/{EARLIER}").write(0, [TEXTS[1].replace(NOW, EARLIER)])
    partition, data_file, kind = NAMES[0]
    earlier = [[partition, data_file.replace(NOW, EARLIER), kind]]
    assert jvm.mark(storage.base, EARLIER, port, earlier, early=True)["made"] == [True]
    assert jvm.mark(storage.base, EARLIER, port, earlier, early=True)["made"] == [True]  # asked again
    with pytest.raises(Exception, match="HoodieEarlyConflictDetectionException"):
        jvm.mark(storage.base, NOW, port, NAMES, early=True)


def test_a_rollback_of_the_jvm_reads_the_markers_of_our_server(
    jvm: Any, create: Create, frame: Frame, after_job: Callable[..., None]
) -> None:
    rows = [("a", "eu", 1, 1.0, "x"), ("b", "us", 1, 1.0, "x")]
    rare = {"hoodie.client.heartbeat.interval_in_ms": "3600000"}  # none comes while the JVM is at work
    table = create(options={"hoodie.write.markers.type": "TIMELINE_SERVER_BASED", **rare})
    table.bulk_insert(frame(rows))
    seen: list[str] = []

    def let_it_look_dead() -> None:
        [folder] = Path(table.path, ".hoodie/.temp").iterdir()
        assert sorted(path.name for path in folder.iterdir()) == ["MARKERS.type", "MARKERS0"]
        assert table.table.storage.list_staged() == {folder.name}
        seen.append(folder.name)
        for file in Path(table.path, ".hoodie/.heartbeat").iterdir():
            os.utime(file, (1_600_000_000, 1_600_000_000))
        jvm.write(table, [("c", "eu", 1, 0.0, "c")], hoodie__clean__automatic="true")
        assert not folder.exists()

    after_job(let_it_look_dead)
    with pytest.raises(WriteError, match="roll"):
        table.upsert(frame([("a", "eu", 2, 2.0, "y")]))
    assert len(seen) == 1
    assert table.table.storage.list_staged() == set()
    assert not [path for path in Path(table.path).rglob("*.parquet") if seen[0] in path.name]
    assert {row[0] for row in jvm.read(table)} == {"a", "b", "c"}
