"""Bloom filters never hide what is in them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.format.bloom import BloomFilter

KEYS = st.sets(st.binary(max_size=40), max_size=60)


@given(KEYS)
def test_what_is_in_it_is_found_also_after_encoding(keys: set[bytes]) -> None:
    decoded = BloomFilter.decode(BloomFilter.of(keys).encode())
    assert decoded is not None
    assert all(key in decoded for key in keys)


@given(KEYS, st.data())
def test_a_damaged_one_rules_nothing_out(keys: set[bytes], data: st.DataObject) -> None:
    encoded = bytearray(BloomFilter.of(keys).encode())
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    assert BloomFilter.decode(bytes(encoded)) is None
    assert BloomFilter.decode(bytes(encoded[: data.draw(st.integers(0, len(encoded) - 1))])) is None


def test_few_others_seem_to_be_in_it() -> None:
    bloom = BloomFilter.of(b"%d" % number for number in range(1_000))
    assert sum(b"x%d" % number in bloom for number in range(10_000)) < 3
    assert len(bloom.encode()) < 3_100


def test_many_small_ones_together_seldom_err() -> None:
    """As many as a write of two hundred tasks leaves, and a task that asks for thirty file groups."""
    blooms = [BloomFilter.of(b"%d %d" % (task, number) for number in range(100)) for task in range(200)]
    assert sum(any(b"x%d" % number in bloom for bloom in blooms) for number in range(30)) == 0
