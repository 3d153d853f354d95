"""HFiles: keys in order, each with a value (HBase's HFile version 3, as Hudi's HFileReader and HFileWriter have it).

Hudi's metadata table keeps its records in them. Those of JVM Hudi are read, packed by gzip or not; what is written is
never packed, so that the bytes depend on no release of zlib.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.errors import DamagedTable
from hudi_locks.format.hfile_blocks import (
    BlockKind,
    Codec,
    IndexEntry,
    encode_block,
    encode_field,
    encode_index,
    encode_varint,
    read_block,
    read_delimited,
    read_leaf_index,
    read_message,
    read_root_index,
)
from hudi_locks.format.records import interpreting

__all__ = ["HFile", "encode_hfile", "encode_hfile_columns"]

_TRAILER: Final = b'TRABLK"$'
_TRAILER_SIZE: Final = 4_096
_VERSION: Final = 3
_COMPARATOR: Final = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_INFO: Final = b"PBUF"
_KEY_VALUE_VERSION: Final = "KEY_VALUE_VERSION"
_NEWEST_READ: Final = "MAX_MEMSTORE_TS_KEY"
_TAGS: Final = "hfile.MAX_TAGS_LEN"
_LAST_KEY: Final = "hfile.LASTKEY"
_LENGTHS: Final = struct.Struct(">ii")
_ROW: Final = struct.Struct(">iiH")
_KEY_END: Final = struct.pack(">BqB", 0, (1 << 63) - 1, 4)
"""No column family, the latest time there is, and the type "put"."""
_NO_READ_TIME: Final = b"\0"
_BLOCK: Final = 60_000
"""Bytes of a block. Readers of JVM Hudi end four bytes early for each checksum, and would pass over a last entry that
is shorter than that; with at most five checksums none is."""
_DEEPEST: Final = 8
_LONGEST: Final = (1 << 16) - 1
"""Bytes of a key."""
_WAY_OUT: Final = "bring it back from a copy, or make the metadata table anew with hudi-locks metadata rebuild"


class HFile:
    """One file, whole in memory. Blocks are unpacked when they are asked for. Not thread-safe.

    Args:
        data: Its bytes.
        path: Its name, for errors.

    Attributes:
        count: How many entries it says it has.
        info: What it says of itself, as `schema`.

    Raises:
        DamagedTable: The bytes are no HFile of version 3, or one with what Hudi never writes; it names `path`.
    """

    def __init__(self, data: bytes | memoryview, path: str) -> None:
        self._data = memoryview(data)
        self._path = path
        with interpreting(f"HFile ({_WAY_OUT})", path):
            self._numbers = self._read_trailer()
            self._codec = Codec(self._number(12, Codec.NONE))
            self.count = self._number(7, 0)
            at = self._number(2, 0)
            root, at = self._read(at, BlockKind.ROOT_INDEX)
            self._metas, at = self._read(at, BlockKind.ROOT_INDEX)
            self.info = self._read_info(at)
            self._index = self._read_index(root)
            self._firsts = [_find_row(entry.key) for entry in self._index]

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """Every key with its value, in order.

        Raises:
            DamagedTable: A block is damaged, keys are out of order, or there are more or fewer than the file says.
        """
        found, last = 0, b""
        for entry in self._index:
            for key, value in self._read_entries(entry):
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
            wanted.setdefault(bisect_right(self._firsts, key) - 1, set()).add(key)
        return {
            key: value
            for place, some in sorted(wanted.items())
            if place >= 0
            for key, value in self._read_entries(self._index[place])
            if key in some
        }

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
        trailer = bytes(self._data[-_TRAILER_SIZE:])
        if len(trailer) < _TRAILER_SIZE or not trailer.startswith(_TRAILER):
            raise ValueError("it is cut off, or never was one")
        if (version := int.from_bytes(trailer[-3:], "big")) != _VERSION:
            raise ValueError(f"version {version}, and 3 is read")
        return read_message(read_delimited(trailer, len(_TRAILER)))

    def _number(self, field: int, default: int) -> int:
        found = self._numbers.get(field, [default])[-1]
        if isinstance(found, bytes):
            raise TypeError(f"field {field} of the trailer is no number")
        return found

    def _read(self, at: int, *kinds: BlockKind) -> tuple[bytes, int]:
        return read_block(self._data, at, kinds, codec=self._codec)

    def _read_info(self, at: int) -> dict[str, bytes]:
        content, _ = self._read(at, BlockKind.FILE_INFO)
        if not content.startswith(_INFO):
            raise ValueError("information in a form of old")
        pairs = map(_read_bytes, read_message(read_delimited(content, len(_INFO))).get(1, []))
        info = {_read_bytes(pair[1][0]).decode(): _read_bytes(pair[2][0]) for pair in map(read_message, pairs)}
        if info.get(_KEY_VALUE_VERSION) != struct.pack(">i", 1) or any(info.get(_NEWEST_READ, b"")):
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

    def _read_entries(self, block: IndexEntry) -> list[tuple[bytes, bytes]]:
        with interpreting(f"HFile whose block at byte {block.offset} is whole", self._path):
            return list(_read_entries(self._read(block.offset, BlockKind.DATA)[0]))

    def _damage(self, found: str) -> DamagedTable:
        return DamagedTable(f"{self._path} is an HFile with {found}: {_WAY_OUT}", path=self._path)


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


def _read_entries(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at < len(content):
        key_size, value_size, row_size = _ROW.unpack_from(content, at)
        value_at = at + _LENGTHS.size + key_size
        following = value_at + value_size + len(_NO_READ_TIME)
        row_at = at + _ROW.size
        if not (0 <= row_size <= key_size - 2 and value_size >= 0 and following <= len(content)):
            raise ValueError(f"an entry at {at} that is not whole")
        yield content[row_at : row_at + row_size], content[value_at : value_at + value_size]
        at = following


def encode_hfile(
    entries: Iterable[tuple[bytes, bytes]],
    *,
    info: Mapping[str, bytes] | None = None,
    meta_blocks: Mapping[str, bytes] | None = None,
    block_bytes: int = _BLOCK,
) -> bytes:
    """The bytes of a file that both generations of Hudi's readers take, and hudi-rs. The same arguments give the same.

    Args:
        entries: Keys with their values, in the order of their keys, each key once.
        info: What it says of itself besides; base files of the metadata table need `schema`.
        meta_blocks: By name.
        block_bytes: A block ends before it has more than these, unless one entry alone has.

    Raises:
        ValueError: A key is not greater than the one before it, or too long.
    """
    parts = _Parts()
    count, last, sizes = 0, b"", [0, 0]
    for key, value in entries:
        if count and key <= last:
            raise ValueError(f"keys must be in order: {key!r} comes behind {last!r}")
        parts.add(key, value, block_bytes=block_bytes)
        count, last, sizes = count + 1, key, [sizes[0] + len(key), sizes[1] + len(value)]
    parts.end_block()
    known = {**_describe(count, last, sizes), **(info or {})}
    return parts.finish(known, meta_blocks or {}, count=count)


def encode_hfile_columns(keys: pa.Array, values: pa.Array) -> bytes:
    """The same of many entries without information, made a column at a time.

    Args:
        keys: Binary or text, in the order of their bytes, each once.
        values: Binary, one for each.

    Raises:
        ValueError: A key is too long.
    """
    rows, held = keys.cast(pa.large_binary()), values.cast(pa.large_binary())
    entries = _join_entries(rows, held)
    ends = _find_ends(entries)
    content = memoryview(entries.buffers()[2]) if len(entries) else memoryview(b"")
    parts, first = _Parts(), 0
    while first < len(entries):
        following = max(first + 1, int(np.searchsorted(ends, ends[first] + _BLOCK, "right")) - 1)
        parts.add_block(bytes(content[ends[first] : ends[following]]), _encode_row(rows[first].as_py()))
        first = following
    lengths = [pc.sum(pc.binary_length(column)).as_py() or 0 for column in (rows, held)]
    return parts.finish(_describe(len(entries), rows[-1].as_py() if len(rows) else b"", lengths), {}, count=len(rows))


def _join_entries(keys: pa.LargeBinaryArray, values: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    sizes = pc.binary_length(keys).to_numpy()
    if sizes.max(initial=0) > _LONGEST:
        raise ValueError(f"a key of {sizes.max()} bytes is too long for an HFile")
    heads = np.empty(len(keys), np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">u2")]))
    heads["row"], heads["key"] = sizes, sizes + 2 + len(_KEY_END)
    heads["value"] = pc.binary_length(values).to_numpy()
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(_ROW.size), len(keys), [None, pa.py_buffer(heads.tobytes())])
    ends = (pa.scalar(text, pa.large_binary()) for text in (_KEY_END, _NO_READ_TIME, b""))
    key_end, entry_end, nothing = ends
    return pc.binary_join_element_wise(fixed.cast(pa.large_binary()), keys, key_end, values, entry_end, nothing)


def _find_ends(entries: pa.LargeBinaryArray) -> npt.NDArray[np.int64]:
    """Where entries begin and end in the memory of all."""
    return np.frombuffer(entries.buffers()[1], np.int64)[entries.offset : entries.offset + len(entries) + 1]


def _describe(count: int, last: bytes, sizes: Sequence[int]) -> dict[str, bytes]:
    """What a file says of itself."""
    return {
        _KEY_VALUE_VERSION: struct.pack(">i", 1),
        _NEWEST_READ: bytes(8),
        "hfile.AVG_KEY_LEN": struct.pack(">i", sizes[0] // max(count, 1)),
        "hfile.AVG_VALUE_LEN": struct.pack(">i", sizes[1] // max(count, 1)),
        "hfile.CREATE_TIME_TS": bytes(8),
        _LAST_KEY: _encode_row(last) if count else b"",
    }


class _Parts:
    """A file as it grows."""

    def __init__(self) -> None:
        self._out = bytearray()
        self._index: list[IndexEntry] = []
        self._block = bytearray()
        self._first = b""
        self._unpacked = 0

    def add(self, key: bytes, value: bytes, *, block_bytes: int) -> None:
        row = _encode_row(key)
        size = len(row) + len(_KEY_END)
        entry = b"".join([_LENGTHS.pack(size, len(value)), row, _KEY_END, value, _NO_READ_TIME])
        if self._block and len(self._block) + len(entry) > block_bytes:
            self.end_block()
        if not self._block:
            self._first = row
        self._block += entry

    def end_block(self) -> None:
        if self._block:
            self.add_block(bytes(self._block), self._first)
            self._block = bytearray()

    def add_block(self, content: bytes, first: bytes) -> None:
        """Add whole entries, the first of which has this row."""
        previous = self._index[-1].offset if self._index else -1
        self._index.append(self._write(BlockKind.DATA, content, first, previous=previous))
        self._unpacked += len(content)

    def finish(self, info: Mapping[str, bytes], meta_blocks: Mapping[str, bytes], *, count: int) -> bytes:
        metas = [self._write(BlockKind.META, data, name.encode()) for name, data in sorted(meta_blocks.items())]
        opened = self._write(BlockKind.ROOT_INDEX, encode_index(self._index)).offset
        self._write(BlockKind.ROOT_INDEX, encode_index(metas))
        pairs = b"".join(
            encode_field(1, encode_field(1, name.encode()) + encode_field(2, value))
            for name, value in sorted(info.items())
        )
        told = self._write(BlockKind.FILE_INFO, _INFO + encode_varint(len(pairs)) + pairs).offset
        first, last = (self._index[0].offset, self._index[-1].offset) if self._index else (0, 0)
        numbers = (told, opened, self._unpacked, self._unpacked, len(self._index), len(metas), count, 1, first, last)
        return bytes(self._out) + _encode_trailer(numbers)

    def _write(self, kind: BlockKind, content: bytes, key: bytes = b"", *, previous: int = -1) -> IndexEntry:
        block = encode_block(kind, content, previous=previous)
        entry = IndexEntry(key, len(self._out), len(block))
        self._out += block
        return entry


def _encode_row(key: bytes) -> bytes:
    try:
        return struct.pack(">H", len(key)) + key
    except struct.error as error:
        raise ValueError(f"a key of {len(key)} bytes is too long for an HFile") from error


def _encode_trailer(numbers: tuple[int, ...]) -> bytes:
    fields: list[tuple[int, int | bytes]] = [*enumerate(numbers, start=1), (11, _COMPARATOR), (12, int(Codec.NONE))]
    message = b"".join(encode_field(number, value) for number, value in fields)
    body = _TRAILER + encode_varint(len(message)) + message
    return body.ljust(_TRAILER_SIZE - 4, b"\0") + b"\0" + _VERSION.to_bytes(3, "big")
