"""HFiles as they are written: for both generations of Hudi's readers, and hudi-rs (Hudi's HFileWriter).

They are not packed, so that the bytes depend on no release of zlib, and the same arguments give the same bytes; a file
that is merged stays packed as it was.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.format.hfile import HFile
from hudi_locks.format.hfile_blocks import (
    INFO,
    KEY_END,
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
    Codec,
    IndexEntry,
    encode_block,
    encode_field,
    encode_index,
    encode_varint,
    pack,
)

__all__ = ["encode_hfile", "encode_hfile_columns", "merge_hfile"]

_COMPARATOR: Final = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_BLOCK: Final = 60_000
"""Bytes of a block. Readers of JVM Hudi end four bytes early for each checksum, and would pass over a last entry that
is shorter than that; with at most five checksums none is."""
_LENGTHS_TOLD: Final = ("hfile.AVG_KEY_LEN", "hfile.AVG_VALUE_LEN")
_LONGEST: Final = (1 << 16) - 1
"""Bytes of a key."""


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


def encode_hfile_columns(keys: pa.Array, values: pa.Array, *, info: Mapping[str, bytes] | None = None) -> bytes:
    """The same of many entries, made a column at a time.

    Args:
        keys: Binary or text, in the order of their bytes, each once.
        values: Binary, one for each.
        info: See `encode_hfile`.

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
    known = {**_describe(len(entries), rows[-1].as_py() if len(rows) else b"", lengths), **(info or {})}
    return parts.finish(known, {}, count=len(rows))


def merge_hfile(file: HFile, changes: Mapping[bytes, bytes | None], *, info: Mapping[str, bytes]) -> bytes:
    """The bytes of a file whose keys got other values, came, or went; blocks without such keys stay as they are.

    Args:
        file: As it was.
        changes: New values by key; None for a key that goes.
        info: See `encode_hfile`.

    Raises:
        DamagedTable: A block of the file is damaged.
    """
    spread: dict[int, dict[bytes, bytes | None]] = {}
    for key, value in changes.items():
        spread.setdefault(max(0, file.find_block(key)), {})[key] = value
    parts, count, last = _Parts(file.codec), file.count, b""
    for number, first in enumerate(file.first_keys):
        if number in spread:
            before = file.read_block_entries(number)
            after = _apply(before, spread[number])
            count, last = count + len(after) - len(before), after[-1][0] if after else b""
            parts.add_all(after)
        else:
            last = file.last_key
            parts.add_packed(*file.read_packed(number), _encode_row(first))
    if not last:  # there was no block, or nothing is left of the last one
        return encode_hfile(_apply(list(file.entries()), changes), info=info)
    parts.end_block()
    lengths = [int.from_bytes(file.info.get(name, b""), "big") * count for name in _LENGTHS_TOLD]
    return parts.finish({**_describe(count, last, lengths), **info}, {}, count=count)


def _apply(before: Sequence[tuple[bytes, bytes]], changes: Mapping[bytes, bytes | None]) -> list[tuple[bytes, bytes]]:
    merged = {**dict(before), **changes}
    return [(key, value) for key, value in sorted(merged.items()) if value is not None]


def _join_entries(keys: pa.LargeBinaryArray, values: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    sizes = pc.binary_length(keys).to_numpy()
    if sizes.max(initial=0) > _LONGEST:
        raise ValueError(f"a key of {sizes.max()} bytes is too long for an HFile")
    heads = np.empty(len(keys), np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">u2")]))
    heads["row"], heads["key"] = sizes, sizes + 2 + len(KEY_END)
    heads["value"] = pc.binary_length(values).to_numpy()
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(ROW.size), len(keys), [None, pa.py_buffer(heads.tobytes())])
    ends = (pa.scalar(text, pa.large_binary()) for text in (KEY_END, NO_READ_TIME, b""))
    key_end, entry_end, nothing = ends
    return pc.binary_join_element_wise(fixed.cast(pa.large_binary()), keys, key_end, values, entry_end, nothing)


def _find_ends(entries: pa.LargeBinaryArray) -> npt.NDArray[np.int64]:
    """Where entries begin and end in the memory of all."""
    return np.frombuffer(entries.buffers()[1], np.int64)[entries.offset : entries.offset + len(entries) + 1]


def _describe(count: int, last: bytes, sizes: Sequence[int]) -> dict[str, bytes]:
    """What a file says of itself."""
    return {
        KEY_VALUE_VERSION: struct.pack(">i", 1),
        NEWEST_READ: bytes(8),
        **{name: struct.pack(">i", size // max(count, 1)) for name, size in zip(_LENGTHS_TOLD, sizes, strict=True)},
        "hfile.CREATE_TIME_TS": bytes(8),
        LAST_KEY: _encode_row(last) if count else b"",
    }


class _Parts:
    """A file as it grows."""

    def __init__(self, codec: Codec = Codec.NONE) -> None:
        self._codec = codec
        self._out = bytearray()
        self._index: list[IndexEntry] = []
        self._block = bytearray()
        self._first = b""
        self._unpacked = 0

    def add(self, key: bytes, value: bytes, *, block_bytes: int) -> None:
        row = _encode_row(key)
        size = len(row) + len(KEY_END)
        entry = b"".join([LENGTHS.pack(size, len(value)), row, KEY_END, value, NO_READ_TIME])
        if self._block and len(self._block) + len(entry) > block_bytes:
            self.end_block()
        if not self._block:
            self._first = row
        self._block += entry

    def end_block(self) -> None:
        if self._block:
            content, self._block = bytes(self._block), bytearray()
            self.add_block(content, self._first)

    def add_all(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        for key, value in entries:
            self.add(key, value, block_bytes=_BLOCK)

    def add_block(self, content: bytes, first: bytes) -> None:
        """Add whole entries, the first of which has this row, as a block of their own."""
        self.add_packed(pack(content, self._codec), len(content), first)

    def add_packed(self, packed: bytes, size: int, first: bytes) -> None:
        """The same of entries that are packed as the file is, and take so many bytes unpacked."""
        self.end_block()
        previous = self._index[-1].offset if self._index else -1
        self._index.append(self._place(encode_block(BlockKind.DATA, packed, previous=previous, plain_size=size), first))
        self._unpacked += size

    def finish(self, info: Mapping[str, bytes], meta_blocks: Mapping[str, bytes], *, count: int) -> bytes:
        metas = [self._write(BlockKind.META, data, name.encode()) for name, data in sorted(meta_blocks.items())]
        opened = self._write(BlockKind.ROOT_INDEX, encode_index(self._index)).offset
        self._write(BlockKind.ROOT_INDEX, encode_index(metas))
        pairs = b"".join(
            encode_field(1, encode_field(1, name.encode()) + encode_field(2, value))
            for name, value in sorted(info.items())
        )
        told = self._write(BlockKind.FILE_INFO, INFO + encode_varint(len(pairs)) + pairs).offset
        first, last = (self._index[0].offset, self._index[-1].offset) if self._index else (0, 0)
        numbers = (told, opened, self._unpacked, self._unpacked, len(self._index), len(metas), count, 1, first, last)
        return bytes(self._out) + _encode_trailer(numbers, self._codec)

    def _write(self, kind: BlockKind, content: bytes, key: bytes = b"") -> IndexEntry:
        return self._place(encode_block(kind, pack(content, self._codec), plain_size=len(content)), key)

    def _place(self, block: bytes, key: bytes) -> IndexEntry:
        entry = IndexEntry(key, len(self._out), len(block))
        self._out += block
        return entry


def _encode_row(key: bytes) -> bytes:
    try:
        return struct.pack(">H", len(key)) + key
    except struct.error as error:
        raise ValueError(f"a key of {len(key)} bytes is too long for an HFile") from error


def _encode_trailer(numbers: tuple[int, ...], codec: Codec) -> bytes:
    fields: list[tuple[int, int | bytes]] = [*enumerate(numbers, start=1), (11, _COMPARATOR), (12, int(codec))]
    message = b"".join(encode_field(number, value) for number, value in fields)
    body = TRAILER + encode_varint(len(message)) + message
    return body.ljust(TRAILER_SIZE - 4, b"\0") + b"\0" + VERSION.to_bytes(3, "big")
