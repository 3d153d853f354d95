"""A store that takes conditions and ignores them is found out, and nothing of the trial is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_locks.clock import ManualClock, SystemClock
from hudi_locks.errors import StorageError, UnsupportedTable
from hudi_locks.services import TableWriter
from hudi_locks.storage import LocalStorage, Storage, StorageCapabilities, check_service, probe_storage
from hudi_locks.table import Table, TableConfig

CONFIG = TableConfig("t", record_key_fields=("id",))
NAMES = (
    "creates-once",
    "renews-in-place",
    "tickets-name-once",
    "tickets-are-cancelled",
    "tickets-take-one-name",
    "clocks",
)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def judge(storage: Storage) -> dict[str, bool]:
    return {finding.name: finding.ok for finding in probe_storage(storage, SystemClock())}


def test_a_disk_keeps_every_promise_and_nothing_is_left(storage: LocalStorage) -> None:
    findings = list(probe_storage(storage, SystemClock()))
    assert [finding.name for finding in findings] == list(NAMES)
    assert all(finding.ok for finding in findings)
    assert [path for path, _ in storage.walk("")] == []


class OverwritingStorage(LocalStorage):
    def create_if_absent(self, path: str, data: bytes) -> bool:
        self.replace(path, data)
        return True

    create_transient = create_if_absent


class RevivingStorage(LocalStorage):
    def touch(self, path: str) -> bool:
        self.replace(path, b"ours")
        return True


class CopyingStorage(LocalStorage):
    """Redeems by a copy, and keeps the ticket."""

    def redeem(self, ticket: str, target: str) -> bool:
        data = self.read(f".hoodie/.hudi_locks/staging/{ticket}")
        self.replace(target, data or b"")
        return True

    def cancel(self, ticket: str, target: str) -> None:
        pass


@pytest.mark.parametrize(
    ("kind", "ill"),
    [
        (OverwritingStorage, {"creates-once"}),
        (RevivingStorage, {"renews-in-place"}),
        (CopyingStorage, {"tickets-name-once", "tickets-are-cancelled", "tickets-take-one-name"}),
    ],
)
def test_a_broken_promise_is_named(tmp_path: Path, kind: Any, ill: set[str]) -> None:
    found = judge(kind(str(tmp_path)))
    assert {name for name, ok in found.items() if not ok} == ill


def test_what_is_not_promised_is_not_tried(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStorage, "capabilities", StorageCapabilities(conditional_create=True))
    told = {finding.name: finding.found for finding in probe_storage(storage, SystemClock())}
    assert told["creates-once"] == "kept"
    assert told["tickets-name-once"] == told["renews-in-place"] == "not promised, so that the table is only read"


def test_an_error_of_the_store_is_a_finding(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StorageError("the service refuses to write it; grant s3:PutObject")

    monkeypatch.setattr(LocalStorage, "create_if_absent", fail)
    found = {finding.name: finding for finding in probe_storage(storage, SystemClock())}
    assert not found["creates-once"].ok
    assert "grant s3:PutObject" in found["creates-once"].found


def test_clocks_that_are_far_apart_are_told(storage: LocalStorage) -> None:
    found = {finding.name: finding for finding in probe_storage(storage, ManualClock())}
    assert not found["clocks"].ok
    assert found["clocks"].advice


class TestFirstWrite:
    """A service is tried before a table on it is made or written."""

    @pytest.fixture(autouse=True)
    def as_service(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LocalStorage, "is_service", True)

    def test_a_table_is_made_where_promises_are_kept_and_they_are_tried_once(
        self, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Table.create(storage, CONFIG)
        assert storage.exists(".hoodie/.hudi_locks/probed")
        assert list(storage.walk(".hoodie/.hudi_locks/probe")) == []
        monkeypatch.setattr(LocalStorage, "touch", lambda *_: pytest.fail("it was tried again"))
        check_service(storage)

    def test_nothing_is_made_where_one_is_broken(self, tmp_path: Path) -> None:
        with pytest.raises(UnsupportedTable, match="failed the check renews-in-place: a renewal wrote over") as caught:
            Table.create(RevivingStorage(str(tmp_path)), CONFIG)
        assert caught.value.check == "renews-in-place"
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

    def test_a_table_that_others_made_is_tried_before_it_is_written(self, tmp_path: Path) -> None:
        Table.create(LocalStorage(str(tmp_path)), CONFIG)
        (tmp_path / ".hoodie/.hudi_locks/probed").unlink()
        table = Table.load(OverwritingStorage(str(tmp_path)))
        with pytest.raises(UnsupportedTable, match="failed the check creates-once"):
            TableWriter(table, {})

    def test_a_right_that_lacks_is_the_error_of_the_store(
        self, storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise StorageError("the service refuses to write it; grant s3:PutObject", path="x")

        monkeypatch.setattr(LocalStorage, "create_if_absent", fail)
        with pytest.raises(StorageError, match="grant s3:PutObject"):
            Table.create(storage, CONFIG)
