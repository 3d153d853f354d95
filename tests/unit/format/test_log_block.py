"""Blocks of log files: the JVM's bytes, and nothing that a reader would leave out in silence."""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hudi_locks.errors import DamagedTable
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, decode_blocks, encode_block
from hudi_locks.format.log_deletes import _LIST, decode_deletes, encode_deletes

GOLDEN = Path(__file__).parents[2] / "golden"
PATH = "p/.f-0_20260101000000000.log.1_0-0-0"
BLOCK = LogBlock(
    BlockType.PARQUET, {BlockHeader.INSTANT_TIME: "20260101000000000", BlockHeader.SCHEMA: "{}"}, b"PAR1 rows"
)


def golden_logs(name: str) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(GOLDEN / f"{name}.tar.gz") as archive:
        for member in archive:
            if ".log." in member.name and (file := archive.extractfile(member)):
                yield member.name, file.read()


def test_blocks_of_the_jvm_are_made_byte_for_byte() -> None:
    logs = dict(golden_logs("v8_mor_nbcc"))
    again = {path: b"".join(map(encode_block, decode_blocks(data, path))) for path, data in logs.items()}
    assert again == logs
    assert len(logs) == 17


@pytest.mark.parametrize("name", ["v8_mor", "v9_mor"])
def test_deletes_of_the_jvm_are_made_byte_for_byte(name: str) -> None:
    blocks = [block for path, data in golden_logs(name) for block in decode_blocks(data, path)]
    contents = [bytes(block.content) for block in blocks if block.kind is BlockType.DELETE]
    found = [decode_deletes(content, PATH) for content in contents]
    partitions = [content[content.index(b"region=") :].rstrip(b"\x00")[:-1].decode() for content in contents]
    assert sorted(key for deletes in found for key in deletes.keys) == ["k002", "k004", "k015"]
    assert all(deletes.orderings == (None,) for deletes in found)
    made = [encode_deletes(pa.array(deletes.keys), at) for deletes, at in zip(found, partitions, strict=True)]
    assert made == contents


@given(st.lists(st.text(max_size=200)), st.text(max_size=70), st.integers(0, 5))
@example(["", "ключ 😀", "x" * 63, "x" * 64, "x" * 8191, "x" * 8192], "region=eu", 2)
def test_deletes_are_those_that_an_avro_library_writes(keys: list[str], partition: str, cut: int) -> None:
    column = pa.chunked_array([pa.array(keys[:cut], pa.string()), pa.array(keys, pa.string()).slice(cut)])
    everything = ("org.apache.hudi.avro.model.IntWrapper", {"value": 0})
    records = [{"recordKey": key, "partitionPath": partition, "orderingVal": everything} for key in keys]
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _LIST, {"deleteRecordList": records})
    found = encode_deletes(column, partition)
    assert found == struct.pack(">ii", 3, out.tell()) + out.getvalue()
    assert decode_deletes(found, PATH).keys == tuple(keys)


def test_what_a_block_says_comes_back() -> None:
    (found,) = decode_blocks(encode_block(BLOCK), PATH)
    assert (found.kind, found.header, bytes(found.content)) == (BLOCK.kind, BLOCK.header, BLOCK.content)
    assert (found.instant, found.schema, found.is_partial) == ("20260101000000000", "{}", False)


@given(st.integers(1, 2 * len(encode_block(BLOCK)) - 1))
def test_a_log_that_is_cut_off_anywhere_is_an_error(length: int) -> None:
    data = encode_block(BLOCK) * 2
    if length != len(data) // 2:
        with pytest.raises(DamagedTable, match=r"\.log\.1_0-0-0 is damaged at byte"):
            list(decode_blocks(data[:length], PATH))


@example(78, 128)  # the sign of the number of texts that follow the content
@given(st.integers(0, len(encode_block(BLOCK)) - 1), st.integers(1, 255))
def test_a_changed_byte_of_the_frame_is_an_error(place: int, flip: int) -> None:
    data = bytearray(encode_block(BLOCK))
    data[place] ^= flip
    try:
        (found,) = decode_blocks(bytes(data), PATH)
    except DamagedTable:
        return
    assert (found.kind, found.header, bytes(found.content)) != (BLOCK.kind, BLOCK.header, BLOCK.content)


def test_a_wrong_back_pointer_is_an_error() -> None:
    data = encode_block(BLOCK)
    (back,) = struct.unpack(">q", data[-8:])
    with pytest.raises(DamagedTable, match="points to its begin"):
        list(decode_blocks(data[:-8] + struct.pack(">q", back + 6), PATH))


@pytest.mark.parametrize("header", [BlockHeader.INSTANT_TIME, BlockHeader.SCHEMA])
def test_a_block_that_readers_would_leave_out_is_not_made(header: BlockHeader) -> None:
    rest = {key: text for key, text in BLOCK.header.items() if key is not header}
    with pytest.raises(ValueError, match=header.name):
        encode_block(LogBlock(BLOCK.kind, rest, BLOCK.content))


def test_other_kinds_are_not_made() -> None:
    with pytest.raises(ValueError, match="are not written"):
        encode_block(LogBlock(BlockType.CORRUPT, BLOCK.header, b""))


def test_a_header_of_a_later_release_is_passed_over() -> None:
    data = encode_block(LogBlock(BLOCK.kind, {**BLOCK.header, BlockHeader.BLOCK_IDENTIFIER: "7"}, BLOCK.content))
    later = data.replace(struct.pack(">ii", BlockHeader.BLOCK_IDENTIFIER, 1), struct.pack(">ii", 99, 1))
    (found,) = decode_blocks(later, PATH)
    assert found.header == BLOCK.header
