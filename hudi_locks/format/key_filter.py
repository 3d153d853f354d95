"""The bloom filter of a base file's record keys, as JVM Hudi keeps it in the footer: its bits, hashes and bytes.

Keys are hashed as columns, never one by one.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["EVERY_KEY", "KEY_FILTER_TYPE", "FilterSize", "KeyFilter"]

KEY_FILTER_TYPE: Final = "SIMPLE"
"""What `KeyFilter.encode` writes, by Hudi's name of it (BloomFilterTypeCode)."""
_KINDS: Final = (KEY_FILTER_TYPE, "DYNAMIC_V0")
_HEADER: Final = struct.Struct(">iibi")
_GROWN: Final = struct.Struct(">iii")
_VERSION: Final = -1
_MURMUR: Final = 1
_MOST_HASHES: Final = 64
_AT_ONCE: Final = 1 << 14
_MULTIPLIER: Final = np.uint32(0x5BD1E995)

_Words = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class FilterSize:
    """How large filters may grow, and how seldom they are to err (`hoodie.index.bloom.num_entries` and `.fpp`).

    Attributes:
        most_keys: A filter of more keys has no more bits than one of so many, and errs more often.
        error_rate: Share of the other keys that seem to be there, above 0 and below 1.
    """

    most_keys: int
    error_rate: float

    def bits(self, keys: int) -> int:
        """Bits of a filter of so many keys."""
        return max(8, math.ceil(min(keys, self.most_keys) * -math.log(self.error_rate) / math.log(2) ** 2))


@dataclass(frozen=True)
class KeyFilter:
    """A set of record keys of which one can ask which are certainly not in it (Hudi's InternalBloomFilter).

    A filter that grew has several parts (InternalDynamicBloomFilter), and holds what one of them holds.

    Attributes:
        parts: The bits of each, one byte for each bit: 0 or 1.
        hashes: Bits that a key sets.
    """

    parts: tuple[npt.NDArray[np.uint8], ...]
    hashes: int

    @classmethod
    def of(cls, keys: pa.ChunkedArray, size: FilterSize) -> KeyFilter:
        """The filter that holds these texts, none of them null."""
        bits = np.zeros(size.bits(len(keys)), dtype=np.uint8)
        hashes = min(_MOST_HASHES, max(1, round(math.log(2) * len(bits) / max(1, len(keys)))))
        for _, places in _place_keys(keys, hashes, len(bits)):
            bits[places.ravel()] = 1
        return cls((bits,), hashes)

    def may_hold(self, keys: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """For each of these texts whether it may be among the keys; False is certain."""
        found = np.zeros(len(keys), dtype=np.bool_)
        for bits in self.parts:
            for rows, places in _place_keys(keys, self.hashes, len(bits)):
                found[rows] |= bits[places].all(axis=0)
        return found

    def encode(self) -> str:
        """What the footer has of a filter of one part: the base64 text of its bytes."""
        (bits,) = self.parts
        packed = np.packbits(bits, bitorder="little").tobytes()
        return base64.b64encode(_HEADER.pack(_VERSION, self.hashes, _MURMUR, len(bits)) + packed).decode()

    @classmethod
    def decode(cls, kind: str, text: str) -> KeyFilter | None:
        """The filter of a footer; None if it is damaged or of another kind, so that no key can be ruled out.

        Args:
            kind: SIMPLE or DYNAMIC_V0.
            text: As the footer has it.
        """
        try:
            data = base64.b64decode(text, validate=True)
            found = _read_parts(data) if kind == "DYNAMIC_V0" else [_read_part(data, 0)]
        except (binascii.Error, struct.error, ValueError):
            return None
        is_sound = kind in _KINDS and found[-1].end == len(data) and len({part.hashes for part in found}) == 1
        return cls(tuple(part.bits for part in found), found[0].hashes) if is_sound else None


@dataclass(frozen=True)
class _Part:
    """Bits of a filter, how many of them a key sets, and where its bytes end."""

    bits: npt.NDArray[np.uint8]
    hashes: int
    end: int


EVERY_KEY: Final = KeyFilter((np.ones(8, dtype=np.uint8),), 1).encode()
"""A filter that holds every key: an index that goes by it looks into the file, and takes no key for absent."""


def _read_part(data: bytes, at: int) -> _Part:
    hashes, size = _read_header(data, at)
    begin, end = at + _HEADER.size, at + _HEADER.size + math.ceil(size / 8)
    packed = np.frombuffer(data, dtype=np.uint8, count=end - begin, offset=begin)
    return _Part(np.unpackbits(packed, count=size, bitorder="little"), hashes, end)


def _read_parts(data: bytes) -> list[_Part]:
    """Those of a filter that grew; before them are a header of its own, how many keys a part has, and their number."""
    _read_header(data, 0)
    _, _, count = _GROWN.unpack_from(data, _HEADER.size)
    found, at = [], _HEADER.size + _GROWN.size
    for _ in range(max(1, count)):
        found.append(_read_part(data, at))
        at = found[-1].end
    return found


def _read_header(data: bytes, at: int) -> tuple[int, int]:
    """Bits that a key sets, and size in bits."""
    version, hashes, kind, size = _HEADER.unpack_from(data, at)
    if version != _VERSION or kind != _MURMUR or size <= 0 or not 0 < hashes <= _MOST_HASHES:
        raise ValueError("not the bytes of a filter")
    return int(hashes), int(size)


def _place_keys(
    keys: pa.ChunkedArray, hashes: int, size: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Row numbers of some keys, and the bits of each in a filter of that size: one row of places for each hash."""
    for rows, letters in _group_by_length(keys):
        words, rest = _mix_words(letters)
        places = np.empty((hashes, len(rows)), dtype=np.int64)
        seed = np.zeros(len(rows), dtype=np.uint32)
        for number in range(hashes):
            seed = _hash(words, rest, seed ^ np.uint32(letters.shape[1]))
            places[number] = np.abs(seed.view(np.int32).astype(np.int64)) % size
        yield rows, places


def _group_by_length(keys: pa.ChunkedArray) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]]:
    """Row numbers of keys of one length, and their bytes as a table; not too many at once for a processor's cache."""
    begin = 0
    for chunk in pc.cast(keys, pa.large_binary()).chunks:
        lengths = pc.binary_length(chunk).to_numpy()
        starts = np.frombuffer(chunk.buffers()[1], dtype=np.int64)[chunk.offset : chunk.offset + len(chunk)]
        data = np.frombuffer(chunk.buffers()[2] or b"", dtype=np.uint8)
        for length in np.unique(lengths):
            every = np.flatnonzero(lengths == length)
            for at in range(0, len(every), _AT_ONCE):
                rows = every[at : at + _AT_ONCE]
                yield rows + begin, data[starts[rows, None] + np.arange(length)]
        begin += len(chunk)


def _mix_words(letters: npt.NDArray[np.uint8]) -> tuple[_Words, _Words | None]:
    """What murmur makes of the keys before it knows the seed: whole words, a column each, and the letters after them.

    Letters are signed to the JVM: those beyond ASCII fill the bits above them.
    """
    whole = letters.shape[1] // 4
    words = np.ascontiguousarray(np.ascontiguousarray(letters[:, : 4 * whole]).view("<u4").T).astype(np.uint32)
    words *= _MULTIPLIER
    words ^= words >> np.uint32(24)
    words *= _MULTIPLIER
    left = letters.shape[1] - 4 * whole
    if not left:
        return words, None
    signed = letters[:, 4 * whole :].view(np.int8).astype(np.int32).view(np.uint32)
    rest = np.zeros(len(letters), dtype=np.uint32)
    for number in range(left):
        rest ^= signed[:, left - 1 - number] << np.uint32(8 * number)
    return words, rest


def _hash(words: _Words, rest: _Words | None, found: _Words) -> _Words:
    """The rest of murmur (Hadoop's MurmurHash, 32 bits), from the seed on."""
    for word in words:
        found *= _MULTIPLIER
        found ^= word
    if rest is not None:
        found ^= rest
        found *= _MULTIPLIER
    found ^= found >> np.uint32(13)
    found *= _MULTIPLIER
    found ^= found >> np.uint32(15)
    return found
