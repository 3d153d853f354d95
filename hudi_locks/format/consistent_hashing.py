"""Which file group a record key falls into under consistent hashing (Hudi's ConsistentBucketIdentifier).

A partition has a ring of nodes, each with the prefix of a file id. A key belongs to the first node whose value is not
below the hash of its fields (XXHash32, its upper bit dropped), or to the first of all. Everything is computed for a
whole column at once.
"""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import md5
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_locks.format.bucket import join_hash_fields
from hudi_locks.format.records import interpreting
from hudi_locks.format.ring_change import RingNode

__all__ = ["FIRST_RING", "HashRing", "hash_record_keys", "hash_texts"]

FIRST_RING: Final = "00000000000000"
"""In place of an instant, in the name and text of what a partition begins with."""
_MOST: Final = 0x7FFFFFFF
_NORMAL: Final = "NORMAL"
_PRIMES: Final = tuple(map(np.uint32, (2654435761, 2246822519, 3266489917, 668265263, 374761393)))
_SEEDS: Final = tuple(map(np.uint32, ((2654435761 + 2246822519) % 2**32, 2246822519, 0, 2**32 - 2654435761)))
"""Of the four lanes, where the seed is 0."""
_STRIPE: Final = 16
_WORD: Final = 4

UInt32s = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class HashRing:
    """The nodes of one partition, in the order of their values.

    Attributes:
        values: The greatest hash that belongs to each.
        file_ids: Id of the file group of each.
        number: How often the ring has changed (Hudi's seqNo).
        first_buckets: How many nodes the partition began with, which stands in every later ring, as in JVM Hudi; 0 for
            as many as there are.
    """

    values: tuple[int, ...]
    file_ids: tuple[str, ...]
    number: int = 0
    first_buckets: int = field(default=0, compare=False)

    @classmethod
    def create(cls, partition: str, buckets: int) -> HashRing:
        """What a partition begins with: nodes of one width, whose file ids follow from partition and place."""
        step = (_MOST + buckets - 1) // buckets
        ends = [min(step * number, _MOST) for number in range(1, buckets + 1)]
        starts = [0, *ends[:-1]]
        names = [_name(partition, start, end) for start, end in zip(starts, ends, strict=True)]
        return cls(tuple(ends), tuple(f"{name}-0" for name in names))

    @classmethod
    def decode(cls, data: bytes, path: str) -> HashRing:
        """Read a `.hashing_meta`.

        Raises:
            DamagedTable: It is none; `path` is named.
        """
        with interpreting("ring of a consistent hashing index", path):
            record = json.loads(data)
            nodes = sorted((int(node["value"]), str(node["fileIdPrefix"])) for node in record["nodes"])
            if not nodes or len({value for value, _ in nodes}) < len(nodes):
                raise ValueError(f"{len(nodes)} nodes, of which some may have one value")
            values, file_ids = tuple(value for value, _ in nodes), tuple(f"{prefix}-0" for _, prefix in nodes)
            return cls(values, file_ids, int(record.get("seqNo") or 0), int(record.get("numBuckets") or 0))

    def encode(self, partition: str, *, instant: str = FIRST_RING) -> bytes:
        """The bytes of a `.hashing_meta`.

        Args:
            partition: Path of the partition.
            instant: Requested time of the clustering that leaves the ring.
        """
        nodes = [
            {"value": value, "fileIdPrefix": file_id.removesuffix("-0"), "tag": _NORMAL}
            for value, file_id in zip(self.values, self.file_ids, strict=True)
        ]
        record = {
            "version": 0,
            "partitionPath": partition,
            "instant": instant,
            "numBuckets": self.first_buckets or len(nodes),
            "seqNo": self.number,
            "nodes": nodes,
        }
        return json.dumps(record, indent=2).encode()

    def find_middle(self, node: int) -> int | None:
        """The value by which a node is cut in two halves; None if it is of one hash alone.

        Args:
            node: Its place in the ring.
        """
        before, end = self.values[node - 1], self.values[node]
        middle = ((before + end + (0 if before < end else _MOST + 1)) >> 1) & _MOST
        return None if middle in (before, end) else middle

    def change(self, nodes: Iterable[RingNode]) -> HashRing:
        """The ring in which each of these stands in place of the node of its value, or without that.

        Args:
            nodes: Without a file id, where the keys up to that value belong to the next node from now on.
        """
        changed = dict(zip(self.values, self.file_ids, strict=True)) | {node.value: node.file_id for node in nodes}
        left = sorted((value, file_id) for value, file_id in changed.items() if file_id)
        values, file_ids = tuple(value for value, _ in left), tuple(file_id for _, file_id in left)
        return HashRing(values, file_ids, self.number + 1, self.first_buckets or len(self.values))

    def assign(self, hashes: UInt32s) -> npt.NDArray[np.int64]:
        """The number of the node of each hash of `hash_record_keys`."""
        found = np.searchsorted(np.array(self.values, np.int64), (hashes & np.uint32(_MOST)).astype(np.int64))
        return np.asarray(found % len(self.values), np.int64)


def hash_record_keys(record_keys: pa.Array, hash_fields: Sequence[str]) -> UInt32s:
    """What is looked up in a ring.

    Args:
        record_keys: Strings without nulls, as they stand in `_hoodie_record_key`.
        hash_fields: Fields that are hashed; they matter for composite keys (`name:value,…`) only.
    """
    return hash_texts(join_hash_fields(record_keys, hash_fields))


def hash_texts(texts: pa.Array) -> UInt32s:
    """XXHash32 of each text in UTF-8, with seed 0: those of one length together."""
    column = texts.cast(pa.large_binary())
    if len(column) == 0:
        return np.empty(0, np.uint32)
    _, offset_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
    data, lengths = np.frombuffer(data_buffer or b"", np.uint8), np.diff(offsets)
    found = np.empty(len(column), np.uint32)
    for length in np.unique(lengths):
        chosen = np.flatnonzero(lengths == length)
        places = offsets[chosen][:, None] + np.arange(length)
        found[chosen] = _hash_rows(data[places] if length else np.empty((len(chosen), 0), np.uint8))
    return found


def _hash_rows(rows: npt.NDArray[np.uint8]) -> UInt32s:
    count, length = rows.shape
    whole = length - length % _WORD
    words = np.ascontiguousarray(rows[:, :whole]).view("<u4").reshape(count, whole // _WORD).astype(np.uint32)
    striped = length // _STRIPE * (_STRIPE // _WORD)
    hashes = _begin(words[:, :striped], count) + np.uint32(length)
    _, _, third, fourth, fifth = _PRIMES
    for word in words[:, striped:].T:
        hashes = _rotate(hashes + word * third, 17) * fourth
    for byte in rows[:, whole:].T:
        hashes = _rotate(hashes + byte.astype(np.uint32) * fifth, 11) * _PRIMES[0]
    return _finish(hashes)


def _begin(words: UInt32s, count: int) -> UInt32s:
    first, second, *_, fifth = _PRIMES
    if not words.shape[1]:
        return np.full(count, fifth, np.uint32)
    lanes = [np.full(count, seed, np.uint32) for seed in _SEEDS]
    for at, word in enumerate(words.T):
        lanes[at % 4] = _rotate(lanes[at % 4] + word * second, 13) * first
    turns = (1, 7, 12, 18)
    rotated = [_rotate(lane, bits) for lane, bits in zip(lanes, turns, strict=True)]
    return np.asarray(rotated[0] + rotated[1] + rotated[2] + rotated[3], np.uint32)


def _finish(hashes: UInt32s) -> UInt32s:
    hashes = (hashes ^ (hashes >> np.uint32(15))) * _PRIMES[1]
    hashes = (hashes ^ (hashes >> np.uint32(13))) * _PRIMES[2]
    return np.asarray(hashes ^ (hashes >> np.uint32(16)), np.uint32)


def _rotate(values: UInt32s, bits: int) -> UInt32s:
    return np.asarray((values << np.uint32(bits)) | (values >> np.uint32(32 - bits)), np.uint32)


def _name(partition: str, start: int, end: int) -> str:
    """Java's `UUID.nameUUIDFromBytes` of the place and the partition."""
    digest = md5(struct.pack(">qq", start, end) + partition.encode(), usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest, version=3))
