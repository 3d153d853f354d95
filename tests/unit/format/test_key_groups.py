"""File groups of a record index: their names are those of JVM Hudi, and each key has its one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import LogFileName
from hudi_locks.format.key_groups import KeyGroups, name_key_group, parse_key_group
from hudi_locks.format.metadata_keys import group_number

PATHS = {
    "": "",
    "region=eu": "region%3Deu",
    "region=odd/%x y": "region%3Dodd%2F%25x y",
    "__HIVE_DEFAULT_PARTITION__": "%5F%5FHIVE%5FDEFAULT%5FPARTITION%5F%5F",
    "a-0001-0": "a%2D0001%2D0",
    "A~b!c*(d)'e": "A~b!c%2A(d)%27e",
    "2024/01/05": "2024%2F01%2F05",
    "[z]{w}": "%5Bz%5D%7Bw}",
    "p|q^r`s": "p|q%5Er`s",
    "a+b&c,d;e@f$g": "a+b&c,d;e@f$g",
    "tab\tz": "tab%09z",
    'x"y': "x%22y",
    "q?": "q%3F",
    "a#b": "a%23b",
    "b<c>d": "b<c>d",
    "1.5": "1.5",
    "é": "é",
}
"""As bundle 1.2.0 named their file groups, 30 November 2026."""


@pytest.mark.parametrize("path", PATHS)
def test_the_file_groups_of_a_partition_are_named_as_by_the_jvm(path: str) -> None:
    named = f"record-index-{PATHS[path]}-0003-0"
    assert name_key_group(3, path) == named
    assert parse_key_group(named) == (path, 3)
    log = LogFileName.parse(f".{named}_20261130085726528.log.1_0-0-0")
    assert log is not None
    assert log.file_id == named


def test_those_of_the_whole_table_have_a_number_alone() -> None:
    assert name_key_group(7) == "record-index-0007-0"
    assert parse_key_group("record-index-0007-0") == (None, 7)
    assert parse_key_group("record-index-12345-0") == (None, 12345)
    assert [parse_key_group(other) for other in ("files-0000-0", "record-index-7-0", "record-index-a-b-0001-0")] == [
        None, None, None,
    ]  # fmt: skip


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.integers(0, 12_000))
def test_every_path_comes_back(path: str, number: int) -> None:
    assert parse_key_group(name_key_group(number, path)) == (path, number)


@given(st.lists(st.tuples(st.text(max_size=6), st.sampled_from(["", "a", "b", "c"]))), st.integers(1, 4))
def test_keys_are_spread_over_the_file_groups_of_their_partition(rows: list[tuple[str, str]], fresh: int) -> None:
    groups = KeyGroups(is_partitioned=True, counts={"a": 3, "b": 1}, fresh=fresh)
    keys, paths = (pa.array([row[at] for row in rows], pa.string()) for at in (0, 1))
    sizes = {"a": 3, "b": 1}
    expected = [group_number(key, sizes.get(path, fresh)) for key, path in rows]
    assert groups.number(keys, paths).to_pylist() == expected
    mine = pa.array([key for key, path in rows if path == "a"], pa.string())
    told = {(one, key) for one, some in groups.spread(mine, "a") for key in some.to_pylist()}
    assert told == {(f"record-index-a-{group_number(key, 3):04}-0", key) for key in mine.to_pylist()}


def test_the_groups_of_an_index_tell_its_kind() -> None:
    whole = KeyGroups.of(["record-index-0001-0", "record-index-0000-0", "record-index-0001-0"])
    assert (whole.ids, whole.is_partitioned, whole.total) == (("record-index-0000-0", "record-index-0001-0"), False, 2)
    assert whole.list_ids("any") == whole.ids
    assert whole.number(pa.array(["a", "b"]), pa.array(["x", "y"])).to_pylist() == [1, 0]
    parts = KeyGroups.of([name_key_group(0, "a"), name_key_group(1, "a"), name_key_group(0, "")], fresh=2)
    assert (parts.ids, parts.is_partitioned, parts.counts, parts.total) == ((), True, {"a": 2, "": 1}, 3)
    assert parts.list_ids("new") == ("record-index-new-0000-0", "record-index-new-0001-0")
    assert not KeyGroups.of([])
    assert KeyGroups(is_partitioned=True)


@pytest.mark.parametrize(
    ("ids", "match"),
    [
        (["record-index-2025-01-0000-0"], "no name that JVM Hudi gives it"),
        (["record-index-region=eu-0000-0"], "no name that JVM Hudi gives it"),
        (["other-0000-0"], "no name that JVM Hudi gives it"),
        (["record-index-0000-0", "record-index-a-0000-0"], "of the other kind"),
    ],
)
def test_file_groups_of_other_names_are_refused(ids: list[str], match: str) -> None:
    with pytest.raises(UnsupportedTable, match=rf"{match}.*metadata drop --part record_index"):
        KeyGroups.of(ids)


def test_an_index_is_the_same_while_partitions_come() -> None:
    """A write that is under way goes on; of its own partitions it looks at the end."""
    before = KeyGroups(is_partitioned=True, counts={"a": 1})
    assert before == KeyGroups(is_partitioned=True, counts={"a": 1, "b": 1}, fresh=2)
    assert before != KeyGroups(("record-index-0000-0",))
