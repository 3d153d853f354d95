"""Ranges of columns by the footers of base files, and statistics that would hide a value."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.format.column_range import ColumnRange, ValueKind, unite_ranges
from hudi_locks.format.metadata_record import Bound, MetadataRecord, RecordKind, merge_metadata_records
from hudi_locks.metadata_table import describe_range, hides_some, read_ranges
from hudi_locks.storage import LocalStorage

DAY, MOMENT = dt.date(2024, 3, 10), dt.datetime.fromisoformat("2024-03-10T02:30:00.123456")
COLUMNS: dict[str, tuple[pa.DataType, Any, Any, tuple[int, str | None], str, str]] = {
    "flag": (pa.bool_(), True, True, (2, None), "BooleanWrapper", "BooleanWrapper"),
    "number": (pa.int32(), -3, -3, (3, None), "IntWrapper", "IntWrapper"),
    "small": (pa.int16(), 7, 7, (3, None), "IntWrapper", "IntWrapper"),
    "big": (pa.int64(), 1 << 40, 1 << 40, (4, None), "LongWrapper", "LongWrapper"),
    "single": (pa.float32(), 0.5, 0.5, (5, None), "FloatWrapper", "FloatWrapper"),
    "twice": (pa.float64(), 1e-300, 1e-300, (6, None), "DoubleWrapper", "DoubleWrapper"),
    "text": (pa.string(), "ünï 日本 😀", "ünï 日本 😀", (7, None), "StringWrapper", "StringWrapper"),
    "raw": (pa.binary(), b"\x00\xff", b"\x00\xff", (8, None), "BytesWrapper", "BytesWrapper"),
    "price": (pa.decimal128(10, 2), Decimal("-1.50"), -150, (10, "10,2"), "DecimalWrapper", "BytesWrapper"),
    "day": (pa.date32(), DAY, 19792, (12, None), "DateWrapper", "IntWrapper"),
    "at": (pa.timestamp("us", "UTC"), MOMENT, 1710037800123456, (16, None), "LongWrapper", "LongWrapper"),
    "local": (pa.timestamp("us"), MOMENT, 1710037800123456, (19, None), "LongWrapper", "LongWrapper"),
}
"""By column: type, value, the same in a range, type of values in version 9, wrapper in version 8 and 9."""


def write(folder: Path, table: pa.Table, **options: Any) -> LocalStorage:
    pq.write_table(table, folder / "f.parquet", **options)
    return LocalStorage(str(folder))


def ranges_of(folder: Path, values: list[Any], kind: pa.DataType, **options: Any) -> ColumnRange | None:
    storage = write(folder, pa.table({"c": pa.array(values, kind)}), **options)
    return read_ranges(storage, "f.parquet", ["c"]).get("c")


def test_ranges_of_every_type_are_told_as_each_version_has_them(tmp_path: Path) -> None:
    schema = pa.schema([(name, told[0]) for name, told in COLUMNS.items()])
    rows = [{name: told[1] for name, told in COLUMNS.items()}, dict.fromkeys(COLUMNS)]
    storage = write(tmp_path, pa.Table.from_pylist(rows, schema))
    found = read_ranges(storage, "f.parquet", [*COLUMNS, "no such column"])
    assert found.keys() == COLUMNS.keys()
    for name, (_, _, value, told, older, newer) in COLUMNS.items():
        assert (found[name].low, found[name].high, found[name].values, found[name].nulls) == (value, value, 2, 1)
        assert found[name].plain_size > 0
        by_version = {v: describe_range(found[name], name, file_name="f", version=v) for v in (8, 9)}
        assert [one.value_type for one in by_version.values()] == [None, told]
        assert [one.low.wrapper for one in by_version.values() if one.low] == [older, newer]
    price = {version: describe_range(found["price"], "price", file_name="f", version=version) for version in (8, 9)}
    assert price[8].low == Bound("DecimalWrapper", Decimal("-1.50"))
    assert price[9].low == Bound("BytesWrapper", b"\xff\x6a")


@pytest.mark.parametrize("value", [0, 127, 128, -128, -129, 32767, 32768])
def test_a_decimal_of_version_9_takes_no_more_bytes_than_it_needs(value: int) -> None:
    kind = ValueKind("decimal", 10, "DecimalWrapper", 20, 0)
    bound = describe_range(ColumnRange(kind, value, value, 1, 0), "c", file_name="f", version=9).low
    assert bound is not None
    assert int.from_bytes(bound.value, "big", signed=True) == value
    assert len(bound.value) == (1 if -129 < value < 128 else 2 if value < 32768 else 3)


def test_a_decimal_that_version_8_has_no_room_for_is_refused() -> None:
    kind = ValueKind("decimal", 10, "DecimalWrapper", 38, 18)
    with pytest.raises(ValueError, match=r"decimal\(38,18\)"):
        describe_range(ColumnRange(kind, 1, 1, 1, 0), "c", file_name="f", version=8)


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int32()), pa.struct([("x", pa.int32())]), pa.uint32(), pa.time64("us"), pa.timestamp("ms")]
)
def test_of_other_types_nothing_is_told(tmp_path: Path, kind: pa.DataType) -> None:
    assert ranges_of(tmp_path, [None], kind) is None


def test_a_file_without_statistics_or_without_rows_tells_nothing_that_could_hide_a_row(tmp_path: Path) -> None:
    assert ranges_of(tmp_path, [1, 2], pa.int32(), write_statistics=False) is None
    empty = ranges_of(tmp_path, [], pa.int32())
    assert empty is None or (empty.low, empty.high, empty.values) == (None, None, 0)


def test_a_range_holds_the_values_of_all_row_groups(tmp_path: Path) -> None:
    found = ranges_of(tmp_path, [5, None, 9, -2, None, None], pa.int64(), row_group_size=2)
    assert found is not None
    assert (found.low, found.high, found.values, found.nulls) == (-2, 9, 6, 3)


KIND = ValueKind("double", 6, "DoubleWrapper")
NUMBERS = st.floats(allow_nan=True, width=64)
RANGES = st.lists(NUMBERS, min_size=1, max_size=5).map(lambda values: make_range(*values))


def order(value: float) -> tuple[bool, float]:
    return (math.isnan(value), 0.0 if math.isnan(value) else value)


def make_range(*values: float) -> ColumnRange:
    return ColumnRange(KIND, min(values, key=order), max(values, key=order), len(values), 0)


@given(one=RANGES, other=RANGES)
def test_united_ranges_hide_no_value_of_either(one: ColumnRange, other: ColumnRange) -> None:
    united = unite_ranges(one, other)
    assert united is not None
    told = describe_range(united, "c", file_name="f", version=9)
    assert not hides_some(told, one)
    assert not hides_some(told, other)
    records = [
        MetadataRecord(RecordKind.PARTITION_STATS, statistics=describe_range(part, "c", file_name="p", version=9))
        for part in (one, other)
    ]
    merged = merge_metadata_records(records[0], records[1]).statistics
    assert merged is not None
    assert not hides_some(merged, one)
    assert not hides_some(merged, other)


@given(values=st.lists(st.integers(-(10**20), 10**20), min_size=2, max_size=2), version=st.sampled_from([8, 9]))
def test_merged_ranges_of_decimals_are_those_of_numbers_and_not_of_bytes(values: list[int], version: int) -> None:
    kind = ValueKind("decimal", 10, "DecimalWrapper", 22, 7)
    parts = [ColumnRange(kind, value, value, 1, 0) for value in values]
    told = [describe_range(part, "c", file_name="p", version=version) for part in parts]
    records = [MetadataRecord(RecordKind.PARTITION_STATS, statistics=one) for one in told]
    merged = merge_metadata_records(records[0], records[1]).statistics
    assert merged is not None
    whole = ColumnRange(kind, min(values), max(values), 2, 0)
    assert merged == describe_range(whole, "c", file_name="p", version=version)


@given(found=RANGES, other=RANGES)
def test_a_narrower_range_hides_values(found: ColumnRange, other: ColumnRange) -> None:
    told = describe_range(other, "c", file_name="f", version=9)
    is_wide = order(other.low) <= order(found.low) and order(found.high) <= order(other.high)
    assert hides_some(told, found) is not is_wide


def test_statistics_that_call_every_value_null_hide_those_that_are_not() -> None:
    found, nulls = ColumnRange(KIND, 1.0, 2.0, 3, 1), ColumnRange(KIND, None, None, 3, 3)
    told = describe_range(found, "c", file_name="f", version=9)
    assert hides_some(replace(told, low=None, high=None), found)
    assert hides_some(replace(told, nulls=0), nulls)
    assert not hides_some(told, nulls)
    assert not hides_some(replace(told, low=None, high=None, is_deleted=True), found)


def test_ranges_of_two_types_are_not_united() -> None:
    assert unite_ranges(make_range(1.0), ColumnRange(ValueKind("int", 3, "IntWrapper"), 1, 1, 1, 0)) is None
