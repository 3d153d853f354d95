"""Ranges of what a task writes: those of the footer where that tells them, and NaN and long texts besides."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slice_files import new_file

from hudi_locks.format import avro_schema
from hudi_locks.format.column_range import ColumnRange, decode_ranges, encode_ranges
from hudi_locks.metadata_table import describe_range, hides_some, read_ranges
from hudi_locks.storage import LocalStorage
from hudi_locks.table import BaseFileFormat, BaseFileWriter, add_meta_schema
from hudi_locks.table.value_ranges import ValueRanges, find_kind

FLOATS = st.floats(allow_nan=True, width=64) | st.none()
VALUES = {
    pa.bool_(): st.booleans(),
    pa.int16(): st.integers(-(1 << 15), (1 << 15) - 1),
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.string(): st.text(max_size=8),
    pa.binary(): st.binary(max_size=8),
    pa.decimal128(20, 3): st.decimals(-(10**9), 10**9, places=3),
    pa.decimal128(38, 2): st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-2, Context(prec=60))),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.timezone.utc)),
    pa.timestamp("us"): st.datetimes(),
}


def measure(values: pa.ChunkedArray) -> ColumnRange:
    ranges = ValueRanges(["c"])
    for chunk in values.chunks:
        ranges.add(pa.table({"c": chunk}))
    return ranges.found()["c"]


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_they_are_those_of_the_footer(tmp_path_factory: pytest.TempPathFactory, kind: pa.DataType) -> None:
    folder = tmp_path_factory.mktemp("ranges")

    @given(parts=st.lists(st.lists(VALUES[kind] | st.none(), max_size=4), min_size=1, max_size=3))
    def compare(parts: list[list[Any]]) -> None:
        values = pa.chunked_array([pa.array(part, kind) for part in parts], kind)
        pq.write_table(pa.table({"c": values}), folder / "f.parquet")
        told = read_ranges(LocalStorage(str(folder)), "f.parquet", ["c"])
        found = measure(values)
        if "c" in told:
            assert (found.kind, found.low, found.high, found.values, found.nulls) == (
                told["c"].kind, told["c"].low, told["c"].high, told["c"].values, told["c"].nulls
            )  # fmt: skip

    compare()


@given(values=st.lists(FLOATS, max_size=6))
def test_no_number_lies_outside_what_is_told_though_some_are_none(values: list[float | None]) -> None:
    found = measure(pa.chunked_array([pa.array(values, pa.float64())]))
    there = [value for value in values if value is not None]
    assert found.nulls == len(values) - len(there)
    numbers = [value for value in there if not math.isnan(value)]
    if len(numbers) < len(there):
        assert math.isnan(found.high)
    elif there:
        assert found.high == max(numbers)
    if numbers:
        assert found.low == min(numbers)
    one = [ColumnRange(found.kind, value, value, 1, 0) for value in there]
    told = describe_range(found, "c", file_name="f", version=9)
    assert not any(hides_some(told, single) for single in one)


@given(low=FLOATS, high=FLOATS)
def test_a_report_tells_them_exactly(low: float | None, high: float | None) -> None:
    kind = find_kind(pa.float64())
    assert kind is not None
    found = {"c": ColumnRange(kind, low, high, 3, 1, 7, 9)}
    assert repr(decode_ranges(encode_ranges(found))) == repr(found)


def test_bytes_and_texts_are_reported_exactly_too() -> None:
    found = {
        "b": measure(pa.chunked_array([pa.array([b"\x00\xff", b""])])),
        "t": measure(pa.chunked_array([pa.array(["日本", "a"])])),
    }
    assert decode_ranges(encode_ranges(found)) == found


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.struct([("x", pa.int32())]), pa.timestamp("ms")], ids=str)
def test_of_other_types_nothing_is_known(kind: pa.DataType) -> None:
    ranges = ValueRanges(["c", "absent"])
    ranges.add(pa.table({"c": pa.array([None], kind)}))
    assert ranges.found() == {}


def test_a_base_file_tells_the_ranges_of_all_its_rows_with_the_bytes_that_they_take(tmp_path: Path) -> None:
    """A text of 5,000 characters is in no footer."""
    storage = LocalStorage(str(tmp_path))
    user = pa.schema([("text", pa.string()), ("number", pa.float64())])
    schema = add_meta_schema(user)
    form = BaseFileFormat(avro_schema(user, "t", with_meta_columns=True), row_group_bytes=1)
    writer = BaseFileWriter(
        new_file(storage, "f.parquet"), schema, form, indexed=("text", "number", "_hoodie_record_key")
    )
    for key, text, number in (("a", "z" * 5000, 1.0), ("b", "y", math.nan), ("c", "", -1.0)):
        meta = {name: [key] for name in schema.names[:5]}
        writer.write(pa.table({**meta, "text": [text], "number": [number]}, schema=schema))
    writer.close()
    told = writer.ranges()
    assert told is not None
    found = decode_ranges(told)
    assert (found["text"].low, found["text"].high) == ("", "z" * 5000)
    assert found["number"].low == -1.0
    assert math.isnan(found["number"].high)
    assert (found["_hoodie_record_key"].low, found["_hoodie_record_key"].high) == ("a", "c")
    sizes = [found[name] for name in ("text", "number")]
    assert all(one.values == 3 and one.plain_size > 0 and one.size > 0 for one in sizes)
    by_footer = read_ranges(storage, "f.parquet", ["_hoodie_record_key"])
    assert by_footer["_hoodie_record_key"] == found["_hoodie_record_key"]
