"""Several locks in one pair of hands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType

from hudi_locks.lock.held import Held

__all__ = ["HeldMany"]


class HeldMany:
    """The holds of one `LockManager.lock_many`, in the order in which they were acquired; a context manager."""

    def __init__(self, holds: Sequence[Held]) -> None:
        self._holds = tuple(holds)

    def __iter__(self) -> Iterator[Held]:
        return iter(self._holds)

    def __len__(self) -> int:
        return len(self._holds)

    def check(self) -> None:
        """See `Held.check`; for every one of them."""
        for held in self._holds:
            held.check()

    def verify(self) -> None:
        """See `Held.verify`; for every one of them."""
        for held in self._holds:
            held.verify()

    def release(self) -> None:
        """Let go of all, the last one first; one that fails does not keep the others."""
        with ExitStack() as stack:
            for held in self._holds:
                stack.callback(held.release)

    def __enter__(self) -> HeldMany:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            for held in self._holds:
                stack.callback(held.__exit__, kind, error, trace)
