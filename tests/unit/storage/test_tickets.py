"""What each storage promises of staged files: one name, at most once, and never after a cancellation."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from hudi_locks.clock import ManualClock
from hudi_locks.errors import NoSuchFile, StorageError
from hudi_locks.storage import MOST_TICKET_BYTES, LocalStorage, MemoryStorage, StagedFile, Storage

INSTANT = "20260101000000000"
OTHER = "20260101000000001"
TARGET = f"p/f_0-0-0_{INSTANT}.parquet"
STAGING = ".hoodie/.hudi_locks/staging"


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return LocalStorage(str(tmp_path / "table")) if request.param == "local" else MemoryStorage(ManualClock())


def write(storage: Storage, data: bytes = b"rows", *, target: str = TARGET, instant: str = INSTANT) -> StagedFile:
    """A staged file, closed and not sealed."""
    staged = storage.stage(target, instant=instant)
    with staged.open() as out:
        out.write(data)
    return staged


def ticket_of(storage: Storage, data: bytes = b"rows", *, target: str = TARGET, instant: str = INSTANT) -> str:
    return write(storage, data, target=target, instant=instant).seal()


def seen_by_readers(storage: Storage) -> list[str]:
    return [path for path, _ in storage.walk("") if not path.startswith(".hoodie/")]


def test_staging_makes_no_request_and_shows_nothing(storage: Storage) -> None:
    staged = storage.stage(TARGET, instant=INSTANT)
    assert staged.target == TARGET
    assert storage.list("") == []
    assert storage.list_staged() == set()


def test_a_redeemed_file_has_its_name_whole(storage: Storage) -> None:
    ticket = ticket_of(storage, b"all rows")
    assert seen_by_readers(storage) == []
    assert 0 < len(ticket.encode()) <= MOST_TICKET_BYTES
    assert storage.redeem(ticket, TARGET)
    storage.flush([TARGET])
    assert storage.read(TARGET) == b"all rows"
    assert seen_by_readers(storage) == [TARGET]


def test_a_file_is_written_from_its_beginning_each_time_that_it_is_opened(storage: Storage) -> None:
    staged = write(storage, b"a longer text")
    with staged.open() as out:
        out.write(b"short")
    assert storage.redeem(staged.seal(), TARGET)
    assert storage.read(TARGET) == b"short"


def test_a_ticket_is_used_up_also_when_its_file_is_removed(storage: Storage) -> None:
    ticket = ticket_of(storage)
    assert storage.redeem(ticket, TARGET)
    storage.delete(TARGET)
    assert not storage.redeem(ticket, TARGET)
    assert not storage.exists(TARGET)


def test_the_name_stays_when_a_ticket_is_redeemed_again(storage: Storage) -> None:
    ticket = ticket_of(storage)
    assert storage.redeem(ticket, TARGET)
    storage.redeem(ticket, TARGET)
    assert storage.read(TARGET) == b"rows"


def test_a_name_that_is_taken_stays_as_it_is_and_uses_the_ticket_up(storage: Storage) -> None:
    first, second = ticket_of(storage, b"first"), ticket_of(storage, b"second")
    assert storage.redeem(first, TARGET)
    assert not storage.redeem(second, TARGET)
    assert storage.read(TARGET) == b"first"
    storage.delete(TARGET)
    assert not storage.redeem(second, TARGET)
    assert not storage.exists(TARGET)


def test_a_cancelled_ticket_is_never_redeemed(storage: Storage) -> None:
    ticket = ticket_of(storage)
    storage.cancel(ticket, TARGET)
    storage.cancel(ticket, TARGET)
    assert not storage.redeem(ticket, TARGET)
    assert seen_by_readers(storage) == []


def test_a_discarded_file_is_never_redeemed(storage: Storage) -> None:
    staged = write(storage)
    ticket = staged.seal()
    staged.discard()
    staged.discard()
    assert not storage.redeem(ticket, TARGET)
    storage.stage(TARGET, instant=INSTANT).discard()


def test_a_file_may_be_discarded_while_it_is_written(storage: Storage) -> None:
    staged = storage.stage(TARGET, instant=INSTANT)
    out = staged.open()
    out.write(b"some")
    staged.discard()
    out.close()
    with pytest.raises(NoSuchFile):
        staged.seal()


def test_a_ticket_that_nobody_gave_names_nothing(storage: Storage) -> None:
    ticket = f"{INSTANT}/{'0' * 32}"
    assert not storage.redeem(ticket, TARGET)
    storage.cancel(ticket, TARGET)
    assert seen_by_readers(storage) == []


@pytest.mark.parametrize("ticket", ["", "..", "../../x", "/etc/passwd", f"{INSTANT}/../x", "a/b/c"])
def test_what_is_no_ticket_of_a_disk_is_refused(tmp_path: Path, ticket: str) -> None:
    storage = LocalStorage(str(tmp_path))
    for call in (storage.redeem, storage.cancel):
        with pytest.raises(StorageError, match="is no ticket"):
            call(ticket, TARGET)


def test_what_was_cancelled_for_its_instant_cannot_be_sealed_or_redeemed(storage: Storage) -> None:
    """Neither what was sealed, nor what is written still, nor what is sealed late."""
    sealed, closed = ticket_of(storage), write(storage)
    open_still = storage.stage(TARGET, instant=INSTANT)
    out = open_still.open()
    out.write(b"late")
    storage.cancel_staged({INSTANT, "20200101000000000"})
    out.write(b", and later")
    out.close()
    for staged in (closed, open_still):
        with pytest.raises(NoSuchFile):
            staged.seal()
    assert not storage.redeem(sealed, TARGET)
    assert seen_by_readers(storage) == []


def test_instants_with_staged_files_are_told_and_cancelled_apart(storage: Storage) -> None:
    gone, kept = ticket_of(storage), ticket_of(storage, target="p/other", instant=OTHER)
    assert storage.list_staged() == {INSTANT, OTHER}
    storage.cancel_staged({INSTANT})
    assert storage.list_staged() == {OTHER}
    assert not storage.redeem(gone, TARGET)
    assert storage.redeem(kept, "p/other")


def race(*calls: Callable[[], object]) -> list[object]:
    start = threading.Barrier(len(calls))

    def contend(call: Callable[[], object]) -> object:
        start.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(contend, calls))


def test_of_many_tickets_for_one_name_one_is_redeemed(storage: Storage) -> None:
    for turn in range(10):
        target = f"p/{turn}"
        tickets = [ticket_of(storage, b"%d" % number, target=target) for number in range(6)]
        won = race(*[partial(storage.redeem, ticket, target) for ticket in tickets])
        assert won.count(True) == 1
        assert storage.read(target) == b"%d" % won.index(True)
        storage.delete(target)
        assert not any(storage.redeem(ticket, target) for ticket in tickets)


def test_one_ticket_is_redeemed_by_many_and_the_file_is_there_once(storage: Storage) -> None:
    for turn in range(20):
        target = f"p/{turn}"
        ticket = ticket_of(storage, target=target)
        won = race(*[partial(storage.redeem, ticket, target)] * 4)
        assert won.count(True) >= 1
        assert storage.read(target) == b"rows"
        storage.delete(target)
        assert not storage.redeem(ticket, target)


def test_a_race_of_redeem_and_cancel_ends_in_one_of_the_two(storage: Storage) -> None:
    for turn in range(30):
        target = f"p/{turn}"
        ticket = ticket_of(storage, target=target)
        won, _ = race(partial(storage.redeem, ticket, target), partial(storage.cancel, ticket, target))
        assert storage.exists(target) == won
        storage.delete(target)
        assert not storage.redeem(ticket, target)


class TestLocal:
    def test_a_process_that_dies_between_the_two_names_is_followed_by_another(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else the ticket would bring the file back once a clean has removed it."""
        storage = LocalStorage(str(tmp_path))
        ticket = ticket_of(storage)
        with monkeypatch.context() as patched:
            patched.setattr("os.unlink", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                storage.redeem(ticket, TARGET)
        assert storage.exists(TARGET)
        assert storage.exists(f"{STAGING}/{ticket}")
        assert storage.redeem(ticket, TARGET)
        assert storage.read(TARGET) == b"rows"
        storage.delete(TARGET)
        assert not storage.redeem(ticket, TARGET)

    def test_bytes_are_durable_before_there_is_a_ticket_and_each_folder_is_flushed_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flushed, fsync = list[str](), os.fsync

        def record(handle: int) -> None:
            flushed.append(str(Path(f"/proc/self/fd/{handle}").readlink().relative_to(tmp_path)))
            fsync(handle)

        storage = LocalStorage(str(tmp_path))
        (tmp_path / "p").mkdir()
        storage.flush(["p/x"])
        staged = [write(storage, target=f"p/{number}") for number in range(4)]
        monkeypatch.setattr("os.fsync", record)
        tickets = [file.seal() for file in staged]
        assert flushed == [f"{STAGING}/{ticket}" for ticket in tickets]
        flushed.clear()
        assert all(storage.redeem(ticket, f"p/{number}") for number, ticket in enumerate(tickets))
        assert flushed == []
        storage.flush([f"p/{number}" for number in range(4)])
        assert flushed == ["p"]

    def test_a_staged_file_travels_to_another_process(self, tmp_path: Path) -> None:
        storage = LocalStorage(str(tmp_path))
        copy = pickle.loads(pickle.dumps(storage.stage(TARGET, instant=INSTANT)))
        with copy.open() as out:
            out.write(b"there")
        assert storage.redeem(copy.seal(), TARGET)
        assert storage.read(TARGET) == b"there"

    def test_a_checksum_that_hadoop_left_goes(self, tmp_path: Path) -> None:
        storage = LocalStorage(str(tmp_path))
        storage.replace("p/.x.crc", b"stale")
        assert storage.redeem(ticket_of(storage, target="p/x"), "p/x")
        assert not storage.exists("p/.x.crc")
