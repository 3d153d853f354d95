"""Ways to damage the bytes of a file at random."""

from __future__ import annotations

import random
import re

__all__ = ["DEEP", "WAYS"]

DEEP = b"[" * 100_000


def flip(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def put_rubbish(rng: random.Random, data: bytes) -> bytes:
    at, rubbish = rng.randrange(len(data)), rng.randbytes(rng.choice((1, 4, 16)))
    return data[:at] + rubbish + data[at + rng.choice((0, len(rubbish))) :]


def blank(rng: random.Random, data: bytes) -> bytes:
    at, count = rng.randrange(len(data)), rng.choice((1, 8, 512))
    return data[:at] + rng.choice((b"\0", b"\xff")) * min(count, len(data) - at) + data[at + count :]


def take_out(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice((1, 7, 64)) :]


_OTHER_VALUES = (b"null", b"[]", b"{}", b"1e999", b"-Infinity", b"NaN", b"9" * 30, b'""', b"true", DEEP[:50_000])
_VALUE = re.compile(rb'"[^"\\]*"(?![ ]*:)|-?\d+|null|true|false')


def change_value(rng: random.Random, data: bytes) -> bytes:
    """Another value in place of one in JSON; elsewhere as good as rubbish."""
    values = list(_VALUE.finditer(data))
    other = rng.choice(_OTHER_VALUES)
    if not values:
        return data + other
    found = rng.choice(values)
    return data[: found.start()] + other + data[found.end() :]


WAYS = (flip, flip, cut, put_rubbish, blank, take_out, change_value)
