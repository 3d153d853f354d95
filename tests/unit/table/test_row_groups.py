"""Which row groups of a base file a condition leaves, by the footer."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_locks.clock import SystemClock
from hudi_locks.storage.memory import MemoryStorage
from hudi_locks.table import AllOf, AnyOf, Comparison, Condition, NullCheck, Unknown
from hudi_locks.table.row_groups import choose_row_groups

DAY = dt.date(2026, 1, 1)
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "number": (pa.int64(), [1, 2, 11, 12, None, None]),
    "text": (pa.string(), ["a", "b", "k", "ü", "x", None]),
    "day": (pa.date32(), [DAY, DAY, *[DAY + dt.timedelta(9)] * 2, None, DAY]),
    "at": (pa.timestamp("us", "UTC"), [NOON, NOON, *[NOON + dt.timedelta(9)] * 2, None, NOON]),
    "local": (pa.timestamp("us"), [t and t.replace(tzinfo=None) for t in (NOON, NOON, None, None, None, NOON)]),
    "price": (pa.decimal128(10, 2), [Decimal("1.20"), Decimal("1.30"), *[Decimal("9.00")] * 2, None, None]),
    "ratio": (pa.float64(), [1.0, 2.0, 11.0, float("nan"), 1.0, 1.0]),
}
DAYS = (DAY - dt.date(1970, 1, 1)).days
MICROS = int(NOON.timestamp()) * 1_000_000


@pytest.fixture
def storage() -> MemoryStorage:
    storage = MemoryStorage(SystemClock())
    rows = pa.table({name: pa.array(values, of) for name, (of, values) in COLUMNS.items()})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=2)
    storage.create_if_absent("file.parquet", sink.getvalue().to_pybytes())
    return storage


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        (Comparison("number", "=", 2), [0, 2]),
        (Comparison("number", ">", 10), [1, 2]),
        (Comparison("text", ">=", "ü"), [1]),
        (Comparison("text", "=", "c"), []),
        (Comparison("day", "<", DAYS + 1), [0, 2]),
        (Comparison("at", ">", MICROS), [1]),
        (Comparison("local", "=", MICROS), [0, 1, 2]),
        (Comparison("price", "=", Decimal("1.2")), [0, 2]),
        (Comparison("ratio", ">", 100), [0, 1, 2]),
        (Comparison("lacking", "=", 1), [0, 1, 2]),
        (Comparison("number", "=", "2"), [0, 1, 2]),
        (NullCheck("text", is_null=True), [2]),
        (NullCheck("text", is_null=False), [0, 1, 2]),
        (AllOf((Comparison("number", "<", 5), Comparison("text", "=", "x"))), [2]),
        (AnyOf((Comparison("text", "=", "a"), Comparison("text", "=", "k"))), [0, 1]),
        (Unknown(), [0, 1, 2]),
    ],
)
def test_row_groups_that_may_hold_a_row_are_left(storage: MemoryStorage, wanted: Condition, left: list[int]) -> None:
    assert choose_row_groups(storage, "file.parquet", wanted) == left


def test_only_row_groups_of_the_share_are_looked_at(storage: MemoryStorage) -> None:
    assert choose_row_groups(storage, "file.parquet", Comparison("number", ">", 10), among=range(2)) == [1]
