"""Storages with one planted fault each, and the check that finds it: who guards the guards."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from hudi_locks.errors import NoSuchFile, StorageError
from hudi_locks.storage import Entry, MemoryStorage, StagedFile

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
        _await(lambda: self._looked[path] > 1)
        self.replace(path, data)
        return True


def _await(is_met: Callable[[], bool]) -> None:
    """Let others go on between two requests, until they have done something, or for a second where nobody does."""
    for _ in range(500):
        if is_met():
            return
        threading.Event().wait(0.002)


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
        _await(lambda: self._reads > before)
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
        _await(lambda: not self.exists(path))
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


class _ShowsStaged(MemoryStorage):
    """Stages under the final name."""

    def open_staged(self, ticket: str, target: str) -> pa.NativeFile:
        self.replace(target, b"")
        return super().open_staged(ticket, target)


class _TellsLongTickets(MemoryStorage):
    """A ticket holds more than a claim can."""

    def stage(self, target: str, *, instant: str) -> StagedFile:
        staged: Any = super().stage(target, instant=instant)
        long: StagedFile = replace(staged, ticket=staged.ticket + "x" * 2_000)
        return long


class _RedeemsOver(MemoryStorage):
    """Copies over a file that has the name, as a copy without conditions does."""

    def redeem(self, ticket: str, target: str) -> bool:
        self.delete(target)
        return super().redeem(ticket, target)


class _RedeemsTwice(MemoryStorage):
    """Keeps the ticket, as a copy without a deletion does."""

    def redeem(self, ticket: str, target: str) -> bool:
        kept = self._staged.get(ticket)
        won = super().redeem(ticket, target)
        if kept is not None:
            self._staged[ticket] = kept
        return won


class _LooksThenRedeems(MemoryStorage):
    """Looks whether the name is free, and takes it then."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._looked: Counter[str] = Counter()

    def redeem(self, ticket: str, target: str) -> bool:
        staged = self._staged.get(ticket)
        if staged is None or self.exists(target):
            return False
        self._looked[target] += 1
        _await(lambda: self._looked[target] > 1)
        self.replace(target, staged[1])
        self._staged.pop(ticket, None)
        return True


class _DeniesItsName(MemoryStorage):
    """Says of a ticket that was cancelled after it was redeemed that it was not redeemed."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._cancelled: set[str] = set()

    def redeem(self, ticket: str, target: str) -> bool:
        won = super().redeem(ticket, target)
        _await(lambda: ticket in self._cancelled)
        return won and ticket not in self._cancelled

    def cancel(self, ticket: str, target: str) -> None:
        _await(lambda: self.exists(target))
        self._cancelled.add(ticket)
        super().cancel(ticket, target)


class _SaysRedeemed(MemoryStorage):
    """Says of a taken name that it gave it."""

    def redeem(self, ticket: str, target: str) -> bool:
        return super().redeem(ticket, target) or self.exists(target)


class _RedeemsInPart(MemoryStorage):
    """Forgets what is beyond the first part of an upload."""

    def redeem(self, ticket: str, target: str) -> bool:
        if found := self._staged.get(ticket):
            self._staged[ticket] = (found[0], found[1][: 5 << 20])
        return super().redeem(ticket, target)


class _RaisesWhenUsedUp(MemoryStorage):
    """Tells of a ticket that is gone as a failure of the store."""

    def redeem(self, ticket: str, target: str) -> bool:
        if not self.has_staged(ticket):
            raise StorageError(f"404 NoSuchUpload: {target}", path=target)
        return super().redeem(ticket, target)


class _CancelsNames(MemoryStorage):
    """Cancels by taking the name away, as on Azure before its blocks are dropped."""

    def cancel(self, ticket: str, target: str) -> None:  # noqa: ARG002  # that is the fault
        self.delete(target)


class _CancelsNothing(MemoryStorage):
    """Says that it cancelled."""

    def cancel(self, ticket: str, target: str) -> None:
        """Nothing."""


class _CancelsTheName(MemoryStorage):
    """Cancels all that is staged."""

    def cancel(self, ticket: str, target: str) -> None:  # noqa: ARG002  # that is the fault
        self._staged.clear()


class _LandsLate(MemoryStorage):
    """Gives no answer to a redeem, and carries it out after what was asked later."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._late: list[tuple[str, bytes]] = []

    def redeem(self, ticket: str, target: str) -> bool:
        if (found := self._staged.pop(ticket, None)) is None:
            return False
        self._late.append((target, found[1]))
        raise StorageError(f"no answer about {target}", path=target)

    def walk(self, folder: str) -> Iterable[tuple[str, Entry]]:
        for target, data in self._late:
            self.create_if_absent(target, data)
        return super().walk(folder)


class _KeepsDiscarded(MemoryStorage):
    """Leaves a discarded file to be redeemed."""

    def stage(self, target: str, *, instant: str) -> StagedFile:
        return _Kept(super().stage(target, instant=instant))


@dataclass(frozen=True)
class _Kept(StagedFile):
    staged: StagedFile

    @property
    def target(self) -> str:  # type: ignore[override]  # an attribute there
        return self.staged.target

    def open(self) -> pa.NativeFile:
        return self.staged.open()

    def seal(self) -> str:
        return self.staged.seal()

    def discard(self) -> None:
        """Nothing."""


class _FillsCancelled(MemoryStorage):
    """A file that was cancelled while it is written is staged once more when it is closed."""

    def _fill_staged(self, ticket: str, target: str, data: bytes) -> None:
        self._staged[ticket] = (target, data)


class _SweepsAll(MemoryStorage):
    """Cancels what other instants have staged too."""

    def cancel_staged(self, instants: Collection[str]) -> None:
        super().cancel_staged(self.list_staged() if instants else ())


class _SweepsNothing(MemoryStorage):
    """Does not know what is staged."""

    def list_staged(self) -> set[str]:
        return set()


class _AppendsToStaged(MemoryStorage):
    """Goes on behind what was written before."""

    def _fill_staged(self, ticket: str, target: str, data: bytes) -> None:
        before = self._before.get(ticket, b"")
        self._before[ticket] = before + data
        super()._fill_staged(ticket, target, before + data)

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._before: dict[str, bytes] = {}


class _MixesTickets(MemoryStorage):
    """Gives a name the bytes of the file that was staged last."""

    def redeem(self, ticket: str, target: str) -> bool:
        last = list(self._staged.values())[-1:]
        if ticket in self._staged and last:
            self._staged[ticket] = (target, last[0][1])
        return super().redeem(ticket, target)


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
    _ShowsStaged: ("ST1",),
    _TellsLongTickets: ("ST1",),
    _RedeemsOver: ("ST4", "ST6"),
    _RedeemsTwice: ("ST3",),
    _DeniesItsName: ("ST8",),
    _LooksThenRedeems: ("ST6",),
    _SaysRedeemed: ("ST4",),
    _RedeemsInPart: ("ST2",),
    _RaisesWhenUsedUp: ("ST3", "ST5"),
    _CancelsNames: ("ST5",),
    _CancelsNothing: ("ST5",),
    _CancelsTheName: ("ST5",),
    _LandsLate: ("ST9",),
    _KeepsDiscarded: ("ST10",),
    _FillsCancelled: ("ST10",),
    _SweepsAll: ("ST11",),
    _SweepsNothing: ("ST11",),
    _AppendsToStaged: ("ST13",),
    _MixesTickets: ("ST14",),
    _DropsEmpties: ("SF6",),
}
"""Each storage with a planted fault, and the checks that are named for it."""
