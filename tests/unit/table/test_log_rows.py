"""Rows in the blocks of log files come back as they were, in either form."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_locks.errors import DamagedTable, UnsupportedTable
from hudi_locks.format import avro_schema
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, encode_block
from hudi_locks.table import RECORD_KEY, add_meta_schema
from hudi_locks.table.log_rows import encode_deleted, encode_rows, read_log

PATH = "p/.f-0_20260101000000000.log.1_0-0-0"
INSTANT = "20260101000000000"
DAY = pa.field("value", pa.date32())
USER = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("small", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("more", pa.struct([("a", pa.float64()), ("b", pa.bool_())])),
        ("pairs", pa.map_(pa.string(), pa.field("value", pa.int64()))),
        ("deep", pa.map_(pa.string(), pa.field("value", pa.struct([("days", pa.map_(pa.string(), DAY))])))),
        ("moments", pa.list_(pa.field("element", pa.struct([("at", pa.timestamp("us", "UTC"))])))),
    ]
)
SCHEMA = add_meta_schema(USER)
AVRO = avro_schema(USER, "t", with_meta_columns=True)
MOMENT = datetime.fromisoformat("2026-01-02T03:04:05.678901")
MOMENT_OF_JVM = datetime.fromisoformat("2024-03-10T02:30:00.123456")
GOLDEN = Path(__file__).parents[2] / "golden"
ROW: dict[str, Any] = {
    **dict.fromkeys(SCHEMA.names[:5], "m"),
    "id": "ключ",
    "ts": 1 << 40,
    "small": -3,
    "price": Decimal("12345.67"),
    "day": date(2026, 1, 2),
    "at": MOMENT.replace(tzinfo=timezone.utc),
    "local": MOMENT,
    "raw": b"\x00\xff",
    "tags": ["a", None],
    "more": {"a": 1.5, "b": None},
    "pairs": [("a", 1), ("b", None)],
    "deep": [("k", {"days": [("d", date(1969, 1, 2))]}), ("none", None), ("empty", {"days": []})],
    "moments": [{"at": MOMENT.replace(tzinfo=timezone.utc)}, {"at": None}, None],
}
ROWS = pa.Table.from_pylist([ROW, dict.fromkeys(SCHEMA.names)], SCHEMA)


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_rows_of_every_type_come_back(form: str) -> None:
    block = encode_rows(ROWS, AVRO, instant=INSTANT, form=form)
    (entry,) = read_log(encode_block(block), PATH)
    assert (entry.instant, entry.orderings, entry.is_partial) == (INSTANT, None, False)
    assert entry.rows.schema.equals(SCHEMA)
    assert entry.rows.to_pylist() == ROWS.to_pylist()


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_times_beyond_those_of_python_come_back(form: str) -> None:
    """Spark knows times from before the year 1 to beyond the year 200,000."""
    schema = pa.schema([SCHEMA.field(name) for name in (*SCHEMA.names[:5], "day", "at", "local", "moments")])
    far = {"day": 1 << 24, "at": 3 * 10**17, "local": -(10**17), "moments": [{"at": 3 * 10**17}]}
    rows = pa.Table.from_pylist([{**ROW, **far}], schema)
    avro = avro_schema(pa.schema(list(schema)[5:]), "t", with_meta_columns=True)
    (entry,) = read_log(encode_block(encode_rows(rows, avro, instant=INSTANT, form=form)), PATH)
    assert entry.rows.equals(rows)


def test_rows_may_be_part_of_a_table() -> None:
    rows = pa.concat_tables([ROWS, ROWS]).combine_chunks().slice(1, 2)
    (entry,) = read_log(encode_block(encode_rows(rows, AVRO, instant=INSTANT, form="avro")), PATH)
    assert entry.rows.to_pylist() == rows.to_pylist() == [dict.fromkeys(SCHEMA.names), ROW]


def test_blocks_come_in_their_order() -> None:
    deleted = encode_deleted(pa.chunked_array([["k1", "k2"]]), "p", instant=INSTANT, avro_schema=AVRO)
    blocks = [encode_rows(ROWS, AVRO, instant=INSTANT), deleted]
    first, second = read_log(b"".join(map(encode_block, blocks)), PATH)
    assert first.rows.num_rows == 2
    assert (second.rows.to_pydict(), second.orderings) == ({RECORD_KEY: ["k1", "k2"]}, (None, None))


@pytest.mark.parametrize("form", [BlockType.PARQUET, BlockType.AVRO, BlockType.DELETE])
def test_content_that_cannot_be_read_names_the_file(form: BlockType) -> None:
    header = {BlockHeader.INSTANT_TIME: INSTANT, BlockHeader.SCHEMA: AVRO}
    with pytest.raises(DamagedTable, match=r"\.log\.1_0-0-0.*cannot be read"):
        list(read_log(encode_block(LogBlock(form, header, b"\x00\x00\x00\x03\x00\x00\x00\x05nothing")), PATH))


def test_a_block_of_another_kind_is_refused_by_name() -> None:
    data = bytearray(encode_block(encode_rows(ROWS, AVRO, instant=INSTANT)))
    data[21] = BlockType.HFILE
    with pytest.raises(UnsupportedTable, match="HFILE"):
        list(read_log(bytes(data), PATH))


MILLIS = MOMENT_OF_JVM.replace(microsecond=123000)
BY_STREAMER: dict[str, Any] = {
    "millis": MILLIS.replace(tzinfo=timezone.utc),
    "micros": MOMENT_OF_JVM.replace(tzinfo=timezone.utc),
    "local": MOMENT_OF_JVM,
    "local_millis": MILLIS,
    "far": 3 * 10**17,
    "day": date(2022, 1, 8),
    "kind": "B",
    "fixed": b"\x00\xff\x07",
    "price": Decimal("5.11"),
    "uuid": "d2719d62-5f2b-4c5b-8a5c-0d8ec1c1f7b5",
    "inner": {"z": 5},
    "listed": [{"m": [("q", 3)]}],
    "mapped": [("k", {"t": MILLIS.replace(tzinfo=timezone.utc)})],
    "again": {"a": {"v": 1, "f": b"abc"}, "b": {"v": 2, "f": b"def"}},
}
BY_SPARK: dict[str, Any] = {
    "tiny": 7,
    "big": -9,
    "single": 0.5,
    "twice": 1e-300,
    "price": Decimal("12345678.90"),
    "wide": Decimal("-12345678901234567890.123456789012345678"),
    "day": date(1582, 10, 15),
    "at": MOMENT_OF_JVM.replace(tzinfo=timezone.utc),
    "raw": b"\x00\xff",
    "text": "ünï 日本 😀",
    "pairs": [("a", 1), ("b", None)],
    "none": [],
    "deep": [("k", {"x": 1, "y": ["q"]})],
    "far": 3 * 10**17,
    "maps": [[("t", MOMENT_OF_JVM.replace(tzinfo=timezone.utc))]],
    "lists": [("a", [[("b", date(2020, 1, 1))]])],
    "structs": [{"k": "a", "v": Decimal("1.5")}, {"k": None, "v": None}],
    "nested": {"x": 1, "y": {"m": [("b", b"\x01\x02")], "d": Decimal("1.23")}},
    "rows": [[1], []],
}


@pytest.mark.parametrize(("name", "expected"), [("streamer", BY_STREAMER), ("spark", BY_SPARK)])
def test_every_type_in_avro_of_the_jvm(name: str, expected: dict[str, Any]) -> None:
    (entry,) = read_log((GOLDEN / f"every_type_{name}.log").read_bytes(), PATH)
    rows = entry.rows.set_column(entry.rows.schema.get_field_index("far"), "far", entry.rows["far"].cast(pa.int64()))
    (found,) = (row for row in rows.to_pylist() if row["id"] == "a")
    assert {column: found[column] for column in expected} == expected
