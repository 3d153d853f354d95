"""Files of the metadata table: which records a base file or a log changes, and the base file that both make."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import pyarrow as pa
from fastavro.schema import to_parsing_canonical_form

from hudi_locks.errors import DamagedTable, NoSuchFile, UnsupportedTable
from hudi_locks.format.hfile import HFile
from hudi_locks.format.hfile_writer import encode_hfile, merge_hfile
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, decode_blocks, encode_block
from hudi_locks.format.log_deletes import decode_deletes, encode_deletes
from hudi_locks.format.metadata_record import (
    MetadataRecord,
    decode_metadata_record,
    encode_metadata_record,
    merge_metadata_records,
)
from hudi_locks.format.metadata_schema import SCHEMA_TEXTS
from hudi_locks.format.names import BaseFileName, MetadataPartition
from hudi_locks.format.records import interpreting
from hudi_locks.storage import Storage, map_in_threads, reporting
from hudi_locks.table import FileSlice
from hudi_locks.table.log_rows import find_undone, list_kept, list_later

__all__ = ["choose_blocks", "encode_log", "merge_base_file", "read_changes", "read_stored", "read_whole"]

Takes = Callable[[str], bool]
_Change = tuple[str, "MetadataRecord | None"]
_SCHEMA: Final = "schema"


def read_changes(
    data: bytes | pa.NativeFile, path: str, keys: frozenset[str] | None = None, takes: Takes | None = None
) -> Iterator[_Change]:
    """Every record of a file with its key, or those of some keys; None for one that is deleted.

    Args:
        data: Of a base file, of which an open file does, or a log.
        path: Of it; tells which of both it is.
        keys: Only these; all if None.
        takes: In version 6 whether the blocks of a delta commit count, by its requested time; None if all do.

    Raises:
        DamagedTable: The bytes cannot be read.
        UnsupportedTable: A log holds what JVM Hudi does not write there.
    """
    if _is_base(path):
        file = HFile(data, path)
        yield from _read_hfile(file, _read_schema(file), path, keys)
        return
    for block in decode_blocks(data, path) if takes is None else list_kept(data, path):
        if takes is None or takes(block.instant):
            yield from _read_block(block, path, keys)


def read_stored(storage: Storage, path: str, keys: frozenset[str] | None, takes: Takes | None = None) -> list[_Change]:
    """The same of a file that is stored: of a base file only the blocks are read in which some of the keys can be.

    Raises:
        DamagedTable: It is gone, or cannot be read.
        UnsupportedTable: See `read_changes`.
        StorageError: The store failed.
    """
    if keys is None or not _is_base(path):
        return list(read_changes(read_whole(storage, path), path, keys, takes))
    try:
        with reporting("read", path), storage.open_input(path) as file:
            return list(read_changes(file, path, keys))
    except NoSuchFile:
        raise _miss(path) from None


def choose_blocks(storage: Storage, piece: FileSlice) -> dict[str, Takes]:
    """Which blocks of each log of a slice count, by its path and the requested time that each names; none if all do.

    Raises:
        DamagedTable: A log is gone, or cannot be read.
    """
    if piece.blocks is None or not piece.logs:
        return {}
    told = map_in_threads(lambda log: find_undone(read_whole(storage, log.path), log.path), piece.logs)
    return {
        log.path: piece.blocks.choose(log, undone) for log, undone in zip(piece.logs, list_later(told), strict=True)
    }


def read_whole(storage: Storage, path: str) -> bytes:
    """The content of a file.

    Raises:
        DamagedTable: It is gone.
    """
    data = storage.read(path)
    if data is None:
        raise _miss(path)
    return data


def _miss(path: str) -> DamagedTable:
    return DamagedTable(f"{path} is gone: cleaned since it was listed, or lost; read again", path=path)


def _is_base(path: str) -> bool:
    return BaseFileName.parse(path.rpartition("/")[2]) is not None


def encode_log(requested: str, part: MetadataPartition, hfile: bytes, gone: pa.Array, *, version: int) -> bytes:
    """The log of a delta commit in one file group.

    Args:
        requested: Of the delta commit.
        part: To which the file group belongs.
        hfile: The records; empty for none.
        gone: Keys that go, text without nulls, in order.
        version: Of the metadata table.
    """
    header = {BlockHeader.INSTANT_TIME: requested, BlockHeader.SCHEMA: SCHEMA_TEXTS[version]}
    blocks = [LogBlock(BlockType.HFILE, header, hfile)] if hfile else []
    if len(gone):
        blocks.append(LogBlock(BlockType.DELETE, header, encode_deletes(gone, part.value)))
    return b"".join(map(encode_block, blocks))


def merge_base_file(
    base: tuple[str, bytes] | None,
    logs: Iterable[tuple[str, bytes]],
    *,
    version: int,
    takes: Mapping[str, Takes] | None = None,
) -> bytes:
    """The base file that a base file and logs make.

    The same files give the same entries, and the same bytes where the base file is not packed. Records of the base file
    that no log changes are carried over as they are, without being read.

    Args:
        base: Path and content; None if there is none.
        logs: The same of the logs, in the order in which they are applied.
        version: Of the metadata table.
        takes: See `choose_blocks`.

    Raises:
        DamagedTable: A file cannot be read.
        UnsupportedTable: A log holds what JVM Hudi does not write there.
    """
    info = {_SCHEMA: SCHEMA_TEXTS[version].encode()}
    file = _read_base(base, version)
    changed: dict[str, MetadataRecord | None] = {}
    chosen = takes or {}
    found = [(path, list(read_changes(data, path, None, chosen.get(path)))) for path, data in logs]
    stored = file.get_many({key.encode() for _, some in found for key, _ in some})
    for path, some in found:
        for key, record in some:
            before = changed[key] if key in changed else _decode(stored, key, version, path)
            changed[key] = None if record is None else merge_metadata_records(before, record)
    encoded = {
        key.encode(): None if record is None else encode_metadata_record(record, version)
        for key, record in changed.items()
    }
    return merge_hfile(file, encoded, info=info)


def _read_base(base: tuple[str, bytes] | None, version: int) -> HFile:
    """A base file with records as the metadata table's version writes them."""
    if base is None:
        return HFile(encode_hfile(()), "")
    file = HFile(base[1], base[0])
    schema = _read_schema(file)
    with interpreting("schema of the metadata table's records", base[0]):
        is_ours = _strip(schema) == _strip(SCHEMA_TEXTS[version])
    if is_ours:
        return file
    found = _read_hfile(file, schema, base[0], None)
    told = ((key.encode(), encode_metadata_record(record, version)) for key, record in found if record is not None)
    return HFile(encode_hfile(told), base[0])


@lru_cache(maxsize=8)
def _strip(schema: str) -> str:
    """What of a schema decides about bytes: JVM Hudi's has comments."""
    return str(to_parsing_canonical_form(json.loads(schema)))


def _decode(stored: Mapping[bytes, bytes], key: str, version: int, path: str) -> MetadataRecord | None:
    value = stored.get(key.encode())
    return decode_metadata_record(value, SCHEMA_TEXTS[version], path) if value else None


def _read_schema(file: HFile) -> str:
    return file.info.get(_SCHEMA, b"").decode("utf-8", "replace")


def _read_block(block: LogBlock, path: str, keys: frozenset[str] | None) -> Iterator[_Change]:
    if block.kind is BlockType.HFILE:
        yield from _read_hfile(HFile(block.content, path), block.schema, path, keys)
    elif block.kind is BlockType.DELETE:
        yield from ((key, None) for key in decode_deletes(block.content, path).keys if keys is None or key in keys)
    else:
        raise UnsupportedTable(f"{path} holds a block of type {block.kind.name}, which metadata tables do not have")


def _read_hfile(file: HFile, schema: str, path: str, keys: frozenset[str] | None) -> Iterator[_Change]:
    entries = file.entries() if keys is None else file.get_many(key.encode() for key in keys).items()
    known: dict[bytes, MetadataRecord | None] = {b"": None}  # a record index has the same bytes many times
    for key, value in entries:
        if value not in known:
            known[value] = decode_metadata_record(value, schema, path)
        yield key.decode("utf-8", "replace"), known[value]
