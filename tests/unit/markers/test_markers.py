from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from transaction_harness import write_file, write_staged

from hudi_locks.clock import ManualClock
from hudi_locks.errors import StorageError, WriteAborted
from hudi_locks.format import Instant, IOType, MarkerName, State
from hudi_locks.markers import (
    FALLBACK_NUMBERS,
    DirectMarkers,
    FallbackMarkers,
    ServerFiles,
    StagedFiles,
    drop_staged,
    read_markers,
    staging_folder,
)
from hudi_locks.storage import LocalStorage, MemoryStorage
from hudi_locks.timeline import LAYOUT_2

T = "20231114221320000"
FOLDER = f".hoodie/.temp/{T}"


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage(ManualClock())


@pytest.fixture
def files(storage: MemoryStorage) -> StagedFiles:
    storage.replace(LAYOUT_2.path(Instant(T, "commit", State.INFLIGHT)), b"")
    return StagedFiles(storage, LAYOUT_2, T, "commit")


def name(file_id: str) -> str:
    return f"{file_id}_0-0-0_{T}.parquet"


def paths(storage: MemoryStorage) -> set[str]:
    return {str(marker) for marker in read_markers(storage, T).names}


def test_direct_markers_are_created_listed_and_removed(storage: MemoryStorage) -> None:
    markers = DirectMarkers(storage, T)
    markers.create("a=1/b=2", f"f-0_0-0-0_{T}.parquet", io_type=IOType.MERGE)
    markers.create("", f".f-0_{T}.log.1_0-0-0", io_type=IOType.CREATE)
    markers.create("", f".f-0_{T}.log.1_0-0-0", io_type=IOType.CREATE)
    assert sorted(str(name) for name in markers.names()) == [
        f".f-0_{T}.log.1_0-0-0.marker.CREATE",
        f"a=1/b=2/f-0_0-0-0_{T}.parquet.marker.MERGE",
    ]
    found = read_markers(storage, T)
    assert (len(found.names), found.is_complete) == (2, True)
    markers.delete()
    markers.delete()
    assert markers.names() == []
    assert not read_markers(storage, T).is_complete


def test_a_task_that_lost_the_server_keeps_to_one_file_of_the_same_form(storage: MemoryStorage) -> None:
    spare = FallbackMarkers(storage, T)
    for number, task in enumerate([copy.copy(spare), copy.copy(spare)]):
        task.create_all([MarkerName("p", f"{number}a", IOType.CREATE)])
        task.create_all([MarkerName("p", f"{number}b", IOType.MERGE)])
    numbers = ServerFiles(storage, FOLDER).numbers()
    assert len(numbers) == 2
    assert all(number in FALLBACK_NUMBERS for number in numbers)
    assert ServerFiles(storage, FOLDER).is_used()
    assert paths(storage) == {
        f"p/{number}{name}" for number in (0, 1) for name in ("a.marker.CREATE", "b.marker.MERGE")
    }
    assert [entry.name for entry in storage.list(FOLDER) if not entry.name.startswith("MARKERS")] == []


def test_markers_of_a_timeline_server_are_read_whatever_their_state(storage: MemoryStorage) -> None:
    storage.replace(f"{FOLDER}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    whole = [f"p/{name('a')}.marker.CREATE", f"p/{name('b')}.marker.MERGE"]
    storage.replace(f"{FOLDER}/MARKERS0", "".join(f"{line}\n" for line in whole).encode())
    storage.replace(f"{FOLDER}/MARKERS1", b"")
    assert paths(storage) == set(whole)
    assert read_markers(storage, T).is_complete
    storage.replace(f"{FOLDER}/MARKERS2", b"x,y/c.parquet.marker.CREATE,p/d.parquet.marker.CREATE\np/e.par")
    assert paths(storage) >= {"x,y/c.parquet.marker.CREATE", "p/d.parquet.marker.CREATE"}
    assert not read_markers(storage, T).is_complete


def test_server_files_without_a_type_and_direct_markers_beside_them_count(storage: MemoryStorage) -> None:
    storage.replace(f"{FOLDER}/MARKERS0", b"p/a.parquet.marker.CREATE\n")
    DirectMarkers(storage, T).create("p", "b.parquet", io_type=IOType.CREATE)
    assert paths(storage) == {"p/a.parquet.marker.CREATE", "p/b.parquet.marker.CREATE"}


def test_an_unknown_type_is_named_and_stops_nobody(storage: MemoryStorage, caplog: pytest.LogCaptureFixture) -> None:
    storage.replace(f"{FOLDER}/MARKERS.type", b"DIRECT")
    storage.replace(f"{FOLDER}/MARKERS0", f"p/{name('a')}.marker.CREATE\n".encode())
    found = read_markers(storage, T)
    assert (found.own_files, found.is_complete) == (frozenset({f"p/{name('a')}"}), False)
    assert "MARKERS.type says 'DIRECT'" in caplog.text


def test_each_attempt_has_a_ticket_of_its_own_and_names_nothing(storage: MemoryStorage, files: StagedFiles) -> None:
    tickets = {write_file(files, "p", name("f"), data) for data in (b"first", b"second")}
    assert len(tickets) == 2
    assert storage.list("p") == []


def test_nothing_is_announced_where_nobody_reads_markers(storage: MemoryStorage, files: StagedFiles) -> None:
    marker = MarkerName("p", name("f"), IOType.CREATE)
    files.announce([marker])
    assert read_markers(storage, T).names == frozenset()
    replace(files, maker=DirectMarkers(storage, T)).announce([marker])
    assert read_markers(storage, T).names == {marker}


@pytest.mark.parametrize("is_rolled_back", [True, False])
def test_a_staged_file_that_is_gone_says_why(tmp_path: Path, is_rolled_back: bool) -> None:
    """A rollback removes what tasks staged; without one the store is to blame."""
    storage, inflight = LocalStorage(str(tmp_path)), LAYOUT_2.path(Instant(T, "commit", State.INFLIGHT))
    storage.create_if_absent(inflight, b"")
    files = StagedFiles(storage, LAYOUT_2, T, "commit")
    staged = files.start("p", "f", io_type=IOType.CREATE)
    write_staged(staged, b"rows")
    drop_staged(storage, [T])
    if is_rolled_back:
        storage.delete(inflight)
    with pytest.raises(WriteAborted if is_rolled_back else StorageError):
        files.seal(staged)


def test_what_an_instant_staged_goes_with_what_lies_beside_it(storage: MemoryStorage, files: StagedFiles) -> None:
    ticket = write_file(files, "p", name("f"), b"rows")
    storage.replace(f"{staging_folder(T)}/early-conflict.json", b"{}")
    drop_staged(storage, [T])
    assert storage.list(staging_folder(T)) == []
    assert not storage.redeem(ticket, f"p/{name('f')}")


def test_what_executors_get_can_travel(tmp_path: Path) -> None:
    files = StagedFiles(LocalStorage(str(tmp_path)), LAYOUT_2, T, "commit")
    copy = pickle.loads(pickle.dumps(files))
    ticket = write_file(copy, "p", "f", b"rows")
    assert files.storage.redeem(ticket, "p/f")
    assert (tmp_path / "p/f").read_bytes() == b"rows"
