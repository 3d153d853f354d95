"""What does not fit into memory comes back from disk, in order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.table import RowBuffers

SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64())])


def batch(key: str, values: list[int]) -> pa.RecordBatch:
    return pa.record_batch([pa.array([key] * len(values)), pa.array(values)], schema=SCHEMA)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.integers(0, 9), max_size=5))), st.integers(0, 400))
def test_each_key_gets_its_rows_in_order_at_any_budget(added: list[tuple[str, list[int]]], budget: int) -> None:
    expected: dict[str, list[int]] = {}
    with RowBuffers[str](SCHEMA, budget) as buffers:
        for key, values in added:
            buffers.add(key, batch(key, values))
            expected.setdefault(key, []).extend(values)
        found = {key: buffers.take(key) for key in list(buffers.keys())}
        assert list(found) == list(expected)
        assert {key: rows["value"].to_pylist() for key, rows in found.items()} == expected
        assert all(rows.schema.equals(SCHEMA) for rows in found.values())


def test_only_what_exceeds_the_budget_goes_to_disk_and_it_goes_at_the_end() -> None:
    with RowBuffers[str](SCHEMA, 10_000) as buffers:
        folder = Path(buffers._folder.name)
        buffers.add("small", batch("small", [1]))
        assert list(folder.iterdir()) == []
        buffers.add("large", batch("large", list(range(2000))))
        assert len(list(folder.iterdir())) == 1
        buffers.add("large", batch("large", [-1]))
        assert buffers.take("large")["value"].to_pylist() == [*range(2000), -1]
        assert buffers.take("small")["value"].to_pylist() == [1]
    assert not folder.exists()


def test_a_task_that_fails_leaves_no_files() -> None:
    try:
        with RowBuffers[str](SCHEMA, 0) as buffers:
            folder = Path(buffers._folder.name)
            buffers.add("a", batch("a", [1]))
            raise KeyError("a task fails")
    except KeyError:
        assert not folder.exists()
