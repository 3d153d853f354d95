"""A demand on a storage, and how it ended."""

from __future__ import annotations

import pickle
import random
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Final, TypeVar

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.storage import StagedFile, Storage
from hudi_locks_conformance.check import NotRun, Violation

__all__ = ["STORAGE_CHECKS", "StorageBench", "StorageCheck", "race", "require", "storage_check"]

T = TypeVar("T")
_LONGEST_START_S: Final = 60.0
_DAY: Final = "19990101"
"""Instants of checks lie before any table's, since a check cancels all that its instant has staged."""


@dataclass(frozen=True)
class StorageCheck:
    """One demand.

    Attributes:
        id: Group and number, as `SC2`; never changes.
        name: In words, joined by hyphens.
        demand: One sentence: what must hold.
        why: One sentence: what goes wrong on a table otherwise.
        needs: The capability without which it is not asked for; "" if it is asked of each.
        run: Judges; raises `Violation` or `NotRun`.
    """

    id: str
    name: str
    demand: str
    why: str
    needs: str
    run: Callable[[StorageBench], None]


STORAGE_CHECKS: Final[dict[str, StorageCheck]] = {}
"""All checks of storages, by id."""


def storage_check(
    id: str,  # noqa: A002  # the word of the list
    name: str,
    *,
    why: str,
    needs: str = "",
) -> Callable[[Callable[[StorageBench], None]], Callable[[StorageBench], None]]:
    """Declare the decorated function a check of storages; its docstring is the demand."""

    def declare(run: Callable[[StorageBench], None]) -> Callable[[StorageBench], None]:
        demand = " ".join((run.__doc__ or "").split())
        STORAGE_CHECKS[id] = StorageCheck(id, name, demand, why, needs, run)
        return run

    return declare


def require(kept: object, message: str) -> None:
    """Raise a violation unless what is demanded was kept.

    Raises:
        Violation: It was not.
    """
    if not kept:
        raise Violation(message)


def race(*calls: Callable[[], T]) -> list[T]:
    """What each call returns, all begun together, each on a thread of its own; the first error is raised.

    Raises:
        BrokenBarrierError: A thread did not come, since the machine could not start it.
    """
    start = Barrier(len(calls), timeout=_LONGEST_START_S)

    def contend(call: Callable[[], T]) -> T:
        start.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(contend, calls))


class StorageBench:
    """A storage under judgement. Each bench works in a folder of its own below the base path.

    Args:
        storage: To judge.
        clock: Measures the store's clock, and waits.
    """

    def __init__(self, storage: Storage, clock: Clock | None = None) -> None:
        self.storage = storage
        self.clock: Clock = clock or SystemClock()
        self.folder: str = f"hudi_locks_conformance/{uuid.uuid4().hex}"
        self.instant: str
        self.other_instant: str
        self.instant, self.other_instant = _draw_instants()

    def path(self, name: str) -> str:
        """A path in the bench's folder, relative to the base path."""
        return f"{self.folder}/{name}"

    def target(self, name: str = "f") -> str:
        """The name of a data file, in the bench's folder."""
        return self.path(f"p/{name}_0-0-0_{self.instant}.parquet")

    def stage(self, data: bytes = b"rows", *, target: str = "", instant: str = "") -> StagedFile:
        """A staged file, closed and not sealed."""
        staged = self.storage.stage(target or self.target(), instant=instant or self.instant)
        with staged.open() as out:
            out.write(data)
        return staged

    def ticket(self, data: bytes = b"rows", *, target: str = "", instant: str = "") -> str:
        """The ticket of a staged file."""
        return self.stage(data, target=target, instant=instant).seal()

    def copy(self) -> Storage:
        """The storage as an executor gets it.

        Raises:
            NotRun: It lives in one process.
        """
        try:
            copy: Storage = pickle.loads(pickle.dumps(self.storage))  # noqa: S301  # made here
        except TypeError as error:
            raise NotRun(f"it cannot be pickled: {error}") from error
        return copy

    def names(self) -> Sequence[str]:
        """The paths of all files in the bench's folder, relative to it; sorted."""
        return sorted(path.removeprefix(f"{self.folder}/") for path, _ in self.storage.walk(self.folder))

    def clear(self) -> None:
        """Remove what the check made."""
        if self.storage.capabilities.tickets:
            self.storage.cancel_staged({self.instant, self.other_instant})
        self.storage.delete_folder(self.folder)


def _draw_instants() -> tuple[str, str]:
    """Two requested times of one day, drawn at random so that runs side by side keep apart."""
    hour, minute, second = random.randrange(24), random.randrange(60), random.randrange(60)  # noqa: S311
    thousandth = random.randrange(999)  # noqa: S311  # no secret
    start = f"{_DAY}{hour:02}{minute:02}{second:02}"
    return f"{start}{thousandth:03}", f"{start}{thousandth + 1:03}"
