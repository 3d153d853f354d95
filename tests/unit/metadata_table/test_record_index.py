"""The record index: its records are those of JVM Hudi, and a key is where the last write brought it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.errors import DamagedTable
from hudi_locks.format.hfile import HFile
from hudi_locks.format.log_block import BlockType, decode_blocks
from hudi_locks.format.metadata_keys import KEY_CHANGES, group_number, group_numbers
from hudi_locks.format.metadata_record import FileEntry, MetadataRecord, RecordKind, encode_metadata_record
from hudi_locks.format.metadata_schema import SCHEMA_TEXTS
from hudi_locks.metadata_table import LocatedKeys, encode_record_log, find_keys
from hudi_locks.metadata_table.record_files import merge_base_file
from hudi_locks.storage import LocalStorage
from hudi_locks.table import BaseFile, FileSlice, LogFile

GOLDEN = json.loads(Path(__file__).parents[2].joinpath("golden", "record_index.json").read_text())
TIME = "20261126212210216"
LOG = ".record-index-0000-0_20261126212210216.log.1_0-0-0"
ID = "67699732-9608-40a7-ab81-96ee3a5441ee-0"


def changes(*rows: tuple[str, str, str, bool]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    arrays = [pa.array(column, kind) for column, kind in zip(columns, KEY_CHANGES.types, strict=True)]
    return pa.table(arrays, schema=KEY_CHANGES)


def find(logs: list[bytes], *keys: str) -> dict[str, tuple[str, str]]:
    files = [(LOG, log) for log in logs]
    found = LocatedKeys(files).find(pa.array(keys, pa.string())).to_pylist()
    return {row["key"]: (row["path"], row["file_id"]) for row in found}


@pytest.mark.parametrize("entry", GOLDEN, ids=lambda entry: f"{entry['bundle']}-{entry['key']}")
def test_the_record_of_a_key_has_the_bytes_that_the_jvm_writes(entry: dict[str, Any]) -> None:
    told = changes((entry["key"], entry["path"], entry["file_id"], False))
    data, count = encode_record_log(entry["instant"], told, entry["version"])
    [block] = decode_blocks(data, LOG)
    assert (block.kind, count) == (BlockType.HFILE, 1)
    assert list(HFile(block.content, LOG).entries()) == [(entry["key"].encode(), bytes.fromhex(entry["value"]))]
    assert find([data], entry["key"]) == {entry["key"]: (entry["path"], entry["file_id"])}
    assert entry["file_group"] == f"record-index-{group_number(entry['key'], 10):04d}-0"


@pytest.mark.parametrize("file_id", [ID, ID[:36], f"{ID[:36]}-17", "bucket-0", ID.upper(), f"{ID[:36]}-x", "-"])
def test_file_ids_of_every_form_come_back(file_id: str) -> None:
    data, _ = encode_record_log(TIME, changes(("k", "", file_id, False)), 9)
    assert find([data], "k", "other") == {"k": ("", file_id)}


def test_a_key_that_one_file_group_lost_and_another_gained_is_there() -> None:
    rows = changes(("a", "p", ID, True), ("b", "p", ID, True), ("a", "q", "new", False), ("ü", "q", "new", False))
    data, count = encode_record_log(TIME, rows, 8)
    assert count == 3
    assert find([data], "a", "b", "ü") == {"a": ("q", "new"), "ü": ("q", "new")}


def test_later_logs_count_and_deletes_take_keys_out() -> None:
    first, _ = encode_record_log(TIME, changes(("a", "p", "1", False), ("b", "p", "1", False)), 9)
    second, _ = encode_record_log(TIME, changes(("a", "p", "2", False), ("b", "p", "1", True)), 9)
    third, _ = encode_record_log(TIME, changes(("b", "q", "3", False)), 9)
    assert find([first, second], "a", "b") == {"a": ("p", "2")}
    assert find([first, second, third], "a", "b") == {"a": ("p", "2"), "b": ("q", "3")}


def test_keys_are_found_in_the_stored_files_of_a_slice(tmp_path: Path) -> None:
    """Of which the base file is opened for a few blocks, and is not read whole."""
    storage = LocalStorage(str(tmp_path))
    folder = ".hoodie/metadata/record_index"
    first, _ = encode_record_log(TIME, changes(*((f"k{number:05}", "p", ID, False) for number in range(30_000))), 9)
    second, _ = encode_record_log(TIME, changes(("k00007", "q", "2", False), ("k00009", "p", ID, True)), 9)
    base = BaseFile(folder, "record-index-0000-0", TIME, f"{folder}/record-index-0000-0_0-0-0_{TIME}.hfile", 1)
    log = LogFile.parse(folder, LOG, 1)
    assert log is not None
    storage.replace(base.path, merge_base_file(None, [(LOG, first)], version=9))
    storage.replace(log.path, second)
    piece = FileSlice(folder, base.file_id, TIME, base, (log,))
    found = find_keys(storage, piece, pa.array(["k00007", "k00008", "k00009", "k29999", "z", ""])).to_pylist()
    assert {(row["key"], row["path"], row["file_id"]) for row in found} == {
        ("k00007", "q", "2"), ("k00008", "p", ID), ("k29999", "p", ID)
    }  # fmt: skip
    storage.delete(base.path)
    with pytest.raises(DamagedTable, match="is gone: cleaned since it was listed") as caught:
        find_keys(storage, piece, pa.array(["k00007"]))
    assert caught.value.path == base.path


def test_no_change_is_an_empty_log_that_finds_nothing() -> None:
    data, count = encode_record_log(TIME, changes(), 9)
    assert (data, count) == (b"", 0)
    assert find([data], "a") == {}


def test_the_same_changes_in_another_order_give_the_same_bytes() -> None:
    rows = [(f"k{i}", f"p{i % 3}", ID, False) for i in range(500)] + [(f"g{i}", "p", ID, True) for i in range(50)]
    assert encode_record_log(TIME, changes(*rows), 9) == encode_record_log(TIME, changes(*rows[::-1]), 9)


def test_a_record_of_another_part_is_damage() -> None:
    from hudi_locks.format.hfile_writer import encode_hfile
    from hudi_locks.format.log_block import BlockHeader, LogBlock, encode_block

    other = MetadataRecord(RecordKind.FILES, {"f": FileEntry(1)})
    header = {BlockHeader.INSTANT_TIME: TIME, BlockHeader.SCHEMA: SCHEMA_TEXTS[9]}
    block = LogBlock(BlockType.HFILE, header, encode_hfile([(b"k", encode_metadata_record(other, 9))]))
    with pytest.raises(DamagedTable, match="of another part"):
        find([encode_block(block)], "k")


@given(st.lists(st.text(max_size=30)), st.integers(1, 12))
def test_many_keys_are_spread_as_each_is(keys: list[str], groups: int) -> None:
    assert group_numbers(pa.array(keys, pa.string()), groups).tolist() == [group_number(key, groups) for key in keys]
