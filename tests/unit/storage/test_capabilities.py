"""A store that lacks what writers rest on is read, and refused before anything is written."""

from __future__ import annotations

from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_locks.clock import ManualClock
from hudi_locks.errors import UnsupportedTable
from hudi_locks.storage import LocalStorage, MemoryStorage, Storage, StorageCapabilities, refuse_unwritable
from hudi_locks.table import Table, TableConfig
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.transaction import Transactions

ALL = MemoryStorage.capabilities
CONFIG = TableConfig("t", record_key_fields=("id",))
NAMES = [field.name for field in fields(StorageCapabilities)]


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


@pytest.mark.parametrize("name", NAMES)
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
    assert caught.value.lacking == tuple(NAMES)
    assert all(name in str(caught.value) for name in NAMES)


def test_a_table_is_loaded_for_reading_alone(storage: MemoryStorage) -> None:
    Table.create(storage, CONFIG)
    take(storage, "atomic_move")
    assert Table.load(storage).timeline().instants == ()
    with pytest.raises(UnsupportedTable, match="atomic_move"):
        Table.load(storage, for_writing=True)


def test_transactions_write_nothing_to_it(storage: MemoryStorage) -> None:
    take(storage, "conditional_create")
    table: Any = SimpleNamespace(storage=storage, layout=LAYOUT_2, config=CONFIG)
    with pytest.raises(UnsupportedTable, match="conditional_create"):
        Transactions(table, None)
    assert storage.list("") == []
