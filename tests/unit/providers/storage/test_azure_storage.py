"""Blocks of a container, and who names or drops them; the container is this process's memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hudi_locks_providers import azure_storage
from hudi_locks_providers._storage import stores
from hudi_locks_providers._storage.objects import PreconditionFailed
from hudi_locks_providers.azure_storage import AzureStorage

from hudi_locks import ManualClock
from hudi_locks.config import Options
from hudi_locks.errors import BackendUnavailable, NoSuchFile, StorageError
from hudi_locks.storage import TICKETS_FOLDER, StagedFile

INSTANT = "20260101000000000"
TARGET = f"p/f-0_0-0-0_{INSTANT}.parquet"
KEY = f"a/table/{TARGET}"


class EagerClock(ManualClock):
    """Does not wait for somebody to move it."""

    def sleep(self, duration_s: float) -> None:
        self.advance(duration_s)


class MemoryBlocks:
    """As Azure keeps blocks: apart until they are named, when all others of the blob go."""

    def __init__(self, storage: AzureStorage) -> None:
        self.storage = storage
        self.apart: dict[str, dict[str, bytes]] = {}
        self.voids: dict[str, str] = {}
        self.asked: list[str] = []
        self.lost: dict[str, Callable[[], object]] = {}
        self._lock = threading.Lock()

    def put(self, key: str, block: str, data: bytes) -> None:
        assert data, "Azure takes no empty block"
        self._note("put")
        with self._lock:
            self.apart.setdefault(key, {})[block] = data

    def name(self, key: str, blocks: Sequence[str], *, void: str = "") -> None:
        self._note("drop" if void else "name")
        with self._lock:
            found = self.apart.get(key, {})
            if self.storage._objects.read(key) is not None:
                raise PreconditionFailed
            if any(block not in found for block in blocks):
                raise FileNotFoundError(key)
            self.storage._objects.put(key, b"".join(found[block] for block in blocks), "create")
            self.apart.pop(key, None)
            self.voids[key] = void

    def list_unnamed(self, key: str) -> Sequence[str]:
        return list(self.apart.get(key, ()))

    def drop(self, key: str, block: str, *, who: str) -> None:
        self.put(key, block, b"0")
        self.name(key, [block], void=who)
        self._note("dropped")

    def remove_void(self, key: str, *, who: str) -> None:
        self._note("remove_void")
        if self.voids.get(key) == who:
            self.storage._objects.remove(key)

    def _note(self, name: str) -> None:
        self.asked.append(name)
        if happens := self.lost.pop(name, None):
            happens()
            raise BackendUnavailable("no answer")


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> AzureStorage:
    monkeypatch.setattr(stores, "_OPEN", {})
    monkeypatch.setattr(azure_storage, "_BLOCK_BYTES", 100)
    made = AzureStorage("memory://bucket/a/table", Options(), EagerClock())
    made.__dict__["_blocks"] = MemoryBlocks(made)
    return made


@pytest.fixture
def blocks(storage: AzureStorage) -> MemoryBlocks:
    found: Any = storage._blocks
    return found  # type: ignore[no-any-return]


def write(storage: AzureStorage, data: bytes = b"rows") -> StagedFile:
    staged = storage.stage(TARGET, instant=INSTANT)
    with staged.open() as out:
        out.write(data)
    return staged


@pytest.mark.parametrize("size", [0, 1, 100, 250, 2_000])
def test_a_file_of_any_size_gets_its_name_once(storage: AzureStorage, size: int) -> None:
    data = bytes(range(250)) * (size // 250) + b"x" * (size % 250)
    ticket = write(storage, data).seal()
    assert not storage.exists(TARGET)
    assert storage.redeem(ticket, TARGET)
    assert storage.read(TARGET) == data
    assert storage.list_staged() == set()
    storage.delete(TARGET)
    assert not storage.redeem(ticket, TARGET)


def test_nothing_is_sent_before_a_block_is_full(storage: AzureStorage, blocks: MemoryBlocks) -> None:
    staged = storage.stage(TARGET, instant=INSTANT)
    out = staged.open()
    out.write(bytes(99))
    assert (blocks.asked, storage.list_staged()) == ([], set())
    out.write(bytes(1))
    assert storage.list_staged() == {INSTANT}
    staged.discard()
    assert (blocks.apart, storage.list_staged(), storage.exists(TARGET)) == ({}, set(), False)
    with pytest.raises(NoSuchFile, match="not written to its end"):
        staged.seal()


def test_a_cancelled_file_has_no_blocks_and_its_name_is_free(storage: AzureStorage, blocks: MemoryBlocks) -> None:
    ticket = write(storage).seal()
    storage.cancel(ticket, TARGET)
    storage.cancel(ticket, TARGET)
    assert not storage.redeem(ticket, TARGET)
    assert (blocks.apart, storage.exists(TARGET)) == ({}, False)
    assert blocks.asked.count("drop") == 1


def test_a_request_that_comes_behind_a_cancellation_names_nothing(storage: AzureStorage, blocks: MemoryBlocks) -> None:
    ticket = write(storage).seal()
    names = list(blocks.list_unnamed(KEY))
    storage.cancel(ticket, TARGET)
    with pytest.raises(FileNotFoundError):
        blocks.name(KEY, names)
    assert not storage.exists(TARGET)


def test_to_cancel_what_somebody_named_takes_nothing_away(storage: AzureStorage) -> None:
    ticket, late = write(storage).seal(), write(storage, b"late").seal()
    assert storage.redeem(ticket, TARGET)
    storage.cancel_staged({INSTANT})
    assert storage.read(TARGET) == b"rows"
    assert not storage.redeem(late, TARGET)


def test_a_cancellation_without_an_answer_is_done_again_by_who_comes_later(
    storage: AzureStorage, blocks: MemoryBlocks
) -> None:
    ticket = write(storage).seal()
    blocks.lost["dropped"] = lambda: None
    with pytest.raises(StorageError, match="no answer"):
        storage.cancel(ticket, TARGET)
    assert storage.read(TARGET) == b"0"
    assert storage.list_staged() == {INSTANT}
    storage.cancel_staged({INSTANT})
    assert (storage.exists(TARGET), storage.list_staged()) == (False, set())


def test_a_cancellation_that_comes_late_leaves_nothing(storage: AzureStorage, blocks: MemoryBlocks) -> None:
    """The request that drops the blocks gets no answer, is sent again, and lands once all is done."""
    ticket = write(storage).seal()
    who = ticket.partition("/")[2].partition(" ")[0]
    blocks.lost["drop"] = lambda: None
    with pytest.raises(StorageError, match="no answer"):
        storage.cancel(ticket, TARGET)
    storage.cancel(ticket, TARGET)
    with pytest.raises(FileNotFoundError):
        blocks.name(KEY, [f"{who}00000"], void=who)
    assert not storage.exists(TARGET)


def test_who_names_the_blocks_first_is_not_cancelled(storage: AzureStorage, blocks: MemoryBlocks) -> None:
    ticket = write(storage).seal()
    found = blocks.list_unnamed

    def name_meanwhile(key: str) -> Sequence[str]:
        listed = found(key)
        blocks.name(key, listed)
        return listed

    blocks.list_unnamed = name_meanwhile  # type: ignore[method-assign]
    storage.cancel(ticket, TARGET)
    assert storage.read(TARGET) == b"rows"
    assert not storage.redeem(ticket, TARGET)


@pytest.mark.parametrize("is_done", [True, False])
def test_a_name_without_an_answer_is_asked_for_again(
    storage: AzureStorage, blocks: MemoryBlocks, *, is_done: bool
) -> None:
    ticket = write(storage).seal()
    names = blocks.list_unnamed(KEY)
    blocks.lost["name"] = partial(blocks.name, KEY, names) if is_done else lambda: None
    assert storage.redeem(ticket, TARGET) is not is_done
    assert storage.read(TARGET) == b"rows"
    storage.delete(TARGET)
    assert not storage.redeem(ticket, TARGET)


def test_a_file_that_is_opened_again_is_written_from_its_beginning(storage: AzureStorage) -> None:
    staged = write(storage, bytes(350))
    with staged.open() as out:
        out.write(b"short")
    assert storage.redeem(staged.seal(), TARGET)
    assert storage.read(TARGET) == b"short"
    assert storage.list_staged() == set()


@pytest.mark.parametrize("ticket", ["", "x 1", f"{INSTANT}/{'0' * 32}", f"{INSTANT}/{'0' * 32} x", f"{INSTANT}/a 1"])
def test_what_is_no_ticket_is_refused(storage: AzureStorage, ticket: str) -> None:
    for call in (storage.redeem, storage.cancel):
        with pytest.raises(StorageError, match="is no ticket"):
            call(ticket, TARGET)


def test_the_blob_that_tells_of_blocks_names_their_file(storage: AzureStorage) -> None:
    ticket = write(storage).seal()
    assert storage.read(f"{TICKETS_FOLDER}/{ticket.split(' ')[0]}") == TARGET.encode()
