"""Merging by columns against a merge of one row after the other."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.table import (
    RECORD_KEY,
    AppendMerge,
    DeleteMerge,
    Merge,
    MergeRule,
    MovingMerge,
    UpsertMerge,
    newest_rows,
)

SCHEMA = pa.schema([(RECORD_KEY, pa.string()), ("a", pa.int64()), ("b", pa.float64()), ("id", pa.int64())])
ORDERINGS: list[tuple[str, ...]] = [(), ("a",), ("b",), ("a", "b")]
UTC = timezone.utc
Row = dict[str, Any]

NUMBERS = st.none() | st.integers(0, 2)
FLOATS = st.none() | st.sampled_from([0.5, 1.0, math.inf, -math.inf, math.nan])
ROWS = st.lists(st.fixed_dictionaries({RECORD_KEY: st.sampled_from("abcdef"), "a": NUMBERS, "b": FLOATS}), max_size=12)


def number(rows: list[Row], start: int) -> list[Row]:
    return [{**row, "id": start + place} for place, row in enumerate(rows)]


def rank(row: Row, ordering: tuple[str, ...]) -> tuple[Any, ...]:
    """A null before everything, NaN behind everything, as Java compares."""
    values = [row[name] for name in ordering]
    return tuple((v is not None, v is not None and v != v, 0 if v is None or v != v else v) for v in values)


def newest(rows: list[Row], rule: MergeRule) -> dict[str, Row]:
    best: dict[str, Row] = {}
    for row in rows:
        key = row[RECORD_KEY]
        if key not in best or rank(row, rule.ordering) >= rank(best[key], rule.ordering):
            best[key] = row
    return best


def upsert_one_by_one(present: list[Row], incoming: list[Row], rule: MergeRule) -> list[int]:
    best = newest(incoming, rule)
    merged = []
    for row in present:
        rival = best.get(row[RECORD_KEY])
        wins = rival and not rule.keep_present and rank(rival, rule.ordering) >= rank(row, rule.ordering)
        merged.append(rival if rival and wins else row)
    seen = {row[RECORD_KEY] for row in present}
    fresh = sorted((row for key, row in best.items() if key not in seen), key=lambda row: row["id"])
    return [row["id"] for row in [*merged, *fresh]]


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def run(merge: Merge, present: list[Row], pieces: int = 2) -> list[int]:
    step = max(1, -(-len(present) // pieces))
    out = [merge.apply(table(present[start : start + step])) for start in range(0, len(present), step)]
    return [value for rows in [*out, *merge.remaining()] for value in rows["id"].to_pylist()]


@given(ROWS, ROWS, st.sampled_from(ORDERINGS), st.booleans(), st.integers(1, 3))
def test_upsert_is_what_one_row_after_the_other_gives(
    present: list[Row], incoming: list[Row], ordering: tuple[str, ...], keep: bool, pieces: int
) -> None:
    present, incoming = number(present, 0), number(incoming, 100)
    rule = MergeRule(ordering, keep_present=keep)
    merge = UpsertMerge(table(incoming), rule)
    expected = upsert_one_by_one(present, incoming, rule)
    assert run(merge, present, pieces) == expected
    assert merge.updates == sum(value >= 100 for value in expected[: len(present)])
    assert merge.deletes == 0


def tell(merge: Merge) -> dict[int, int | None]:
    """What `merge` says that present rows become, by their numbers; filled while it runs."""
    told: dict[int, int | None] = {}

    def note(before: pa.Table, after: pa.Table | None) -> None:
        news = [None] * before.num_rows if after is None else after["id"].to_pylist()
        told.update(zip(before["id"].to_pylist(), news, strict=True))

    merge.tell_changes(note)
    return told


@given(ROWS, ROWS, st.sampled_from(ORDERINGS), st.integers(1, 3), st.booleans())
def test_the_changes_that_a_merge_tells_of_are_all_that_it_makes(
    present: list[Row], incoming: list[Row], ordering: tuple[str, ...], pieces: int, is_delete: bool
) -> None:
    present, rows = number(present, 0), table(number(incoming, 100))
    merge: Merge = DeleteMerge(rows) if is_delete else UpsertMerge(rows, MergeRule(ordering))
    moving = MovingMerge(merge, pa.array(["a", "b"]))
    told = tell(moving)
    merged = run(moving, present, pieces)
    changed = [told.get(row["id"], row["id"]) for row in present]
    assert [value for value in changed if value is not None] == merged[: len(present) - moving.deletes]
    assert (len(told), list(told.values()).count(None)) == (moving.updates + moving.deletes, moving.deletes)


@given(ROWS, st.sampled_from(ORDERINGS))
def test_newest_rows_picks_one_row_of_each_key(rows: list[Row], ordering: tuple[str, ...]) -> None:
    rows = number(rows, 0)
    rule = MergeRule(ordering)
    places = newest_rows(table(rows), rule)
    found = list(range(len(rows))) if places is None else places.tolist()
    assert found == sorted(row["id"] for row in newest(rows, rule).values())


@given(ROWS, ROWS)
def test_delete_takes_out_every_row_of_the_keys(present: list[Row], gone: list[Row]) -> None:
    present = number(present, 0)
    keys = {row[RECORD_KEY] for row in gone}
    merge = DeleteMerge(table(number(gone, 100)))
    expected = [row["id"] for row in present if row[RECORD_KEY] not in keys]
    assert run(merge, present) == expected
    assert (merge.updates, merge.deletes) == (0, len(present) - len(expected))


@given(ROWS, ROWS)
def test_append_keeps_everything(present: list[Row], incoming: list[Row]) -> None:
    merge = AppendMerge(table(number(incoming, 100)), MergeRule())
    expected = [*range(len(present)), *range(100, 100 + len(incoming))]
    assert run(merge, number(present, 0)) == expected


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["a", "b"]),
        (pa.date32(), [date(1969, 1, 1), date(2024, 1, 1)]),
        (pa.timestamp("us", "UTC"), [datetime(1969, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)]),
        (pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("1.25")]),
        (pa.float32(), [-1.0, 2.5]),
        (pa.bool_(), [False, True]),
    ],
)
def test_every_ordered_type_can_order(kind: pa.DataType, values: list[Any]) -> None:
    schema = pa.schema([(RECORD_KEY, pa.string()), ("o", kind)])
    low, high = (pa.table([["k"], pa.array([value], kind)], schema=schema) for value in values)
    for incoming, present in ((low, high), (high, low)):
        assert UpsertMerge(incoming, MergeRule(("o",))).apply(present)["o"].to_pylist() == values[1:]
