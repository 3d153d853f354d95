"""Which bucket a record key falls into, as the JVM's simple bucket index computes it (BucketIdentifier of 1.0 to 1.2).

The bucket is a hash of Java strings, which are UTF-16: `31 * h + unit` over the code units of each hashed value, and
the same fold over the values. Everything is computed for a whole column at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "assign_buckets",
    "bucket_file_id",
    "bucket_of_file_id",
    "fixed_bucket_file_id",
    "is_bucket_file_id",
    "is_fixed_bucket_file_id",
    "join_hash_fields",
]

_NULL: Final = "__null__"
_EMPTY: Final = "__empty__"
_PRIME: Final = 31
_INVERSE: Final = pow(_PRIME, -1, 1 << 32)
_UINT32: Final = 0xFFFFFFFF

UInt32s = npt.NDArray[np.uint32]


def assign_buckets(
    record_keys: pa.Array, hash_fields: Sequence[str], *, buckets: int | npt.NDArray[np.uint32]
) -> pa.Int32Array:
    """The bucket of each record key.

    Args:
        record_keys: Strings without nulls, as they stand in `_hoodie_record_key`.
        hash_fields: Fields that are hashed; they matter for composite keys (`name:value,…`) only.
        buckets: How many buckets a partition has; or the partition of each key.
    """
    composite = pc.and_(pc.match_substring(record_keys, ","), pc.match_substring(record_keys, ":"))
    mask = _to_mask(composite)
    folds = np.empty(len(record_keys), dtype=np.uint32)
    folds[~mask] = _fold([_hash_strings(record_keys.filter(pc.invert(composite)))])
    if mask.any():
        folds[mask] = _fold_composite(record_keys.filter(composite), hash_fields)
    return pa.array(((folds & 0x7FFFFFFF) % buckets).astype(np.int32))


def join_hash_fields(record_keys: pa.Array, hash_fields: Sequence[str]) -> pa.Array:
    """The values that are hashed of each record key, one behind the other; for arguments see `assign_buckets`.

    Of a key that is no composite it is the key; a null is the word, as Java joins it.
    """
    composite = pc.and_(pc.match_substring(record_keys, ","), pc.match_substring(record_keys, ":"))
    if not pc.any(composite).as_py():
        return record_keys
    joined = _join_composite(record_keys.filter(composite), hash_fields)
    return pc.replace_with_mask(record_keys.cast(pa.string()), composite, joined)


def _join_composite(keys: pa.Array, hash_fields: Sequence[str]) -> pa.Array:
    """As `_fold_composite`: keys of one plain shape by column, others one by one."""
    names = [name for name, _ in _parse(keys[0].as_py())]
    parts = pc.split_pattern(keys, ",")
    regular = _find_regular(keys, parts, names)
    padded = pc.if_else(regular, parts, pa.scalar([f"{name}:" for name in names], parts.type))
    columns = [
        pc.utf8_slice_codeunits(pc.list_element(padded, position), len(name) + 1)
        for position, name in enumerate(names)
        if name in hash_fields
    ]
    spoken = [_speak(column) for column in columns] or [pa.array([""] * len(keys), pa.string())]
    joined = pc.binary_join_element_wise(*spoken, "")
    odd = [_join_one(key, hash_fields) for key in keys.filter(pc.invert(regular)).to_pylist()]
    return pc.replace_with_mask(joined, pc.invert(regular), pa.array(odd, pa.string()))


def _speak(values: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(values, _NULL), "null", pc.if_else(pc.equal(values, _EMPTY), "", values))


def _join_one(key: str, hash_fields: Sequence[str]) -> str:
    words = {_NULL: "null", _EMPTY: ""}
    return "".join(words.get(value, value) for name, value in _parse(key) if name in hash_fields)


def bucket_file_id(bucket: int, seed: uuid.UUID, *, partition: str) -> str:
    """A new file id for a bucket, the same for each attempt that has the same `seed`.

    Its first eight characters are the bucket, as the index demands; the rest tells writes apart.
    """
    return f"{bucket:08d}{str(uuid.uuid5(seed, f'{partition}/{bucket}'))[8:]}-0"


def fixed_bucket_file_id(bucket: int) -> str:
    """The one file id of a bucket under non-blocking concurrency control, the same in every partition (RFC-66).

    Writers that never talk to each other agree on it, so that none of them makes a second file group for a bucket.
    """
    return f"{bucket:08d}-0000-0000-0000-000000000000-0"


def is_fixed_bucket_file_id(file_id: str) -> bool:
    """Whether a file id is the one of its bucket; see `fixed_bucket_file_id`."""
    return file_id[:8].isdigit() and file_id == fixed_bucket_file_id(bucket_of_file_id(file_id))


def bucket_of_file_id(file_id: str) -> int:
    """The bucket that a file id was made for."""
    return int(file_id[:8])


def is_bucket_file_id(file_id: str) -> bool:
    """Whether a file id has the form that a bucket index gives; one random id in 4,096 has it too."""
    return file_id[:8].isdigit() and file_id.startswith("000")


def _fold(hashes: Sequence[UInt32s]) -> UInt32s:
    folded = np.ones(len(hashes[0]), dtype=np.uint32)
    for values in hashes:
        folded = folded * np.uint32(_PRIME) + values
    return folded


def _fold_composite(keys: pa.Array, hash_fields: Sequence[str]) -> UInt32s:
    """Keys of one plain shape are hashed by column; those whose values hold commas or colons are parsed one by one."""
    names = [name for name, _ in _parse(keys[0].as_py())]
    parts = pc.split_pattern(keys, ",")
    regular = _find_regular(keys, parts, names)
    mask = _to_mask(regular)
    folds = np.empty(len(keys), dtype=np.uint32)
    folds[mask] = _fold_columns(parts.filter(regular), names, hash_fields)
    odd = keys.filter(pc.invert(regular)).to_pylist()
    folds[~mask] = np.array([_fold_one(key, hash_fields) for key in odd], dtype=np.uint32)
    return folds


def _find_regular(keys: pa.Array, parts: pa.Array, names: Sequence[str]) -> pa.BooleanArray:
    width = len(names)
    regular = pc.and_(pc.equal(pc.list_value_length(parts), width), pc.equal(pc.count_substring(keys, ":"), width))
    padded = pc.if_else(regular, parts, pa.scalar([""] * width, parts.type))
    for position, name in enumerate(names):
        regular = pc.and_(regular, pc.starts_with(pc.list_element(padded, position), f"{name}:"))
    return regular


def _fold_columns(parts: pa.Array, names: Sequence[str], hash_fields: Sequence[str]) -> UInt32s:
    hashes = [
        _hash_values(pc.utf8_slice_codeunits(pc.list_element(parts, position), len(name) + 1))
        for position, name in enumerate(names)
        if name in hash_fields
    ]
    return _fold(hashes) if hashes else np.ones(len(parts), dtype=np.uint32)


def _hash_values(values: pa.Array) -> UInt32s:
    hashes = _hash_strings(values)
    hashes[_to_mask(pc.is_in(values, pa.array([_NULL, _EMPTY])))] = 0
    return hashes


def _fold_one(key: str, hash_fields: Sequence[str]) -> int:
    folded = 1
    for name, value in _parse(key):
        if name in hash_fields:
            folded = (folded * _PRIME + int(_hash_values(pa.array([value]))[0])) & _UINT32
    return folded


def _parse(key: str) -> Iterator[tuple[str, str]]:
    """Read `name:value,name:value`: a value ends at the last comma before the colon that follows the next name."""
    start = 0
    while (colon := key.find(":", start)) >= 0:
        comma = _find_end(key, colon + 1)
        yield key[start:colon], key[colon + 1 : comma]
        start = comma + 1


def _find_end(key: str, start: int) -> int:
    """Where the value that begins at `start` ends: colons without a comma before them belong to it."""
    colon = key.find(":", start)
    while colon >= 0:
        comma = key.rfind(",", start, colon)
        if comma >= 0:
            return comma
        colon = key.find(":", colon + 1)
    return len(key)


def _hash_strings(strings: pa.Array) -> UInt32s:
    """Java's `String.hashCode` of each string.

    With p = 31, the hash of units a..b-1 is p^(b-1) times the sum of unit_i * p^(-i): since 31 has an inverse modulo
    2^32, one running sum over all units of the column gives every hash by a subtraction.
    """
    if len(strings) == 0:
        return np.empty(0, dtype=np.uint32)
    units, ends = _utf16_units(strings)
    sums = np.concatenate((np.zeros(1, np.uint32), np.cumsum(units * _powers(_INVERSE, len(units)), dtype=np.uint32)))
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
    scale = _powers(_PRIME, len(units) + 1)[np.maximum(ends - 1, 0)]
    return np.asarray((sums[ends] - sums[starts]) * scale, dtype=np.uint32)


def _powers(base: int, count: int) -> UInt32s:
    powers = np.full(count, base, dtype=np.uint32)
    powers[:1] = 1
    return np.cumprod(powers, dtype=np.uint32)


def _utf16_units(strings: pa.Array) -> tuple[UInt32s, npt.NDArray[np.int64]]:
    """All code units of the column in a row, and where each string ends among them."""
    column = strings.cast(pa.large_binary())
    _, offset_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    utf8 = np.frombuffer(data_buffer or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    if not (utf8 & 0x80).any():
        return utf8.astype(np.uint32), offsets[1:] - offsets[0]
    units = np.frombuffer(utf8.tobytes().decode("utf-8").encode("utf-16-le"), dtype=np.uint16)
    widths = ((utf8 & 0xC0) != 0x80).astype(np.int64) + (utf8 >= 0xF0)
    counted = np.concatenate((np.zeros(1, np.int64), np.cumsum(widths)))
    return units.astype(np.uint32), counted[offsets[1:] - offsets[0]]


def _to_mask(booleans: Any) -> npt.NDArray[np.bool_]:
    return np.asarray(booleans.to_numpy(zero_copy_only=False), dtype=np.bool_)
