from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.clock import ManualClock
from hudi_locks.errors import BadInput, DamagedTable
from hudi_locks.storage import LocalStorage, MemoryStorage
from hudi_locks.table import (
    DEFAULT_PARTITION,
    create_partition_metadata,
    parse_partition_path,
    partition_path,
    read_partition_metadata,
)

T = "20261121032159605"

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8)
plain = st.text("abc=.x_1 é", min_size=1, max_size=8).filter(lambda text: text not in (".", ".."))


@given(st.lists(st.none() | texts, min_size=1, max_size=3))
def test_escaped_values_survive_the_round_trip(values: list[str | None]) -> None:
    fields = [f"f{at}" for at in range(len(values))]
    path = partition_path(values, fields, hive_style=True, url_encode=True)
    assert parse_partition_path(path, fields, hive_style=True, url_encode=True) == tuple(values)


@given(st.lists(st.none() | plain, min_size=1, max_size=3), st.booleans())
def test_plain_values_survive_the_round_trip(values: list[str | None], hive_style: bool) -> None:
    fields = [f"f{at}" for at in range(len(values))]
    path = partition_path(values, fields, hive_style=hive_style)
    assert parse_partition_path(path, fields, hive_style=hive_style) == tuple(values)


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        ("a b/c", "p=a b%2Fc"),
        ("x=y%z", "p=x%3Dy%25z"),
        ("", f"p={DEFAULT_PARTITION}"),
        (None, f"p={DEFAULT_PARTITION}"),
        ("12:30", "p=12%3A30"),
        ("\x01\n\x7f", "p=%01%0A%7F"),
        ("{}", "p=%7B}"),
        ("[a]^\\", "p=%5Ba%5D%5E%5C"),
        ("\"#'*?", "p=%22%23%27%2A%3F"),
        ("!$&()+,-;<>@_`|~é中😀", "p=!$&()+,-;<>@_`|~é中😀"),
    ],
)
def test_escapes_are_the_ones_of_the_jvm(value: str | None, folder: str) -> None:
    assert partition_path([value], ["p"], hive_style=True, url_encode=True) == folder


def test_styles_and_several_columns() -> None:
    assert partition_path(["1", "b"], ["x", "y"], hive_style=True) == "x=1/y=b"
    assert partition_path(["1", "b"], ["x", "y"]) == "1/b"
    assert partition_path([None], ["x"]) == DEFAULT_PARTITION
    assert partition_path([], []) == ""
    assert parse_partition_path("", []) == ()


def test_slashes_make_folders_unless_escaped() -> None:
    assert partition_path(["2020/01/02"], ["day"]) == "2020/01/02"
    assert parse_partition_path("2020/01/02", ["day"]) == ("2020/01/02",)
    assert partition_path(["2020/01/02"], ["day"], url_encode=True) == "2020%2F01%2F02"


@pytest.mark.parametrize("value", ["..", ".", "/etc", "a//b", "a/", ".hoodie", "a/../b", "a\x00", "x" * 256])
def test_values_that_lead_elsewhere_are_refused(value: str) -> None:
    with pytest.raises(BadInput, match="partition path"):
        partition_path([value], ["p"])


@pytest.mark.parametrize("path", ["1", "y=1/x=2", "x=1", "x=/y=2"])
def test_folders_of_other_columns_are_named(path: str) -> None:
    with pytest.raises(DamagedTable, match="x, y"):
        parse_partition_path(path, ["x", "y"], hive_style=True)


@pytest.mark.parametrize(("partition", "depth"), [("", "0"), ("month=1", "1"), ("2020/01/02", "3")])
def test_a_partition_is_marked_once(partition: str, depth: str) -> None:
    storage = MemoryStorage(ManualClock())
    assert read_partition_metadata(storage, partition) is None
    assert create_partition_metadata(storage, partition, instant=T)
    assert not create_partition_metadata(storage, partition, instant="20261121032159606")
    assert read_partition_metadata(storage, partition) == {"commitTime": T, "partitionDepth": depth}


@pytest.mark.parametrize(
    ("name", "partition", "depth"), [("v8_cow", "region=us_east", "1"), ("v8_cow_unpartitioned", "", "0")]
)
def test_marks_of_the_jvm_are_read(
    golden: Callable[[str], LocalStorage], name: str, partition: str, depth: str
) -> None:
    storage = golden(name)
    found = read_partition_metadata(storage, partition) or {}
    assert found["partitionDepth"] == depth
    assert len(found["commitTime"]) == 17
