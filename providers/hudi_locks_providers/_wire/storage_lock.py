"""The lock object of Hudi's StorageBasedLockProvider: three fields of JSON, in the JVM's order.

The JVM compares `owner` as a whole and reads nothing out of it; its own is a bare UUID. Ours begins with the UUID of
the hold, followed by what a person wants to know: the record names its holder, and costs no second object.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from hudi_locks.lock import Owner

__all__ = ["Named", "StorageRecord", "decode_named", "decode_record", "encode_named", "encode_record"]

_MOST_LETTERS: Final = 200


@dataclass(frozen=True)
class StorageRecord:
    """What the object says.

    Attributes:
        expired: Whether its owner let go of it.
        valid_until_ms: Until when it is good, ms since the epoch by its owner's wall clock.
        owner: Who wrote it; see `decode_named`.
    """

    expired: bool
    valid_until_ms: int
    owner: str


@dataclass(frozen=True)
class Named:
    """What the field `owner` says.

    Attributes:
        hold: Identifies this very hold.
        owner: Who has it; of the JVM's only the id.
        since_ms: When it was acquired; None in what the JVM wrote.
    """

    hold: str
    owner: Owner
    since_ms: int | None = None


def encode_record(record: StorageRecord) -> bytes:
    """The bytes of the object, as the JVM's serialiser has them."""
    fields = {"expired": record.expired, "validUntil": record.valid_until_ms, "owner": record.owner}
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_record(data: bytes) -> StorageRecord | None:
    """What the bytes say; None if they are no such record. Unknown fields are ignored, as the JVM does."""
    try:
        fields = json.loads(data)
    except ValueError:
        return None
    return _from_fields(fields) if isinstance(fields, dict) else None


def _from_fields(fields: dict[str, Any]) -> StorageRecord | None:
    expired, until_ms, owner = (fields.get(name) for name in ("expired", "validUntil", "owner"))
    if not isinstance(expired, bool) or isinstance(until_ms, bool):
        return None
    if not isinstance(until_ms, int) or not isinstance(owner, str):
        return None
    return StorageRecord(expired, until_ms, owner)


def encode_named(hold: str, owner: Owner, since_ms: int) -> str:
    """The field `owner` of a hold of ours."""
    told = {
        "id": owner.id,
        "host": owner.host,
        "pid": owner.pid,
        "thread": owner.thread,
        "application": owner.application,
        "trace": owner.trace,
        "since": since_ms,
    }
    return f"{hold}?{urlencode({name: str(value)[:_MOST_LETTERS] for name, value in told.items() if value})}"


def decode_named(text: str) -> Named:
    """What a field `owner` says; the whole of it is the id if the JVM wrote it."""
    hold, mark, told = text.partition("?")
    if not mark:
        return Named(hold, Owner(text))
    fields = dict(parse_qsl(told))
    owner = Owner(
        fields.get("id", hold),
        fields.get("host", ""),
        _number(fields.get("pid", "")) or 0,
        fields.get("thread", ""),
        fields.get("application", ""),
        fields.get("trace", ""),
    )
    return Named(hold, owner, _number(fields.get("since", "")))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
