"""Which of some keys a base file has: footers spare files and row groups, and never hide a key."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies
from slice_files import new_file

from hudi_locks.errors import DamagedTable
from hudi_locks.format import avro_schema
from hudi_locks.format.key_filter import FilterSize
from hudi_locks.storage import LocalStorage
from hudi_locks.table import RECORD_KEY, BaseFileFormat, BaseFileWriter, add_meta_schema, search_base_file, stamp_rows

USER = pa.schema([("value", pa.int64())])
SCHEMA = add_meta_schema(USER)
FILTER = FilterSize(60_000, 1e-9)
KEYS = strategies.lists(strategies.text(strategies.characters(exclude_categories=["Cs"]), max_size=4), max_size=30)


def write(folder: Path, *groups: list[str], key_filter: FilterSize | None = FILTER) -> None:
    """A base file with a row group for each list of keys."""
    form = BaseFileFormat(avro_schema(USER, "t", with_meta_columns=True), key_filter=key_filter)
    writer = BaseFileWriter(new_file(LocalStorage(str(folder)), "f.parquet"), SCHEMA, form)
    for keys in groups:
        given = pa.table({RECORD_KEY: pa.array(keys, pa.string()), "_hoodie_partition_path": pa.repeat("p", len(keys))})
        given = given.append_column("value", pa.array(range(len(keys))))
        writer.write(stamp_rows(given, SCHEMA, instant="20240101000000000", seqno_prefix="7", first_seqno=0))
        writer.flush()
    writer.close()


class CountingStorage(LocalStorage):
    """Counts the bytes that are read."""

    bytes_read = 0

    @contextmanager
    def open_input(self, path: str, **_: object) -> Iterator[pa.NativeFile]:
        data, storage = Path(self.base, path).read_bytes(), self

        class Counting(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                found = super().read(size)
                storage.bytes_read += len(found)
                return found

        yield pa.PythonFile(Counting(data), "r")


def search(folder: Path, *keys: str, by_filter: bool = True) -> list[str]:
    wanted = pa.array(keys, pa.string())
    found = search_base_file(LocalStorage(str(folder)), "f.parquet", wanted, by_filter=by_filter)
    return [key for piece in found for key in piece.to_pylist()]


def count_bytes(folder: Path, *keys: str, by_filter: bool = True) -> int:
    storage = CountingStorage(str(folder))
    list(search_base_file(storage, "f.parquet", pa.array(keys, pa.string()), by_filter=by_filter))
    return storage.bytes_read


@pytest.mark.parametrize("by_filter", [True, False], ids=["by_filter", "without"])
@pytest.mark.parametrize("key_filter", [FILTER, FilterSize(1, 0.9), None], ids=["filter", "small", "none"])
@hypothesis.given(groups=strategies.lists(KEYS, max_size=3), others=KEYS)
def test_it_finds_those_that_are_there_as_often_as_they_are(
    tmp_path_factory: pytest.TempPathFactory,
    key_filter: FilterSize | None,
    by_filter: bool,
    groups: list[list[str]],
    others: list[str],
) -> None:
    folder = tmp_path_factory.mktemp("files")
    write(folder, *groups, key_filter=key_filter)
    present = [key for keys in groups for key in keys]
    wanted = dict.fromkeys([*present[::2], *others])
    assert sorted(search(folder, *wanted, by_filter=by_filter)) == sorted(key for key in present if key in wanted)


def test_only_the_footer_is_read_of_a_file_that_has_none_of_them(tmp_path: Path) -> None:
    many = [f"k{number:06}" for number in range(0, 40_000, 2)]
    write(tmp_path, many[:10_000], many[10_000:])
    footer = count_bytes(tmp_path)
    assert count_bytes(tmp_path, "a", "z") == footer
    assert count_bytes(tmp_path, "k000001", "k030001") == footer
    first, second, both = (
        count_bytes(tmp_path, *keys, by_filter=False) - footer
        for keys in (["k000001"], ["k030001"], ["k000001", "k030001"])
    )
    assert min(first, second) > 0
    assert both == first + second


def test_a_filter_is_not_asked_for_more_keys_than_are_read_meanwhile(tmp_path: Path) -> None:
    """It says that they are not there; who reads the file finds them."""
    keys = [f"k{number:06}" for number in range(40_000)]
    write(tmp_path, keys)
    rows = pq.read_table(tmp_path / "f.parquet")
    (tmp_path / "others").mkdir()
    write(tmp_path / "others", ["other"])
    wrong = pq.read_metadata(tmp_path / "others" / "f.parquet").metadata
    pq.write_table(rows.replace_schema_metadata(wrong), tmp_path / "f.parquet")
    assert search(tmp_path, *keys[:10_000]) == []
    assert search(tmp_path, *keys[:10_001]) == keys[:10_001]


def test_a_file_without_ranges_or_with_another_filter_is_read(tmp_path: Path) -> None:
    write(tmp_path, ["a", "b"])
    rows = pq.read_table(tmp_path / "f.parquet")
    for told in ({}, {"hoodie_bloom_filter_type_code": "CUCKOO", "org.apache.hudi.bloomfilter": "AAAA"}):
        pq.write_table(rows.replace_schema_metadata(told), tmp_path / "f.parquet", write_statistics=False)
        assert search(tmp_path, "b", "x") == ["b"]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_texts_that_arrow_takes_for_another_type_are_found(tmp_path: Path, kind: pa.DataType) -> None:
    write(tmp_path, ["a", "b"])
    rows = pq.read_table(tmp_path / "f.parquet")
    place = rows.column_names.index(RECORD_KEY)
    other = rows.set_column(place, pa.field(RECORD_KEY, kind), rows.column(place).cast(kind))
    pq.write_table(other.replace_schema_metadata(None), tmp_path / "f.parquet")
    assert pq.read_schema(tmp_path / "f.parquet").field(RECORD_KEY).type == kind
    assert search(tmp_path, "b", "x") == ["b"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedTable, match=r"f\.parquet"):
        search(tmp_path, "a")
    write(tmp_path, [f"k{number}" for number in range(1000)])
    data = bytearray((tmp_path / "f.parquet").read_bytes())
    metadata = pq.read_metadata(tmp_path / "f.parquet").row_group(0).column(2)
    start = metadata.dictionary_page_offset or metadata.data_page_offset
    data[start : start + metadata.total_compressed_size] = bytes(metadata.total_compressed_size)
    (tmp_path / "f.parquet").write_bytes(data)
    assert search(tmp_path, "other") == []
    with pytest.raises(DamagedTable, match=r"f\.parquet"):
        search(tmp_path, "k5")
