"""Blocks of change data: the JVM's bytes for the same changes, in every mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_locks.errors import DamagedTable
from hudi_locks.format import avro_schema
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, encode_block
from hudi_locks.table import ChangeFormat, add_meta_schema, read_changes, stamp_rows

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "change_logs.json").read_text(encoding="utf-8"))
"""The change logs of one update and one insert, and of one delete, as two releases of JVM Hudi wrote them."""
MODES = ["OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"]
USER = pa.schema(
    [("id", pa.string()), ("region", pa.string()), ("ts", pa.int64()), ("price", pa.float64()), ("name", pa.string())]
)
WHOLE = avro_schema(USER, "t", with_meta_columns=True)
OLD = {"id": "k1", "region": "a", "ts": 1, "price": 1.0, "name": "x"}
NEW = {"id": "k1", "region": "a", "ts": 2, "price": 11.0, "name": "x2"}
ADDED = {"id": "k4", "region": "a", "ts": 2, "price": 4.0, "name": None}
DELETED = {"id": "k2", "region": "a", "ts": 1, "price": 2.0, "name": "y"}
HEAD = 8
"""Bytes of a block's content before its rows: format and count."""


def table(*rows: dict[str, Any]) -> pa.Table:
    """Rows with meta columns, as they stream out of a base file."""
    keyed = [{"_hoodie_record_key": row["id"], "_hoodie_partition_path": row["region"], **row} for row in rows]
    stamped = pa.Table.from_pylist(keyed, add_meta_schema(USER))
    return stamp_rows(stamped, add_meta_schema(USER), instant="20260101000000000", seqno_prefix="0", first_seqno=0)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda one: f"{one['release']}-{one['mode']}-{one['write']}")
def test_changes_are_written_as_the_jvm_writes_them(golden: dict[str, str]) -> None:
    form = ChangeFormat(golden["mode"], WHOLE)
    changes = {"upsert": [(table(OLD), table(NEW)), (None, table(ADDED))], "delete": [(table(DELETED), None)]}
    blocks = [form.encode(before, after, instant=golden["instant"]) for before, after in changes[golden["write"]]]
    content = bytes.fromhex(golden["content"])
    assert b"".join(bytes(block.content)[HEAD:] for block in blocks) == content[HEAD:]
    assert bytes(blocks[0].content)[:4] == content[:4]
    for block in blocks:
        assert block.kind is BlockType.CDC
        assert block.instant == golden["instant"]
        assert json.loads(block.schema) == {k: v for k, v in json.loads(golden["schema"]).items() if k != "doc"}


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda one: f"{one['release']}-{one['mode']}-{one['write']}")
def test_change_logs_of_the_jvm_are_read(golden: dict[str, str]) -> None:
    header = {BlockHeader.INSTANT_TIME: golden["instant"], BlockHeader.SCHEMA: golden["schema"]}
    data = encode_block(LogBlock(BlockType.CDC, header, bytes.fromhex(golden["content"])))
    ((instant, changes),) = read_changes(data, "a/.f_0.log.1_0-0-0.cdc")
    assert instant == golden["instant"]
    assert [change["op"] for change in changes] == {"upsert": ["u", "i"], "delete": ["d"]}[golden["write"]]
    if golden["mode"] != "OP_KEY_ONLY":
        assert changes[0]["before"] == {"upsert": OLD, "delete": DELETED}[golden["write"]]


@pytest.mark.parametrize("mode", MODES)
def test_nested_and_decimal_columns_are_in_both_versions_of_a_row(mode: str) -> None:
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("spent", pa.decimal128(12, 2)),
            ("place", pa.struct([("city", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])),
            ("tags", pa.list_(pa.string())),
        ]
    )
    row = {"_hoodie_record_key": "k", "id": "k", "spent": None, "place": {"city": "Kiel", "at": 7}, "tags": ["a", None]}
    rows = pa.Table.from_pylist([row], add_meta_schema(schema))
    form = ChangeFormat(mode, avro_schema(schema, "my-table", with_meta_columns=True))
    data = encode_block(form.encode(rows, rows, instant="20260101000000000"))
    ((_, (change,)),) = read_changes(data, "f")
    assert change["op"] == "u"
    versions = [change[name] for name in ("before", "after") if name in change]
    assert len(versions) == MODES.index(mode)
    for version in versions:
        assert version == {"id": "k", "spent": None, "place": {"city": "Kiel", "at": 7}, "tags": ["a", None]}


def test_a_change_log_that_is_cut_off_or_has_rows_of_a_table_is_damaged() -> None:
    block = ChangeFormat("DATA_BEFORE", WHOLE).encode(table(OLD), None, instant="20260101000000000")
    data = encode_block(block)
    with pytest.raises(DamagedTable, match="f is damaged at byte"):
        list(read_changes(data[:-3], "f"))
    other = encode_block(LogBlock(BlockType.AVRO, block.header, block.content))
    with pytest.raises(DamagedTable, match="of type AVRO among change data"):
        list(read_changes(other, "f"))
    amiss = encode_block(LogBlock(BlockType.CDC, block.header, bytes(block.content)[:-1]))
    with pytest.raises(DamagedTable, match="cannot be read"):
        list(read_changes(amiss, "f"))
