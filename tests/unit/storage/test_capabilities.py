"""A store that lacks what writers rest on is read, and refused before anything is written."""

from __future__ import annotations

from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_locks.clock import ManualClock
from hudi_locks.errors import StorageError, UnsupportedTable
from hudi_locks.storage import LocalStorage, MemoryStorage, Storage, StorageCapabilities, refuse_unwritable
from hudi_locks.table import Table, TableConfig
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Transactions

ALL = MemoryStorage.capabilities
CONFIG = TableConfig("t", record_key_fields=("id",))
NAMES = [field.name for field in fields(StorageCapabilities)]
NEEDED = [name for name in NAMES if name != "ended_folders"]


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage(ManualClock())


def take(storage: MemoryStorage, *names: str) -> None:
    """Let the store promise everything but these."""
    storage.capabilities = replace(ALL, **dict.fromkeys(names, False))


def test_the_storages_of_this_package_promise_everything() -> None:
    for kind in (LocalStorage, MemoryStorage):
        assert all(getattr(kind.capabilities, name) for name in NAMES)


def test_a_storage_that_says_nothing_promises_nothing() -> None:
    assert not any(getattr(Storage.capabilities, name) for name in NAMES)


@pytest.mark.parametrize("name", NEEDED)
def test_each_capability_is_asked_for_before_a_table_is_made(storage: MemoryStorage, name: str) -> None:
    take(storage, name)
    with pytest.raises(UnsupportedTable, match=f"memory:/table is read only here.* {name}, by which") as caught:
        Table.create(storage, CONFIG)
    assert caught.value.lacking == (name,)
    assert list(storage.walk("")) == []
    assert storage.list("") == []


def test_all_that_lacks_is_named_at_once(storage: MemoryStorage) -> None:
    storage.capabilities = StorageCapabilities()
    with pytest.raises(UnsupportedTable) as caught:
        refuse_unwritable(storage)
    assert caught.value.lacking == tuple(NEEDED)
    assert all(name in str(caught.value) for name in NEEDED)


def test_a_store_without_folders_is_written(storage: MemoryStorage) -> None:
    take(storage, "ended_folders")
    refuse_unwritable(storage)
    assert Table.create(storage, CONFIG).timeline().instants == ()


def test_a_table_is_loaded_for_reading_alone(storage: MemoryStorage) -> None:
    Table.create(storage, CONFIG)
    take(storage, "tickets")
    assert Table.load(storage).timeline().instants == ()
    with pytest.raises(UnsupportedTable, match="tickets"):
        Table.load(storage, for_writing=True)


def test_transactions_write_nothing_to_it(storage: MemoryStorage) -> None:
    take(storage, "conditional_create")
    table: Any = SimpleNamespace(storage=storage, layout=LAYOUT_2, config=CONFIG)
    with pytest.raises(UnsupportedTable, match="conditional_create"):
        Transactions(table, None)
    assert storage.list("") == []


def test_what_keeps_no_tickets_says_so() -> None:
    bare: Any = SimpleNamespace(base="x:/t", _refuse_tickets=lambda path: Storage._refuse_tickets(bare, path))
    for call in (
        lambda: Storage.stage(bare, "p/a", instant="1"),
        lambda: Storage.redeem(bare, "t", "p/a"),
        lambda: Storage.cancel(bare, "t", "p/a"),
        lambda: Storage.cancel_staged(bare, ["p/a"]),
    ):
        with pytest.raises(StorageError, match="p/a cannot be staged: the storage of x:/t keeps no tickets"):
            call()
    assert Storage.list_staged(bare) == set()
