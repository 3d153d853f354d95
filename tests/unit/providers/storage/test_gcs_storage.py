"""Staged objects and their names, in a bucket of this process's memory; answers are lost on the way."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hudi_locks_providers import gcs_storage
from hudi_locks_providers._storage import stores
from hudi_locks_providers.gcs_storage import GcsStorage

from hudi_locks import ManualClock
from hudi_locks.config import Options
from hudi_locks.errors import NoSuchFile, StorageError
from hudi_locks.storage import TICKETS_FOLDER, StagedFile

INSTANT = "20260101000000000"
TARGET = f"p/f-0_0-0-0_{INSTANT}.parquet"


class EagerClock(ManualClock):
    """Does not wait for somebody to move it."""

    def sleep(self, duration_s: float) -> None:
        self.advance(duration_s)


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> GcsStorage:
    monkeypatch.setattr(stores, "_OPEN", {})
    monkeypatch.setattr(gcs_storage, "_PART_BYTES", 100)
    return GcsStorage("memory://bucket/a/table", Options(), EagerClock())


def write(storage: GcsStorage, data: bytes = b"rows") -> StagedFile:
    staged = storage.stage(TARGET, instant=INSTANT)
    with staged.open() as out:
        out.write(data)
    return staged


def fail(storage: GcsStorage, kind: str, *, times: int, is_done: bool) -> list[str]:
    """Let requests of a kind get no answer, though they may be done; those that were met."""
    met: list[str] = []

    def send(name: str, request: Callable[[], Any]) -> Any:
        if name != kind or len(met) >= times:
            return request()
        met.append(name)
        if is_done:
            request()
        raise OSError("the connection broke")

    storage._objects.send = send  # type: ignore[method-assign]
    return met


def list_aside(storage: GcsStorage) -> list[str]:
    return [path for path, _ in storage.walk(TICKETS_FOLDER)]


@pytest.mark.parametrize("size", [0, 99, 100, 250, 100_000])
def test_a_file_of_any_size_gets_its_name_once(storage: GcsStorage, size: int) -> None:
    data = bytes(range(250)) * (size // 250) + b"x" * (size % 250)
    ticket = write(storage, data).seal()
    assert storage.read(TARGET) is None
    assert list_aside(storage) == [f"{TICKETS_FOLDER}/{ticket}"]
    assert storage.redeem(ticket, TARGET)
    assert storage.read(TARGET) == data
    assert list_aside(storage) == []
    storage.delete(TARGET)
    assert not storage.redeem(ticket, TARGET)


def test_a_large_file_that_is_cancelled_while_it_is_sent_gets_no_ticket(storage: GcsStorage) -> None:
    staged = storage.stage(TARGET, instant=INSTANT)
    out = staged.open()
    out.write(bytes(150))
    assert storage.list_staged() == {INSTANT}
    storage.cancel_staged({INSTANT})
    out.close()
    with pytest.raises(NoSuchFile, match="cancelled while it was sent"):
        staged.seal()


def test_what_is_not_whole_gets_no_ticket(storage: GcsStorage) -> None:
    staged = storage.stage(TARGET, instant=INSTANT)
    with pytest.raises(NoSuchFile, match="not written to its end"):
        staged.seal()
    out = staged.open()
    out.write(bytes(150))
    staged.discard()
    out.close()
    with pytest.raises(NoSuchFile, match="not written to its end"):
        staged.seal()
    assert list_aside(storage) == []


def test_a_taken_name_uses_the_ticket_up(storage: GcsStorage) -> None:
    first, second = write(storage, b"first").seal(), write(storage, b"second").seal()
    assert storage.redeem(first, TARGET)
    assert not storage.redeem(second, TARGET)
    assert storage.read(TARGET) == b"first"
    storage.delete(TARGET)
    assert not storage.redeem(second, TARGET)
    assert storage.read(TARGET) is None


def test_a_copy_seals_what_the_storage_redeems(storage: GcsStorage) -> None:
    copy: StagedFile = pickle.loads(pickle.dumps(storage.stage(TARGET, instant=INSTANT)))
    with copy.open() as out:
        out.write(b"there")
    assert storage.redeem(copy.seal(), TARGET)


@pytest.mark.parametrize("ticket", ["", "x", "1/x", f"x/{'0' * 32}", f"1/../{'0' * 29}"])
def test_what_is_no_ticket_is_refused(storage: GcsStorage, ticket: str) -> None:
    for call in (storage.redeem, storage.cancel):
        with pytest.raises(StorageError, match="is no ticket"):
            call(ticket, TARGET)


@pytest.mark.parametrize("is_done", [True, False])
def test_a_file_that_is_made_without_an_answer_is_made_once(storage: GcsStorage, *, is_done: bool) -> None:
    met = fail(storage, "put", times=2, is_done=is_done)
    assert storage.create_if_absent("a", b"mine")
    assert len(met) == 2
    assert not storage.create_if_absent("a", b"mine")


def test_a_file_of_another_with_the_same_bytes_is_not_taken_for_ours(storage: GcsStorage) -> None:
    storage.create_if_absent("a", b"")
    fail(storage, "put", times=1, is_done=False)
    assert not storage.create_if_absent("a", b"")


def test_no_answer_at_all_is_an_error_that_says_so(storage: GcsStorage) -> None:
    fail(storage, "put", times=99, is_done=False)
    with pytest.raises(StorageError, match="no answer to the request to write"):
        storage.create_if_absent("a", b"x")
    assert not storage.exists("a")


@pytest.mark.parametrize("is_done", [True, False])
def test_a_beat_that_got_no_answer_is_sent_again(storage: GcsStorage, *, is_done: bool) -> None:
    storage.create_if_absent("beat", b"who")
    assert fail(storage, "put", times=1, is_done=is_done) == []
    assert storage.touch("beat")
    assert storage.read("beat") == b"who"


@pytest.mark.parametrize("kind", ["copy", "delete"])
@pytest.mark.parametrize("is_done", [True, False])
def test_a_name_is_given_once_although_answers_are_lost(storage: GcsStorage, kind: str, *, is_done: bool) -> None:
    ticket = write(storage).seal()
    met = fail(storage, kind, times=1, is_done=is_done)
    is_named = storage.redeem(ticket, TARGET)
    assert len(met) == 1
    assert is_named or (kind == "copy" and is_done)
    assert storage.read(TARGET) == b"rows"
    storage.delete(TARGET)
    assert not storage.redeem(ticket, TARGET)


def test_a_name_without_an_answer_is_asked_for_again(storage: GcsStorage) -> None:
    ticket = write(storage).seal()
    fail(storage, "copy", times=5, is_done=False)
    with pytest.raises(StorageError, match="no answer"):
        storage.redeem(ticket, TARGET)
    assert storage.redeem(ticket, TARGET)


def test_a_part_that_cannot_be_sent_is_an_error_of_the_store(storage: GcsStorage) -> None:
    staged = storage.stage(TARGET, instant=INSTANT)
    out = staged.open()
    fail(storage, "part", times=1, is_done=False)
    with pytest.raises(StorageError, match="no answer to the request to write"):
        out.write(bytes(150))
    staged.discard()
    assert list_aside(storage) == []


def test_requests_that_are_refused_are_not_repeated(storage: GcsStorage) -> None:
    sent: list[str] = []

    def refuse(name: str, request: Callable[[], Any]) -> Any:
        del request
        sent.append(name)
        raise OSError("status 403")

    storage._objects.send = refuse  # type: ignore[method-assign]
    with pytest.raises(StorageError, match="refuses to write"):
        storage.replace("a", b"x")
    assert sent == ["put"]
