"""Dropping a metadata table: the properties first, under the lock, and again after a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from json_checks import check_json

from hudi_locks import LockManager
from hudi_locks.cli import main
from hudi_locks.errors import AcquireTimeout, ConfigError, NotATable, StorageError, TableError
from hudi_locks.format import decode_properties
from hudi_locks.services import drop_metadata_table
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table, TableConfig

NAMES = "hoodie.table.metadata.partitions"
PROPERTIES = ".hoodie/hoodie.properties"
CHECKSUM = ".hoodie/.hoodie.properties.crc"
INDEXES = ".hoodie/.index_defs/index.json"
PARTS = ("files", "column_stats", "partition_stats", "bloom_filters", "record_index", "secondary_index_one")
FILE = ".hoodie/metadata/files/files-0000-0_0-0-0_00000000000000000.hfile"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    """A table whose properties name a metadata table."""
    storage = LocalStorage(str(tmp_path / "t"))
    Table.create(storage, TableConfig("t", ("id",), extra={"strange": "kept=as it is"}))
    known = (storage.read(PROPERTIES) or b"").replace(b"hoodie.metadata.enable=false\n", b"")
    storage.replace(PROPERTIES, known + f"{NAMES}=files,column_stats\n".encode())
    storage.create_if_absent(CHECKSUM, b"crc")
    storage.create_if_absent(FILE, b"anything")
    return storage


def read(storage: LocalStorage) -> dict[str, str]:
    return decode_properties(storage.read(PROPERTIES) or b"", PROPERTIES)


def drop_until(storage: LocalStorage, verb: str, monkeypatch: pytest.MonkeyPatch, *parts: str) -> None:
    """Drop it, and die at the first call of that name."""

    def fail(*_: object) -> None:
        raise StorageError("cut", path="")

    with monkeypatch.context() as broken:
        broken.setattr(LocalStorage, verb, fail)
        with pytest.raises(StorageError, match="cut"):
            drop_metadata_table(storage.base, parts=parts)


def test_the_table_is_one_that_may_be_written_afterwards(storage: LocalStorage) -> None:
    before = read(storage)
    assert drop_metadata_table(storage.base) == ("column_stats", "files")
    del before[NAMES]
    assert read(storage) == {**before, "hoodie.metadata.enable": "false"}
    assert storage.list_names(".hoodie/metadata") == []
    assert not storage.exists(CHECKSUM)
    assert Table.load(storage, for_writing=True).properties["strange"] == "kept=as it is"
    assert drop_metadata_table(storage.base) == ()


@pytest.mark.parametrize("verb", ["delete", "replace", "delete_folder"])
def test_one_that_died_on_the_way_is_gone_on_with(
    storage: LocalStorage, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_until(storage, verb, monkeypatch)
    is_off = NAMES not in read(storage)
    assert is_off is (verb == "delete_folder")
    drop_metadata_table(storage.base)
    assert NAMES not in read(storage)
    assert storage.list_names(".hoodie/metadata") == []


@pytest.fixture
def indexed(storage: LocalStorage) -> LocalStorage:
    """A table whose metadata table has more parts, and says of which columns."""
    known = (storage.read(PROPERTIES) or b"").replace(b"=files,column_stats", f"={','.join(PARTS)}".encode())
    storage.replace(PROPERTIES, known)
    for part in PARTS:
        storage.create_if_absent(f".hoodie/metadata/{part}/some.hfile", b"anything")
    defined = {"column_stats": {"sourceFields": ["id"]}, "secondary_index_one": {"sourceFields": ["city"]}}
    storage.create_if_absent(INDEXES, json.dumps({"indexDefinitions": defined}).encode())
    return storage


@pytest.mark.parametrize(
    ("part", "gone"),
    [
        ("bloom_filters", {"bloom_filters"}),
        ("record_index", {"record_index", "secondary_index_one"}),
        ("secondary_index_one", {"secondary_index_one"}),
        ("column_stats", {"column_stats", "partition_stats"}),
        ("partition_stats", {"column_stats", "partition_stats"}),
    ],
)
def test_a_part_goes_alone_with_what_rests_on_it(indexed: LocalStorage, part: str, gone: set[str]) -> None:
    before = read(indexed)
    assert drop_metadata_table(indexed.base, parts=[part]) == tuple(sorted(gone))
    left = [name for name in PARTS if name not in gone]
    assert read(indexed) == {**before, NAMES: ",".join(left)}
    assert sorted(indexed.list_names(".hoodie/metadata")) == sorted(left)
    defined = set(json.loads(indexed.read(INDEXES) or b"")["indexDefinitions"])
    assert defined == {"column_stats", "secondary_index_one"} - gone


@pytest.mark.parametrize("verb", ["delete", "replace", "delete_folder"])
def test_a_part_that_was_half_dropped_is_gone_on_with(
    indexed: LocalStorage, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_until(indexed, verb, monkeypatch, "record_index")
    assert drop_metadata_table(indexed.base, parts=["record_index"])
    assert "record_index" not in read(indexed)[NAMES]
    assert "record_index" not in indexed.list_names(".hoodie/metadata")


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("files", "without files there is no metadata table"),
        ("other", "no part other"),
        (".hoodie", r"no part \.hoodie"),
    ],
)
def test_what_is_no_part_to_drop_is_refused(indexed: LocalStorage, part: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        drop_metadata_table(indexed.base, parts=["record_index", part])
    assert part in caught.value.facts["parts"]
    assert read(indexed)[NAMES] == ",".join(PARTS)


def test_the_command_drops_a_part(indexed: LocalStorage, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["metadata", "drop", indexed.base, "--part", "record_index", "--part", "bloom_filters"])
    assert ended.value.code == 0
    assert "dropped of the metadata table (bloom_filters, record_index, secondary_index_one)" in capsys.readouterr().out


def test_nothing_happens_while_a_write_is_under_way(storage: LocalStorage) -> None:
    storage.create_if_absent(".hoodie/timeline/20260101000000000.commit.requested", b"")
    with pytest.raises(TableError, match=r"commit 20260101000000000 is under way") as caught:
        drop_metadata_table(storage.base)
    assert caught.value.instant == "20260101000000000"
    assert read(storage)[NAMES] == "files,column_stats"


def test_it_waits_for_the_lock_of_the_writers(storage: LocalStorage) -> None:
    options = {
        "hoodie.write.lock.provider": "filesystem",
        "hoodie.write.lock.wait_time_ms": "1",
        "hoodie.write.lock.num_retries": "1",
        "hoodie.write.lock.client.num_retries": "1",
    }
    named = {**options, "hoodie.base.path": storage.base, "hoodie.table.name": "t"}
    with LockManager.from_options(named) as locks, locks.lock():
        with pytest.raises(AcquireTimeout):
            drop_metadata_table(storage.base, options)
        assert read(storage)[NAMES] == "files,column_stats"
    assert drop_metadata_table(storage.base, options) == ("column_stats", "files")


def test_a_folder_that_is_no_table_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(NotATable):
        drop_metadata_table(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0), capsys.readouterr().out


def test_the_commands_tell_what_they_found_and_did(storage: LocalStorage, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = run(capsys, "metadata", "verify", storage.base)
    assert status == 1
    assert "hoodie.properties is not there" in said
    assert said.endswith(f"{storage.base}: 1 wrong; looked at no metadata table\n")
    assert run(capsys, "metadata", "drop", storage.base) == (
        0, f"{storage.base}: dropped the metadata table (column_stats, files)\n",
    )  # fmt: skip
    assert run(capsys, "metadata", "drop", storage.base) == (0, f"{storage.base}: no metadata table\n")
    status, said = run(capsys, "metadata", "verify", storage.base, "--json")
    assert (status, check_json(["metadata", "verify"], said)["findings"]) == (0, [])
