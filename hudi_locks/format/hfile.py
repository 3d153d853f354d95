"""HFiles: keys in order, each with a value (HBase's HFile version 3, as Hudi's HFileReader has it).

Hudi's metadata table keeps its records in them, packed by gzip or not.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_locks.errors import DamagedTable
from hudi_locks.format.hfile_blocks import (
    INFO,
    KEY_VALUE_VERSION,
    LAST_KEY,
    LENGTHS,
    NEWEST_READ,
    NO_READ_TIME,
    ROW,
    TRAILER,
    TRAILER_SIZE,
    VERSION,
    BlockKind,
    ByteRanges,
    Codec,
    IndexEntry,
    read_block,
    read_delimited,
    read_leaf_index,
    read_message,
    read_packed,
    read_root_index,
)
from hudi_locks.format.records import interpreting

__all__ = ["HFile"]

_TAGS: Final = "hfile.MAX_TAGS_LEN"
_DEEPEST: Final = 8
_END_BYTES: Final = 1 << 19
"""What is read first: all of a small file, and of a large one what it says of itself, and its index."""
_GAP_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 1 << 24
"""So many bytes of one file are held at a time."""
_WAY_OUT: Final = "bring it back from a copy, or make the metadata table anew with hudi-locks metadata rebuild"


class HFile:
    """One file. Blocks are unpacked when they are asked for. Not thread-safe.

    Args:
        data: Its bytes, or the open file, of which only the blocks are read that are asked for.
        path: Its name, for errors.
        way_out: What to do about damage, for errors.

    Attributes:
        count: How many entries it says it has.
        codec: How its blocks are packed.
        info: What it says of itself, as `schema`.
        first_keys: The first key of each data block.

    Raises:
        DamagedTable: The bytes are no HFile of version 3, or one with what Hudi never writes; it names `path`.
        OSError: The open file cannot be read; every method raises it too.
    """

    def __init__(self, data: bytes | memoryview | pa.NativeFile, path: str, *, way_out: str = _WAY_OUT) -> None:
        self._data = ByteRanges(data)
        self._path = path
        self._way_out = way_out
        self._data.load(max(0, self._data.size - _END_BYTES), self._data.size)
        with interpreting(f"HFile ({way_out})", path):
            self._numbers = self._read_trailer()
            self.codec: Codec = Codec(self._number(12, Codec.NONE))
            self.count: int = self._number(7, 0)
            at = self._number(2, 0)
            root, at = self._read(at, BlockKind.ROOT_INDEX)
            self._metas, at = self._read(at, BlockKind.ROOT_INDEX)
            self.info: dict[str, bytes] = self._read_info(at)
            self._index = self._read_index(root)
            self.first_keys: list[bytes] = [_find_row(entry.key) for entry in self._index]

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """Every key with its value, in order.

        Raises:
            DamagedTable: A block is damaged, keys are out of order, or there are more or fewer than the file says.
        """
        found, last = 0, b""
        for number in range(len(self._index)):
            for key, value in self.read_block_entries(number):
                if found and key <= last:
                    raise self._damage(f"the key {key!r} behind {last!r}")
                found, last = found + 1, key
                yield key, value
        if found != self.count:
            raise self._damage(f"{found} entries, and {self.count} by its trailer")

    def get(self, key: bytes) -> bytes | None:
        """The value of a key; None if it is not there.

        Raises:
            DamagedTable: The block in which it would be is damaged.
        """
        return self.get_many([key]).get(key)

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that are there. Each block is unpacked once.

        Raises:
            DamagedTable: A block in which one of them would be is damaged.
        """
        wanted: dict[int, set[bytes]] = {}
        for key in keys:
            if (place := self.find_block(key)) >= 0:
                wanted.setdefault(place, set()).add(key)
        found: dict[bytes, bytes] = {}
        for near in self._join_near(sorted(wanted)):
            self._data.load(self._index[near[0]].offset, self._end_of(near[-1]))
            for place in near:
                with self._reading(place):
                    found |= _pick(self.read_block(place), wanted[place])
        return found

    def _join_near(self, places: Sequence[int]) -> Iterator[list[int]]:
        """Blocks that are read together, with what lies between them: a read costs more than a few bytes."""
        near: list[int] = []
        for place in places:
            if near and not (
                self._index[place].offset - self._end_of(near[-1]) <= _GAP_BYTES
                and self._end_of(place) - self._index[near[0]].offset <= _MOST_BYTES
            ):
                yield near
                near = []
            near.append(place)
        if near:
            yield near

    def _end_of(self, number: int) -> int:
        return self._index[number].offset + self._index[number].size

    @property
    def last_key(self) -> bytes:
        """The greatest key.

        Raises:
            DamagedTable: It does not say it.
        """
        with interpreting("HFile that names its last key", self._path):
            return _find_row(self.info[LAST_KEY])

    def find_block(self, key: bytes) -> int:
        """Number of the data block in which a key is if it is there; -1 for one that lies before all."""
        return bisect_right(self.first_keys, key) - 1

    def read_block(self, number: int) -> bytes:
        """The entries of a data block as they are written, unpacked. Raises what `entries` raises."""
        with self._reading(number) as entry:
            return self._read(entry.offset, BlockKind.DATA)[0]

    def read_packed(self, number: int) -> tuple[bytes, int]:
        """The same as it lies there, and its size once it is unpacked."""
        with self._reading(number) as entry:
            packed, size, _ = read_packed(self._data, entry.offset, (BlockKind.DATA,))
            return bytes(packed), size

    def read_block_entries(self, number: int) -> list[tuple[bytes, bytes]]:
        """The same as keys with values."""
        with self._reading(number):
            return list(_read_entries(self.read_block(number)))

    @contextmanager
    def _reading(self, number: int) -> Iterator[IndexEntry]:
        entry = self._index[number]
        with interpreting(f"HFile whose block at byte {entry.offset} is whole", self._path):
            yield entry

    @cached_property
    def meta_blocks(self) -> Mapping[str, bytes]:
        """Meta blocks by name, as `bloomFilter`.

        Raises:
            DamagedTable: One is damaged.
        """
        with interpreting("HFile with meta blocks", self._path):
            entries = list(read_root_index(self._metas, self._number(6, 0)))
            return {entry.key.decode(): self._read(entry.offset, BlockKind.META)[0] for entry in entries}

    def _read_trailer(self) -> dict[int, list[int | bytes]]:
        trailer = bytes(self._data.take(max(0, self._data.size - TRAILER_SIZE), min(TRAILER_SIZE, self._data.size)))
        if len(trailer) < TRAILER_SIZE or not trailer.startswith(TRAILER):
            raise ValueError("it is cut off, or never was one")
        if (version := int.from_bytes(trailer[-3:], "big")) != VERSION:
            raise ValueError(f"version {version}, and 3 is read")
        return read_message(read_delimited(trailer, len(TRAILER)))

    def _number(self, field: int, default: int) -> int:
        found = self._numbers.get(field, [default])[-1]
        if isinstance(found, bytes):
            raise TypeError(f"field {field} of the trailer is no number")
        return found

    def _read(self, at: int, *kinds: BlockKind) -> tuple[bytes, int]:
        return read_block(self._data, at, kinds, codec=self.codec)

    def _read_info(self, at: int) -> dict[str, bytes]:
        content, _ = self._read(at, BlockKind.FILE_INFO)
        if not content.startswith(INFO):
            raise ValueError("information in a form of old")
        pairs = map(_read_bytes, read_message(read_delimited(content, len(INFO))).get(1, []))
        info = {_read_bytes(pair[1][0]).decode(): _read_bytes(pair[2][0]) for pair in map(read_message, pairs)}
        if info.get(KEY_VALUE_VERSION) != struct.pack(">i", 1) or any(info.get(NEWEST_READ, b"")):
            raise ValueError("entries with times of readers, which Hudi never writes")
        if any(info.get(_TAGS, b"")):
            raise ValueError("entries with tags, which Hudi never writes")
        return info

    def _read_index(self, root: bytes) -> list[IndexEntry]:
        level = self._number(8, 1)
        if not 1 <= level <= _DEEPEST:
            raise ValueError(f"an index of {level} levels")
        entries = _in_order(read_root_index(root, self._number(5, 0)))
        for depth in range(level - 1, 0, -1):
            kind = BlockKind.LEAF_INDEX if depth == 1 else BlockKind.INNER_INDEX
            blocks = (self._read(entry.offset, kind)[0] for entry in entries)
            entries = _in_order(entry for block in blocks for entry in read_leaf_index(block))
        return entries

    def _damage(self, found: str) -> DamagedTable:
        return DamagedTable(f"{self._path} is an HFile with {found}: {self._way_out}", path=self._path)


def _read_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise TypeError("a number where bytes belong")
    return value


def _in_order(entries: Iterable[IndexEntry]) -> list[IndexEntry]:
    """Entries each of which lies behind the one before: no damage makes many of one block."""
    found = list(entries)
    if any(before.offset >= after.offset for before, after in pairwise(found)):
        raise ValueError("an index whose blocks are out of order")
    return found


def _find_row(key: bytes) -> bytes:
    """The record key in a key of an index: its length stands before it, and more may follow, as a time."""
    size = int.from_bytes(key[:2], "big")
    if len(key) < 2 + size:
        raise ValueError(f"a key of {len(key)} bytes that is to have {size}")
    return key[2 : 2 + size]


def _pick(content: bytes, keys: set[bytes]) -> dict[bytes, bytes]:
    """The entries of a block that have one of these keys."""
    starts = _find_starts(content)

    def read_key(at: int) -> bytes:
        return content[at + ROW.size : at + ROW.size + ROW.unpack_from(content, at)[2]]

    found = {}
    for key in keys:
        number = bisect_left(starts, key, key=read_key)
        if number < len(starts) and read_key(at := starts[number]) == key:
            key_size, value_size = LENGTHS.unpack_from(content, at)
            value_at = at + LENGTHS.size + key_size
            found[key] = content[value_at : value_at + value_size]
    return found


def _find_starts(content: bytes) -> Sequence[int]:
    """Where each entry of a block begins.

    Where all keys have one length, what may be the head of an entry is looked for in all places at once. That it is
    none else is known if each begins where the one before ends; if not, as where a value has such bytes, all are walked
    through.
    """
    if len(content) > ROW.size:
        head, units = content[: LENGTHS.size // 2], np.frombuffer(content, np.uint8)
        alike = [units[place : len(content) - ROW.size + place] == head[place] for place in range(len(head))]
        alike += [units[at : len(content) - ROW.size + at] == content[at] for at in range(LENGTHS.size, ROW.size)]
        starts = np.flatnonzero(np.logical_and.reduce(alike))
        if len(starts) and _are_whole(content, units, starts):
            found: list[int] = starts.tolist()
            return found
    return list(_walk(content))


def _are_whole(content: bytes, units: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> bool:
    key_size, _, row_size = ROW.unpack_from(content)
    told = units[starts[:, None] + np.arange(LENGTHS.size // 2, LENGTHS.size)]
    value_sizes = np.ascontiguousarray(told).view(">i4")[:, 0].astype(np.int64)
    ends = starts + (LENGTHS.size + key_size + len(NO_READ_TIME)) + value_sizes
    is_chain = starts[0] == 0 and ends[-1] == len(content) and bool((ends[:-1] == starts[1:]).all())
    return is_chain and 0 <= row_size <= key_size - 2 and int(value_sizes.min()) >= 0


def _walk(content: bytes) -> Iterator[int]:
    """Where each entry begins.

    Raises:
        ValueError: One is not whole.
    """
    at, end = 0, len(content)
    while at < end:
        key_size, value_size, row_size = ROW.unpack_from(content, at)
        following = at + LENGTHS.size + key_size + value_size + len(NO_READ_TIME)
        if not (0 <= row_size <= key_size - 2 and value_size >= 0 and following <= end):
            raise ValueError(f"an entry at {at} that is not whole")
        yield at
        at = following


def _read_entries(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    for at in _walk(content):
        key_size, value_size, row_size = ROW.unpack_from(content, at)
        row_at, value_at = at + ROW.size, at + LENGTHS.size + key_size
        yield content[row_at : row_at + row_size], content[value_at : value_at + value_size]
