"""What a storage on a disk does beside what every storage does."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import pyarrow as pa
import pytest

from hudi_locks import ManualClock
from hudi_locks.errors import StorageError
from hudi_locks.storage import Entry, LocalStorage, reporting
from hudi_locks.table import Table, TableConfig

TMP = ".hoodie/.hudi_locks/tmp"


def write_to_full_disk() -> None:
    with reporting("write", "full"), pa.OSFile("/dev/full", "wb") as out:
        out.write(b"x")


class TestLocal:
    @pytest.fixture
    def storage(self, tmp_path: Path) -> LocalStorage:
        return LocalStorage(str(tmp_path))

    def test_staging_leaves_nothing_behind_and_nothing_beside_the_file(self, storage: LocalStorage) -> None:
        storage.create_if_absent(".hoodie/timeline/1.commit", b"x")
        storage.create_if_absent(".hoodie/timeline/1.commit", b"y")
        storage.replace(".hoodie/timeline/2.commit", b"x")
        assert [entry.name for entry in storage.list(".hoodie/timeline")] == ["1.commit", "2.commit"]
        assert storage.list(TMP) == []

    def test_failed_write_leaves_no_file(self, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
        def fill_disk(handle: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", fill_disk)
        with pytest.raises(StorageError, match="No space left on device") as caught:
            storage.create_if_absent("a/b", b"data")
        assert caught.value.path == "a/b"
        assert caught.value.facts["errno"] == 28
        assert not storage.exists("a/b")
        assert storage.list(TMP) == []

    @pytest.mark.parametrize("change", ["replace", "create", "create_empty", "delete"])
    def test_stale_checksum_of_hadoop_goes_with_the_file(self, storage: LocalStorage, change: str) -> None:
        crc = "p/.hoodie.properties.crc"
        storage.replace(crc, b"stale")
        if change == "replace":
            storage.replace("p/hoodie.properties", b"new")
        elif change == "delete":
            storage.delete("p/hoodie.properties")
        else:
            storage.create_if_absent("p/hoodie.properties", b"new" if change == "create" else b"")
        assert not storage.exists(crc)

    @pytest.mark.parametrize("path", ["../other", "/etc/passwd", "a/../../b"])
    def test_paths_out_of_the_table_are_refused(self, storage: LocalStorage, path: str) -> None:
        with pytest.raises(StorageError, match="out of the table"):
            storage.create_if_absent(path, b"")

    def test_read_of_a_folder_is_an_error_of_the_store(self, storage: LocalStorage) -> None:
        storage.replace("a/b", b"")
        with pytest.raises(StorageError, match="cannot read 'a'"):
            storage.read("a")

    def test_an_empty_folder_stays(self, storage: LocalStorage) -> None:
        storage.make_folder("a/b")
        storage.make_folder("a/b")
        assert [(entry.name, entry.is_folder) for entry in storage.list("a")] == [("b", True)]

    def test_pickle_reaches_the_same_files(self, storage: LocalStorage) -> None:
        storage.replace("a", b"1")
        copy = pickle.loads(pickle.dumps(storage))
        assert copy.read("a") == b"1"
        with copy.open_input("a") as found:
            assert found.readall() == b"1"

    def test_a_full_disk_is_named_by_who_writes(self) -> None:
        with pytest.raises(StorageError, match="cannot write 'full': No space left on device") as caught:
            write_to_full_disk()
        assert caught.value.is_disk_full

    def test_list_shows_sizes_and_times_of_the_disk(self, storage: LocalStorage) -> None:
        storage.replace("a/b", b"123")
        modified_ms = Path(storage.address("a/b")).stat().st_mtime_ns // 1_000_000
        [entry] = storage.list("a")
        assert entry == Entry("b", 3, modified_ms, is_folder=False, version=entry.version)

    @pytest.mark.parametrize(("took_s", "alone"), [(0.0001, 41), (0.02, 1)])
    def test_folders_are_listed_in_threads_once_the_system_lets_wait(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took_s: float, alone: int
    ) -> None:
        clock, here = ManualClock(), list[bool]()
        monkeypatch.setattr("hudi_locks.storage.local._clock", clock)

        class Timed(LocalStorage):
            def list(self, folder: str) -> list[Entry]:
                here.append(current_thread() is main_thread())
                clock.advance(took_s if here[-1] else 0)
                return super().list(folder)

        storage = Timed(str(tmp_path))
        for number in range(40):
            storage.replace(f"{number}/file", b"1" * number)
        folders = [f"{number}" for number in range(40)]
        assert [[(e.name, e.size) for e in found] for found in storage.list_each([*folders, "none"])] == [
            *([("file", number)] for number in range(40)),
            [],
        ]
        assert (len(here), sum(here)) == (41, alone)


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_mounted_bucket_is_refused_with_the_way_out_before_a_file_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """No mount of a bucket makes hard links, nor does FAT."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StorageError, match=r"makes no hard link .*give the address of the bucket itself"):
        Table.create(LocalStorage(str(tmp_path)), TableConfig("t", ("id",), ("part",)))
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []
