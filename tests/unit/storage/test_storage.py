from __future__ import annotations

import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_locks.clock import ManualClock
from hudi_locks.errors import NoSuchFile, StorageError
from hudi_locks.storage import LocalStorage, MemoryStorage, Storage, reporting


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return LocalStorage(str(tmp_path / "table")) if request.param == "local" else MemoryStorage(ManualClock())


def test_nothing_is_there_at_first(storage: Storage) -> None:
    assert storage.list("") == []
    assert storage.list("a/b") == []
    assert storage.read("a/b") is None
    assert storage.stat("a") is None
    assert not storage.exists("a")
    assert not storage.delete("a/b")
    storage.delete_folder("a")


@pytest.mark.parametrize("data", [b"", b"content"])
def test_create_if_absent_makes_the_file_once(storage: Storage, data: bytes) -> None:
    assert storage.create_if_absent("a/b/c", data)
    assert not storage.create_if_absent("a/b/c", b"other")
    assert not storage.create_if_absent("a/b/c", b"")
    assert storage.read("a/b/c") == data


@pytest.mark.parametrize("data", [b"", b"content"])
def test_a_transient_file_is_made_once_too(storage: Storage, data: bytes) -> None:
    assert storage.create_transient("a/b/c", data)
    assert not storage.create_transient("a/b/c", b"other")
    assert not storage.create_if_absent("a/b/c", b"other")
    assert storage.read("a/b/c") == data


def test_a_transient_file_waits_for_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: pytest.fail("a heartbeat is of no use after a power failure"))
    assert LocalStorage(str(tmp_path)).create_transient("a/beat", b"who")
    assert LocalStorage(str(tmp_path)).create_transient("a/requested", b"")


def test_each_folder_above_a_new_file_is_flushed_once_in_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed, fsync = list[str](), os.fsync

    def record(handle: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        fsync(handle)

    monkeypatch.setattr("os.fsync", record)
    storage = LocalStorage(str(tmp_path / "new/table"))
    assert storage.create_empty(["a/b/one", "a/b/two"]) == {"a/b/one", "a/b/two"}
    above = [str(tmp_path / name) for name in ("new/table/a/b", "new/table/a", "new/table", "new", "")]
    assert [path for path in flushed if path.startswith(str(tmp_path))] == [path.rstrip("/") for path in above]
    flushed.clear()
    assert storage.create_empty(["a/b/two", "a/b/three"]) == {"a/b/three"}
    assert flushed == [str(tmp_path / "new/table/a/b")]
    storage.delete_folder("a")
    flushed.clear()
    assert storage.create_if_absent("a/b/one", b"")
    assert flushed[:2] == [str(tmp_path / "new/table/a/b"), str(tmp_path / "new/table/a")]


def test_names_are_those_of_files_and_folders(storage: Storage) -> None:
    assert storage.list_names("a") == []
    storage.create_if_absent("a/file", b"")
    storage.create_if_absent("a/folder/other", b"")
    assert sorted(storage.list_names("a")) == ["file", "folder"]


def test_bytes_are_on_the_disk_before_their_name_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where somebody else wrote them, as the writer of a base file did."""
    (tmp_path / "staged").write_bytes(b"rows")
    staged, flushed, fsync = (tmp_path / "staged").stat().st_ino, list[tuple[bool, bool]](), os.fsync

    def record(handle: int) -> None:
        flushed.append((os.fstat(handle).st_ino == staged, (tmp_path / "p/final").exists()))
        fsync(handle)

    monkeypatch.setattr("os.fsync", record)
    assert LocalStorage(str(tmp_path)).move_if_absent("staged", "p/final")
    assert flushed[:2] == [(True, False), (False, True)]
    assert all(is_named for _, is_named in flushed[1:])


def test_replace_takes_the_place_of_what_was_there(storage: Storage) -> None:
    storage.replace("a/b", b"old")
    storage.replace("a/b", b"new")
    assert storage.read("a/b") == b"new"


def test_move_if_absent_keeps_the_source_when_the_name_is_taken(storage: Storage) -> None:
    storage.replace("staged", b"ours")
    storage.replace("final", b"theirs")
    assert not storage.move_if_absent("staged", "final")
    assert (storage.read("staged"), storage.read("final")) == (b"ours", b"theirs")
    assert storage.move_if_absent("staged", "folder/other")
    assert (storage.read("staged"), storage.read("folder/other")) == (None, b"ours")


def test_touch_renews_only_what_is_there(storage: Storage) -> None:
    assert not storage.touch("beat")
    assert not storage.exists("beat")
    storage.replace("beat", b"kept")
    before = storage.stat("beat")
    assert storage.touch("beat")
    after = storage.stat("beat")
    assert before is not None
    assert after is not None
    assert after.modified_ms >= before.modified_ms
    assert storage.read("beat") == b"kept"


def test_a_file_gets_another_time(storage: Storage) -> None:
    assert not storage.set_modified("old", 1_700_000_000_123)
    assert not storage.exists("old")
    storage.replace("old", b"kept")
    assert storage.set_modified("old", 1_700_000_000_123)
    found = storage.stat("old")
    assert found is not None
    assert (found.modified_ms, storage.read("old")) == (1_700_000_000_123, b"kept")


def test_list_and_walk_show_children_by_name(storage: Storage) -> None:
    for path in ("p/b", "p/a", "p/q/c", "z"):
        storage.replace(path, b"12")
    listed = [(entry.name, entry.size, entry.is_folder) for entry in storage.list("p")]
    assert listed == [("a", 2, False), ("b", 2, False), ("q", 0, True)]
    assert [path for path, _ in storage.walk("p")] == ["p/a", "p/b", "p/q/c"]
    assert {"p/a", "z"} <= {path for path, _ in storage.walk("")}


def test_stat_agrees_with_list(storage: Storage) -> None:
    storage.replace("p/a", b"12")
    assert storage.list("p") == [storage.stat("p/a")]
    found = storage.stat("p")
    assert found is not None
    assert found.is_folder


def test_delete_folder_takes_all_below_and_nothing_beside(storage: Storage) -> None:
    for path in ("p/a", "p/q/b", "pq/c"):
        storage.replace(path, b"")
    storage.delete_folder("p")
    assert storage.list("p") == []
    assert storage.exists("pq/c")


def test_store_clock_is_the_one_that_stamps_files(storage: Storage) -> None:
    before_ms = storage.now_ms()
    storage.replace("a", b"1")
    stamped = storage.stat("a")
    assert stamped is not None
    assert before_ms <= stamped.modified_ms <= storage.now_ms()


def test_race_for_one_name_has_one_winner_and_one_whole_content(storage: Storage) -> None:
    contenders = 16
    start = threading.Barrier(contenders)

    def contend(number: int) -> bool:
        start.wait()
        return storage.create_if_absent("claims/1", b"%d" % number * 10_000)

    with ThreadPoolExecutor(contenders) as pool:
        won = list(pool.map(contend, range(contenders)))
    assert won.count(True) == 1
    assert storage.read("claims/1") == b"%d" % won.index(True) * 10_000


def test_a_name_that_is_taken_while_its_folder_is_made_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = os.makedirs

    def make_and_lose(folder: str, exist_ok: bool) -> None:
        make(folder, exist_ok=exist_ok)
        if folder.endswith("claims"):
            (tmp_path / "claims/1").write_bytes(b"theirs")

    monkeypatch.setattr("os.makedirs", make_and_lose)
    assert not LocalStorage(str(tmp_path)).create_if_absent("claims/1", b"ours")
    assert (tmp_path / "claims/1").read_bytes() == b"theirs"


def test_race_of_moves_has_one_winner(storage: Storage) -> None:
    contenders = 8
    for number in range(contenders):
        storage.replace(f"staged/{number}", b"%d" % number)
    start = threading.Barrier(contenders)

    def contend(number: int) -> bool:
        start.wait()
        return storage.move_if_absent(f"staged/{number}", "final")

    with ThreadPoolExecutor(contenders) as pool:
        won = list(pool.map(contend, range(contenders)))
    assert won.count(True) == 1
    assert storage.read("final") == b"%d" % won.index(True)
    assert len(storage.list("staged")) == contenders - 1


def stage(storage: Storage, path: str, data: bytes) -> None:
    """Write a file as a task does, and name it."""
    staged = storage.stage(path, instant="1")
    with staged.open() as out:
        out.write(data)
    storage.delete(path)
    assert storage.redeem(staged.seal(), path)


def test_a_file_is_read_at_any_place(storage: Storage) -> None:
    stage(storage, "p/a", b"0123456789")
    with storage.open_input("p/a") as found:
        assert found.size() == 10
        assert found.seekable()
        found.seek(7)
        assert (found.read(2), found.tell()) == (b"78", 9)
        found.seek(0)
        assert found.readall() == b"0123456789"


def test_an_empty_file_can_be_opened(storage: Storage) -> None:
    storage.create_if_absent("p/a", b"")
    with storage.open_input("p/a") as found:
        assert found.readall() == b""


def test_arrow_writes_and_reads_parquet_by_the_storage(storage: Storage) -> None:
    rows = pa.table({"key": [f"k{number}" for number in range(1_000)]})
    staged = storage.stage("p/x.parquet", instant="1")
    with staged.open() as out, pq.ParquetWriter(out, rows.schema) as writer:
        writer.write_table(rows)
    assert storage.redeem(staged.seal(), "p/x.parquet")
    with storage.open_input("p/x.parquet") as found, pq.ParquetFile(found) as file:
        assert file.metadata.num_rows == 1_000
        assert file.read().equals(rows)


@pytest.mark.parametrize("path", ["a", "p/a", "p/q/a"])
def test_what_is_not_there_cannot_be_opened(storage: Storage, path: str) -> None:
    storage.create_if_absent("p/b", b"")
    with pytest.raises(NoSuchFile, match=f"cannot open '{path}'") as caught:
        storage.open_input(path)
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.path == path


def test_a_folder_cannot_be_opened(storage: Storage) -> None:
    storage.create_if_absent("p/b", b"")
    with pytest.raises(StorageError, match="cannot open 'p'"):
        storage.open_input("p")


def test_what_was_in_a_folder_that_is_deleted_can_never_be_moved(storage: Storage) -> None:
    storage.create_transient("kept/1", b"late")
    storage.delete_folder("kept")
    with pytest.raises(NoSuchFile):
        storage.move_if_absent("kept/1", "p/final")
    assert not storage.exists("p/final")


def test_a_reader_keeps_the_bytes_of_a_file_that_is_deleted(storage: Storage) -> None:
    stage(storage, "p/a", b"0123456789")
    with storage.open_input("p/a") as found:
        storage.delete("p/a")
        assert found.readall() == b"0123456789"


def test_an_address_begins_with_that_of_the_table(storage: Storage) -> None:
    assert storage.address("p/a") == f"{storage.base}/p/a"


def test_an_address_is_there_under_the_name_that_it_had(storage: Storage) -> None:
    with pytest.warns(DeprecationWarning, match=r"^Storage\.native is now \w+Storage\.address"):
        assert storage.native("p/a") == storage.address("p/a")


def test_an_error_of_the_system_is_one_of_the_store() -> None:
    for error, kind, text in (
        (
            OSError(28, "Error writing bytes. Detail: [errno 28]"),
            StorageError,
            "cannot write 'p/a': No space left on device",
        ),
        (OSError(5, "http://node:9870: no answer"), StorageError, "cannot write 'p/a': http://node:9870: no answer"),
        (OSError("Arrow gives no number"), StorageError, "cannot write 'p/a': Arrow gives no number"),
        (FileNotFoundError(2, "nothing"), NoSuchFile, "cannot write 'p/a': No such file or directory"),
    ):
        with pytest.raises(StorageError) as caught, reporting("write", "p/a"):
            raise error
        assert (type(caught.value), str(caught.value), caught.value.path) == (kind, text, "p/a")
        assert caught.value.errno == error.errno


def test_an_error_of_the_store_stays_as_it_is() -> None:
    said = StorageError("the store said so", path="p/b")
    with pytest.raises(StorageError) as caught, reporting("write", "p/a"):
        raise said
    assert caught.value is said


def test_memory_stamps_by_its_clock_and_refuses_to_travel() -> None:
    clock = ManualClock()
    storage = MemoryStorage(clock)
    storage.replace("a", b"")
    clock.advance(5)
    storage.replace("b", b"")
    first, second = storage.list("")
    assert second.modified_ms - first.modified_ms == 5_000
    with pytest.raises(TypeError, match="LocalStorage"):
        pickle.dumps(storage)


def test_memory_move_of_nothing_is_an_error_of_the_store() -> None:
    with pytest.raises(StorageError, match="staged"):
        MemoryStorage(ManualClock()).move_if_absent("staged", "final")


def test_memory_keeps_a_folder_that_was_made_until_it_is_deleted() -> None:
    storage = MemoryStorage(ManualClock())
    storage.make_folder("a/b")
    assert [(entry.name, entry.is_folder) for entry in storage.list("a")] == [("b", True)]
    assert storage.exists("a/b")
    storage.delete_folder("a")
    assert storage.list("") == []
