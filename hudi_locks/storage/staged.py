"""Data files that are written and have no name yet."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from hudi_locks.errors import StorageError

if TYPE_CHECKING:
    import pyarrow as pa  # late where it is used: to look at locks needs none of it

__all__ = ["MOST_TICKET_BYTES", "TICKETS_FOLDER", "StagedFile", "draw_staged", "find_staged"]

TICKETS_FOLDER: Final = ".hoodie/.hudi_locks/staging"
"""Where storages that keep staged files aside have a folder for each instant; a ticket is the path from here."""
MOST_TICKET_BYTES: Final = 1_024
"""A ticket has at most so many bytes, since each claim holds one for each file."""


def draw_staged(instant: str) -> str:
    """A new name for a file that is kept aside: the instant, a slash, and letters that nobody drew before."""
    return f"{instant}/{uuid.uuid4().hex}"


def find_staged(name: str, base: str) -> str:
    """The path of a file that is kept aside under a name as `draw_staged` gives it, relative to the base path.

    Raises:
        StorageError: The text is no such name.
    """
    instant, slash, drawn = name.partition("/")
    if not (slash and instant.isdigit() and len(drawn) == len(uuid.uuid4().hex) and drawn.isalnum()):
        raise StorageError(f"{name!r} is no ticket of {base}", path=name)
    return f"{TICKETS_FOLDER}/{name}"


class StagedFile(ABC):
    """A file under preparation, which readers do not see. One task writes it; picklable if its storage is.

    Attributes:
        target: The name that it is to get, relative to the base path.
    """

    target: str

    @abstractmethod
    def open(self) -> pa.NativeFile:
        """Where its bytes go, from its beginning; the only way in which a task writes rows to a table.

        What fails at a later write is an OSError; see `reporting`.
        """

    @abstractmethod
    def seal(self) -> str:
        """The ticket of the file, once it was closed; its bytes are durable then. See `Storage.redeem`.

        Raises:
            StorageError: The store failed, or what was written is cancelled or lost.
        """

    @abstractmethod
    def discard(self) -> None:
        """Give the file up, sealed or not, by the task that writes it; quiet if there is none.

        Raises:
            StorageError: The store failed; a sweep removes it.
        """
