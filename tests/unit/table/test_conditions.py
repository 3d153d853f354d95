"""A file is passed over only if no row of it can meet the condition."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.format.column_range import DOUBLE, INT, LONG, STRING, ColumnRange, decimal_kind
from hudi_locks.table import AllOf, AnyOf, Comparison, Condition, NullCheck, Unknown
from hudi_locks.table.value_ranges import ValueRanges

Row = Mapping[str, Any]
VALUES = st.none() | st.integers(-4, 4)
AMOUNTS = st.none() | st.decimals(-2, 2, places=2)
ROWS = st.lists(st.fixed_dictionaries({"a": VALUES, "b": VALUES, "d": AMOUNTS}), max_size=4)
OPERATORS = {
    "=": lambda found, value: found == value,
    "<": lambda found, value: found < value,
    "<=": lambda found, value: found <= value,
    ">": lambda found, value: found > value,
    ">=": lambda found, value: found >= value,
}
LEAVES = st.one_of(
    st.builds(Comparison, st.sampled_from("ab"), st.sampled_from(sorted(OPERATORS)), st.integers(-5, 5)),
    st.builds(Comparison, st.just("d"), st.sampled_from(sorted(OPERATORS)), st.decimals(-3, 3, places=3)),
    st.builds(NullCheck, st.sampled_from("abd"), st.booleans()),
    st.just(Unknown()),
)


def _of(is_all: bool, parts: list[Condition]) -> Condition:  # by position from Hypothesis
    return AllOf(tuple(parts)) if is_all else AnyOf(tuple(parts))


CONDITIONS = st.recursive(
    LEAVES, lambda inner: st.builds(_of, st.booleans(), st.lists(inner, max_size=3)), max_leaves=6
)


def meets(row: Row, condition: Condition) -> bool:
    """As SQL has it, where null is neither less nor equal; of what is unknown it is taken that it holds."""
    match condition:
        case Comparison(column, operator, value):
            return row[column] is not None and OPERATORS[operator](row[column], value)
        case NullCheck(column, is_null):
            return (row[column] is None) is is_null
        case AllOf(parts):
            return all(meets(row, part) for part in parts)
        case AnyOf(parts):
            return any(meets(row, part) for part in parts)
    return True


@given(ROWS, CONDITIONS, st.sets(st.sampled_from("abd")))
def test_no_file_with_a_row_that_meets_the_condition_is_passed_over(
    rows: list[Row], condition: Condition, unknown: set[str]
) -> None:
    types = {"a": pa.int64(), "b": pa.int32(), "d": pa.decimal128(5, 2)}
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()}
    ranges = ValueRanges(list(types))
    ranges.add(pa.table(columns))
    known = {name: found for name, found in ranges.found().items() if name not in unknown}
    if any(meets(row, condition) for row in rows):
        assert condition.may_hold(known)


@given(st.fixed_dictionaries({"a": VALUES, "b": VALUES, "d": AMOUNTS}), CONDITIONS, st.sampled_from("abd"))
def test_a_row_that_meets_the_condition_has_one_of_the_listed_values(
    row: Row, condition: Condition, column: str
) -> None:
    values = condition.list_values(column)
    if values is not None and meets(row, condition):
        assert row[column] in values


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        (Comparison("n", "=", 3), {3}),
        (Comparison("m", "=", 3), None),
        (Comparison("n", ">=", 3), None),
        (AllOf((Comparison("n", "=", 3), Unknown(), Comparison("m", "=", 4))), {3}),
        (AllOf((Comparison("n", "=", 3), Comparison("n", "=", 4))), set()),
        (AllOf(()), None),
        (AnyOf((Comparison("n", "=", 3), Comparison("n", "=", 4))), {3, 4}),
        (AnyOf((Comparison("n", "=", 3), Unknown())), None),
        (AnyOf(()), set()),
        (NullCheck("n", is_null=False), None),
    ],
)
def test_the_values_that_a_condition_leaves_a_column_are_listed(condition: Condition, values: set[int] | None) -> None:
    assert condition.list_values("n") == values


@pytest.mark.parametrize(
    ("condition", "there"),
    [
        (Comparison("n", ">", 9), False),
        (Comparison("n", ">=", 9), True),
        (Comparison("n", "=", 2), False),
        (Comparison("n", "<", 3), False),
        (AllOf((Comparison("n", ">", 3), Comparison("n", "<", 3))), False),
        (AnyOf((Comparison("n", ">", 3), Comparison("n", "<", 3))), True),
        (NullCheck("n", is_null=True), False),
        (NullCheck("empty", is_null=False), False),
        (Comparison("empty", "=", 3), False),
        (Comparison("amount", ">", Decimal("1.501")), False),
        (Comparison("amount", ">=", Decimal("1.5")), True),
        (Comparison("city", "<", "f"), False),
    ],
)
def test_a_range_without_room_rules_a_condition_out(condition: Condition, *, there: bool) -> None:
    ranges = {
        "n": ColumnRange(LONG, 3, 9, 5, 0),
        "empty": ColumnRange(INT, None, None, 5, 5),
        "amount": ColumnRange(decimal_kind(5, 2), 100, 150, 5, 0),
        "city": ColumnRange(STRING, "fürth", "ulm", 5, 0),
    }
    assert condition.may_hold(ranges) is there


@pytest.mark.parametrize("value", [True, "4", 4.0, Decimal(4), None])
def test_a_value_of_another_type_rules_nothing_out(value: object) -> None:
    assert Comparison("n", ">", value).may_hold({"n": ColumnRange(LONG, 1, 2, 5, 0)})


def test_ranges_of_floats_are_not_believed() -> None:
    assert Comparison("x", ">", 5.0).may_hold({"x": ColumnRange(DOUBLE, 1.0, 2.0, 5, 0)})
