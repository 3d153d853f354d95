"""The record index that is made of the rows that are there."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format.hfile import HFile
from hudi_locks.format.metadata_keys import group_number
from hudi_locks.metadata_table import KeyPlaces, KeySpread, LocatedKeys
from hudi_locks.table import FileSlice

TIME = "20261126212210216"
KEYS = st.lists(st.sets(st.text(min_size=1, max_size=9), max_size=9), max_size=4)


def spread(parts: list[list[str]], groups: int, *, by_partition: bool = False) -> KeyPlaces:
    slices = tuple(FileSlice(f"p{number}", f"file-{number}", TIME) for number in range(len(parts)))
    counts = {piece.partition: len(keys) for piece, keys in zip(slices, parts, strict=True)}
    known = KeySpread(groups, groups, by_partition).choose(counts)
    return KeyPlaces(slices, tuple(pa.array(keys, pa.string()) for keys in parts), known)


@given(KEYS, st.integers(1, 5), st.sampled_from([8, 9]))
def test_each_key_is_in_its_file_group_with_its_place(parts: list[set[str]], groups: int, version: int) -> None:
    owners = {key: number for number, keys in enumerate(parts) for key in keys}
    places = spread([[key for key in keys if owners[key] == number] for number, keys in enumerate(parts)], groups)
    places.refuse_doubles()
    found: dict[str, tuple[str, str]] = {}
    for owner in places.owners:
        number, data = owner.number, places.encode(owner, version)
        wanted = [key for key in owners if group_number(key, groups) == number]
        assert (data is None) == (not wanted)
        if data is not None:
            path = f"{owner.group}_0-0-0_{TIME}.hfile"
            assert HFile(data, path).count == len(wanted)
            told = LocatedKeys([(path, data)]).find(pa.array([*owners], pa.string())).to_pylist()
            found |= {row["key"]: (row["path"], row["file_id"]) for row in told}
    assert found == {key: (f"p{number}", f"file-{number}") for key, number in owners.items()}
    assert places.count == len(owners)


def test_a_key_in_two_rows_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedTable, match=r"the key 'a' is in more than one row.*delete such keys") as caught:
        spread([["a", "b"], ["c", "a"]], 1).refuse_doubles()
    assert caught.value.facts["keys"] == ["a"]
    with pytest.raises(UnsupportedTable, match="the key 'x' is in more"):
        spread([["x", "x"]], 4).refuse_doubles()


@given(KEYS, st.integers(1, 3))
def test_by_partition_each_has_all_of_its_file_groups_and_a_key_may_be_in_several(
    parts: list[set[str]], groups: int
) -> None:
    places = spread([[*keys] for keys in parts], groups, by_partition=True)
    places.refuse_doubles()
    assert [owner.group for owner in places.owners] == [
        f"record-index-p{part}-{number:04}-0" for part in range(len(parts)) for number in range(groups)
    ]
    for owner in places.owners:
        data, part = places.encode(owner, 9), int(owner.group.split("-")[2][1:])
        path = f"{owner.group}_0-0-0_{TIME}.hfile"
        told = LocatedKeys([(path, data)] if data else []).find(pa.array([*parts[part]], pa.string())).to_pylist()
        assert {(row["key"], row["path"], row["file_id"]) for row in told} == {
            (key, f"p{part}", f"file-{part}") for key in parts[part] if group_number(key, groups) == owner.number
        }


def test_a_key_in_two_rows_of_a_partition_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedTable, match=r"the key 'x' is in more than one row of a partition"):
        spread([["a"], ["a", "x", "x"]], 2, by_partition=True).refuse_doubles()


@pytest.mark.parametrize(("keys", "groups"), [(0, 10), (111_000_000, 10), (1_000_000_000, 89), (10**12, 10_000)])
def test_an_index_is_spread_as_that_of_jvm_hudi(keys: int, groups: int) -> None:
    """With room for twice as many, 48 bytes each, in file groups of a gibibyte."""
    assert KeySpread().count_groups(keys) == groups
    assert KeySpread(3, 3).count_groups(keys) == 3
