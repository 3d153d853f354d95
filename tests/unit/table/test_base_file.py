"""What stands in a base file's footer, and that damaged files are named."""

from __future__ import annotations

import base64
import errno
import io
import json
import resource
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from slice_files import new_file

from hudi_locks.errors import DamagedTable, StorageError
from hudi_locks.format import avro_schema
from hudi_locks.format.key_filter import EVERY_KEY, FilterSize
from hudi_locks.storage import LocalStorage
from hudi_locks.table import (
    COMMIT_SEQNO,
    RECORD_KEY,
    BaseFileFormat,
    BaseFileWriter,
    add_meta_schema,
    conform,
    read_base_file,
    read_first_key,
    rename_file,
    stamp_rows,
)
from hudi_locks.table.base_file import count_row_groups, describe_base_file, read_file_schema

USER = pa.schema([("value", pa.int64())])
SCHEMA = add_meta_schema(USER)


@contextmanager
def small_files() -> Iterator[None]:
    """The system lets no file grow beyond 1000 bytes: not that one either to which pytest itself may report.

    Python before 3.12.8 would also cut the byte code of the modules that are first imported here, and every later
    process would fail on what it left.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[0][1]))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before[0])
        sys.dont_write_bytecode = before[1]


def fill(storage: LocalStorage, path: str, *, row_group_bytes: int) -> None:
    form = BaseFileFormat(avro_schema(USER, "t", with_meta_columns=True), row_group_bytes=row_group_bytes)
    writer = BaseFileWriter(new_file(storage, path), SCHEMA, form)
    try:
        writer.write(rows(*(f"k{number}" for number in range(20_000))))
        writer.close()
    finally:
        writer.abandon()


def test_a_filter_of_keys_keeps_no_other_column_in_memory(tmp_path: Path) -> None:
    """Rows that came from another process share one buffer with all of their columns."""
    form = BaseFileFormat(avro_schema(USER, "t", with_meta_columns=True), key_filter=FilterSize(1000, 0.01))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_table(rows("a", "b"))
    sent = sink.getvalue()
    writer = BaseFileWriter(new_file(LocalStorage(str(tmp_path)), "x.parquet"), SCHEMA, form)
    received = pa.ipc.open_stream(sent).read_all()
    writer.write(received)
    place = range(sent.address, sent.address + sent.size)
    assert received.column("_hoodie_record_key").chunk(0).buffers()[2].address in place
    assert [key for keys in writer._keys for key in keys.to_pylist()] == ["a", "b"]
    assert not any(buffer.address in place for keys in writer._keys for buffer in keys.buffers() if buffer)
    writer.close()


@pytest.mark.parametrize("row_group_bytes", [1, 1 << 30])
def test_a_disk_that_fails_is_named(tmp_path: Path, row_group_bytes: int) -> None:
    """While rows are written, or when the file is closed."""
    storage = LocalStorage(str(tmp_path))
    with pytest.raises(StorageError, match=r"'x\.parquet': File too large") as caught, small_files():
        fill(storage, "x.parquet", row_group_bytes=row_group_bytes)
    assert (caught.value.path, caught.value.errno) == ("x.parquet", errno.EFBIG)


def test_a_full_disk_is_named() -> None:
    with pytest.raises(StorageError, match="'full': No space left on device") as caught:
        fill(LocalStorage("/dev"), "full", row_group_bytes=1)
    assert (caught.value.path, caught.value.errno) == ("full", errno.ENOSPC)


def rows(*keys: str, first: int = 0) -> pa.Table:
    given = pa.table({RECORD_KEY: pa.array(keys), "_hoodie_partition_path": pa.repeat("p", len(keys))})
    given = given.append_column("value", pa.array(range(len(keys))))
    return stamp_rows(given, SCHEMA, instant="20240101000000000", seqno_prefix="7", first_seqno=first)


def test_a_writer_tells_the_filter_of_its_footer(tmp_path: Path) -> None:
    avro = avro_schema(USER, "t", with_meta_columns=True)
    told = []
    for key_filter in (FilterSize(1000, 0.01), None):
        form = BaseFileFormat(avro, key_filter=key_filter)
        writer = BaseFileWriter(new_file(LocalStorage(str(tmp_path)), "f.parquet"), SCHEMA, form)
        writer.write(rows("a", "b"))
        writer.close()
        told.append(writer.key_filter)
        footer = pq.read_metadata(tmp_path / "f.parquet").metadata[b"org.apache.hudi.bloomfilter"].decode()
        assert footer == (writer.key_filter or EVERY_KEY)
    assert told[0] not in (None, EVERY_KEY)
    assert told[1] is None


def write(path: Path, *pieces: pa.Table, row_group_bytes: int = 1 << 20) -> dict[str, str]:
    form = BaseFileFormat(avro_schema(USER, "t", with_meta_columns=True), row_group_bytes=row_group_bytes)
    writer = BaseFileWriter(new_file(LocalStorage(str(path.parent)), path.name), SCHEMA, form)
    for piece in pieces:
        writer.write(piece)
    writer.close()
    return {key.decode(): value.decode() for key, value in pq.read_metadata(path).metadata.items()}


def parse_bloom(text: str) -> tuple[int, int, int, int, bytes]:
    data = base64.b64decode(text)
    version, hashes, kind, bits = struct.unpack(">iibi", data[:13])
    return version, hashes, kind, bits, data[13:]


def test_the_bloom_filter_has_the_form_of_the_jvms_and_holds_every_key(
    tmp_path: Path, golden: Callable[[str], LocalStorage]
) -> None:
    theirs = pq.read_metadata(next(Path(golden("v8_cow").base).rglob("*.parquet"))).metadata
    footer = write(tmp_path / "f.parquet", rows("a"))
    assert theirs[b"hoodie_bloom_filter_type_code"] == b"DYNAMIC_V0"  # a row of simple filters behind a longer head
    simple = base64.b64decode(theirs[b"org.apache.hudi.bloomfilter"])[13 + 12 :]
    assert footer["hoodie_bloom_filter_type_code"] == "SIMPLE"
    ours = footer["org.apache.hudi.bloomfilter"]
    for text in (base64.b64encode(simple).decode(), ours):
        version, hashes, kind, bits, data = parse_bloom(text)
        assert (version, kind, len(data)) == (-1, 1, -(-bits // 8))
        assert hashes >= 1
    assert set(parse_bloom(ours)[4]) == {0xFF}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["b", "a", "c"], ("a", "c")),
        (["a", "ключ"], ("", "\uffff")),
        (["😀"], ("", "\uffff")),
        ([""], ("", "")),
    ],
)
def test_the_key_range_covers_every_key_as_java_compares(
    tmp_path: Path, keys: list[str], expected: tuple[str, str]
) -> None:
    footer = write(tmp_path / "f.parquet", *[rows(key) for key in keys])
    assert (footer["hoodie_min_record_key"], footer["hoodie_max_record_key"]) == expected
    units = [key.encode("utf-16-be") for key in keys]
    assert expected[0].encode("utf-16-be") <= min(units) <= max(units) <= expected[1].encode("utf-16-be")


def test_the_footer_names_the_avro_schema_with_the_meta_columns(tmp_path: Path) -> None:
    footer = write(tmp_path / "f.parquet", rows("a"))
    names = [field["name"] for field in json.loads(footer["parquet.avro.schema"])["fields"]]
    assert names == SCHEMA.names
    assert "ARROW:schema" not in footer


def test_the_size_is_told_once_the_file_is_whole(tmp_path: Path) -> None:
    writer = BaseFileWriter(new_file(LocalStorage(str(tmp_path)), "x.parquet"), SCHEMA, BaseFileFormat("{}"))
    writer.write(rows("a", "b"))
    assert writer.close() == (tmp_path / "x.parquet").stat().st_size


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 cut off")
    with pytest.raises(DamagedTable, match=r"broken\.parquet"):
        list(read_base_file(LocalStorage(str(tmp_path)), "broken.parquet"))


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedTable, match=r"p/x\.parquet is gone") as caught:
        read_first_key(LocalStorage(str(tmp_path)), "p/x.parquet")
    assert caught.value.path == "p/x.parquet"


class Unreachable(LocalStorage):
    """A store that does not answer, and gives no number of the system for that."""

    is_reached = False

    def open_input(self, path: str) -> pa.NativeFile:
        if self.is_reached:
            return pa.PythonFile(_Failing(path), mode="r")
        raise StorageError(f"no answer for {path}", path=path)


class _Failing(io.BytesIO):
    """Fails at every read."""

    def __init__(self, path: str) -> None:
        super().__init__(b"PAR1" * 100)
        self._path = path

    def read(self, *_: object) -> bytes:
        raise StorageError(f"no answer for {self._path}", path=self._path)


@pytest.mark.parametrize("is_reached", [False, True])
def test_a_store_that_does_not_answer_is_no_damage(is_reached: bool) -> None:
    """Neither when a file is opened, nor when it is read."""
    storage = Unreachable("/nowhere")
    storage.is_reached = is_reached
    with pytest.raises(StorageError, match=r"no answer for x\.parquet"):
        list(read_base_file(storage, "x.parquet"))


def test_a_file_that_nobody_wants_is_closed_without_an_error(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    writer = BaseFileWriter(new_file(storage, "x.parquet"), SCHEMA, BaseFileFormat("{}", row_group_bytes=1))
    writer.abandon()
    writer.write(rows("a"))
    writer.abandon()
    writer.abandon()
    assert open_handles(tmp_path) == []


def open_handles(folder: Path) -> list[str]:
    """What this process has open in a folder."""
    found = (handle.resolve() for handle in Path("/proc/self/fd").iterdir())
    return [str(path) for path in found if path.is_relative_to(folder)]


def test_readers_and_writers_leave_no_handle_open(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", rows("a", "b"))
    storage = LocalStorage(str(tmp_path))
    for read in (read_first_key, count_row_groups, read_file_schema, describe_base_file):
        read(storage, "x.parquet")
    pieces = read_base_file(storage, "x.parquet", batch_rows=1, encoded=["value"])
    next(pieces)
    assert open_handles(tmp_path) == [str(tmp_path / "x.parquet")]
    pieces.close()  # type: ignore[attr-defined]  # as a consumer that ends early does
    assert open_handles(tmp_path) == []


def test_row_groups_are_closed_as_memory_fills(tmp_path: Path) -> None:
    pieces = [rows(f"k{number}", first=number) for number in range(10)]
    write(tmp_path / "f.parquet", *pieces, row_group_bytes=1)
    assert pq.read_metadata(tmp_path / "f.parquet").num_row_groups == 10
    read = pa.concat_tables(read_base_file(LocalStorage(str(tmp_path)), "f.parquet", batch_rows=3))
    assert read.equals(pa.concat_tables(pieces))


def test_many_rows_at_once_are_row_groups_of_about_the_size_asked_for(tmp_path: Path) -> None:
    many = rows(*(f"k{number}" for number in range(1000)))
    write(tmp_path / "f.parquet", many, row_group_bytes=many.nbytes // 4)
    storage, path = LocalStorage(str(tmp_path)), "f.parquet"
    metadata = pq.read_metadata(tmp_path / path)
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert len(sizes) == count_row_groups(storage, path)
    assert all(240 <= size <= 290 for size in sizes[:-1])
    assert pa.concat_tables(read_base_file(storage, path)).equals(many)
    some = pa.concat_tables(read_base_file(storage, path, row_groups=[1, 2]))
    assert some.equals(many.slice(sizes[0], sizes[1] + sizes[2]))


def test_rows_are_numbered_on_and_keep_their_columns() -> None:
    stamped = pa.concat_tables([rows("a", "b"), rows("c", first=2)])
    expected = [f"20240101000000000_7_{number}" for number in range(3)]
    assert stamped["_hoodie_commit_seqno"].to_pylist() == expected
    assert set(rename_file(stamped, "x.parquet")["_hoodie_file_name"].to_pylist()) == {"x.parquet"}


def test_rows_of_an_older_schema_get_nulls_and_the_stored_types() -> None:
    older = pa.table({"b": pa.array([1], pa.int32())})
    schema = pa.schema([("a", pa.string()), ("b", pa.int64())])
    assert conform(older, schema).to_pylist() == [{"a": None, "b": 1}]
    assert conform(older, schema).schema.equals(schema)


def test_the_first_key_is_read_from_the_rows_since_the_range_may_be_wider(tmp_path: Path) -> None:
    write(tmp_path / "some.parquet", rows("ключ"))
    write(tmp_path / "none.parquet")
    storage = LocalStorage(str(tmp_path))
    assert read_first_key(storage, "some.parquet") == "ключ"
    assert read_first_key(storage, "none.parquet") is None


@pytest.mark.parametrize(("distinct", "has_dictionary"), [(20_000, False), (30, True)])
def test_only_columns_that_repeat_themselves_get_a_dictionary(
    tmp_path: Path, distinct: int, has_dictionary: bool
) -> None:
    """A dictionary of values that hardly repeat makes files larger and Spark's reads slower."""
    table = rows(*(f"k{number}" for number in range(20_000)))
    value = pa.array([number % distinct for number in range(20_000)])
    write(tmp_path / "f.parquet", table.set_column(table.schema.get_field_index("value"), "value", value))
    group = pq.read_metadata(tmp_path / "f.parquet").row_group(0)
    found = {group.column(n).path_in_schema: group.column(n).has_dictionary_page for n in range(group.num_columns)}
    assert found == {name: name not in (RECORD_KEY, COMMIT_SEQNO) for name in found} | {"value": has_dictionary}
    assert pq.read_table(tmp_path / "f.parquet").column("value").to_pylist() == value.to_pylist()


def test_a_single_that_became_a_double_keeps_its_digits() -> None:
    """As JVM readers have it, and not the nearest double to what a single holds."""
    rows = pa.table({"x": pa.array([0.1, None, -2.5e30, float("nan"), float("inf")], pa.float32())})
    found = conform(rows, pa.schema([("x", pa.float64())])).column("x").to_pylist()
    assert found[:3] == [0.1, None, -2.5e30]
    assert repr(found[3:]) == "[nan, inf]"


def test_a_file_with_fewer_rows_than_its_footer_says_is_not_read_to_its_end(tmp_path: Path) -> None:
    """Arrow says nothing of it."""
    write(tmp_path / "f.parquet", rows(*(f"k{number}" for number in range(20))))
    data = (tmp_path / "f.parquet").read_bytes()
    total, more = b"\x16\x28\x19\x1c", b"\x16\x2a\x19\x1c"  # Thrift's 20 and 21, before the list of row groups
    assert data.count(total) == 1
    (tmp_path / "f.parquet").write_bytes(data.replace(total, more))
    storage = LocalStorage(str(tmp_path))
    pieces = read_base_file(storage, "f.parquet", batch_rows=8)
    assert [next(pieces).num_rows for _ in range(3)] == [8, 8, 4]
    for read in (lambda: next(pieces), lambda: describe_base_file(storage, "f.parquet")):
        with pytest.raises(DamagedTable, match=r"f\.parquet has 20 rows, and its footer says 21") as caught:
            read()
        assert (caught.value.path, caught.value.rows, caught.value.rows_expected) == ("f.parquet", 20, 21)
    assert sum(map(len, read_base_file(storage, "f.parquet", row_groups=[0]))) == 20
