"""Blocks of log files (Hudi's HoodieLogFormat and HoodieLogBlock; version 1 of the block's own format).

A reader drops a block whose back pointer is wrong, or that does not name its instant, and says nothing. So neither can
be made here, and what cannot be read whole is an error.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from hudi_locks.errors import DamagedTable

__all__ = ["BlockHeader", "BlockType", "LogBlock", "decode_blocks", "encode_block"]

_MAGIC: Final = b"#HUDI#"
_VERSION: Final = 1
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")


class BlockType(IntEnum):
    """What a block holds."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO = 3
    HFILE = 4
    PARQUET = 5
    CDC = 6


class BlockHeader(IntEnum):
    """What a block says of itself."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_OF_POSITIONS = 8


_NEEDED: Final[Mapping[BlockType, tuple[BlockHeader, ...]]] = {
    BlockType.DELETE: (BlockHeader.INSTANT_TIME, BlockHeader.SCHEMA),
    BlockType.AVRO: (BlockHeader.INSTANT_TIME, BlockHeader.SCHEMA),
    BlockType.PARQUET: (BlockHeader.INSTANT_TIME, BlockHeader.SCHEMA),
    BlockType.HFILE: (BlockHeader.INSTANT_TIME, BlockHeader.SCHEMA),
    BlockType.CDC: (BlockHeader.INSTANT_TIME, BlockHeader.SCHEMA),
    BlockType.COMMAND: (BlockHeader.INSTANT_TIME, BlockHeader.TARGET_INSTANT_TIME, BlockHeader.COMMAND_TYPE),
}
"""The kinds that are written here, and what readers fail, or keep silent, without."""


@dataclass(frozen=True)
class LogBlock:
    """One block.

    Attributes:
        kind: What it holds.
        header: What it says of itself.
        content: Rows, deletes or nothing, in the form of its kind; a view of what was read.
    """

    kind: BlockType
    header: Mapping[BlockHeader, str]
    content: bytes | memoryview

    @property
    def instant(self) -> str:
        """Requested time of the write that made it; "" if it does not say."""
        return self.header.get(BlockHeader.INSTANT_TIME, "")

    @property
    def schema(self) -> str:
        """Avro JSON of its rows, meta columns included; "" if it has none."""
        return self.header.get(BlockHeader.SCHEMA, "")

    @property
    def is_partial(self) -> bool:
        """Whether its rows have some of the columns only, and leave the others as they are."""
        return self.header.get(BlockHeader.IS_PARTIAL, "").lower() == "true"

    @property
    def stands_for(self) -> frozenset[str]:
        """Requested times of the writes whose blocks a log compaction merged into it; of any other block none."""
        times = self.header.get(BlockHeader.COMPACTED_BLOCK_TIMES, "")
        return frozenset(time.strip() for time in times.split(",") if time.strip())


def encode_block(block: LogBlock) -> bytes:
    """The bytes of one block; a log file is nothing but blocks one after the other.

    Raises:
        ValueError: It is of a kind that is not written here, or a header is missing without which readers would
            leave it out.
    """
    needed = _NEEDED.get(block.kind)
    if needed is None:
        raise ValueError(f"blocks of type {block.kind.name} are not written; use {sorted(k.name for k in _NEEDED)}")
    lacking = [header.name for header in needed if not block.header.get(header)]
    if lacking:
        raise ValueError(f"a {block.kind.name} block without {lacking} would be left out by readers; give it")
    content = len(block.content)
    parts = [_INT.pack(_VERSION), _INT.pack(block.kind), _encode_texts(block.header), _LONG.pack(content)]
    size = sum(map(len, parts)) + content + _INT.size + _LONG.size
    back = size + len(_MAGIC)
    return b"".join([_MAGIC, _LONG.pack(size), *parts, block.content, _encode_texts({}), _LONG.pack(back)])


def decode_blocks(data: bytes | memoryview, path: str) -> Iterator[LogBlock]:
    """The blocks of a log file, in their order, without a copy of their contents.

    Raises:
        DamagedTable: A block is cut off, or contradicts itself; it names `path` and the place.
    """
    cursor = _Cursor(memoryview(data), path)
    while cursor.at < len(cursor.data):
        yield _decode_block(cursor)


def _encode_texts(texts: Mapping[BlockHeader, str]) -> bytes:
    parts = [_INT.pack(len(texts))]
    for key, text in sorted(texts.items()):
        encoded = text.encode()
        parts += [_INT.pack(key), _INT.pack(len(encoded)), encoded]
    return b"".join(parts)


def _decode_block(cursor: _Cursor) -> LogBlock:
    start = cursor.at
    cursor.demand(bytes(cursor.take(len(_MAGIC))) == _MAGIC, "a block begins with #HUDI#", start)
    size = cursor.take_long()
    end = cursor.at + size
    cursor.demand(_LONG.size <= size <= len(cursor.data) - cursor.at, f"a block of {size} bytes is whole", start)
    version = cursor.take_int()
    cursor.demand(version == _VERSION, f"blocks have format version {_VERSION} ({version} is there)", start)
    kind, header = cursor.take_kind(start), cursor.take_texts()
    content = cursor.take(cursor.take_long())
    cursor.take_texts()
    back = cursor.take_long()
    cursor.demand(cursor.at == end, "the parts of a block fill it", start)
    cursor.demand(back == size + len(_MAGIC), f"the last number of a block of {size} bytes points to its begin", start)
    return LogBlock(kind, header, content)


class _Cursor:
    """Reads one thing after the other, and never beyond the end."""

    def __init__(self, data: memoryview, path: str) -> None:
        self.data = data
        self.at = 0
        self._path = path

    def take(self, count: int) -> memoryview:
        self.demand(0 <= count <= len(self.data) - self.at, f"{count} bytes follow", self.at)
        self.at += count
        return self.data[self.at - count : self.at]

    def take_int(self) -> int:
        return int(_INT.unpack(self.take(_INT.size))[0])

    def take_long(self) -> int:
        return int(_LONG.unpack(self.take(_LONG.size))[0])

    def take_kind(self, start: int) -> BlockType:
        number = self.take_int()
        self.demand(number in BlockType._value2member_map_, f"{number} is a type of block", start)
        return BlockType(number)

    def take_texts(self) -> dict[BlockHeader, str]:
        """Headers that a later release added are passed over, as its readers of older blocks do."""
        texts, at, count = {}, self.at, self.take_int()
        self.demand(count >= 0, f"{count} headers follow", at)
        for _ in range(count):
            key, encoded = self.take_int(), bytes(self.take(self.take_int()))
            if key in BlockHeader._value2member_map_:
                texts[BlockHeader(key)] = encoded.decode("utf-8", "replace")
        return texts

    def demand(self, condition: bool, rule: str, at: int) -> None:  # noqa: FBT001  # an assertion's own form
        if not condition:
            message = f"{self._path} is damaged at byte {at}: {rule}, and here it is not so"
            raise DamagedTable(message, path=self._path, offset=at)
