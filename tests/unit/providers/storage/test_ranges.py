"""Objects as files: what is read is right at every place, and asked for in few requests."""

from __future__ import annotations

import io

import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_locks_providers._storage import ranges, stores
from hudi_locks_providers._storage.ranges import Block, RangeReader
from hudi_locks_providers.gcs_storage import GcsStorage
from hypothesis import strategies as st

from hudi_locks.config import Options
from hudi_locks.errors import StorageError


class Counted(RangeReader):
    """Of bytes in memory, opened at the end or at the begin."""

    def __init__(self, data: bytes, *, at_end: bool) -> None:
        self.data = data
        self.asked = 1
        begin = max(0, len(data) - ranges.FIRST_BYTES) if at_end else 0
        super().__init__(Block(data[begin : begin + ranges.FIRST_BYTES], begin, len(data)))

    def fetch(self, begin: int, end: int) -> bytes:
        assert 0 <= begin < end <= len(self.data)
        self.asked += 1
        return self.data[begin:end]


STEPS = st.lists(
    st.tuples(st.integers(0, 60), st.sampled_from([io.SEEK_SET, io.SEEK_END]), st.integers(-1, 60)), max_size=12
)


@hypothesis.given(data=st.binary(max_size=50), at_end=st.booleans(), steps=STEPS)
def test_it_reads_as_any_other_file(data: bytes, at_end: bool, steps: list[tuple[int, int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "FIRST_BYTES", 8)
        patch.setattr(ranges, "_LEAST_BYTES", 16)
        reader, file = Counted(data, at_end=at_end), io.BytesIO(data)
        for offset, whence, size in steps:
            away = -min(offset, len(data)) if whence == io.SEEK_END else offset
            assert reader.seek(away, whence) == file.seek(away, whence)
            assert reader.read(size) == file.read(size)
            assert reader.tell() == file.tell() or size == 0


@pytest.mark.parametrize("at_end", [False, True])
def test_a_small_parquet_file_is_one_request_and_the_footer_of_a_large_one_two_at_most(at_end: bool) -> None:
    for rows, most in ((100, 1), (400_000, 1 if at_end else 2)):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": range(rows)}), sink)
        reader = Counted(sink.getvalue().to_pybytes(), at_end=at_end)
        assert (len(reader.data) > ranges.FIRST_BYTES) == (rows > 100)
        with pq.ParquetFile(pa.PythonFile(reader, mode="r")) as file:
            assert file.metadata.num_rows == rows
            assert reader.asked <= most
            assert file.read().num_rows == rows


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> GcsStorage:
    monkeypatch.setattr(stores, "_OPEN", {})
    return GcsStorage("memory://bucket/a/table", Options())


def test_a_file_that_is_replaced_while_it_is_read_is_said_to_be(storage: GcsStorage) -> None:
    storage.replace("file", bytes(3_000_000))
    with storage.open_input("file") as source:
        storage.replace("file", b"\1" * 3_000_000)
        with pytest.raises(StorageError, match="it was removed or replaced since it was opened"):
            source.read()
        storage.delete("file")
        with pytest.raises(StorageError, match="it was removed or replaced since it was opened"):
            source.read()


def test_an_empty_file_is_opened(storage: GcsStorage) -> None:
    storage.replace("file", b"")
    with storage.open_input("file") as source:
        assert source.size() == 0
        assert source.read() == b""
