"""Keys of the metadata table's records, and in which file group of it each lies (Hudi's HoodieTableMetadataUtil)."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

__all__ = [
    "ALL_PARTITIONS",
    "KEY_CHANGES",
    "NO_PARTITION",
    "bloom_filter_key",
    "column_stats_key",
    "group_number",
    "group_numbers",
    "hash_keys",
    "partition_key",
    "partition_stats_key",
]

ALL_PARTITIONS: Final = "__all_partitions__"
"""Key of the record that names every partition."""
NO_PARTITION: Final = "."
"""What an unpartitioned table calls its only partition here."""
_SEED: Final = 0xFFFF_FFFF_DABA_DABA
"""A negative int of Java, as 64 bits have it."""
_MULTIPLIER: Final = 31
_ASCII_END: Final = 0x80
KEY_CHANGES: Final = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("path", pa.string()),
        pa.field("file_id", pa.string()),
        pa.field("is_gone", pa.bool_()),
    ]
)
"""What a writer tells: record keys, with partition path and file group that has their row now, or had it until now."""


def partition_key(partition: str) -> str:
    """Key of the files of a partition; "" is that of an unpartitioned table."""
    return partition or NO_PARTITION


def bloom_filter_key(partition: str, file_name: str) -> str:
    """Key of the bloom filter of a base file."""
    return _hash(partition_key(partition)) + _hash_file(file_name)


def column_stats_key(column: str, partition: str, file_name: str) -> str:
    """Key of a column's statistics in a file."""
    return partition_stats_key(column, partition) + _hash_file(file_name)


def partition_stats_key(column: str, partition: str) -> str:
    """Key of a column's statistics in a partition."""
    return _hash(column) + _hash(partition_key(partition))


def _hash_file(name: str) -> str:
    digest = hashlib.md5(name.encode(), usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


def _hash(text: str) -> str:
    return base64.b64encode(xxhash.xxh64_digest(text.encode(), seed=_SEED)).decode()


def group_numbers(keys: pa.Array, groups: int) -> npt.NDArray[np.int64]:
    """See `group_number`; for many keys, text without nulls."""
    return hash_keys(keys) % groups


def hash_keys(keys: pa.Array) -> npt.NDArray[np.int64]:
    """What decides over the file group of each key, text without nulls; a place of all of them at a time."""
    encoded = keys.cast(pa.large_binary())
    _, offsets, values = encoded.buffers()
    starts = np.frombuffer(offsets, np.int64)[encoded.offset : encoded.offset + len(encoded) + 1]
    units = np.frombuffer(values or b"", np.uint8)
    if len(keys) and units[starts[0] : starts[-1]].max(initial=0) >= _ASCII_END:
        return np.array([_hash_key(key) for key in keys.to_pylist()], np.int64)
    lengths = np.diff(starts)
    hashed = np.zeros(len(keys), np.uint32)
    for place in range(int(lengths.max(initial=0))):
        among = np.flatnonzero(lengths > place)
        hashed[among] = hashed[among] * np.uint32(_MULTIPLIER) + units[starts[among] + place]
    return np.abs(hashed.view(np.int32).astype(np.int64))


def group_number(key: str, groups: int) -> int:
    """Which of `groups` file groups of a partition of the metadata table, in the order of their ids, holds a key."""
    return _hash_key(key) % groups


def _hash_key(key: str) -> int:
    units = np.frombuffer(key.encode("utf-16-le", "surrogatepass"), dtype="<u2")
    hashed = 0
    for unit in units.tolist():
        hashed = (_MULTIPLIER * hashed + unit) & 0xFFFF_FFFF
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return abs(signed)
