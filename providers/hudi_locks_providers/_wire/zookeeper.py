"""What a lock looks like in ZooKeeper: names, order and payload of contender nodes, as Curator and Hudi have them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from hudi_locks.lock import Owner

__all__ = [
    "check_path",
    "contender_prefix",
    "decode_payload",
    "encode_payload",
    "find_first",
    "is_contender",
    "is_worn",
    "parse_sequence",
    "sort_contenders",
]

_MARK: Final = "lock-"
_SEQUENCE: Final = re.compile(r"-?\d{9,10}")
_WORN: Final = 2**31 - 2**20
_UNSIGNED: Final = 2**32
_LAST: Final = f"{_UNSIGNED - 1:010d}"
_APPLICATION: Final = "application_id="
_OWNER: Final = "owner="
_UNKNOWN: Final = "Unknown"
_SAFE: Final = " !#$&'()*+/:;<>?@[]^`{|}~"
"""What a value may hold unescaped, beside letters and digits: all that neither ends a pair nor begins an escape."""
_FORBIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


def contender_prefix(nonce: str) -> str:
    """Name of a contender's node without its sequence number: Curator's protected mode, and its mutex."""
    return f"_c_{nonce}-{_MARK}"


def sort_contenders(names: Iterable[str]) -> list[str]:
    """Names in the order in which they hold the lock: by what follows the last `lock-`, as Curator compares it.

    Every child counts, also one that is no contender. Where ZooKeeper's counter has passed 2^31 and gone negative,
    Curator's order of texts lets newcomers in before the holder; there the order is that of arrival.
    """
    return sorted(names, key=_order)


def find_first(names: Iterable[str]) -> str | None:
    """The name that newcomers have to wait for; None if there is none.

    A child that comes after every number keeps nobody waiting, such as the folder of another lock.
    """
    first = min(names, key=_order, default=None)
    return first if first is not None and _order(first) <= _LAST else None


def _order(name: str) -> str:
    after = name.rpartition(_MARK)[2]
    return f"{int(after) % _UNSIGNED:010d}" if after.startswith("-") and _SEQUENCE.fullmatch(after) else after


def is_contender(name: str) -> bool:
    """Whether a node's name is that of somebody who stands in line, and not of a folder."""
    return _SEQUENCE.fullmatch(name.rpartition(_MARK)[2]) is not None and _MARK in name


def parse_sequence(name: str) -> int:
    """The sequence number at the end of a contender's name."""
    return int(name.rpartition(_MARK)[2])


def is_worn(sequence: int) -> bool:
    """Whether the counter of the lock's node is so near its overflow, or past it, that the node should be made anew."""
    return not 0 <= sequence < _WORN


def encode_payload(owner: Owner) -> bytes:
    """The payload of a contender: `application_id` as Hudi 1.2 writes it, and who that is, in further pairs."""
    pairs = {
        "application_id": owner.application or _UNKNOWN,
        "owner": owner.id,
        "host": owner.host,
        "pid": str(owner.pid),
        "thread": owner.thread,
        **({"trace": owner.trace} if owner.trace else {}),
    }
    return ",".join(f"{name}={_escape(value)}" for name, value in pairs.items()).encode()


def _escape(value: str) -> str:
    return quote(value, safe=_SAFE, errors="replace")


def decode_payload(data: bytes) -> Owner:
    """Who wrote a payload: ours, Hudi's from 1.2 on (an application), or an older one (an address)."""
    text = data.decode("utf-8", "replace")
    if not text.startswith(_APPLICATION):
        return Owner("", text)
    if f",{_OWNER}" not in text:
        return Owner("", application=_known(text.removeprefix(_APPLICATION)))
    pairs = {name: unquote(value) for name, _, value in (pair.partition("=") for pair in text.split(","))}
    pid = pairs.get("pid", "")
    return Owner(
        pairs["owner"],
        pairs.get("host", ""),
        int(pid) if pid.isdecimal() else 0,
        pairs.get("thread", ""),
        _known(pairs["application_id"]),
        pairs.get("trace", ""),
    )


def _known(application: str) -> str:
    return "" if application == _UNKNOWN else application


@dataclass(frozen=True)
class _Rule:
    broken: re.Pattern[str]
    said: str


_RULES: Final = (
    _Rule(re.compile(r"^(?!/)", re.DOTALL), "must begin with a slash"),
    _Rule(re.compile(r"/$"), "must not end with a slash"),
    _Rule(re.compile(r"//"), "has an empty part"),
    _Rule(re.compile(r"/\.\.?(/|$)"), "has a part that is . or .."),
    _Rule(_FORBIDDEN, "has a character that ZooKeeper refuses"),
)


def check_path(path: str) -> str | None:
    """What is wrong with a node's path by Curator's and ZooKeeper's rules; None if nothing is."""
    return next((rule.said for rule in _RULES if rule.broken.search(path)), None)
