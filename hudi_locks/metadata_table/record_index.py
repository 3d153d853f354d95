"""The metadata table's record index: in which file group the row of each key lies (Hudi's record level index).

It is told by those who write the rows, since only they know which keys a file group gained and lost. What they tell is
made into logs before the write is published, one for each file group of the index, a column at a time.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.errors import DamagedTable
from hudi_locks.format import MetadataPartition, epoch_ms
from hudi_locks.format.hfile_writer import encode_hfile_columns
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, encode_block
from hudi_locks.format.log_deletes import encode_deletes_again
from hudi_locks.format.metadata_keys import KEY_CHANGES
from hudi_locks.format.metadata_record import (
    MetadataRecord,
    RecordKind,
    encode_metadata_record,
)
from hudi_locks.format.metadata_schema import SCHEMA_TEXTS
from hudi_locks.metadata_table.record_files import (
    Takes,
    choose_blocks,
    encode_log,
    read_changes,
    read_stored,
    read_whole,
)
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import FileSlice

__all__ = ["LocatedKeys", "StagedLog", "encode_empty_log", "encode_record_base", "encode_record_log", "find_keys"]

_UUID: Final = 36
_AS_UUID, _AS_TEXT = 0, 1
_NO_INDEX: Final = -1
_UUID_BITS: Final = 64
_SIGN: Final = 1 << 63


class _Place(NamedTuple):
    path: str
    file_id: str


@dataclass(frozen=True)
class StagedLog:
    """A log of the record index that was uploaded, and gets its name from a claim.

    Attributes:
        group: Id of its file group.
        size: Bytes.
        records: How many keys it tells of.
        ticket: By which it gets its name.
    """

    group: str
    size: int
    records: int
    ticket: str


def encode_record_log(requested: str, changes: pa.Table, version: int) -> tuple[bytes, int]:
    """The log of one file group of the index, and how many keys it tells of.

    A key that one file group lost and another one gained is where it came to.

    Args:
        requested: Of the write.
        changes: As KEY_CHANGES has them; those of keys of this file group.
        version: Of the metadata table.
    """
    fresh = changes.filter(pc.invert(changes.column("is_gone"))).combine_chunks()
    keys, values = _describe(fresh, requested, version)
    lost = pc.unique(changes.filter(changes.column("is_gone")).column("key"))
    gone = lost.filter(pc.invert(pc.is_in(lost, value_set=keys)))
    gone = gone.take(pc.sort_indices(gone))
    hfile = encode_hfile_columns(keys, values) if len(keys) else b""
    data = encode_log(requested, MetadataPartition.RECORD_INDEX, hfile, gone, version=version)
    return data, len(keys) + len(gone)


def encode_empty_log(requested: str, part: MetadataPartition, version: int) -> bytes:
    """A log that says nothing, and that a file group of the metadata table is there though it may have no records."""
    header = {BlockHeader.INSTANT_TIME: requested, BlockHeader.SCHEMA: SCHEMA_TEXTS[version]}
    return encode_block(LogBlock(BlockType.DELETE, header, encode_deletes_again([], part.value)))


def encode_record_base(
    keys: pa.Array, indices: pa.Array, places: Sequence[tuple[str, str, str]], version: int
) -> bytes:
    """The base file of one file group of the index.

    Args:
        keys: Of its records, binary, each once, in any order.
        indices: Of each key the number of its place.
        places: Partition path, id of the file group, and the requested time of the write that brought the row.
        version: Of the metadata table.
    """
    known = [_encode(_Place(path, file_id), requested, version) for path, file_id, requested in places]
    ordered, values = _sort(keys, indices, known)
    return encode_hfile_columns(ordered, values, info={"schema": SCHEMA_TEXTS[version].encode()})


def _describe(fresh: pa.Table, requested: str, version: int) -> tuple[pa.Array, pa.Array]:
    """Keys in the order of their bytes, each once, and their records."""
    keys = pa.concat_arrays([pa.array([], pa.binary()), *fresh.column("key").cast(pa.binary()).chunks])
    places = pc.binary_join_element_wise(fresh.column("path"), fresh.column("file_id"), "\0").combine_chunks()
    found = places.dictionary_encode()
    known = [_encode(_Place(*place.split("\0")), requested, version) for place in found.dictionary.to_pylist()]
    ordered, values = _sort(keys, found.indices, known)
    return ordered.cast(pa.string()), values


def _sort(keys: pa.Array, indices: pa.Array, known: Sequence[bytes]) -> tuple[pa.Array, pa.Array]:
    """Keys in order, each once, and of each the record at its index."""
    order = pc.sort_indices(keys)
    ordered = keys.take(order)
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
    kept = pa.array(is_first)
    values = pa.array(known, pa.binary()).take(indices.take(order))
    return ordered.filter(kept), values.filter(kept)


def _encode(place: _Place, requested: str, version: int) -> bytes:
    told = {"partitionName": place.path, "instantTime": epoch_ms(requested), "position": None}
    record = MetadataRecord(RecordKind.RECORD_INDEX, other={**told, **_split_file_id(place.file_id)})
    return encode_metadata_record(record, version)


def _split_file_id(file_id: str) -> dict[str, int | str]:
    """A UUID with a number behind it as numbers, as Hudi writes it; any other id as it is."""
    try:
        number = uuid.UUID(file_id[:_UUID]).int
        index = int(file_id[_UUID + 1 :]) if len(file_id) > _UUID else _NO_INDEX
        is_exact = _join_file_id(number, index) == file_id
    except ValueError:
        is_exact = False
    if not is_exact:
        missing = dict.fromkeys(("fileIdHighBits", "fileIdLowBits", "fileIndex"), _NO_INDEX)
        return {**missing, "fileId": file_id, "fileIdEncoding": _AS_TEXT}
    high, low = divmod(number, 1 << _UUID_BITS)
    bits = {"fileIdHighBits": _sign(high), "fileIdLowBits": _sign(low), "fileIndex": index}
    return {**bits, "fileId": "", "fileIdEncoding": _AS_UUID}


def _sign(bits: int) -> int:
    """As a long of Java."""
    return bits - (1 << _UUID_BITS) if bits & _SIGN else bits


def _join_file_id(number: int, index: int) -> str:
    text = str(uuid.UUID(int=number))
    return text if index == _NO_INDEX else f"{text}-{index}"


def find_keys(storage: Storage, piece: FileSlice, keys: pa.Array) -> pa.Table:
    """Where one file group of the index says that keys are. Of its base file only the blocks are read that may tell it.

    Args:
        storage: Of the table.
        piece: The newest slice of the file group.
        keys: Text without nulls.

    Returns:
        Those that are there, as KEY_CHANGES has them.

    Raises:
        DamagedTable: A file is gone, or cannot be read.
        UnsupportedTable: A log holds what JVM Hudi does not write there.
        StorageError: The store failed.
    """
    wanted, takes = frozenset(keys.to_pylist()), choose_blocks(storage, piece)
    found = map_in_threads(lambda path: (path, read_stored(storage, path, wanted, takes.get(path))), piece.paths)
    return _arrange(found)


class LocatedKeys:
    """Finds keys in one file group of the index, again and again. Not thread-safe.

    Args:
        files: Paths and contents of its base file, if it has one, and its logs, in the order in which they came.
        takes: In version 6 whether the blocks of a delta commit count, by path; none if all do.
    """

    def __init__(self, files: Iterable[tuple[str, bytes]], takes: Mapping[str, Takes] | None = None) -> None:
        self._files = list(files)
        self._takes = takes or {}

    @classmethod
    def open(cls, storage: Storage, piece: FileSlice) -> LocatedKeys:
        """Those of a slice, which is read whole.

        Raises:
            DamagedTable: A file is gone.
        """
        return cls(((path, read_whole(storage, path)) for path in piece.paths), choose_blocks(storage, piece))

    def find(self, keys: pa.Array) -> pa.Table:
        """Those of the keys, text without nulls, that are there, as KEY_CHANGES has them.

        Raises:
            DamagedTable: A file cannot be read.
            UnsupportedTable: A log holds what JVM Hudi does not write there.
        """
        wanted = frozenset(keys.to_pylist())
        return _arrange((path, read_changes(data, path, wanted, self._takes.get(path))) for path, data in self._files)


def _arrange(files: Iterable[tuple[str, Iterable[tuple[str, MetadataRecord | None]]]]) -> pa.Table:
    """The keys that are there by files, with their paths, that came one after the other."""
    found: dict[str, _Place | None] = {}
    for path, changes in files:
        for key, record in changes:
            found[key] = None if record is None else _locate(record, path)
    there = [(key, *place, False) for key, place in found.items() if place is not None]
    columns = list(zip(*there, strict=True)) if there else [()] * len(KEY_CHANGES)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, KEY_CHANGES.types, strict=True)]
    return pa.table(arrays, schema=KEY_CHANGES)


def _locate(record: MetadataRecord, path: str) -> _Place:
    told = record.other
    if told is None:
        raise DamagedTable(f"{path} holds a record of another part of the metadata table", path=path)
    if told["fileIdEncoding"] == _AS_TEXT:
        return _Place(told["partitionName"], told["fileId"])
    high, low = (told[name] % (1 << _UUID_BITS) for name in ("fileIdHighBits", "fileIdLowBits"))
    return _Place(told["partitionName"], _join_file_id(high << _UUID_BITS | low, told["fileIndex"]))
