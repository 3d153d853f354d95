"""Who this process and thread are, and whether this is the process that an object was made in."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from typing import Final

from hudi_locks.lock.lease import Owner

__all__ = ["Identity", "generation"]


class _Generation:
    number = 0

    def advance(self) -> None:
        self.number += 1


_GENERATION: Final = _Generation()
os.register_at_fork(after_in_child=_GENERATION.advance)


def generation() -> int:
    """A number that is another one in every forked child: what was made under a different one is not ours to use."""
    return _GENERATION.number


class Identity:
    """Makes the owners of one manager: one for each thread, the same one each time.

    Args:
        application: What a person would call the job.
    """

    def __init__(self, application: str = "") -> None:
        self._application = application
        self._host = socket.gethostname()
        self._local = threading.local()

    def owner(self) -> Owner:
        """The owner that the calling thread is."""
        cached: tuple[int, Owner] | None = getattr(self._local, "cached", None)
        if cached is None or cached[0] != generation():
            cached = self._local.cached = (generation(), self._new_owner())
        return cached[1]

    def _new_owner(self) -> Owner:
        thread = threading.current_thread().name
        return Owner(str(uuid.uuid4()), self._host, os.getpid(), thread, self._application)
