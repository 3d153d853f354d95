"""Tables on Google Cloud Storage, to be read and written."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hudi_locks.errors import NoSuchFile
from hudi_locks.storage import (
    TICKETS_FOLDER,
    StagedFile,
    StorageCapabilities,
    draw_staged,
    find_staged,
    map_in_threads,
)
from hudi_locks_providers._storage.files import ObjectStorage
from hudi_locks_providers._storage.objects import ObjectOutput, PreconditionFailed

if TYPE_CHECKING:
    import pyarrow as pa  # late where it is used: to look at locks needs none of it

__all__ = ["GcsStorage"]

_PART_BYTES: Final = 8 << 20
_BEGUN: Final = ".begun"
"""How the name of an object ends that stands for a large one while that is sent."""


@dataclass(frozen=True, eq=False, repr=False)
class GcsStorage(ObjectStorage):
    """The objects under one base path in a bucket of Google Cloud Storage.

    A staged file is an object aside. The service copies it to its name if that is free, and the object aside goes: a
    copy that comes later finds nothing to copy. Runs on the driver and on executors; picklable; thread-safe.
    """

    capabilities: StorageCapabilities = field(
        default=StorageCapabilities(conditional_create=True, tickets=True, renewal_in_place=True),
        init=False,
        repr=False,
    )
    is_service = True
    is_remote = True

    def stage(self, target: str, *, instant: str) -> StagedFile:
        """See `Storage.stage`."""
        return _StagedObject(self, target, draw_staged(instant))

    def redeem(self, ticket: str, target: str) -> bool:
        """See `Storage.redeem`."""
        aside = find_staged(ticket, self.base)
        try:
            self._repeat(target, lambda: self._objects.copy_if_absent(self._key(aside), self._key(target)))
        except FileNotFoundError:
            return False
        except PreconditionFailed:
            self._remove(self._key(aside))  # the name is taken, which uses the ticket up
            return False
        self._remove(self._key(aside))
        return True

    def cancel(self, ticket: str, target: str) -> None:  # noqa: ARG002
        """See `Storage.cancel`; what its task still sends gets no ticket any more."""
        aside = find_staged(ticket, self.base)
        self._remove(self._key(aside + _BEGUN))  # first, for who seals looks for it once the object is there
        self._remove(self._key(aside))

    def list_staged(self) -> set[str]:
        """See `Storage.list_staged`."""
        return set(self.list_names(TICKETS_FOLDER))

    def cancel_staged(self, instants: Collection[str]) -> None:
        """See `Storage.cancel_staged`."""
        map_in_threads(lambda ticket: self.cancel(ticket, ticket), list(self._list_tickets(instants)))

    def _list_tickets(self, instants: Collection[str]) -> Iterator[str]:
        for instant in instants:
            names = {name.removesuffix(_BEGUN) for name in self.list_names(f"{TICKETS_FOLDER}/{instant}")}
            yield from (f"{instant}/{name}" for name in names)

    def put_aside(self, ticket: str, data: bytes) -> None:
        """Make a staged object of all its bytes."""
        self.replace(find_staged(ticket, self.base), data)

    def begin_aside(self, ticket: str) -> ObjectOutput:
        """Where the bytes of a large staged object go; another object tells of it until it is sealed."""
        aside = find_staged(ticket, self.base)
        self.replace(aside + _BEGUN, b"")
        return self._objects.open_output(self._key(aside), part_bytes=_PART_BYTES)

    def send_part(self, target: str, output: ObjectOutput, data: bytes) -> None:
        """Send a part of a large staged object."""
        self._send(target, lambda: output.write(data))

    def end_parts(self, target: str, output: ObjectOutput) -> None:
        """Make a large staged object of the parts that were sent."""
        self._send(target, output.close)

    def end_aside(self, ticket: str) -> bool:
        """Whether a large object, which is there now, was not cancelled while it was sent."""
        return self.delete(find_staged(ticket, self.base) + _BEGUN)


class _StagedObject(StagedFile):
    """See `StagedFile`: an object aside, which is sent while it is written if it is large."""

    def __init__(self, storage: GcsStorage, target: str, ticket: str) -> None:
        self.target = target
        self._storage = storage
        self._ticket = ticket
        self._output: _Output | None = None

    def open(self) -> pa.NativeFile:
        import pyarrow as pa

        self.discard()
        self._output = _Output(self._storage, self.target, self._ticket)
        return pa.PythonFile(self._output, mode="w")

    def seal(self) -> str:
        if self._output is None or not self._output.is_whole:
            raise NoSuchFile(f"{self.target!r} was not written to its end, and gets no ticket", path=self.target)
        if self._output.is_large and not self._storage.end_aside(self._ticket):
            raise NoSuchFile(f"cannot seal {self.target!r}: it was cancelled while it was sent", path=self.target)
        return self._ticket

    def discard(self) -> None:
        if self._output is not None:
            self._output.give_up()
            self._output = None
            self._storage.cancel(self._ticket, self.target)

    def __reduce__(self) -> tuple[Any, ...]:
        return _StagedObject, (self._storage, self.target, self._ticket)


class _Output(io.RawIOBase):
    """Takes the bytes of one file; what is no more than a part is sent at the end, by one request."""

    def __init__(self, storage: GcsStorage, target: str, ticket: str) -> None:
        super().__init__()
        self._storage = storage
        self._target = target
        self._ticket = ticket
        self._waiting = bytearray()
        self._sent: ObjectOutput | None = None
        self.is_whole = False

    @property
    def is_large(self) -> bool:
        return self._sent is not None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.closed:
            raise NoSuchFile(f"{self._target!r} was given up or closed", path=self._target)
        self._waiting += data
        if len(self._waiting) >= _PART_BYTES:
            self._pass_on()
        return len(data)

    def _pass_on(self) -> None:
        if self._sent is None:
            self._sent = self._storage.begin_aside(self._ticket)
        self._storage.send_part(self._target, self._sent, bytes(self._waiting))
        self._waiting.clear()

    def close(self) -> None:
        if self.closed:
            return
        try:
            if self._sent is None:
                self._storage.put_aside(self._ticket, bytes(self._waiting))
            else:
                self._pass_on()
                self._storage.end_parts(self._target, self._sent)
            self.is_whole = True
        finally:
            super().close()

    def give_up(self) -> None:
        self._waiting.clear()
        self.is_whole = False
        super().close()
