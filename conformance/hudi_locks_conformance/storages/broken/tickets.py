"""Storages with one planted fault each in how they stage, name and cancel data files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from hudi_locks.errors import StorageError
from hudi_locks.storage import TICKETS_FOLDER, Entry, MemoryStorage, StagedFile
from hudi_locks_conformance.storages.broken.waiting import await_others

__all__ = ["FAULTS"]


class _Staging(MemoryStorage):
    """Knows where its staged files lie."""

    def peek(self, ticket: str) -> bytes | None:
        return MemoryStorage.read(self, f"{TICKETS_FOLDER}/{ticket}")

    def put(self, ticket: str, data: bytes) -> None:
        MemoryStorage.replace(self, f"{TICKETS_FOLDER}/{ticket}", data)

    def take(self, ticket: str) -> bytes | None:
        data = self.peek(ticket)
        MemoryStorage.cancel(self, ticket, "")
        return data


class _ShowsStaged(MemoryStorage):
    """Stages under the final name too."""

    def stage(self, target: str, *, instant: str) -> StagedFile:
        self.replace(target, b"")
        return super().stage(target, instant=instant)


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


class _RedeemsTwice(_Staging):
    """Keeps the ticket, as a copy without a deletion does."""

    def redeem(self, ticket: str, target: str) -> bool:
        kept = self.peek(ticket)
        won = super().redeem(ticket, target)
        if kept is not None:
            self.put(ticket, kept)
        return won


class _LooksThenRedeems(_Staging):
    """Looks whether the name is free, and takes it then."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._looked: Counter[str] = Counter()

    def redeem(self, ticket: str, target: str) -> bool:
        data = self.peek(ticket)
        if data is None or self.exists(target):
            return False
        self._looked[target] += 1
        await_others(lambda: self._looked[target] > 1)
        self.replace(target, data)
        self.take(ticket)
        return True


class _DeniesItsName(MemoryStorage):
    """Says of a ticket that was cancelled after it was redeemed that it was not redeemed."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._cancelled: set[str] = set()

    def redeem(self, ticket: str, target: str) -> bool:
        won = super().redeem(ticket, target)
        await_others(lambda: ticket in self._cancelled)
        return won and ticket not in self._cancelled

    def cancel(self, ticket: str, target: str) -> None:
        await_others(lambda: self.exists(target))
        self._cancelled.add(ticket)
        super().cancel(ticket, target)


class _SaysRedeemed(MemoryStorage):
    """Says of a taken name that it gave it."""

    def redeem(self, ticket: str, target: str) -> bool:
        return super().redeem(ticket, target) or self.exists(target)


class _RedeemsInPart(_Staging):
    """Forgets what is beyond the first part of an upload."""

    def redeem(self, ticket: str, target: str) -> bool:
        if (data := self.peek(ticket)) is not None:
            self.put(ticket, data[: 5 << 20])
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
        self.cancel_staged(self.list_staged())


class _LandsLate(_Staging):
    """Gives no answer to a redeem, and carries it out after what was asked later."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._late: list[tuple[str, bytes]] = []

    def redeem(self, ticket: str, target: str) -> bool:
        if (data := self.take(ticket)) is None:
            return False
        self._late.append((target, data))
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

    def _fill(self, path: str, data: bytes) -> None:
        self._put(path, data)


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

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._before: dict[str, bytes] = {}

    def _fill(self, path: str, data: bytes) -> None:
        self._before[path] = self._before.get(path, b"") + data
        super()._fill(path, self._before[path])


class _MixesTickets(_Staging):
    """Gives a name the bytes of the file that was staged last."""

    _last = b""

    def _fill(self, path: str, data: bytes) -> None:
        self._last = data
        super()._fill(path, data)

    def redeem(self, ticket: str, target: str) -> bool:
        if self.peek(ticket) is not None:
            self.put(ticket, self._last)
        return super().redeem(ticket, target)


FAULTS: Final[dict[type[MemoryStorage], tuple[str, ...]]] = {
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
}
"""Each storage with a planted fault, and the checks that are named for it."""
