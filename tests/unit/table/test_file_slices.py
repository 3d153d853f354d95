"""File slices by completion time: the examples of the RFC, and its rules for whatever order things happen in."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.table import BaseFile, DataFiles, FileSlice, LogFile
from hudi_locks.table.data_files import join_planned, slice_file_group, slice_file_groups

COMPLETIONS = {"t21": "t40", "t30": "t50", "t35": "t90"}


def base(instant: str) -> BaseFile:
    return BaseFile("p", "f-0", instant, f"p/f-0_0-0-0_{instant}.parquet", 1)


def log(instant: str, version: int = 1, token: str = "0-0-0") -> LogFile:
    return LogFile("p", "f-0", instant, version, token, f"p/.f-0_{instant}.log.{version}_{token}", 1)


def shape(slices: list[FileSlice]) -> dict[str, list[str]]:
    return {piece.barrier: [file.instant for file in piece.logs] for piece in slices}


def test_the_example_of_the_rfc() -> None:
    logs = [log("t21"), log("t30"), log("t35")]
    slices = slice_file_group([base("t10"), base("t60")], logs, COMPLETIONS.get)
    assert shape(slices) == {"t60": ["t35"], "t10": ["t21", "t30"]}
    assert [piece.base for piece in slices] == [base("t60"), base("t10")]


def test_a_plan_takes_only_what_was_completed_before_it() -> None:
    """Two writes, [t1, t3] and [t2, t5], and a compaction that is planned at t4."""
    slices = slice_file_group([base("t0")], [log("t1"), log("t2")], {"t1": "t3", "t2": "t5"}.get, planned="t4")
    assert shape(slices) == {"t4": ["t2"], "t0": ["t1"]}
    assert slices[0].base is None


def test_a_reader_sees_the_slice_of_a_plan_on_top_of_the_one_before() -> None:
    slices = slice_file_group([base("t0")], [log("t2"), log("t1")], {"t1": "t3", "t2": "t5"}.get, planned="t4")
    merged = join_planned(slices)
    assert (merged.base, shape([merged])) == (base("t0"), {"t0": ["t1", "t2"]})
    done = slice_file_group([base("t0"), base("t4")], [log("t2"), log("t1")], {"t1": "t3", "t2": "t5"}.get)
    assert shape([join_planned(done)]) == {"t4": ["t2"]}


def test_without_a_base_file_the_first_log_is_the_barrier() -> None:
    slices = slice_file_group([], [log("t7"), log("t5")], {"t5": "t9", "t7": "t8"}.get)
    assert shape(slices) == {"t5": ["t5", "t7"]}


def test_a_completion_that_equals_a_barrier_is_behind_it() -> None:
    """As shipped: the RFC has a strict comparison. Times that we give are never equal."""
    slices = slice_file_group([base("t0"), base("t4")], [log("t1")], {"t1": "t4"}.get)
    assert shape(slices) == {"t4": ["t1"], "t0": []}


def test_a_pending_write_is_in_the_newest_slice() -> None:
    slices = slice_file_group([base("t0"), base("t4")], [log("t1")], lambda _: None)
    assert shape(slices) == {"t4": ["t1"], "t0": []}


def test_a_log_from_before_all_base_files_makes_a_slice_of_its_own() -> None:
    slices = slice_file_group([base("t4")], [log("t1")], {"t1": "t2"}.get)
    assert shape(slices) == {"t4": [], "t1": ["t1"]}


def test_logs_are_in_the_order_of_time_version_and_token() -> None:
    logs = [log("t2", 1), log("t1", 10), log("t1", 2, "1-0-0"), log("t1", 2, "0-0-0")]
    (piece,) = slice_file_group([], logs, {"t1": "t3", "t2": "t4"}.get)
    assert [(file.instant, file.version, file.write_token) for file in piece.logs] == [
        ("t1", 2, "0-0-0"),
        ("t1", 2, "1-0-0"),
        ("t1", 10, "0-0-0"),
        ("t2", 1, "0-0-0"),
    ]


def test_file_groups_of_one_id_in_two_partitions_are_two() -> None:
    other = LogFile("q", "f-0", "t1", 1, "0-0-0", "q/.f-0_t1.log.1_0-0-0", 1)
    groups = slice_file_groups([base("t0")], [other], {"t1": "t2"}.get, planned={("p", "f-0"): "t3"})
    assert {group: shape(slices) for group, slices in groups.items()} == {
        ("p", "f-0"): {"t3": [], "t0": []},
        ("q", "f-0"): {"t1": ["t1"]},
    }


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (".f-0_20260101000000000.log.3_1-2-3", ("f-0", "20260101000000000", 3, "1-2-3")),
        (".f-0_20260101000000000.log.3_1-2-3.cdc", None),
        ("f-0_0-0-0_20260101000000000.parquet", None),
    ],
)
def test_a_name_tells_what_a_log_is(name: str, found: tuple[str, str, int, str] | None) -> None:
    parsed = LogFile.parse("a/b", name, 5)
    told = parsed and (parsed.file_id, parsed.instant, parsed.version, parsed.write_token)
    assert told == found
    assert parsed is None or (parsed.path, parsed.size) == (f"a/b/{name}", 5)


def test_a_change_log_is_no_log_of_a_slice() -> None:
    names = [".f-0_20260101000000000.log.1_0-0-0.cdc", "f-0_0-0-0_20260101000000000.parquet", "x.txt"]
    files = DataFiles.of(("p", name, 5) for name in names)
    assert [file.path for file in files.both] == [f"p/{names[1]}"]
    assert [file.path for file in files.every] == [f"p/{names[1]}", f"p/{names[0]}"]
    assert files.where(lambda file: file.size > 5) == DataFiles()
    (found,) = slice_file_group(files.bases, files.logs, lambda requested: requested)
    assert found.logs == ()


@dataclass(frozen=True)
class Write:
    begun: str
    ended: str


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Write], list[Write]]:
    """Base files that follow each other, and logs anywhere beside them; no two times are equal."""
    times = iter([f"{time:03d}" for time in draw(st.permutations(range(100)))])
    spans = [Write(*sorted((next(times), next(times)))) for _ in range(draw(st.integers(1, 12)))]
    order = sorted(next(times) for _ in range(2 * draw(st.integers(0, 4))))
    bases = [Write(begun, ended) for begun, ended in zip(order[::2], order[1::2], strict=True)]
    return bases, spans


@given(histories())
def test_the_temporal_rules_of_the_rfc_hold(history: tuple[list[Write], list[Write]]) -> None:
    bases, logs = history
    completions = {write.begun: write.ended for write in logs}
    slices = slice_file_group([base(b.begun) for b in bases], [log(w.begun) for w in logs], completions.get)
    place = {file.instant: piece.barrier for piece in slices for file in piece.logs}
    assert place.keys() == completions.keys()
    assert [piece.barrier for piece in slices] == sorted({piece.barrier for piece in slices}, reverse=True)
    for write in logs:
        assert not any(place[write.begun] < b.begun < write.begun for b in bases)  # a later log follows a base file
        assert not any(write.ended < b.begun <= place[write.begun] for b in bases)  # a later base file follows a log
        assert all(place[other.begun] >= place[write.begun] for other in logs if write.ended < other.begun)
