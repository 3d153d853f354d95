"""Content of a lock file: the JSON object of Hudi's FileSystemBasedLockProvider, with more fields of our own.

Hudi 1.0 and 1.1 usually leave the file empty, and every release only shows the content to people. So any content is
understood; what cannot be read tells nothing about the owner.
"""

from __future__ import annotations

import functools
import json
import time
from dataclasses import dataclass
from typing import Any

from hudi_locks.lock import Owner

__all__ = ["LockFileContent", "decode_lock_file", "encode_constant", "encode_lock_file"]


@dataclass(frozen=True)
class LockFileContent:
    """What a lock file tells.

    Attributes:
        owner: Its owner, as far as it tells.
        hold: Identifies this very hold; "" in files that the JVM wrote.
        since_ms: When it was made, ms since the epoch; None in files that the JVM wrote.
        lease_ms: After how long without a sign of life others may take it over, by its owner's own setting; 0 for
            never; None in files that the JVM wrote.
        raw: All of it as text.
        scope: What it locks, as text; "" in files that the JVM wrote.
    """

    owner: Owner
    hold: str = ""
    since_ms: int | None = None
    lease_ms: int | None = None
    raw: str = ""
    scope: str = ""


def encode_constant(owner: Owner, scope: str) -> str:
    """The part of the content that is the same for all holds of one scope by one owner."""
    fields = {
        "id": owner.id,
        "host": owner.host,
        "pid": owner.pid,
        "thread": owner.thread,
        "application": owner.application,
    }
    thread, told = json.dumps(owner.thread), json.dumps(fields)
    return f'"lockThreadName":{thread},"lockStacksInfo":[],"owner":{told},"scope":{json.dumps(scope)}'


def encode_lock_file(constant_part: str, *, hold: str, since_ms: int, lease_ms: int, trace: str = "") -> bytes:
    """The bytes of a lock file; `constant_part` comes from `encode_constant`, and `trace` is that of the owner."""
    seconds, millis = divmod(since_ms, 1000)
    traced = f',"trace":{json.dumps(trace)}' if trace else ""
    return (
        f'{{"lockCreateTime":"{_local_time(seconds, time.tzname)}.{millis:03d}",{constant_part},'
        f'"hold":"{hold}","sinceMs":{since_ms},"leaseMs":{lease_ms}{traced}}}'
    ).encode()


@functools.lru_cache(maxsize=2)
def _local_time(seconds: int, _zone: tuple[str, str]) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def decode_lock_file(data: bytes) -> LockFileContent:
    """What the bytes tell; never fails, for other writers may leave anything in the file."""
    raw = data.decode("utf-8", "replace")
    try:
        fields = json.loads(raw)
    except ValueError:
        return LockFileContent(Owner(""), raw=raw)
    return _from_fields(fields, raw) if isinstance(fields, dict) else LockFileContent(Owner(""), raw=raw)


def _from_fields(fields: dict[str, Any], raw: str) -> LockFileContent:
    told = fields.get("owner")
    owner = told if isinstance(told, dict) else {}
    return LockFileContent(
        owner=Owner(
            id=_text(owner.get("id")),
            host=_text(owner.get("host")),
            pid=_number(owner.get("pid")) or 0,
            thread=_text(owner.get("thread") or fields.get("lockThreadName")),
            application=_text(owner.get("application")),
            trace=_text(fields.get("trace")),
        ),
        hold=_text(fields.get("hold")),
        since_ms=_number(fields.get("sinceMs")),
        lease_ms=_number(fields.get("leaseMs")),
        raw=raw,
        scope=_text(fields.get("scope")),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
