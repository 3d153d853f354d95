"""Tables in a bucket of this process's memory: names, markers, and what a storage refuses."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hudi_locks_providers._s3 import client
from hudi_locks_providers._storage import stores
from hudi_locks_providers.gcs_storage import GcsStorage
from hudi_locks_providers.object_storage import open_object_storage

from hudi_locks.config import Options
from hudi_locks.errors import NoSuchFile, ProviderLoadError
from hudi_locks.storage import open_storage


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> GcsStorage:
    monkeypatch.setattr(stores, "_OPEN", {})
    return GcsStorage("memory://bucket/a/table", Options())


def test_files_are_created_replaced_and_removed(storage: GcsStorage) -> None:
    assert storage.create_if_absent("x/y", b"one")
    assert not storage.create_if_absent("x/y", b"two")
    storage.replace("x/y", b"two")
    assert storage.read("x/y") == b"two"
    assert storage.delete("x/y")
    assert not storage.delete("x/y")
    assert storage.list("") == []


def test_a_folder_is_there_while_something_is_in_it(storage: GcsStorage) -> None:
    assert storage.stat("x") is None
    storage.make_folder("x")
    assert storage.list("x") == []
    assert list(storage.walk("")) == []
    for folder in ("x", "x/y"):
        found = storage.stat(folder)
        assert found is not None
        assert found.is_folder
        storage.create_if_absent("x/y/z", b"1")
    assert [(entry.name, entry.is_folder) for entry in storage.list("")] == [("x", True)]
    assert not storage.exists("x/y")
    storage.delete_folder("x")
    assert storage.stat("x") is None


def test_markers_of_folders_are_no_files(storage: GcsStorage) -> None:
    """obstore shows the object `p/` as an empty file of the folder's own name."""
    storage.create_if_absent("p", b"")
    storage.create_if_absent("p/file", b"1")
    storage.create_if_absent("q_$folder$", b"")
    assert [(entry.name, entry.is_folder) for entry in storage.list("")] == [("p", True)]
    assert [path for path, _ in storage.walk("")] == ["p/file"]
    assert [path for path, _ in storage.walk("p")] == ["p/file"]


def test_files_are_opened_for_reads_at_any_place(storage: GcsStorage) -> None:
    storage.create_if_absent("file", b"0123456789")
    with storage.open_input("file") as source:
        source.seek(4)
        assert source.read(3) == b"456"
        assert source.size() == 10
    with pytest.raises(NoSuchFile):
        storage.open_input("other")


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n", "gs"])
def test_an_address_keeps_the_scheme_that_the_user_wrote(scheme: str) -> None:
    storage = open_storage(f"{scheme}://bucket/table/")
    assert storage.address("p/file") == f"{scheme}://bucket/table/p/file"
    assert storage.address("") == storage.base == f"{scheme}://bucket/table"
    assert storage.place == pickle.loads(pickle.dumps(storage)).place


def test_s3_and_s3a_are_one_place() -> None:
    assert open_storage("s3://bucket/table").place == open_storage("s3a://bucket/table").place
    assert open_storage("s3://bucket/table").place != open_storage("s3://bucket/other").place


def test_executors_are_given_the_keys_of_the_store_and_no_others() -> None:
    options = {"hoodie.aws.secret.key": "secret-1", "hive_sync.password": "secret-2", "hoodie.table.name": "t"}
    pickled = pickle.dumps(open_object_storage("s3://bucket/table", options))
    assert b"secret-1" in pickled
    assert b"secret-2" not in pickled
    assert "secret" not in repr(pickle.loads(pickled))


def test_a_missing_library_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def miss(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(client, "_OPEN", {})
    monkeypatch.setattr("importlib.import_module", miss)
    with pytest.raises(ProviderLoadError, match=r"object stores need obstore: pip install 'hudi-locks\[s3\]'"):
        open_storage("gs://bucket/table").list("")
    with pytest.raises(ProviderLoadError, match=r"tables on S3 need boto3: pip install 'hudi-locks\[s3\]'"):
        open_storage("s3://bucket/table").list("")
