"""The markers of one instant in the memory of a timeline server, and their files (Hudi's MarkerDirState)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, TypeAlias

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.markers import ServerFiles
from hudi_locks.observe import TIMELINE_SERVER_FLUSH, TIMELINE_SERVER_MARKERS, Metrics
from hudi_locks.redaction import open_log
from hudi_locks.storage import Storage

__all__ = ["MarkerBook"]

_Answer: TypeAlias = "asyncio.Future[list[bool]]"
_MOST_QUEUED: Final = 200_000
_log = open_log(__name__)


@dataclass(frozen=True)
class _Request:
    names: Sequence[str]
    answer: _Answer


class MarkerBook:
    """Takes names, and answers when they are durable. Lives in one event loop.

    Requests that come while a file is being written wait together for the next one, or for as long as they may. Each
    flush replaces one of the files as a whole, so that a JVM's rollback reads what it would read of its own server;
    where the store is slow several are written side by side, each name in one.

    Args:
        storage: Of the table.
        folder: Marker folder of the instant.
        files: How many files there may be.
        interval_s: How long a batch waits at most for one that is being written.
        announce: Called with the new names of a batch before they are written; blocks.
        metrics: Gets what each flush took, and how many markers it made.
        clock: Measures it.
    """

    def __init__(
        self,
        storage: Storage,
        folder: str,
        *,
        files: int,
        interval_s: float,
        announce: Callable[[Sequence[str]], None] | None = None,
        metrics: Metrics | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._files = ServerFiles(storage, folder)
        self._interval_s = interval_s
        self._announce = announce
        self._metrics = metrics or Metrics()
        self._clock = clock or SystemClock()
        self._lines: list[list[str]] = [[] for _ in range(files)]
        self._idle = list(range(files))
        self._known: set[str] = set()
        self._coming: dict[str, _Answer] = {}
        self._queue: list[_Request] = []
        self._queued = 0
        self._is_gathering = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._flushing: set[asyncio.Task[None]] = set()

    @property
    def names(self) -> frozenset[str]:
        """Every marker that is durable, and those that will be unless the store fails. For any thread."""
        return frozenset(self._known.copy()).union(list(self._coming))

    @property
    def is_full(self) -> bool:
        """Whether so much waits for the store that more should wait outside."""
        return self._queued >= _MOST_QUEUED

    def load(self) -> None:
        """Read what an earlier server left, also lines of several names; blocks.

        Raises:
            StorageError: The store failed.
        """
        for number, names in self._files.read_numbered().items():
            self._known.update(names)
            self._lines[number % len(self._lines)].extend(names)

    async def add(self, names: Sequence[str]) -> list[bool]:
        """Make markers; for each whether it is new. They are durable when this returns.

        Raises:
            StorageError: The store failed; none of the new ones counts, though some may be there.
        """
        answer: _Answer = asyncio.get_running_loop().create_future()
        self._queue.append(_Request(names, answer))
        self._queued += len(names)
        self._gather()
        return await answer

    def _gather(self) -> None:
        if self._queue and self._idle and not self._is_gathering:
            self._is_gathering = True
            task = asyncio.create_task(self._flush_soon())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _flush_soon(self) -> None:
        await self._wait_for_company()
        self._is_gathering = False
        batch, self._queue, self._queued = self._queue, [], 0
        number = self._idle.pop(0)
        flushing = asyncio.create_task(self._flush(number, batch))
        self._flushing.add(flushing)
        self._gather()
        try:
            await flushing
        finally:
            self._flushing.discard(flushing)
            self._idle.append(number)
            self._gather()

    async def _wait_for_company(self) -> None:
        """Until a flush under way is done, or it has lasted too long: what comes meanwhile is written together."""
        if self._flushing:
            await asyncio.wait(self._flushing, timeout=self._interval_s, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(0)  # what has arrived already

    async def _flush(self, number: int, batch: list[_Request]) -> None:
        """Write the new names of a batch; those that another flush is bringing are waited for."""
        done: _Answer = asyncio.get_running_loop().create_future()
        is_new = [[self._claim(name, done) for name in request.names] for request in batch]
        new = [name for request, flags in zip(batch, is_new, strict=True) for name in compress(request.names, flags)]
        others = {self._coming[name] for request in batch for name in request.names if name in self._coming} - {done}
        try:
            await self._write(number, new)
            self._settle(new, done, [])
            await asyncio.gather(*others)
        except Exception as error:  # noqa: BLE001  # whoever waits must hear of it
            _log.warning("a batch of %d markers failed", len(new), exc_info=True)
            self._settle(new, done, error)
            for request in batch:
                _end(request.answer, error)
        for request, answers in zip(batch, is_new, strict=True):
            _end(request.answer, answers)

    def _settle(self, names: Iterable[str], done: _Answer, outcome: list[bool] | Exception) -> None:
        """Tell those who wait for these names, before this batch waits for others: two may wait for each other."""
        if not done.done():
            self._known.update([] if isinstance(outcome, Exception) else names)
            for name in names:
                del self._coming[name]
            _end(done, outcome)

    def _claim(self, name: str, done: _Answer) -> bool:
        if name in self._known or name in self._coming:
            return False
        self._coming[name] = done
        return True

    async def _write(self, number: int, names: Sequence[str]) -> None:
        if names:
            lines = [*self._lines[number], *names]
            await asyncio.to_thread(self._write_now, number, lines, names)
            self._lines[number] = lines

    def _write_now(self, number: int, lines: Sequence[str], new: Sequence[str]) -> None:
        began_s = self._clock.monotonic()
        if self._announce is not None:
            self._announce(new)
        self._files.write(number, lines)
        counts = [(TIMELINE_SERVER_MARKERS, len(new))]
        self._metrics.report(TIMELINE_SERVER_FLUSH, self._clock.monotonic() - began_s, counts=counts)


def _end(answer: _Answer, outcome: list[bool] | Exception) -> None:
    """Give an answer, unless whoever asked has gone."""
    if answer.done():
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
        answer.exception()  # marks it as seen: nobody may be waiting
    else:
        answer.set_result(outcome)
