"""The item of a DynamoDB lock, as the awslabs lock client inside Hudi writes and reads it.

All of its attributes are strings, `leaseDuration` too: a decimal number of milliseconds. `isReleased` says by being
there that nobody holds the lock. One attribute of our own, `hudiLocks`, tells who the holder is: the awslabs client
keeps attributes that it does not know in a map of extras, and drops them when it puts an item of its own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from hudi_locks.errors import DamagedLockRecord
from hudi_locks.lock import Owner

__all__ = [
    "IS_RELEASED",
    "KEY",
    "LEASE_DURATION",
    "OWNER_NAME",
    "RECORD_VERSION",
    "TOKEN",
    "Item",
    "LockItem",
    "decode_item",
    "decode_token",
    "encode_item",
    "show_item",
]

KEY: Final = "key"
OWNER_NAME: Final = "ownerName"
LEASE_DURATION: Final = "leaseDuration"
RECORD_VERSION: Final = "recordVersionNumber"
IS_RELEASED: Final = "isReleased"
TOKEN: Final = "token"  # noqa: S105  # the attribute of a counter item
_OURS: Final = "hudiLocks"
_UUID_TAIL: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)

Item = dict[str, dict[str, Any]]
"""An item as the DynamoDB API has it: each attribute with its type."""


@dataclass(frozen=True)
class LockItem:
    """What the item of a lock tells.

    Attributes:
        owner: Its owner; of a JVM holder only the name, and the host in it.
        owner_name: As written.
        version: The record version number, another one after each sign of life.
        lease_ms: How long the holder may be silent, by its own setting.
        hold: Identifies this very hold; the JVM makes an owner name for each of its clients, so that will do.
        is_released: Whether nobody holds it although the item is there.
        is_ours: Whether a client of this package wrote it.
        since_ms: When it was acquired by the holder's wall clock, ms since the epoch; None in items of the JVM.
        token: The holder's fencing token; None in items of the JVM.
    """

    owner: Owner
    owner_name: str
    version: str
    lease_ms: int
    hold: str
    is_released: bool = False
    is_ours: bool = False
    since_ms: int | None = None
    token: int | None = None


def encode_item(
    key: str, owner: Owner, *, owner_name: str, version: str, lease_ms: int, token: int | None, since_ms: int
) -> Item:
    """The item of a lock just acquired; the version under which it was acquired names the hold from then on."""
    ours = {
        "id": owner.id,
        "host": owner.host,
        "pid": owner.pid,
        "thread": owner.thread,
        "application": owner.application,
        **({"trace": owner.trace} if owner.trace else {}),
        "hold": version,
        "token": token,
        "sinceMs": since_ms,
    }
    return {
        KEY: {"S": key},
        OWNER_NAME: {"S": owner_name},
        LEASE_DURATION: {"S": str(lease_ms)},
        RECORD_VERSION: {"S": version},
        _OURS: {"S": json.dumps(ours, separators=(",", ":"))},
    }


def decode_item(item: Item) -> LockItem:
    """What the item of a lock tells.

    Raises:
        DamagedLockRecord: It has no record version number or lease, so that nobody can tell whether its holder lives.
    """
    key = _text(item, KEY)
    version, lease = _text(item, RECORD_VERSION), _text(item, LEASE_DURATION)
    is_released = IS_RELEASED in item
    if not is_released and not (version and lease.isdecimal()):
        raise DamagedLockRecord(
            f"the DynamoDB item {key!r} is no lock: {RECORD_VERSION} is {version!r} and {LEASE_DURATION} is {lease!r};"
            " look at it with `hudi-locks show`, make sure that nobody needs it, and `hudi-locks unlock` it",
            key=key,
        )
    ours, owner_name = _own_fields(item), _text(item, OWNER_NAME)
    return LockItem(
        owner=_own_owner(ours) if ours else _jvm_owner(owner_name),
        owner_name=owner_name,
        version=version,
        lease_ms=int(lease) if lease.isdecimal() else 0,
        hold=str(ours.get("hold") or owner_name or version),
        is_released=is_released,
        is_ours=bool(ours),
        since_ms=_number(ours, "sinceMs"),
        token=_number(ours, "token"),
    )


def decode_token(item: Item | None, key: str) -> int | None:
    """The number in a counter item; None if there is no item.

    Raises:
        DamagedLockRecord: The item holds no number.
    """
    if item is None:
        return None
    try:
        return int(item[TOKEN]["N"])
    except (KeyError, ValueError):
        raise DamagedLockRecord(
            f"the DynamoDB item {key!r} should count fencing tokens, and has no number {TOKEN!r}; delete it, and tokens"
            " go on from the wall clock",
            key=key,
        ) from None


def show_item(item: Item) -> str:
    """The item as text for a person: JSON, sorted; bytes that are no text are shown with replacements."""
    return json.dumps(item, sort_keys=True, default=lambda data: bytes(data).decode("utf-8", "replace"))


def _own_fields(item: Item) -> dict[str, Any]:
    try:
        fields = json.loads(_text(item, _OURS) or "{}")
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _own_owner(ours: dict[str, Any]) -> Owner:
    told = {name: str(ours.get(name) or "") for name in ("id", "host", "thread", "application", "trace")}
    return Owner(pid=_number(ours, "pid") or 0, **told)


def _jvm_owner(owner_name: str) -> Owner:
    """The JVM's owner name is the host's name followed by a UUID without a separator, or the UUID alone."""
    host = _UUID_TAIL.sub("", owner_name)
    return Owner(owner_name, host if host != owner_name else "")


def _text(item: Item, name: str) -> str:
    value = item.get(name, {}).get("S")
    return value if isinstance(value, str) else ""


def _number(fields: dict[str, Any], name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
