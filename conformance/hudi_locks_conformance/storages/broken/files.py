"""Storages with one planted fault each in how they make, read, list and renew files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from hudi_locks.errors import NoSuchFile
from hudi_locks.storage import Entry, MemoryStorage
from hudi_locks_conformance.storages.broken.waiting import await_others

__all__ = ["FAULTS"]

_PAGE: Final = 1_000


class _IgnoresCondition(MemoryStorage):
    """Takes `If-None-Match`, and overwrites."""

    def create_if_absent(self, path: str, data: bytes) -> bool:
        self.replace(path, data)
        return True


class _LooksThenMakes(MemoryStorage):
    """Asks whether the file is there, and makes it then, as s3a does."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._looked: Counter[str] = Counter()

    def create_if_absent(self, path: str, data: bytes) -> bool:
        if self.exists(path):
            return False
        self._looked[path] += 1
        await_others(lambda: self._looked[path] > 1)
        self.replace(path, data)
        return True


class _OverwritesEmpty(MemoryStorage):
    """Takes a file of no bytes for none."""

    def create_if_absent(self, path: str, data: bytes) -> bool:
        if not self.read(path):
            self.replace(path, data)
            return True
        return False


class _SaysYes(MemoryStorage):
    """Leaves a file that is there as it is, and says that it made it."""

    def create_if_absent(self, path: str, data: bytes) -> bool:
        super().create_if_absent(path, data)
        return True


class _WritesInParts(MemoryStorage):
    """Shows a file while it is written."""

    _reads = 0

    def replace(self, path: str, data: bytes) -> None:
        super().replace(path, data[: len(data) // 2])
        before = self._reads
        await_others(lambda: self._reads > before)
        super().replace(path, data)

    def read(self, path: str) -> bytes | None:
        found = super().read(path)
        self._reads += 1
        return found


class _CutsLongFiles(MemoryStorage):
    """Keeps a mebibyte of each file."""

    def replace(self, path: str, data: bytes) -> None:
        super().replace(path, data[: 1 << 20])


class _EmptyForMissing(MemoryStorage):
    """Reads no bytes where there is no file."""

    def read(self, path: str) -> bytes | None:
        return super().read(path) or b""


class _ListsLate(MemoryStorage):
    """A listing lacks the newest file until the next one was made."""

    _newest = ""

    def create_if_absent(self, path: str, data: bytes) -> bool:
        self._newest = path
        return super().create_if_absent(path, data)

    def list(self, folder: str) -> list[Entry]:
        newest = self._newest.rpartition("/")
        return [entry for entry in super().list(folder) if (folder, entry.name) != (newest[0], newest[2])]


class _ListsGhosts(MemoryStorage):
    """A listing shows a file that was deleted."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._ghosts: dict[str, Entry] = {}

    def delete(self, path: str) -> bool:
        if entry := self.stat(path):
            self._ghosts[path] = entry
        return super().delete(path)

    def list(self, folder: str) -> list[Entry]:
        gone = [entry for path, entry in self._ghosts.items() if path.rpartition("/")[0] == folder]
        return sorted({*super().list(folder), *gone})


class _ListsOnePage(MemoryStorage):
    """A listing ends after its first page."""

    def list(self, folder: str) -> list[Entry]:
        return super().list(folder)[:_PAGE]


class _WalksOnePage(MemoryStorage):
    """A walk ends after its first page."""

    def walk(self, folder: str) -> Iterable[tuple[str, Entry]]:
        return islice(super().walk(folder), _PAGE)


class _ShowsMarkers(MemoryStorage):
    """Shows an empty object for each folder."""

    def list(self, folder: str) -> list[Entry]:
        found = super().list(folder)
        return [*found, Entry(folder.rpartition("/")[2], 0, 0, is_folder=False)] if found else found


class _DeletesByPrefix(MemoryStorage):
    """Deletes a folder with all whose names begin like it."""

    def delete_folder(self, folder: str) -> None:
        for path, _ in list(self.walk("")):
            if path.startswith(folder):
                self.delete(path)


class _DeletesOnePage(MemoryStorage):
    """Deletes the first page of a folder."""

    def delete_folder(self, folder: str) -> None:
        for path, _ in list(islice(self.walk(folder), _PAGE)):
            self.delete(path)


class _AlwaysDeleted(MemoryStorage):
    """Says of each file that it was there, as the answer 204 of S3 does."""

    def delete(self, path: str) -> bool:
        super().delete(path)
        return True


class _OneVersion(MemoryStorage):
    """Files keep their version when they change."""

    def stat(self, path: str) -> Entry | None:
        found = super().stat(path)
        return found and found._replace(version=found.version and "1")


class _DecodesNames(MemoryStorage):
    """Takes an encoded sign for the sign."""

    def create_if_absent(self, path: str, data: bytes) -> bool:
        return super().create_if_absent(path.replace("%20", " "), data)

    def read(self, path: str) -> bytes | None:
        return super().read(path.replace("%20", " "))


class _OpensFromStart(MemoryStorage):
    """Opens a file without its last bytes."""

    def open_input(self, path: str) -> pa.NativeFile:
        with super().open_input(path) as file:
            return pa.BufferReader(file.read()[:-1])


class _OpensNothing(MemoryStorage):
    """Opens what is not there as an empty file."""

    def open_input(self, path: str) -> pa.NativeFile:
        try:
            return super().open_input(path)
        except NoSuchFile:
            return pa.BufferReader(b"")


class _BringsBack(MemoryStorage):
    """Renews by reading and writing, so that a file that is removed meanwhile is back."""

    def touch(self, path: str) -> bool:
        data = self.read(path)
        if data is None:
            return False
        await_others(lambda: not self.exists(path))
        self.replace(path, data)
        return True


class _MakesByTouch(MemoryStorage):
    """Makes an empty file where it is to renew one."""

    def touch(self, path: str) -> bool:
        return self.create_if_absent(path, b"") or super().touch(path)


class _EmptiesByTouch(MemoryStorage):
    """Renews a file by an empty one."""

    def touch(self, path: str) -> bool:
        if there := self.exists(path):
            self.replace(path, b"")
        return there


class _RenewsNothing(MemoryStorage):
    """Says that it renewed."""

    def touch(self, path: str) -> bool:
        return self.exists(path)


class _ClockStands(MemoryStorage):
    """Its clock shows one time for ever."""

    def now_ms(self) -> int:
        return 1_700_000_000_000


class _DropsEmpties(MemoryStorage):
    """Makes the first thousand of many empty files."""

    def create_empty(self, paths: Sequence[str]) -> set[str]:
        return super().create_empty(paths[:_PAGE])


FAULTS: Final[dict[type[MemoryStorage], tuple[str, ...]]] = {
    _IgnoresCondition: ("SC1", "SC2"),
    _LooksThenMakes: ("SC2",),
    _OverwritesEmpty: ("SC1",),
    _SaysYes: ("SC1", "SC2"),
    _WritesInParts: ("SC3",),
    _CutsLongFiles: ("SF2",),
    _EmptyForMissing: ("SF1",),
    _ListsLate: ("SF3",),
    _ListsGhosts: ("SF3",),
    _ListsOnePage: ("SF6",),
    _WalksOnePage: ("SF6",),
    _ShowsMarkers: ("SF4",),
    _DeletesByPrefix: ("SF4",),
    _DeletesOnePage: ("SF6",),
    _AlwaysDeleted: ("SF1",),
    _OneVersion: ("SF5",),
    _DecodesNames: ("SF7",),
    _OpensFromStart: ("SF8",),
    _OpensNothing: ("SF1",),
    _BringsBack: ("SR2",),
    _MakesByTouch: ("SR2",),
    _EmptiesByTouch: ("SR1",),
    _RenewsNothing: ("SR1",),
    _ClockStands: ("SR3",),
    _DropsEmpties: ("SF6",),
}
"""Each storage with a planted fault, and the checks that are named for it."""
