"""Symbolic links in a table: nothing that they lead to is listed, swept or deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from service_harness import ServiceHarness
from transaction_harness import HarnessClock, heartbeats_that_end

from hudi_locks.clock import SystemClock
from hudi_locks.errors import StorageError
from hudi_locks.markers import DirectMarkers
from hudi_locks.services import Janitor
from hudi_locks.storage import LocalStorage
from hudi_locks.table import PARTITION_METADATA, list_partitions


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the table, which looks like a partition."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / PARTITION_METADATA).write_bytes(b"")
    (folder / "precious").write_bytes(b"precious")
    return folder


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    (tmp_path / "real").mkdir()
    (tmp_path / "table").symlink_to("real")  # the table itself may be reached by a link
    return LocalStorage(str(tmp_path / "table"))


@pytest.fixture
def harness(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceHarness]:
    with heartbeats_that_end(monkeypatch):
        yield ServiceHarness(HarnessClock(SystemClock().wall_ms()), storage)  # type: ignore[arg-type]  # a harness is made for memory


def root(storage: LocalStorage) -> Path:
    return Path(storage.address(""))


def test_a_listing_leaves_links_out_and_says_so(
    storage: LocalStorage, outside: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage.replace("p/file", b"rows")
    for name, target in {
        "folder": outside,
        "file": outside / "precious",
        "loop": root(storage),
        "gone": outside / "nothing",
    }.items():
        (root(storage) / name).symlink_to(target)
    assert [entry.name for entry in storage.list("")] == [".hoodie", "p"]
    assert sorted(storage.list_names("")) == [".hoodie", "p"]
    assert [path for path, _ in storage.walk("")] == ["p/file"]
    assert list_partitions(storage) == ()
    assert "symbolic link" in caplog.text
    assert str(root(storage) / "folder") in caplog.text


CALLS: dict[str, Callable[[LocalStorage], object]] = {
    "list": lambda storage: storage.list("link"),
    "list names": lambda storage: storage.list_names("link"),
    "list below": lambda storage: storage.list("link/below"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_path_through_a_link_out_of_the_table_is_refused(
    storage: LocalStorage, outside: Path, call: Callable[[LocalStorage], object]
) -> None:
    (root(storage) / "link").symlink_to(outside)
    with pytest.raises(StorageError, match="symbolic link"):
        call(storage)


def test_nothing_is_deleted_behind_a_link(storage: LocalStorage, outside: Path) -> None:
    """Quietly: a marker may name such a file, and stops nobody."""
    (outside / "below").mkdir()
    (outside / "below/precious").write_bytes(b"precious")
    (root(storage) / "link").symlink_to(outside)
    assert not storage.delete("link/precious")
    assert not storage.delete("link/below/precious")
    storage.delete_folder("link/below")
    assert (outside / "below/precious").exists()
    assert (outside / "precious").exists()


def test_a_link_itself_is_deleted_and_nothing_behind_it(storage: LocalStorage, outside: Path) -> None:
    for name in ("folder", "file"):
        (root(storage) / name).symlink_to(outside if name == "folder" else outside / "precious")
    storage.delete_folder("folder")
    assert storage.delete("file")
    storage.make_folder("p")
    (root(storage) / "p/inner").symlink_to(outside)
    storage.delete_folder("p")
    assert not storage.exists("p")
    assert [path.name for path in sorted(root(storage).iterdir()) if path.name != ".hoodie"] == []
    assert (outside / "precious").exists()


def test_sweep_and_rollback_leave_alone_what_links_lead_to(harness: ServiceHarness, outside: Path) -> None:
    harness.put("p/g-0")
    tx = harness.open().begin("commit", "UPSERT")
    harness.rewrite(tx, "p/h-0")
    strays = [outside / f"{name}-0_0-0-0_{tx.instant}.parquet" for name in ("marked", "listed")]
    for stray in strays:
        stray.write_bytes(b"rows of somebody else")
    (Path(harness.storage.address("")) / "link").symlink_to(outside)
    folder = DirectMarkers(harness.storage, tx.instant).folder
    harness.storage.replace(f"{folder}/MARKERS0", f"link/{strays[0].name}.marker.CREATE\nodd\n".encode())
    assert tx.abort("enough").outcome.value == "ABORTED"
    harness.put("p/g-0")
    harness.storage.replace(f"{folder}/MARKERS0", f"link/{strays[0].name}.marker.CREATE\n".encode())
    Janitor(harness.open().coordinator).sweep(everywhere=True)
    harness.put("p/g-0")
    assert harness.cleaner(commits__retained=1).run().instants
    assert [stray.exists() for stray in strays] == [True, True]
    harness.put("p/g-0")
