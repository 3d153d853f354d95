"""The verdict of the demonstration can be bad."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_locks.cli.demo.comparison import compare

EXPECTED = pa.table({"id": [1, 2, 3], "value": ["a", None, "c"], "n": pa.array([None, 2, 3], pa.int64())})


def test_the_same_rows_in_another_order_agree() -> None:
    found = EXPECTED.take(pa.array([2, 0, 1])).select(["n", "value", "id"])
    assert compare("reader", found, expected=EXPECTED, key=["id"]).agrees


@pytest.mark.parametrize(
    ("rows", "missing", "surplus"),
    [
        ([0, 1], 1, 0),
        ([0, 1, 2, 2], 0, 1),
        ([], 3, 0),
    ],
)
def test_rows_that_are_missing_or_doubled_are_counted(rows: list[int], missing: int, surplus: int) -> None:
    found = EXPECTED.take(pa.array(rows, pa.int64()))
    verdict = compare("reader", found, expected=EXPECTED, key=["id"])
    assert (verdict.missing, verdict.surplus) == (missing, surplus)
    assert not verdict.agrees


@pytest.mark.parametrize("column", ["value", "n"])
def test_a_changed_value_is_one_missing_and_one_surplus_row(column: str) -> None:
    index = EXPECTED.column_names.index(column)
    for wrong in (["x", "x", "x"], [None, None, None]):
        values = pa.array([None if w is None else 9 for w in wrong], pa.int64()) if column == "n" else wrong
        found = EXPECTED.set_column(index, column, pa.array(values, EXPECTED.schema.field(column).type))
        verdict = compare("reader", found, expected=EXPECTED, key=["id"])
        assert verdict.missing == verdict.surplus == (3 if wrong[0] else 2)
