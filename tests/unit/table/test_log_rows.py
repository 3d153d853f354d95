"""Rows in the blocks of log files come back as they were, in either form."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
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
    ]
)
SCHEMA = add_meta_schema(USER)
AVRO = avro_schema(USER, "t", with_meta_columns=True)
MOMENT = datetime.fromisoformat("2026-01-02T03:04:05.678901")
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
}
ROWS = pa.Table.from_pylist([ROW, dict.fromkeys(SCHEMA.names)], SCHEMA)


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_rows_of_every_type_come_back(form: str) -> None:
    block = encode_rows(ROWS, AVRO, instant=INSTANT, form=form)
    (entry,) = read_log(encode_block(block), PATH)
    assert (entry.instant, entry.orderings, entry.is_partial) == (INSTANT, None, False)
    assert entry.rows.schema.equals(SCHEMA)
    assert entry.rows.to_pylist() == ROWS.to_pylist()


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
