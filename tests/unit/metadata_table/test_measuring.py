"""Ranges of files that are there: never too narrow, also where a footer does not tell."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from slice_files import AVRO, make_rows

from hudi_locks.clock import ManualClock
from hudi_locks.format import LogFileName
from hudi_locks.format.column_range import BYTES, DOUBLE, INT, LONG, STRING, ColumnRange
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, encode_block
from hudi_locks.format.log_deletes import encode_deletes
from hudi_locks.metadata_table import choose_columns, measure_file
from hudi_locks.storage import MemoryStorage
from hudi_locks.table import BaseFile, LogFile
from hudi_locks.table.log_rows import encode_rows

FILE = BaseFile("p", "g-0", "20260101000000000", "p/g-0_0-0-0_20260101000000000.parquet", 1)
LOG = str(LogFileName("g-0", "20260101000000000"))


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage(ManualClock())


def put(storage: MemoryStorage, **columns: Any) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    storage.replace(FILE.path, sink.getvalue().to_pybytes())


def test_a_footer_is_believed_where_it_tells_all(storage: MemoryStorage) -> None:
    put(storage, n=[3, None, 1], s=["b", "a", None])
    found = measure_file(storage, FILE, {"n": LONG, "s": STRING})
    assert found is not None
    assert [(one.low, one.high, one.values, one.nulls) for one in found.values()] == [(1, 3, 3, 1), ("a", "b", 3, 1)]


@pytest.mark.parametrize("values", [[1.0, math.nan, -2.0], [math.nan], [math.nan, None]])
def test_nan_is_in_the_range_though_arrow_leaves_it_out_of_a_footer(
    storage: MemoryStorage, values: list[float | None]
) -> None:
    put(storage, d=values)
    found = measure_file(storage, FILE, {"d": DOUBLE})
    assert found is not None
    assert math.isnan(found["d"].high)
    assert found["d"].low == -2.0 or math.isnan(found["d"].low)


def test_long_texts_and_bytes_that_a_footer_lacks_are_read(storage: MemoryStorage) -> None:
    put(storage, s=["a" * 70_000, "z" * 70_000], b=[b"\xff" * 70_000, b"\0"])
    found = measure_file(storage, FILE, {"s": STRING, "b": BYTES})
    assert found is not None
    assert (found["s"].low, found["s"].high) == ("a" * 70_000, "z" * 70_000)
    assert (found["b"].low, found["b"].high) == (b"\0", b"\xff" * 70_000)


def test_a_column_that_came_later_is_null_in_every_row(storage: MemoryStorage) -> None:
    put(storage, n=[3, 1])
    found = measure_file(storage, FILE, {"n": LONG, "late": STRING})
    assert found is not None
    assert found["late"] == ColumnRange(STRING, None, None, 2, 2)


def test_a_column_of_another_type_is_left_out(storage: MemoryStorage) -> None:
    put(storage, n=pa.array([3, 1], pa.int32()))
    assert measure_file(storage, FILE, {"n": LONG}) == {}
    assert set(measure_file(storage, FILE, {"n": INT}) or ()) == {"n"}


def test_logs_are_measured_by_their_rows(storage: MemoryStorage) -> None:
    rows = encode_block(encode_rows(make_rows([("b", 1, 5), ("a", 2, 7)]), AVRO, instant=FILE.instant))
    storage.replace(f"p/{LOG}", rows)
    log = LogFile.parse("p", LOG, len(rows))
    assert log is not None
    found = measure_file(storage, log, {"_hoodie_record_key": STRING, "late": LONG})
    assert found is not None
    assert (found["_hoodie_record_key"].low, found["_hoodie_record_key"].high) == ("a", "b")
    assert found["late"] == ColumnRange(LONG, None, None, 2, 2)


def test_a_log_of_deletes_has_no_ranges_and_one_that_is_gone_is_none(storage: MemoryStorage) -> None:
    header = {BlockHeader.INSTANT_TIME: FILE.instant, BlockHeader.SCHEMA: AVRO}
    block = LogBlock(BlockType.DELETE, header, encode_deletes(pa.array(["a"]), "p"))
    storage.replace(f"p/{LOG}", encode_block(block))
    log = LogFile.parse("p", LOG, 1)
    assert log is not None
    assert measure_file(storage, log, {"_hoodie_record_key": STRING}) == {}
    storage.delete(f"p/{LOG}")
    assert measure_file(storage, log, {"_hoodie_record_key": STRING}) is None
    assert measure_file(storage, FILE, {"n": LONG}) is None


def test_thirty_two_columns_and_three_of_hudis_own_are_chosen() -> None:
    fields = [(f"c{number}", pa.int64()) for number in range(40)]
    schema = pa.schema([("nested", pa.list_(pa.int64())), ("wide", pa.decimal128(38, 20)), *fields])
    chosen = choose_columns(schema, version=8)
    assert len(chosen) == 35
    assert list(chosen)[:4] == ["_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key", "c0"]
    assert "wide" in choose_columns(schema, version=9)
