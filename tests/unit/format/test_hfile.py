"""HFiles: those of JVM Hudi are read whole, and ours hold what they were given."""

from __future__ import annotations

import errno
import gzip
import io
import struct
import tracemalloc

import pyarrow as pa
import pytest
from golden_metadata import BUNDLES, list_expected, list_hfiles, read_golden
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.errors import DamagedTable
from hudi_locks.format.hfile import HFile
from hudi_locks.format.hfile_blocks import Codec
from hudi_locks.format.hfile_writer import encode_hfile, encode_hfile_columns, merge_hfile

PATH = ".hoodie/metadata/files/files-0000-0_0-0-0_20260101000000000.hfile"
ENTRIES = st.dictionaries(st.binary(min_size=1, max_size=60), st.binary(max_size=90), max_size=60).map(
    lambda found: sorted(found.items())
)


@pytest.mark.parametrize("bundle", BUNDLES)
def test_files_of_the_jvm_hold_what_their_trailers_say(bundle: str) -> None:
    counts = []
    for _, file, _ in list_hfiles(bundle):
        entries = list(file.entries())
        assert file.get_many(key for key, _ in entries) == dict(entries)
        counts.append(len(entries))
    assert (len(counts), sum(counts)) == (30, sum(len(records) for _, records in list_expected(bundle)))


@pytest.mark.parametrize("bundle", BUNDLES)
def test_base_files_of_the_jvm_have_a_bloom_filter_beside_the_records(bundle: str) -> None:
    names = {name for path, file, _ in list_hfiles(bundle) if path.endswith(".hfile") for name in file.meta_blocks}
    assert names == {"bloomFilter"}


@given(entries=ENTRIES, block_bytes=st.sampled_from([1, 100, 1_000, 60_000]))
def test_what_is_written_is_read_again(entries: list[tuple[bytes, bytes]], block_bytes: int) -> None:
    info, metas = {"schema": b'"string"'}, {"bloomFilter": b"bits", "a": b""}
    data = encode_hfile(entries, info=info, meta_blocks=metas, block_bytes=block_bytes)
    file = HFile(data, PATH)
    assert list(file.entries()) == entries
    assert file.get_many(key for key, _ in entries) == dict(entries)
    assert (file.count, file.info["schema"], file.meta_blocks) == (len(entries), b'"string"', metas)
    assert data == encode_hfile(entries, info=info, meta_blocks=metas, block_bytes=block_bytes)


@given(entries=ENTRIES, key=st.binary(min_size=1, max_size=60))
def test_a_key_that_was_not_written_is_not_found(entries: list[tuple[bytes, bytes]], key: bytes) -> None:
    assert HFile(encode_hfile(entries, block_bytes=100), PATH).get(key) == dict(entries).get(key)


def read_or_refuse(data: bytes) -> str | list[tuple[bytes, bytes]]:
    try:
        return list(HFile(data, PATH).entries())
    except DamagedTable as error:
        return str(error)


@given(entries=ENTRIES.filter(bool), data=st.data())
def test_a_damaged_byte_is_told_or_does_no_harm(entries: list[tuple[bytes, bytes]], data: st.DataObject) -> None:
    sound = bytearray(encode_hfile(entries, block_bytes=100))
    place = data.draw(st.integers(0, len(sound) - 1))
    sound[place] ^= data.draw(st.integers(1, 255))
    found = read_or_refuse(bytes(sound))
    assert PATH in found if isinstance(found, str) else len(found) == len(entries)


@given(cut=st.integers(1, 5_000))
def test_a_file_that_is_cut_off_is_refused(cut: int) -> None:
    sound = encode_hfile([(b"a", b"b" * 900)])
    with pytest.raises(DamagedTable, match="cut off"):
        HFile(sound[: max(0, len(sound) - cut)], PATH)


@pytest.mark.parametrize("entries", [[(b"b", b""), (b"a", b"")], [(b"a", b"1"), (b"a", b"2")]])
def test_keys_out_of_order_are_not_written(entries: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(ValueError, match="in order"):
        encode_hfile(entries)


@given(st.dictionaries(st.binary(max_size=40), st.binary(max_size=90), max_size=3_000))
def test_a_column_of_keys_and_one_of_values_make_the_same_bytes(entries: dict[bytes, bytes]) -> None:
    keys = sorted(entries)
    columns = pa.array(keys, pa.binary()), pa.array([entries[key] for key in keys], pa.binary())
    assert encode_hfile_columns(*columns) == encode_hfile(sorted(entries.items()))


@given(
    st.dictionaries(st.binary(max_size=3), st.binary(max_size=40), max_size=60),
    st.dictionaries(st.binary(max_size=3), st.none() | st.binary(max_size=40), max_size=30),
    st.integers(min_value=20, max_value=400),
)
def test_a_merged_file_has_what_both_say(
    before: dict[bytes, bytes], changes: dict[bytes, bytes | None], block_bytes: int
) -> None:
    file = HFile(encode_hfile(sorted(before.items()), block_bytes=block_bytes), PATH)
    merged = HFile(merge_hfile(file, changes, info={"schema": b"s"}), PATH)
    expected = {key: value for key, value in {**before, **changes}.items() if value is not None}
    assert list(merged.entries()) == sorted(expected.items())
    assert (merged.count, merged.info["schema"]) == (len(expected), b"s")
    assert merged.get_many({*before, *changes}) == expected


@pytest.mark.parametrize("bundle", BUNDLES)
def test_a_packed_file_of_the_jvm_stays_packed_as_its_keys_change(bundle: str) -> None:
    path, file = next((path, file) for path, file, _ in list_hfiles(bundle) if file.codec is Codec.GZIP and file.count)
    before = dict(file.entries())
    some = sorted(before)[::3]
    changes: dict[bytes, bytes | None] = {**dict.fromkeys(some), b"~ new": b"value", some[0]: b"other"}
    merged = HFile(merge_hfile(file, changes, info={}), path)
    expected = {key: value for key, value in {**before, **changes}.items() if value is not None}
    assert (merged.codec, dict(merged.entries()), merged.last_key) == (Codec.GZIP, expected, b"~ new")


def test_a_block_in_which_nothing_changed_stays_as_it_was() -> None:
    entries = [(f"key {number:06d}".encode(), b"value") for number in range(5_000)]
    file = HFile(encode_hfile(entries), PATH)
    merged = HFile(merge_hfile(file, {b"key 000000": b"other"}, info={}), PATH)
    numbers = range(1, len(file.first_keys))
    assert len(numbers) > 2
    assert [merged.read_block(number) for number in numbers] == [file.read_block(number) for number in numbers]


@given(st.sets(st.binary(min_size=2, max_size=2)), st.sets(st.binary(max_size=3)), st.booleans())
def test_keys_of_one_length_are_found_as_others_are(keys: set[bytes], others: set[bytes], is_odd: bool) -> None:
    entries = {key: b"v" + key for key in keys} | ({b"odd": b"", b"": b"x"} if is_odd else {})
    file = HFile(encode_hfile(sorted(entries.items()), block_bytes=90), PATH)
    asked = keys | others
    assert file.get_many(asked) == {key: entries[key] for key in asked if key in entries}


@given(st.dictionaries(st.binary(min_size=2, max_size=2), st.binary(max_size=5), max_size=9), st.booleans())
def test_a_value_that_looks_like_entries_hides_none(inner: dict[bytes, bytes], is_whole: bool) -> None:
    data = encode_hfile(sorted(inner.items()))
    block = HFile(data, PATH).read_block(0) if inner else b""
    value = block if is_whole else block[:-1]
    entries = {b"k1": b"v", b"k2": value, b"k3": value + b"v", b"k4": b""}
    file = HFile(encode_hfile(sorted(entries.items())), PATH)
    assert file.get_many({*entries, *inner}) == {**entries}


class Counted(io.BytesIO):
    """Knows how many reads it served, and of how many bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.reads: list[int] = []
        self.is_failing = False

    def read(self, size: int | None = -1) -> bytes:
        if self.is_failing:
            raise OSError(errno.EIO, "the disk fails")
        found = super().read(size)
        self.reads.append(len(found))
        return found


@given(entries=ENTRIES, asked=st.sets(st.binary(max_size=60)), block_bytes=st.sampled_from([1, 100, 60_000]))
def test_an_open_file_tells_what_a_whole_one_tells(
    entries: list[tuple[bytes, bytes]], asked: set[bytes], block_bytes: int
) -> None:
    data = encode_hfile(entries, info={"schema": b"s"}, meta_blocks={"m": b"x"}, block_bytes=block_bytes)
    opened, whole = HFile(pa.BufferReader(data), PATH), HFile(data, PATH)
    keys = asked | {key for key, _ in entries[::3]}
    assert opened.get_many(keys) == whole.get_many(keys)
    assert (list(opened.entries()), opened.meta_blocks, opened.info) == (entries, whole.meta_blocks, whole.info)


@pytest.mark.parametrize("bundle", BUNDLES)
def test_an_open_file_of_the_jvm_tells_what_a_whole_one_tells(bundle: str) -> None:
    found = {path: data for path, data in read_golden(bundle).items() if path.endswith(".hfile")}
    for path, data in found.items():
        entries = dict(HFile(data, path).entries())
        assert HFile(pa.BufferReader(data), path).get_many([*entries, b"", b"~"]) == entries
    assert len(found) > 5


def test_of_an_open_file_only_the_blocks_are_read_that_are_asked_for() -> None:
    entries = [(f"key {number:07d}".encode(), bytes(100)) for number in range(200_000)]
    data = encode_hfile(entries)
    source = Counted(data)
    file = HFile(pa.PythonFile(source, mode="r"), PATH)
    asked = [entries[number] for number in (7, 100_000, 100_001, 199_999)]
    assert file.get_many(key for key, _ in asked) == dict(asked)
    assert len(source.reads) <= 4
    assert sum(source.reads) < len(data) / 20


def test_a_file_that_cannot_be_read_is_no_damage() -> None:
    source = Counted(encode_hfile([(f"key {number:07d}".encode(), bytes(100)) for number in range(20_000)]))
    file = HFile(pa.PythonFile(source, mode="r"), PATH)
    source.is_failing = True
    with pytest.raises(OSError, match="the disk fails") as caught:
        file.get(b"key 0000000")
    assert caught.value.errno == errno.EIO


def test_columns_of_many_blocks_make_the_same_bytes() -> None:
    entries = [(f"key {number:06d}".encode(), bytes(number % 251)) for number in range(5_000)]
    entries[2_500] = (entries[2_500][0], bytes(200_000))
    keys, values = (pa.array(column, pa.binary()) for column in zip(*entries, strict=True))
    assert encode_hfile_columns(keys, values) == encode_hfile(entries)


def test_a_key_that_is_too_long_is_not_written() -> None:
    with pytest.raises(ValueError, match="70000 bytes is too long"):
        encode_hfile_columns(pa.array([b"k" * 70_000]), pa.array([b""]))
    with pytest.raises(ValueError, match="70000 bytes is too long"):
        encode_hfile([(b"k" * 70_000, b"")])


@pytest.mark.parametrize(
    ("info", "why"),
    [
        ({"KEY_VALUE_VERSION": b"\0\0\0\0"}, "times of readers"),
        ({"MAX_MEMSTORE_TS_KEY": struct.pack(">q", 5)}, "times of readers"),
        ({"hfile.MAX_TAGS_LEN": b"\0\0\0\1"}, "tags"),
    ],
)
def test_what_hudi_never_writes_is_refused_by_name(info: dict[str, bytes], why: str) -> None:
    with pytest.raises(DamagedTable, match=why):
        HFile(encode_hfile([(b"a", b"b")], info=info), PATH)


def test_a_block_of_gzip_that_unpacks_to_more_than_it_promises_is_refused_before_it_does() -> None:
    bomb = gzip.compress(bytes(64 << 20))
    sound = encode_hfile([(b"a", bytes(len(bomb)))])
    size = len(bomb)
    block = struct.pack(">8siiqBii", b"DATABLK*", size, 10, -1, 0, 16_384, 33 + size) + bomb
    packed = sound.replace(b"\x60\x02", b"\x60\x01")  # the codec, in the trailer
    tracemalloc.start()
    try:
        with pytest.raises(DamagedTable):
            list(HFile(block + packed[len(block) :], PATH).entries())
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
