"""How new rows are shared out among small and new files."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.spark.settings import FileSizing
from hudi_locks.table import BaseFile


def small(file_id: str, size: int, partition: str = "p") -> BaseFile:
    return BaseFile(partition, file_id, "20240101000000000", f"{partition}/{file_id}.parquet", size)


def test_new_rows_fill_small_files_first_the_smallest_of_them_before_the_others() -> None:
    sizing = FileSizing(record_bytes=10, max_file_bytes=1000, small_file_bytes=500)
    shares = sizing.share_rows({"p": 60}, [small("b", 400), small("a", 300), small("full", 500), small("c", 1, "q")])
    assert set(shares) == {"p"}
    assert set(shares["p"]) == {"a"}


def test_what_small_files_cannot_take_goes_to_new_files() -> None:
    sizing = FileSizing(record_bytes=10, max_file_bytes=1000, small_file_bytes=500)
    shares = sizing.share_rows({"p": 350}, [small("a", 500 - 1)])["p"]
    counted = Counter(shares)
    assert len(counted) == 1 + 3
    assert counted["a"] / len(shares) == pytest.approx(50 / 350, abs=0.03)


def test_no_small_files_are_sought_when_the_limit_is_zero() -> None:
    sizing = FileSizing(record_bytes=10, max_file_bytes=1000, small_file_bytes=0)
    shares = sizing.share_rows({"p": 5}, [small("a", 0)])
    assert shares["p"] != ["a"]
    assert len(shares["p"]) == 1


@given(
    st.dictionaries(st.sampled_from("pqr"), st.integers(0, 10_000), max_size=3),
    st.lists(st.tuples(st.sampled_from("pqr"), st.integers(0, 2000)), max_size=5),
    st.integers(1, 3000),
    st.integers(1, 2000),
)
def test_every_partition_with_rows_gets_files_and_no_file_grows_beyond_its_target(
    rows: dict[str, int], files: list[tuple[str, int]], record_bytes: int, max_bytes: int
) -> None:
    present = [small(f"f{number}", size, partition) for number, (partition, size) in enumerate(files)]
    sizing = FileSizing(record_bytes=record_bytes, max_file_bytes=max_bytes, small_file_bytes=1000)
    shares = sizing.share_rows(rows, present)
    assert set(shares) == {partition for partition, count in rows.items() if count}
    sizes = {file.file_id: file for file in present}
    for partition, ids in shares.items():
        used = [sizes[file_id] for file_id in ids if file_id in sizes]
        assert all(file.partition == partition and file.size + record_bytes <= max_bytes for file in used)
        full = max(1, max_bytes // record_bytes)
        assert len(set(ids)) <= -(-rows[partition] // full) + len(set(used))
