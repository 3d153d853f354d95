"""Several locks in one pair of hands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType

from hudi_locks.lock.held import Held, end_block, release_together

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
        """Let go of all together; one that fails does not keep the others. See `Held.release`."""
        release_together(self._holds)

    def __enter__(self) -> HeldMany:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release. A loss within the block raises `LockLost`, unless the block raised already."""
        end_block(self._holds, error)
