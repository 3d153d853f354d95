"""Which slices share a task."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.spark.packing import pack_slices
from hudi_locks.table import BaseFile, FileSlice, LogFile

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
    assert [one for pack in packs for one in pack] == slices
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
        "more cores than slices",
        "none",
    ],
)
def test_as_many_tasks_as_are_worth_while(sizes: list[int], cores: int, tasks: int) -> None:
    assert len(pack_slices([piece(n, size) for n, size in enumerate(sizes)], cores=cores)) == tasks


def test_logs_count_too() -> None:
    assert len(pack_slices([piece(1, 20 * MB, 10 * MB), piece(2, 1 * MB, 30 * MB)], cores=1)) == 2
