"""Who this process and thread are."""

from __future__ import annotations

import os
import socket
import threading
import uuid

from hudi_locks.lock.forking import generation
from hudi_locks.lock.lease import Owner

__all__ = ["Identity"]


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
