"""Columns that decide nothing are read of those blocks alone whose rows are left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_locks.errors import DamagedTable
from hudi_locks.format import avro_schema
from hudi_locks.format.log_block import LogBlock, encode_block
from hudi_locks.table import add_meta_schema
from hudi_locks.table.log_merging import merge_logs
from hudi_locks.table.log_rows import encode_rows, read_log
from hudi_locks.table.meta_columns import RECORD_KEY
from hudi_locks.table.ordering import MergeRule

USER = pa.schema([("ts", pa.int64()), ("label", pa.string()), ("value", pa.float64())])
SCHEMA = add_meta_schema(USER)
AVRO = avro_schema(USER, "t", with_meta_columns=True)
RULE = MergeRule(("ts",))
IDLE = tuple(name for name in SCHEMA.names if name not in (RECORD_KEY, "ts"))


def block(instant: str, *records: tuple[str, int, str]) -> LogBlock:
    rows = [{RECORD_KEY: key, "ts": ts, "label": label, "value": float(ts)} for key, ts, label in records]
    return encode_rows(pa.Table.from_pylist(rows, SCHEMA), AVRO, instant=instant)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns of each read of a block."""
    seen: list[list[str]] = []
    read = pq.ParquetFile.read

    def note(self: Any, columns: list[str], **how: Any) -> pa.Table:
        seen.append(columns)
        return read(self, columns=columns, **how)

    monkeypatch.setattr(pq.ParquetFile, "read", note)
    return seen


def merge(blocks: Iterable[LogBlock], existing: list[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    entries = [
        entry for one in blocks for entry in read_log(encode_block(one), "p/.log", columns=SCHEMA.names, idle=IDLE)
    ]
    merged = merge_logs(entries, SCHEMA, RULE)
    base = pa.Table.from_pylist(
        [{RECORD_KEY: key, "ts": ts, "label": label, "value": float(ts)} for key, ts, label in existing], SCHEMA
    )
    rows = pa.concat_tables([merged.apply(base), *merged.remaining()])
    assert rows.schema == SCHEMA
    assert rows["value"].to_pylist() == [float(ts) for ts in rows["ts"].to_pylist()]
    return sorted(zip(*(rows[name].to_pylist() for name in (RECORD_KEY, "ts", "label")), strict=True))


def test_a_block_whose_rows_all_lose_is_read_by_key_and_ordering_value_alone(reads: list[list[str]]) -> None:
    blocks = [block("1", ("a", 1, "x"), ("b", 1, "x")), block("2", ("a", 2, "y"), ("b", 2, "y"), ("c", 2, "y"))]
    assert merge(blocks, [("a", 0, "base"), ("d", 0, "base")]) == [
        ("a", 2, "y"), ("b", 2, "y"), ("c", 2, "y"), ("d", 0, "base"),
    ]  # fmt: skip
    deciding = [RECORD_KEY, "ts"]
    assert reads == [deciding, deciding, [name for name in IDLE if name != "label"]]  # which is one text in all rows


def test_each_block_is_read_whole_once_however_often_its_rows_are_asked_for(reads: list[list[str]]) -> None:
    [entry] = read_log(encode_block(block("1", ("a", 1, "x"))), "p/.log", columns=SCHEMA.names, idle=IDLE)
    assert entry.rows.schema.names == [RECORD_KEY, "ts"]
    assert entry.whole.schema.names == SCHEMA.names == entry.whole.schema.names
    assert len(reads) == 2


def test_nothing_is_left_for_later_where_all_columns_decide(reads: list[list[str]]) -> None:
    [entry] = read_log(encode_block(block("1", ("a", 1, "x"))), "p/.log", columns=[RECORD_KEY, "ts"], idle=IDLE)
    assert entry.whole is entry.rows
    assert reads == [[RECORD_KEY, "ts"]]


def test_what_cannot_be_read_later_names_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    [entry] = read_log(encode_block(block("1", ("a", 1, "x"))), "p/.log", columns=SCHEMA.names, idle=IDLE)

    def fail(*_: Any, **__: Any) -> pa.Table:
        raise OSError("unexpected end of stream")

    monkeypatch.setattr(pq.ParquetFile, "read", fail)
    with pytest.raises(DamagedTable, match=r"p/\.log"):
        list(merge_logs([entry], SCHEMA, RULE).remaining())
