"""Log files as they are written: whole blocks, rolled over, and of the structure that the JVM's have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from slice_files import new_file

from hudi_locks.errors import StorageError
from hudi_locks.format import avro_schema
from hudi_locks.format.log_block import BlockHeader, BlockType, decode_blocks
from hudi_locks.storage import LocalStorage
from hudi_locks.table import RECORD_KEY, LogFormat, LogPart, LogWriter, add_meta_schema
from hudi_locks.table.log_rows import read_log

INSTANT = "20260101000000000"
USER = pa.schema([("id", pa.string()), ("ts", pa.int64())])
SCHEMA = add_meta_schema(USER)
AVRO = avro_schema(USER, "t", with_meta_columns=True)
Open = Callable[..., LogWriter]


def rows(first: int, count: int) -> pa.Table:
    ids = [f"k{number:06d}" for number in range(first, first + count)]
    meta = [pa.array(ids, pa.string())] * 5
    return pa.table([*meta, pa.array(ids), pa.array(range(first, first + count), pa.int64())], schema=SCHEMA)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def open_writer(folder: Path) -> Open:
    def make(**changes: object) -> LogWriter:
        form = LogFormat(AVRO, **changes)  # type: ignore[arg-type]
        storage = LocalStorage(str(folder))
        return LogWriter(lambda version: new_file(storage, str(version)), form, instant=INSTANT, partition="p")

    return make


def read_back(path: Path) -> list[pa.Table]:
    return [entry.rows for entry in read_log(path.read_bytes(), str(path))]


@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_rows_come_back_and_are_counted(open_writer: Open, folder: Path, form: str) -> None:
    writer = open_writer(form=form)
    writer.write(rows(0, 3))
    writer.write(rows(3, 2))
    [part] = writer.close()
    data = (folder / "1").read_bytes()
    assert part == LogPart(1, len(data), rows=5)
    assert pa.concat_tables(read_back(folder / "1")).equals(rows(0, 5))


def test_a_full_file_is_followed_by_another_and_nothing_is_lost(open_writer: Open, folder: Path) -> None:
    writer = open_writer(file_bytes=4_000, block_bytes=10_000)
    for start in range(0, 2_000, 100):
        writer.write(rows(start, 100))
    parts = writer.close()
    assert [part.version for part in parts] == list(range(1, len(parts) + 1))
    assert len(parts) > 2
    sizes = [(folder / str(part.version)).stat().st_size for part in parts]
    assert sizes == [part.size for part in parts]
    assert all(size >= 4_000 for size in sizes[:-1])
    found = [table for part in parts for table in read_back(folder / str(part.version))]
    assert pa.concat_tables(found).equals(rows(0, 2_000))


def test_no_block_takes_more_memory_than_it_may(open_writer: Open, folder: Path) -> None:
    writer = open_writer(block_bytes=rows(0, 50).nbytes)
    writer.write(rows(0, 240))
    writer.close()
    assert [table.num_rows for table in read_back(folder / "1")] == [50, 50, 50, 50, 40]


def test_a_row_that_is_larger_than_a_block_is_a_block(open_writer: Open, folder: Path) -> None:
    writer = open_writer(block_bytes=1)
    writer.write(rows(0, 3))
    writer.close()
    assert [table.num_rows for table in read_back(folder / "1")] == [1, 1, 1]


def test_deletes_take_out_whatever_came_before(open_writer: Open, folder: Path) -> None:
    writer = open_writer()
    writer.delete(pa.chunked_array([["a"], ["ключ"]]))
    [part] = writer.close()
    data = (folder / "1").read_bytes()
    [entry] = read_log(data, "1")
    assert (entry.rows.column(RECORD_KEY).to_pylist(), entry.orderings) == (["a", "ключ"], (None, None))
    assert part == LogPart(1, len(data), deletes=2)


def test_nothing_added_makes_no_file(open_writer: Open, folder: Path) -> None:
    writer = open_writer()
    writer.write(rows(0, 0))
    assert writer.close() == ()
    assert list(folder.iterdir()) == []


def test_a_store_that_fails_is_named(open_writer: Open, folder: Path) -> None:
    (folder / "1").mkdir()
    with pytest.raises(StorageError, match="cannot write '1'"):
        open_writer().write(rows(0, 1))


def test_blocks_have_the_headers_of_the_jvms(
    open_writer: Open, folder: Path, golden: Callable[[str], LocalStorage]
) -> None:
    """Of a log that a JVM writer made without blocking: no more than instant and schema."""
    storage = golden("v8_mor_nbcc")
    path = next(path for path, entry in storage.walk("") if entry.name.startswith(".0000") and ".log." in entry.name)
    [theirs] = decode_blocks(storage.read(path) or b"", path)
    writer = open_writer(form="avro")
    writer.write(rows(0, 1))
    writer.close()
    [ours] = decode_blocks((folder / "1").read_bytes(), "1")
    assert ours.kind is theirs.kind is BlockType.AVRO
    assert ours.header.keys() == theirs.header.keys() == {BlockHeader.INSTANT_TIME, BlockHeader.SCHEMA}
    assert bytes(ours.content[:8]) == bytes(theirs.content[:4]) + (1).to_bytes(4, "big")
