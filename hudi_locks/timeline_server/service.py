"""What a timeline server does with markers, without a word of HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hudi_locks.early_conflict import EarlyConflict
from hudi_locks.markers import DirectMarkers
from hudi_locks.observe import Metrics
from hudi_locks.storage import Storage
from hudi_locks.timeline_server.checker import Checker, groups_of
from hudi_locks.timeline_server.marker_book import MarkerBook

__all__ = ["Answer", "MakeChecker", "MarkerService"]

MakeChecker = Callable[[str], "Checker | None"]


@dataclass(frozen=True)
class Answer:
    """What became of a request to make markers.

    Attributes:
        created: For each whether it is new; empty if a conflict is known.
        conflict: With whom.
    """

    created: Sequence[bool] = ()
    conflict: EarlyConflict | None = None


@dataclass(frozen=True)
class _Folder:
    book: MarkerBook
    checker: Checker | None

    @property
    def conflict(self) -> EarlyConflict | None:
        return self.checker.conflict if self.checker is not None else None

    async def begin_to_look(self) -> None:
        if self.checker is not None and not self.checker.has_begun:
            await asyncio.to_thread(self.checker.begin, lambda: groups_of(self.book.names))


class MarkerService:
    """The markers of all instants of one table. Lives in one event loop.

    Args:
        storage: Of the table.
        files: How many files a marker folder has (`hoodie.markers.timeline_server_based.batch.num_threads`).
        interval_s: How long a batch waits at most for one that is being written (`….batch.interval_ms`).
        make_checker: What looks for conflicts of an instant; None where nothing does.
        metrics: Gets what the flushes took.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        files: int,
        interval_s: float,
        make_checker: MakeChecker = lambda _: None,
        metrics: Metrics | None = None,
    ) -> None:
        self._storage = storage
        self._files = files
        self._interval_s = interval_s
        self._make_checker = make_checker
        self._metrics = metrics or Metrics()
        self._folders: dict[str, _Folder] = {}
        self._opening = asyncio.Lock()

    async def create(self, requested: str, names: Sequence[str], *, detects: bool = True) -> Answer:
        """Make markers of an instant; durable when this returns, unless it gives a conflict.

        Args:
            requested: Of the instant.
            names: Of the markers.
            detects: Whether its writer wants to hear of conflicts.

        Raises:
            StorageError: The store failed.
        """
        folder = await self._open(requested)
        if folder.conflict is not None:
            return Answer(conflict=folder.conflict)
        created = await folder.book.add(names)
        if detects:
            await folder.begin_to_look()
        return Answer(created) if folder.conflict is None else Answer(conflict=folder.conflict)

    def is_busy(self, requested: str) -> bool:
        """Whether so much of an instant waits for the store that more should come later."""
        folder = self._folders.get(requested)
        return folder is not None and folder.book.is_full

    async def list(self, requested: str) -> frozenset[str]:
        """All markers of an instant."""
        return (await self._open(requested)).book.names

    async def exists(self, requested: str) -> bool:
        """Whether the instant has a marker folder."""
        return await asyncio.to_thread(self._exists, requested)

    def _exists(self, requested: str) -> bool:
        return self._storage.stat(DirectMarkers(self._storage, requested).folder) is not None

    async def delete(self, requested: str) -> bool:
        """Remove the marker folder of an instant, and forget it; False if there was none."""
        await self._forget(requested)
        was_there = await self.exists(requested)
        await asyncio.to_thread(DirectMarkers(self._storage, requested).delete)
        return was_there

    async def close(self) -> None:
        """End the looks for conflicts."""
        for requested in list(self._folders):
            await self._forget(requested)

    async def _forget(self, requested: str) -> None:
        folder = self._folders.pop(requested, None)
        if folder is not None and folder.checker is not None:
            await asyncio.to_thread(folder.checker.stop)

    async def _open(self, requested: str) -> _Folder:
        if requested in self._folders:
            return self._folders[requested]
        async with self._opening:
            if requested not in self._folders:
                await self._forget_ended()
                self._folders[requested] = await asyncio.to_thread(self._make, requested)
            return self._folders[requested]

    async def _forget_ended(self) -> None:
        """Let go of instants whose folder is gone: their writers ended them without a word to the server."""
        for requested in list(self._folders):
            if not await self.exists(requested):
                await self._forget(requested)

    def _make(self, requested: str) -> _Folder:
        checker = self._make_checker(requested)
        book = MarkerBook(
            self._storage,
            DirectMarkers(self._storage, requested).folder,
            files=self._files,
            interval_s=self._interval_s,
            announce=checker.announce if checker is not None else None,
            metrics=self._metrics,
        )
        book.load()
        return _Folder(book, checker)
