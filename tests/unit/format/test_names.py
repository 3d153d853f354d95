from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.format import (
    BaseFileName,
    IOType,
    LogFileName,
    MarkerName,
    choose_token,
    fixed_bucket_file_id,
    new_file_id,
)

T = "20261121032159605"
F = "5fe9b3a4-6fe9-40c4-9a87-7b78397e7531-0"

file_ids = st.uuids().map(lambda uuid: f"{uuid}-0")
tokens = st.builds("{}-{}-{}".format, *[st.integers(0, 999)] * 3)
base_names = st.builds(BaseFileName, file_ids, st.just(T), tokens)
log_names = st.builds(LogFileName, file_ids, st.just(T), st.integers(1, 999), tokens, st.booleans())
partitions = st.sampled_from(["", "month=1", "a=x_y/b=2", "a.b"])


@given(base_names)
def test_base_names_survive_the_round_trip(name: BaseFileName) -> None:
    assert BaseFileName.parse(str(name)) == name


@given(log_names)
def test_log_names_survive_the_round_trip(name: LogFileName) -> None:
    assert LogFileName.parse(str(name)) == name


@given(partitions, base_names | log_names, st.sampled_from(IOType))
def test_marker_names_survive_the_round_trip(partition: str, data: BaseFileName | LogFileName, io_type: IOType) -> None:
    marker = MarkerName(partition, str(data), io_type)
    assert MarkerName.parse(str(marker)) == marker
    assert marker.file_id == data.file_id


def test_names_are_the_ones_of_the_jvm() -> None:
    assert str(BaseFileName(F, T, "1-152-255")) == f"{F}_1-152-255_{T}.parquet"
    assert str(LogFileName(F, T, 2, "0-1-2")) == f".{F}_{T}.log.2_0-1-2"
    assert str(MarkerName("p=1", f"{F}_0-0-0_{T}.parquet", IOType.MERGE)) == f"p=1/{F}_0-0-0_{T}.parquet.marker.MERGE"
    assert str(MarkerName("", f"{F}_0-0-0_{T}.parquet", IOType.CREATE)) == f"{F}_0-0-0_{T}.parquet.marker.CREATE"


def test_one_file_group_and_instant_has_one_name() -> None:
    assert str(BaseFileName(F, T)) == str(BaseFileName(F, T)) == f"{F}_0-0-0_{T}.parquet"


@pytest.mark.parametrize(
    "name", [f".{F}_0-0-0_{T}.parquet", "part-0.parquet", f"{F}_0-0-0_7.parquet", f"{F}_{T}.parquet", ""]
)
def test_other_files_are_no_base_files(name: str) -> None:
    assert BaseFileName.parse(name) is None


def test_very_old_logs_lack_a_token() -> None:
    assert LogFileName.parse(f".{F}_{T}.log.1") == LogFileName(F, T, 1, "")
    assert str(LogFileName(F, T, 1, "")) == f".{F}_{T}.log.1"


@pytest.mark.parametrize("text", ["MARKERS.type", "MARKERS0", "p/x.parquet", "p/x.marker.DELETE", ".marker.CREATE"])
def test_other_files_are_no_markers(text: str) -> None:
    assert MarkerName.parse(text) is None


def test_new_file_ids_differ_and_can_be_parsed() -> None:
    one, other = new_file_id(), new_file_id()
    assert one != other
    assert BaseFileName.parse(str(BaseFileName(one, T))) == BaseFileName(one, T)


def test_files_of_a_bucket_that_has_one_id_in_all_partitions_have_a_name_of_their_own_in_each() -> None:
    """Else a reader that finds statistics by bare names takes those of one for those of another."""
    fixed = fixed_bucket_file_id(3)
    tokens = {choose_token(f"p{number}", fixed) for number in range(2000)}
    assert len(tokens) == 2000
    assert all(max(map(int, token.split("-"))) < 1 << 31 for token in tokens)
    assert choose_token("p1", fixed) == choose_token("p1", fixed_bucket_file_id(4))
    name = LogFileName(fixed, "20260101000000000", 1, choose_token("p1", fixed))
    assert LogFileName.parse(str(name)) == name
    assert choose_token("", fixed) == choose_token("p1", new_file_id()) == "0-0-0"
