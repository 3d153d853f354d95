"""Which slices share a task."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.spark.reading.merged_reading import pack_slices
from hudi_locks.table import BaseFile, FileSlice, LogFile, Part

MB = 1 << 20


def piece(number: int, *sizes: int) -> FileSlice:
    instant, name = "20260101000000000", f"f{number}"
    base = BaseFile("p", name, instant, f"p/{name}", sizes[0])
    logs = tuple(LogFile("p", name, instant, n, "1-1-1", f"p/.{name}{n}", size) for n, size in enumerate(sizes[1:]))
    return FileSlice("p", name, instant, base, logs)


@given(st.lists(st.integers(0, 300 * MB), max_size=30), st.integers(1, 64))
def test_every_slice_is_read_once_in_its_order(sizes: list[int], cores: int) -> None:
    slices = [piece(number, size) for number, size in enumerate(sizes)]
    packs = pack_slices(slices, cores=cores)
    parts = [one for pack in packs for one in pack]
    assert [one.slice for one in parts if one.part.number == 0] == slices
    for one in slices:
        shares = [part.part for part in parts if part.slice == one]
        assert shares == [Part(number, len(shares)) for number in range(len(shares))]
    assert all(packs)


@pytest.mark.parametrize(
    ("sizes", "cores", "tasks"),
    [
        ([1000] * 100, 8, 1),
        ([5 * MB] * 8, 2, 2),
        ([10 * MB] * 8, 2, 4),
        ([MB // 2] * 5, 2, 2),
        ([200 * MB] * 8, 2, 8),
        ([10 * MB] * 3, 100, 3),
        ([], 2, 0),
    ],
    ids=[
        "tiny ones share one",
        "a core has one",
        "no core has one more",
        "a core has a small one",
        "a large one has its own",
        "more cores than slices that are worth to split",
        "none",
    ],
)
def test_as_many_tasks_as_are_worth_while(sizes: list[int], cores: int, tasks: int) -> None:
    assert len(pack_slices([piece(n, size) for n, size in enumerate(sizes)], cores=cores)) == tasks


def test_logs_count_too() -> None:
    assert len(pack_slices([piece(1, 20 * MB, 10 * MB), piece(2, 1 * MB, 30 * MB)], cores=1)) == 2


@pytest.mark.parametrize(
    ("slices", "cores", "parts"),
    [
        ([(40 * MB, 5 * MB)], 2, [2]),
        ([(40 * MB, 5 * MB)], 100, [4]),
        ([(40 * MB,)], 100, [5]),
        ([(40 * MB, 18 * MB)], 100, [1]),
        ([(40 * MB, 5 * MB)] * 2, 4, [2, 2]),
        ([(40 * MB, 5 * MB)] * 3, 2, [1, 1, 1]),
        ([(90 * MB, 5 * MB), (10 * MB, MB)], 4, [3, 1]),
        ([(0, 50 * MB)], 4, [1]),
    ],
    ids=[
        "a part for each core",
        "no part has more logs than half of its rows",
        "none is small",
        "logs are large",
        "cores are shared",
        "cores are busy without",
        "the large one is split",
        "logs alone",
    ],
)
def test_large_slices_are_split_where_cores_would_idle(
    slices: list[tuple[int, ...]], cores: int, parts: list[int]
) -> None:
    packs = pack_slices([piece(n, *sizes) for n, sizes in enumerate(slices)], cores=cores)
    found = [one for pack in packs for one in pack]
    assert [one.part.count for one in found if one.part.number == 0] == parts


def test_parts_of_one_slice_are_tasks_of_their_own() -> None:
    assert [len(pack) for pack in pack_slices([piece(0, 64 * MB, MB)], cores=4)] == [1] * 4
