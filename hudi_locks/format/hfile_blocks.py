"""Blocks, messages and numbers that HFiles are made of (HBase's HFile version 3, as Hudi's HFileBlock has it)."""

from __future__ import annotations

import enum
import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import pyarrow as pa

__all__ = [
    "INFO",
    "KEY_END",
    "KEY_VALUE_VERSION",
    "LAST_KEY",
    "LENGTHS",
    "NEWEST_READ",
    "NO_READ_TIME",
    "ROW",
    "TRAILER",
    "TRAILER_SIZE",
    "VERSION",
    "BlockKind",
    "ByteRanges",
    "Codec",
    "IndexEntry",
    "encode_block",
    "encode_field",
    "encode_index",
    "encode_varint",
    "pack",
    "read_block",
    "read_delimited",
    "read_leaf_index",
    "read_message",
    "read_packed",
    "read_root_index",
]

TRAILER: Final = b'TRABLK"$'
TRAILER_SIZE: Final = 4_096
VERSION: Final = 3
INFO: Final = b"PBUF"
KEY_VALUE_VERSION: Final = "KEY_VALUE_VERSION"
NEWEST_READ: Final = "MAX_MEMSTORE_TS_KEY"
LAST_KEY: Final = "hfile.LASTKEY"
LENGTHS: Final = struct.Struct(">ii")
ROW: Final = struct.Struct(">iiH")
KEY_END: Final = struct.pack(">BqB", 0, (1 << 63) - 1, 4)
"""No column family, the latest time there is, and the type "put"."""
NO_READ_TIME: Final = b"\0"
_HEADER: Final = struct.Struct(">8siiqBii")
"""Magic, size on disk, size, place of the previous block of the kind, type of checksum, bytes for each, end of data."""
_INDEX_ENTRY: Final = struct.Struct(">qi")
_CHUNK: Final = 16_384
"""So many bytes have a checksum of four."""
_NO_CHECKSUM: Final = 0
_GZIP: Final = 16 + zlib.MAX_WBITS
_LEVEL: Final = 6
_LONGEST_VARINT: Final = 10
_BYTES: Final = 2
"""Of protobuf's types of fields: bytes with their length before them; 0 is a number."""
_SHORT: Final = 127
_LEAST_READ: Final = 128 * 1024
"""So many bytes are read at least: a block of Hudi's, which are of 64 KiB, with its header."""
_VINT_SIGN: Final = 256 - 112
"""From here down the first byte of Hadoop's number says how many bytes follow."""


class BlockKind(enum.Enum):
    """By what a block begins."""

    DATA = b"DATABLK*"
    META = b"METABLKc"
    LEAF_INDEX = b"IDXLEAF2"
    INNER_INDEX = b"IDXINTE2"
    ROOT_INDEX = b"IDXROOT2"
    FILE_INFO = b"FILEINF2"


class Codec(enum.IntEnum):
    """How the content of blocks is packed."""

    GZIP = 1
    NONE = 2


class IndexEntry(NamedTuple):
    """One block that an index names.

    Attributes:
        key: The first of the block; of a meta block its name.
        offset: Where it begins in the file.
        size: On disk.
    """

    key: bytes
    offset: int
    size: int


def encode_block(kind: BlockKind, content: bytes, *, previous: int = -1, plain_size: int | None = None) -> bytes:
    """A block with zeros for its checksums, which every reader accepts.

    Args:
        kind: What it is.
        content: What it holds, packed as all of the file.
        previous: Where the block of its kind before it begins; -1 for none.
        plain_size: Bytes of the content before it was packed; None if it is not.
    """
    plain_size = len(content) if plain_size is None else plain_size
    end = _HEADER.size + len(content)
    checksums = bytes(4 * -(-end // _CHUNK))
    size = len(content) + len(checksums)
    header = _HEADER.pack(kind.value, size, plain_size, previous, _NO_CHECKSUM, _CHUNK, end)
    return b"".join([header, content, checksums])


def pack(content: bytes, codec: Codec) -> bytes:
    """The content of a block as a file has it; of gzip the bytes depend on the release of zlib."""
    if codec is Codec.NONE:
        return content
    packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
    return packer.compress(content) + packer.flush()


class ByteRanges:
    """The bytes of a file, a range at a time. Not thread-safe.

    Args:
        source: All of them, or a file from which the ranges that are asked for are read.

    Attributes:
        size: Of the file, bytes.
    """

    def __init__(self, source: bytes | memoryview | pa.NativeFile) -> None:
        self._source = source if isinstance(source, pa.NativeFile) else None
        self._read = memoryview(b"" if isinstance(source, pa.NativeFile) else source)
        self._begin = 0
        self.size: int = len(self._read) if isinstance(source, bytes | memoryview) else source.size()

    def take(self, begin: int, size: int) -> memoryview:
        """These bytes. The file is asked for more than a few, so that those behind them need no read of their own.

        Raises:
            ValueError: It has not as many.
            OSError: It cannot be read.
        """
        if not 0 <= begin <= begin + size <= self.size:
            raise ValueError(f"{size} bytes at {begin} of {self.size}")
        at = begin - self._begin
        if not 0 <= at <= at + size <= len(self._read):
            self.load(begin, begin + max(size, _LEAST_READ))
            at = begin - self._begin
        return self._read[at : at + size]

    def load(self, begin: int, end: int) -> None:
        """Read a range in one go, of which parts are taken next; less at the end of the file.

        Raises:
            OSError: It cannot be read.
        """
        if self._source is not None:
            wanted = min(end, self.size) - begin
            self._read, self._begin = memoryview(self._source.read_at(wanted, begin)), begin


def read_block(data: ByteRanges, at: int, kinds: tuple[BlockKind, ...], *, codec: Codec) -> tuple[bytes, int]:
    """The content of a block, and where the next one begins.

    Raises:
        ValueError: There is no whole block of one of these kinds.
        OSError: The file cannot be read.
    """
    packed, size, following = read_packed(data, at, kinds)
    content = _unpack(packed, size) if codec is Codec.GZIP else bytes(packed)
    if len(content) != size:
        raise ValueError(f"the block at byte {at} does not hold the {size} bytes that it promises")
    return content, following


def read_packed(data: ByteRanges, at: int, kinds: tuple[BlockKind, ...]) -> tuple[memoryview, int, int]:
    """The same as it lies there, with its size once it is unpacked; raises as `read_block` does."""
    if not 0 <= at <= data.size - _HEADER.size:
        raise ValueError(f"no block can begin at byte {at}")
    magic, on_disk, size, _, _, _, end = _HEADER.unpack(data.take(at, _HEADER.size))
    if magic not in [kind.value for kind in kinds]:
        raise ValueError(f"the block at byte {at} begins with {magic!r} and not with {kinds[0].value!r}")
    following = at + _HEADER.size + on_disk
    if size < 0 or not at + _HEADER.size <= at + end <= following <= data.size:
        raise ValueError(f"the block at byte {at} is not whole")
    return data.take(at, end)[_HEADER.size :], size, following


def _unpack(packed: memoryview, size: int) -> bytes:
    """What gzip's members hold, never more than `size` bytes and one: HBase writes several one behind the other."""
    parts, left, rest = [], size + 1, bytes(packed)
    while rest and left > 0:
        unpacker = zlib.decompressobj(_GZIP)
        part = unpacker.decompress(rest, left)
        if not part and not unpacker.eof:
            raise ValueError("packed bytes end early")
        parts.append(part)
        left, rest = left - len(part), unpacker.unused_data
    return b"".join(parts)


def encode_index(entries: list[IndexEntry]) -> bytes:
    """The content of a root index."""
    return b"".join(
        _INDEX_ENTRY.pack(entry.offset, entry.size) + _encode_vint(len(entry.key)) + entry.key for entry in entries
    )


def read_root_index(content: bytes, count: int) -> Iterator[IndexEntry]:
    """The first `count` entries of a root index."""
    at = 0
    for _ in range(count):
        offset, size = _INDEX_ENTRY.unpack_from(content, at)
        length, at = _read_vint(content, at + _INDEX_ENTRY.size)
        yield IndexEntry(_take(content, at, length), offset, size)
        at += length


def read_leaf_index(content: bytes) -> Iterator[IndexEntry]:
    """The entries of a leaf, or of an inner index: how many, where each begins and the last one ends, and they."""
    (count,) = struct.unpack_from(">i", content)
    if not 0 <= count <= len(content):
        raise ValueError(f"an index of {count} entries")
    places = struct.unpack_from(f">{count + 1}i", content, 4)
    base = 4 * (count + 2)
    for begin, end in pairwise(places):
        offset, size = _INDEX_ENTRY.unpack_from(content, base + begin)
        key_at = base + begin + _INDEX_ENTRY.size
        yield IndexEntry(_take(content, key_at, base + end - key_at), offset, size)


def encode_varint(value: int) -> bytes:
    """A number as protobuf has it."""
    out = bytearray()
    while value > _SHORT:
        out.append(value & _SHORT | _SHORT + 1)
        value >>= 7
    return bytes([*out, value])


def encode_field(number: int, value: int | bytes) -> bytes:
    """A field of a protobuf message."""
    if isinstance(value, int):
        return encode_varint(number << 3) + encode_varint(value)
    return encode_varint(number << 3 | _BYTES) + encode_varint(len(value)) + value


def read_delimited(data: bytes, at: int) -> bytes:
    """The message whose length stands before it."""
    size, at = _read_varint(data, at)
    return _take(data, at, size)


def read_message(data: bytes) -> dict[int, list[int | bytes]]:
    """The fields of a protobuf message of numbers and bytes, by their numbers."""
    fields: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        if tag & 7 not in (0, _BYTES):
            raise ValueError(f"a field of the type {tag & 7}")
        number, at = _read_varint(data, at)
        value: int | bytes = number
        if tag & 7 == _BYTES:
            value, at = _take(data, at, number), at + number
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST_VARINT):
        byte = data[at + place]
        value |= (byte & _SHORT) << 7 * place
        if byte <= _SHORT:
            return value, at + place + 1
    raise ValueError("a number of more than ten bytes")


def _encode_vint(value: int) -> bytes:
    """A length as Hadoop's WritableUtils has it."""
    if value <= _SHORT:
        return bytes([value])
    size = (value.bit_length() + 7) // 8
    return bytes([_VINT_SIGN - size]) + value.to_bytes(size, "big")


def _read_vint(data: bytes, at: int) -> tuple[int, int]:
    first = data[at]
    if first <= _SHORT:
        return first, at + 1
    size = _VINT_SIGN - first
    if not 1 <= size <= 4:  # more is no length
        raise ValueError(f"a length that begins with {first}")
    return int.from_bytes(_take(data, at + 1, size), "big"), at + 1 + size


def _take(data: bytes, at: int, size: int) -> bytes:
    if not 0 <= size <= len(data) - at:
        raise ValueError(f"{size} bytes at {at} of {len(data)}")
    return data[at : at + size]
