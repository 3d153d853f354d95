"""Tables on Azure, to be read and written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from hudi_locks.errors import NoSuchFile, StorageError
from hudi_locks.storage import (
    TICKETS_FOLDER,
    StagedFile,
    StorageCapabilities,
    draw_staged,
    find_staged,
    map_in_threads,
)
from hudi_locks_providers._storage.blocks import Blocks
from hudi_locks_providers._storage.files import ObjectStorage
from hudi_locks_providers._storage.objects import PreconditionFailed
from hudi_locks_providers._storage.parts import PartsOutput

if TYPE_CHECKING:
    import pyarrow as pa  # late where it is used: to look at locks needs none of it

__all__ = ["AzureStorage"]

_BLOCK_BYTES: Final = 8 << 20
"""Azure takes 50,000 blocks of a blob, which makes 400 GB."""


@dataclass(frozen=True, eq=False, repr=False)
class AzureStorage(ObjectStorage):
    """The blobs under one base path in a container of Azure.

    A staged file is blocks under its own name, which nobody sees until they are named; another blob tells of them, so
    that they are found again, and has to be there when they are named. Runs on the driver and on executors; picklable;
    thread-safe.
    """

    capabilities: StorageCapabilities = field(
        default=StorageCapabilities(conditional_create=True, tickets=True, renewal_in_place=True),
        init=False,
        repr=False,
    )
    is_service = True
    is_remote = True

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self._objects, self.options, clock=self.clock)

    def stage(self, target: str, *, instant: str) -> StagedFile:
        """See `Storage.stage`."""
        return _StagedBlocks(self, target, instant)

    def redeem(self, ticket: str, target: str) -> bool:
        """See `Storage.redeem`."""
        name, count = self._decode(ticket)
        if not self.exists(find_staged(name, self.base)):
            return False  # used up, or cancelled
        is_named = self._name(target, [_block(name, number) for number in range(1, count + 1)])
        self.forget(name)
        return is_named

    def _name(self, target: str, blocks: Sequence[str]) -> bool:
        try:
            self._repeat(target, lambda: self._blocks.name(self._key(target), blocks))
        except (PreconditionFailed, FileNotFoundError):
            return False
        return True

    def cancel(self, ticket: str, target: str) -> None:
        """See `Storage.cancel`. Where nobody named the blocks, the name is taken for a moment, and free again."""
        self.give_up(self._decode(ticket)[0], target)

    def give_up(self, name: str, target: str) -> None:
        """Drop the blocks of a staged file, whether or not it is sealed.

        The blob that tells of them goes last, so that who comes later does again what was left half done.
        """
        if self.exists(find_staged(name, self.base)):
            key, who = self._key(target), name.partition("/")[2]
            if any(block.startswith(who) for block in self._send(target, lambda: self._blocks.list_unnamed(key))):
                self._drop(target, name, who)
            self._send(target, lambda: self._blocks.remove_void(key, who=who))
            self.forget(name)

    def _drop(self, target: str, name: str, who: str) -> None:
        """Sent once: where no answer comes it may be done later, and who asks again finds out."""
        try:
            self._send(target, lambda: self._blocks.drop(self._key(target), _block(name, 0), who=who))
        except (PreconditionFailed, FileNotFoundError):
            return  # somebody named them, or dropped them

    def list_staged(self) -> set[str]:
        """See `Storage.list_staged`."""
        return set(self.list_names(TICKETS_FOLDER))

    def cancel_staged(self, instants: Collection[str]) -> None:
        """See `Storage.cancel_staged`."""
        names = [f"{one}/{name}" for one in instants for name in self.list_names(f"{TICKETS_FOLDER}/{one}")]
        map_in_threads(self._cancel_listed, names)

    def _cancel_listed(self, name: str) -> None:
        target = self.read(find_staged(name, self.base))
        if target is not None:
            self.give_up(name, target.decode())

    def begin(self, name: str, target: str) -> None:
        """Tell of blocks before the first one is sent."""
        self.replace(find_staged(name, self.base), target.encode())

    def send_block(self, name: str, target: str, number: int, data: bytes) -> str:
        """Send a block of a staged file."""
        self._repeat(target, lambda: self._blocks.put(self._key(target), _block(name, number), data))
        return str(number)

    def forget(self, name: str) -> None:
        """Tell no more of a staged file, which can get no name then."""
        self._remove(self._key(find_staged(name, self.base)))

    def _decode(self, ticket: str) -> tuple[str, int]:
        name, _, count = ticket.partition(" ")
        if not count.isdigit():
            raise StorageError(f"{ticket!r} is no ticket of {self.base}", path=ticket)
        return name, int(count)


def _block(name: str, number: int) -> str:
    """The name of a block: all of one blob have the same length, as Azure demands."""
    return f"{name.partition('/')[2]}{number:05}"


class _StagedBlocks(StagedFile):
    """See `StagedFile`."""

    def __init__(self, storage: AzureStorage, target: str, instant: str) -> None:
        self.target = target
        self._storage = storage
        self._instant = instant
        self._output: _Output | None = None

    def open(self) -> pa.NativeFile:
        """Blocks of an earlier attempt lie beside those of this one, and go when these are named."""
        import pyarrow as pa

        if self._output is not None and self._output.is_begun:
            self._output.give_up()
            self._storage.forget(self._output.name)
        self._output = _Output(self._storage, self.target, draw_staged(self._instant))
        return pa.PythonFile(self._output, mode="w")

    def seal(self) -> str:
        if self._output is None or not self._output.is_whole:
            raise NoSuchFile(f"{self.target!r} was not written to its end, and gets no ticket", path=self.target)
        return f"{self._output.name} {len(self._output.tags)}"

    def discard(self) -> None:
        if self._output is not None:
            self._output.give_up()
            if self._output.is_begun:
                self._storage.give_up(self._output.name, self.target)
            self._output = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _StagedBlocks, (self._storage, self.target, self._instant)


class _Output(PartsOutput):
    """Blocks of one file, sent while it is written."""

    def __init__(self, storage: AzureStorage, target: str, name: str) -> None:
        super().__init__(target)
        self._storage = storage
        self.name = name
        self.is_begun = False

    def find_size(self, count: int) -> int:  # noqa: ARG002  # all are of one size
        return _BLOCK_BYTES

    def begin(self) -> None:
        if not self.is_begun:
            self._storage.begin(self.name, self._path)
            self.is_begun = True

    def upload(self, number: int, part: bytes) -> str:
        return self._storage.send_block(self.name, self._path, number, part)

    @property
    def is_last_needed(self) -> bool:
        return bool(self._waiting)  # Azure takes no empty block
