"""Tries what a store promises, on scratch files of a table: some services take a condition and ignore it."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator
from typing import Final

from hudi_locks.clock import Clock
from hudi_locks.errors import StorageError, UnsupportedTable
from hudi_locks.lock import Finding
from hudi_locks.storage.storage import Storage

__all__ = ["check_service", "probe_storage"]

_FOLDER: Final = ".hoodie/.hudi_locks/probe"
_MARK: Final = ".hoodie/.hudi_locks/probed"
"""Says that the store of the table was tried."""
_INSTANT: Final = "19700101000000000"
"""Of no write: a sweep cancels what a probe that died left staged."""
_NO_WRITES: Final = "do not write tables on this store: rows would be lost or doubled"


def probe_storage(storage: Storage, clock: Clock, *, drift_ms: int = 60_000) -> Iterator[Finding]:
    """What the store of a table does where writers rest on it. Makes scratch files below `.hoodie`, and removes them.

    Args:
        storage: Of the table, with the rights of a writer.
        clock: Of this machine.
        drift_ms: How far the clock of the store may be from it.
    """
    folder = f"{_FOLDER}/{uuid.uuid4().hex}"
    try:
        for name, promised, trial in _TRIALS:
            if promised and not getattr(storage.capabilities, promised):
                yield Finding(name, ok=True, found="not promised, so that the table is only read")
            else:
                yield _judge(name, trial, storage, f"{folder}/{name}")
        yield _compare_clocks(storage, clock, drift_ms)
    finally:
        storage.delete_folder(folder)


def check_service(storage: Storage) -> None:
    """Try the service behind a table before it is written, once for each table: a mark tells later writers.

    Raises:
        UnsupportedTable: It breaks a promise, which the message and the fact `check` name.
        StorageError: The store failed, or refuses a right that a writer needs.
    """
    if not storage.is_service or storage.exists(_MARK):
        return
    folder = f"{_FOLDER}/{uuid.uuid4().hex}"
    for name, _, trial in _TRIALS:
        broken = trial(storage, f"{folder}/{name}")
        if broken:
            storage.delete_folder(folder)
            message = f"{storage.base} cannot be written: its store failed the check {name}: {broken}; {_NO_WRITES}"
            raise UnsupportedTable(message, path=storage.base, check=name)
    storage.delete_folder(folder)
    storage.create_if_absent(_MARK, b"")


def _judge(name: str, trial: Callable[[Storage, str], str], storage: Storage, folder: str) -> Finding:
    try:
        broken = trial(storage, folder)
    except StorageError as error:
        return Finding(name, ok=False, found=f"{type(error).__name__}: {error}", advice="mend this, and ask again")
    return Finding(name, ok=not broken, found=broken or "kept", advice=_NO_WRITES if broken else "")


def _try_creation(storage: Storage, folder: str) -> str:
    path = f"{folder}/file"
    if not storage.create_if_absent(path, b"first"):
        return "a file under a new name was not made"
    if storage.create_if_absent(path, b"second") or storage.read(path) != b"first":
        return "a file was made TWICE under one name"
    return ""


def _try_renewal(storage: Storage, folder: str) -> str:
    path, other = f"{folder}/beat", _copy(storage)
    storage.create_transient(path, b"ours")
    other.replace(path, b"theirs")
    if not storage.touch(path) or storage.read(path) != b"theirs":
        return "a renewal wrote over what another process had written"
    other.delete(path)
    if storage.touch(path) or storage.read(path) is not None:
        return "a renewal brought a removed file BACK"
    return ""


def _try_tickets(storage: Storage, folder: str) -> str:
    target, ticket = _stage(storage, folder, b"rows")
    if storage.exists(target):
        return "a staged file is SEEN before it was named"
    if not storage.redeem(ticket, target) or storage.read(target) != b"rows":
        return "a staged file did not get its name"
    storage.redeem(ticket, target)
    if storage.read(target) != b"rows":
        return "a ticket that was redeemed again changed the file"
    storage.delete(target)
    storage.redeem(ticket, target)
    return "a ticket that was used up brought a removed file BACK" if storage.exists(target) else ""


def _try_cancellation(storage: Storage, folder: str) -> str:
    target, ticket = _stage(storage, folder, b"rows")
    storage.cancel(ticket, target)
    return "a cancelled ticket named a file" if storage.redeem(ticket, target) or storage.exists(target) else ""


def _try_two_tickets(storage: Storage, folder: str) -> str:
    target, first = _stage(storage, folder, b"first")
    second = _stage(storage, folder, b"second", target=target)[1]
    if not storage.redeem(first, target) or storage.redeem(second, target) or storage.read(target) != b"first":
        return "two tickets named ONE file"
    storage.delete(target)
    storage.redeem(second, target)
    return "a ticket whose name was taken named a file later" if storage.exists(target) else ""


def _stage(storage: Storage, folder: str, data: bytes, *, target: str = "") -> tuple[str, str]:
    """A name and a ticket for it."""
    target = target or f"{folder}/{uuid.uuid4()}-0_0-0-0_{_INSTANT}.parquet"
    staged = storage.stage(target, instant=_INSTANT)
    with staged.open() as out:
        out.write(data)
    return target, staged.seal()


def _copy(storage: Storage) -> Storage:
    """As an executor has it."""
    found: Storage = pickle.loads(pickle.dumps(storage))  # noqa: S301  # our own
    return found


def _compare_clocks(storage: Storage, clock: Clock, drift_ms: int) -> Finding:
    try:
        apart_ms = storage.now_ms() - clock.wall_ms()
    except StorageError as error:
        return Finding("clocks", ok=False, found=f"{type(error).__name__}: {error}", advice="mend this, and ask again")
    is_near, found = abs(apart_ms) <= drift_ms, f"the store's clock is {apart_ms / 1000:+.1f} s from this machine's"
    return Finding("clocks", ok=is_near, found=found, advice="" if is_near else "set this machine's clock by NTP")


_TRIALS: Final = (
    ("creates-once", "conditional_create", _try_creation),
    ("renews-in-place", "renewal_in_place", _try_renewal),
    ("tickets-name-once", "tickets", _try_tickets),
    ("tickets-are-cancelled", "tickets", _try_cancellation),
    ("tickets-take-one-name", "tickets", _try_two_tickets),
)
