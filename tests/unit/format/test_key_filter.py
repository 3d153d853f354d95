"""Bloom filters of record keys: those of the JVM are understood, and ours never take a key for absent."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable

import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies

from hudi_locks.format.key_filter import EVERY_KEY, FilterSize, KeyFilter
from hudi_locks.storage import LocalStorage

SIZE = FilterSize(60_000, 1e-9)
TEXTS = strategies.lists(strategies.text(max_size=20))


def chunk(*pieces: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(piece, pa.string()) for piece in pieces], pa.string())


def murmur(data: bytes, seed: int) -> int:
    """Hadoop's MurmurHash, a letter at a time."""
    signed = [letter - 256 if letter > 127 else letter for letter in data]
    found = (seed ^ len(data)) & 0xFFFFFFFF
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * 0x5BD1E995 & 0xFFFFFFFF
        word = (word ^ word >> 24) * 0x5BD1E995 & 0xFFFFFFFF
        found = (found * 0x5BD1E995 ^ word) & 0xFFFFFFFF
    for number, letter in enumerate(reversed(signed[whole:])):
        found = (found ^ letter << 8 * number) & 0xFFFFFFFF
    if len(data) > whole:
        found = found * 0x5BD1E995 & 0xFFFFFFFF
    found = (found ^ found >> 13) * 0x5BD1E995 & 0xFFFFFFFF
    return found ^ found >> 15


def place(key: str, hashes: int, size: int) -> set[int]:
    places, seed = set(), 0
    for _ in range(hashes):
        seed = murmur(key.encode(), seed)
        places.add(abs(seed - (1 << 32) if seed >> 31 else seed) % size)
    return places


@hypothesis.given(TEXTS, TEXTS)
def test_bits_are_those_of_murmur(first: list[str], second: list[str]) -> None:
    found = KeyFilter.of(chunk(first, second), SIZE)
    (bits,) = found.parts
    wanted = {one for key in (*first, *second) for one in place(key, found.hashes, len(bits))}
    assert {number for number, bit in enumerate(bits) if bit} == wanted


@hypothesis.given(TEXTS, strategies.integers(1, 50))
def test_no_key_is_taken_for_absent_however_full_it_is(keys: list[str], most_keys: int) -> None:
    made = KeyFilter.of(chunk(keys), FilterSize(most_keys, 0.01))
    read = KeyFilter.decode("SIMPLE", made.encode())
    assert read is not None
    assert read.may_hold(chunk(keys, [])).tolist() == [True] * len(keys)


def test_it_seldom_takes_another_key_for_one_of_its_own() -> None:
    keys, others = chunk([f"key {n}" for n in range(2000)]), chunk([f"other {n}" for n in range(20_000)])
    assert KeyFilter.of(keys, SIZE).may_hold(others).sum() == 0
    assert 100 < KeyFilter.of(keys, FilterSize(60_000, 0.01)).may_hold(others).sum() < 300
    small = KeyFilter.of(keys, FilterSize(500, 0.01))
    assert len(small.parts[0]) == FilterSize(60_000, 0.01).bits(500)
    assert 0 < small.may_hold(others).sum() < 10_000


def test_a_slice_of_a_column_has_its_own_keys() -> None:
    keys = pa.chunked_array([pa.array(["a", "bb", "ccc", "dd", "e"]).slice(1, 3)])
    found = KeyFilter.of(keys, SIZE)
    assert found.may_hold(chunk(["a", "bb", "ccc", "dd", "e"])).tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("name", ["v6_cow", "v8_cow", "v9_cow", "v8_mor_compacted"])
def test_filters_of_the_jvm_hold_the_keys_of_their_files(golden: Callable[[str], LocalStorage], name: str) -> None:
    storage = golden(name)
    bases = [path for path, _ in storage.walk("") if path.endswith(".parquet") and not path.startswith(".hoodie")]
    assert bases
    for path in bases:
        with storage.open_input(path) as source:
            file = pq.ParquetFile(source)
            told, keys = file.metadata.metadata, file.read(["_hoodie_record_key"]).column(0)
        kind, text = (told[key.encode()].decode() for key in ("hoodie_bloom_filter_type_code", FOOTER))
        found = KeyFilter.decode(kind, text)
        assert found is not None
        assert found.may_hold(keys).all()
        assert found.may_hold(chunk([f"other {number}" for number in range(500)])).sum() == 0
        assert found.hashes == 30


FOOTER = "org.apache.hudi.bloomfilter"
GROWN = struct.pack(">iibi", -1, 2, 1, 8) + struct.pack(">iii", 1, 1, 2)
PARTS = [struct.pack(">iibi", -1, 2, 1, 8) + bytes([bits]) for bits in (0b11111110, 0b11111111)]


def test_a_filter_that_grew_holds_what_one_of_its_parts_holds() -> None:
    found = KeyFilter.decode("DYNAMIC_V0", base64.b64encode(GROWN + b"".join(PARTS)).decode())
    assert found is not None
    assert len(found.parts) == 2
    assert found.may_hold(chunk([str(number) for number in range(50)])).all()


def test_the_filter_of_every_key_holds_any() -> None:
    found = KeyFilter.decode("SIMPLE", EVERY_KEY)
    assert found is not None
    assert found.may_hold(chunk(["", "a", "ü€"])).all()


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("SIMPLE", PARTS[0] + b"more"),
        ("SIMPLE", PARTS[0][:-1]),
        ("SIMPLE", b""),
        ("SIMPLE", struct.pack(">iibi", -1, 2, 0, 8) + b"\xff"),
        ("SIMPLE", struct.pack(">iibi", -1, 0, 1, 8) + b"\xff"),
        ("SIMPLE", struct.pack(">iibi", -2, 2, 1, 8) + b"\xff"),
        ("SIMPLE", struct.pack(">iibi", -1, 2, 1, 0)),
        ("DYNAMIC_V0", GROWN + PARTS[0]),
        ("DYNAMIC_V0", PARTS[0]),
        ("DYNAMIC_V0", GROWN + PARTS[0] + struct.pack(">iibi", -1, 3, 1, 8) + b"\xff"),
        ("DYNAMIC_V9", PARTS[0]),
    ],
)
def test_one_that_is_damaged_rules_out_nothing(kind: str, data: bytes) -> None:
    assert KeyFilter.decode(kind, base64.b64encode(data).decode()) is None


def test_a_text_that_is_no_filter_rules_out_nothing() -> None:
    assert KeyFilter.decode("SIMPLE", "no base64!") is None
