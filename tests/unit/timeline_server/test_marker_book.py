"""Names in a server's memory, and in its files."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import Any

import pytest

from hudi_locks import ManualClock
from hudi_locks.errors import StorageError
from hudi_locks.markers import read_markers
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline_server import ServerSettings
from hudi_locks.timeline_server.marker_book import MarkerBook

INSTANT = "20260101000000001"
FOLDER = f".hoodie/.temp/{INSTANT}"


class SlowStorage(MemoryStorage):
    """Replaces files when it is told to, or fails."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.go = threading.Event()
        self.go.set()
        self.fails = False
        self.replaced: list[str] = []

    def replace(self, path: str, data: bytes) -> None:
        assert self.go.wait(20)
        if self.fails:
            raise StorageError("the disk is full", path=path)
        self.replaced.append(path)
        super().replace(path, data)


@pytest.fixture
def storage() -> SlowStorage:
    return SlowStorage()


def book(storage: MemoryStorage, files: int = 3) -> MarkerBook:
    return MarkerBook(storage, FOLDER, files=files, interval_s=0.0)


def name(number: int, partition: str = "p") -> str:
    return f"{partition}/g{number}-0_0-0-0_{INSTANT}.parquet.marker.CREATE"


def found(storage: MemoryStorage) -> set[str]:
    return {str(marker) for marker in read_markers(storage, INSTANT).names}


def test_an_answer_means_that_the_names_are_in_a_file(storage: SlowStorage) -> None:
    async def work() -> None:
        assert await book(storage).add([name(1), name(2)]) == [True, True]
        assert found(storage) == {name(1), name(2)}
        assert storage.read(f"{FOLDER}/MARKERS.type") == b"TIMELINE_SERVER_BASED"
        assert storage.read(f"{FOLDER}/MARKERS0") == f"{name(1)}\n{name(2)}\n".encode()

    asyncio.run(work())


def test_a_name_is_new_once(storage: SlowStorage) -> None:
    async def work() -> None:
        markers = book(storage)
        assert await markers.add([name(1)]) == [True]
        assert await markers.add([name(1), name(2), name(2)]) == [False, True, False]
        assert markers.names == {name(1), name(2)}

    asyncio.run(work())


def test_what_comes_together_is_written_together_and_files_take_turns(storage: SlowStorage) -> None:
    async def work() -> None:
        markers = book(storage)
        await asyncio.gather(*(markers.add([name(number)]) for number in range(50)))
        assert storage.replaced == [f"{FOLDER}/MARKERS.type", f"{FOLDER}/MARKERS0"]
        for number in range(50, 54):
            await markers.add([name(number)])
        assert storage.replaced[2:] == [f"{FOLDER}/MARKERS{number}" for number in (1, 2, 0, 1)]
        assert found(storage) == {name(number) for number in range(54)}

    asyncio.run(work())


def test_what_comes_while_a_file_is_written_waits_for_it_and_goes_together(storage: SlowStorage) -> None:
    async def work() -> None:
        markers = MarkerBook(storage, FOLDER, files=3, interval_s=60.0)
        storage.go.clear()
        first = asyncio.create_task(markers.add([name(0)]))
        while not markers._coming:
            await asyncio.sleep(0)
        rest = [asyncio.create_task(markers.add([name(number)])) for number in range(1, 30)]
        await asyncio.sleep(0.02)  # real time: the event loop has no other
        assert not storage.replaced
        storage.go.set()
        await asyncio.gather(first, *rest)
        assert storage.replaced[1:] == [f"{FOLDER}/MARKERS{number}" for number in (0, 1)]

    asyncio.run(work())


def test_a_slow_file_does_not_hold_up_the_others_for_longer_than_the_interval(storage: SlowStorage) -> None:
    async def work() -> None:
        settings = ServerSettings.of({"hoodie.markers.timeline_server_based.batch.interval_ms": "1"})
        markers = MarkerBook(storage, FOLDER, files=3, interval_s=settings.interval_s)
        storage.go.clear()
        first = asyncio.create_task(markers.add([name(0)]))
        while not markers._coming:
            await asyncio.sleep(0)
        second = asyncio.create_task(markers.add([name(1)]))
        while len(markers._flushing) < 2:
            await asyncio.sleep(0.001)  # real time: the event loop has no other
        storage.go.set()
        await asyncio.gather(first, second)
        assert found(storage) == {name(0), name(1)}

    asyncio.run(work())


def test_a_repeated_request_waits_for_the_flush_that_brings_its_name(storage: SlowStorage) -> None:
    async def work() -> None:
        markers = book(storage)
        storage.go.clear()
        first = asyncio.create_task(markers.add([name(1), name(2)]))
        await asyncio.sleep(0.02)  # real time: the event loop has no other
        again = asyncio.create_task(markers.add([name(2), name(3)]))
        await asyncio.sleep(0.02)  # real time: the event loop has no other
        assert not first.done()
        assert not again.done()
        storage.go.set()
        assert (await first, await again) == ([True, True], [False, True])
        assert found(storage) == {name(1), name(2), name(3)}

    asyncio.run(work())


def test_a_failing_store_is_told_to_all_who_wait_and_the_next_try_counts(storage: SlowStorage) -> None:
    async def work() -> None:
        markers = book(storage)
        storage.fails = True
        outcomes = await asyncio.gather(markers.add([name(1)]), markers.add([name(1)]), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StorageError, StorageError]
        assert not markers.names
        storage.fails = False
        assert await markers.add([name(1)]) == [True]

    asyncio.run(work())


def test_a_server_that_starts_again_knows_what_the_one_before_left(storage: SlowStorage) -> None:
    storage.replace(f"{FOLDER}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.replace(f"{FOLDER}/MARKERS0", f"{name(1)},{name(2)}\n".encode())
    storage.replace(f"{FOLDER}/MARKERS17", f"{name(3)}\n".encode())

    async def work() -> None:
        markers = book(storage, files=20)
        markers.load()
        assert await markers.add([name(1), name(3), name(4)]) == [False, False, True]
        assert storage.read(f"{FOLDER}/MARKERS0") == f"{name(1)}\n{name(2)}\n{name(4)}\n".encode()
        assert found(storage) == {name(number) for number in range(1, 5)}

    asyncio.run(work())


@pytest.mark.parametrize("seed", range(20))
def test_no_name_is_lost_and_each_is_new_to_one_request(storage: SlowStorage, seed: int) -> None:
    rng = random.Random(seed)
    wanted = [[name(rng.randrange(30)) for _ in range(rng.randrange(1, 6))] for _ in range(40)]

    async def work() -> Any:
        markers = book(storage)

        async def ask(names: list[str]) -> list[bool]:
            await asyncio.sleep(rng.random() / 100)  # real time: the event loop has no other
            return await markers.add(names)

        return await asyncio.gather(*map(ask, wanted))

    answers = asyncio.run(work())
    new = [
        each
        for names, flags in zip(wanted, answers, strict=True)
        for each, flag in zip(names, flags, strict=True)
        if flag
    ]
    assert sorted(new) == sorted(found(storage)) == sorted({each for names in wanted for each in names})
