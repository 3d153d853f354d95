"""Bloom filters of texts: small, and never wrong about what is in them."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["BloomFilter"]

_MAGIC: Final = b"HLB3"
_HASHES: Final = 16
_BITS_EACH: Final = 24
"""A write has a filter for each of its tasks: all of them together must seldom err."""
_LEAST_BITS: Final = 64


@dataclass(frozen=True)
class BloomFilter:
    """A set of which one can ask whether something is certainly not in it; of others one in 100,000 seems to be.

    Attributes:
        bits: A whole number of bytes.
    """

    bits: bytes

    @classmethod
    def of(cls, keys: Iterable[bytes]) -> BloomFilter:
        """The filter that holds these keys."""
        known = tuple(keys)
        size = max(_LEAST_BITS, len(known) * _BITS_EACH)
        bits = bytearray(math.ceil(size / 8))
        for key in known:
            for place in _places(key, 8 * len(bits)):
                bits[place // 8] |= 1 << place % 8
        return cls(bytes(bits))

    def __contains__(self, key: bytes) -> bool:
        return all(self.bits[place // 8] & 1 << place % 8 for place in _places(key, 8 * len(self.bits)))

    def encode(self) -> bytes:
        """Its bytes: a magic word, a checksum, the bits."""
        return _MAGIC + _digest(self.bits) + self.bits

    @classmethod
    def decode(cls, data: bytes | None) -> BloomFilter | None:
        """A filter from its bytes; None if it is missing or damaged, so that nothing can be ruled out."""
        bits = (data or b"")[12:]
        if data is None or not bits or data[:4] != _MAGIC or data[4:12] != _digest(bits):
            return None
        return cls(bits)


def _places(key: bytes, size: int) -> Iterator[int]:
    """Each from bits of its own: places in steps of one length meet far too often in a small filter."""
    digest = hashlib.blake2b(key, digest_size=4 * _HASHES).digest()
    return (place % size for place in struct.unpack(f"<{_HASHES}I", digest))


def _digest(bits: bytes) -> bytes:
    return hashlib.blake2b(bits, digest_size=8).digest()
