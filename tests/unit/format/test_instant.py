from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_locks.errors import BadInput, DamagedTable
from hudi_locks.format import ACTIONS, Instant, State, add_ms, epoch_ms, format_time, parse_instant_name, parse_moment

T, C = "20261121032159605", "20261121032200229"
times_ms = st.integers(min_value=0, max_value=4_102_444_800_000)


@given(times_ms)
def test_times_survive_the_round_trip(ms: int) -> None:
    assert epoch_ms(format_time(ms)) == ms


@given(times_ms, times_ms)
def test_times_sort_as_text_as_they_pass(one: int, other: int) -> None:
    assert (format_time(one) < format_time(other)) == (one < other)


def test_arithmetic_passes_the_end_of_the_year() -> None:
    assert add_ms("20261231235959999", 1) == "20270101000000000"


def test_old_times_of_seconds_count_as_the_last_millisecond() -> None:
    assert add_ms("20150101000000", 1) == "20150101000001000"
    assert epoch_ms("20150101000000123001") == epoch_ms("20150101000000123")


@pytest.mark.parametrize(
    ("text", "time"),
    [
        (T, T),
        ("0", "0"),
        ("", ""),
        ("20261121", "20261121000000000"),
        ("2026-11-21", "20261121000000000"),
        ("2026", "20260101000000000"),
        ("2026112103", "20261121030000000"),
        ("2026-11-21 03:21:59", "20261121032159"),
        ("2026-11-21T03:21:59.605", T),
    ],
)
def test_a_moment_is_taken_as_users_write_it(text: str, time: str) -> None:
    assert parse_moment(text) == time
    assert time in ("", "0") or epoch_ms(time)  # it is reckoned with where commits are archived


@pytest.mark.parametrize(
    "text",
    ["yesterday", "2026-11", "21.11.2026", "2026-11-21 03:21", "2026-13-01", "20261140", "0" * 21, T + "\n", "-1"],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is no time") as caught:
        parse_moment(text)
    assert caught.value.time == text


@pytest.mark.parametrize("time", ["2026", "20261399000000000", "x" * 17, "00000000000000", ""])
def test_no_moment_is_named(time: str) -> None:
    with pytest.raises(DamagedTable, match=time or "''"):
        epoch_ms(time)


@pytest.mark.parametrize(
    ("instant", "layout_1", "layout_2"),
    [
        (Instant(T, "commit", State.REQUESTED), f"{T}.commit.requested", f"{T}.commit.requested"),
        (Instant(T, "commit", State.INFLIGHT), f"{T}.inflight", f"{T}.inflight"),
        (Instant(T, "commit", State.COMPLETED, C), f"{T}.commit", f"{T}_{C}.commit"),
        (Instant(T, "deltacommit", State.INFLIGHT), f"{T}.deltacommit.inflight", f"{T}.deltacommit.inflight"),
        (Instant(T, "compaction", State.INFLIGHT), f"{T}.compaction.inflight", f"{T}.compaction.inflight"),
        (Instant(T, "rollback", State.COMPLETED, C), f"{T}.rollback", f"{T}_{C}.rollback"),
    ],
)
def test_names_are_the_ones_of_the_jvm(instant: Instant, layout_1: str, layout_2: str) -> None:
    assert instant.file_name(1) == layout_1
    assert instant.file_name(2) == layout_2


instants = st.builds(
    lambda requested, action, state, completion: Instant(
        requested, action, state, completion if state is State.COMPLETED else None
    ),
    times_ms.map(format_time),
    st.sampled_from(sorted(ACTIONS)),
    st.sampled_from(State),
    times_ms.map(format_time),
)


@given(instants)
def test_every_name_is_read_back(instant: Instant) -> None:
    assert parse_instant_name(instant.file_name(2)) == instant


@pytest.mark.parametrize("suffix", ["", "013", "013001"])
def test_metadata_tables_of_old_releases_have_longer_times(suffix: str) -> None:
    assert parse_instant_name(f"{T}{suffix}.commit") == Instant(T + suffix, "commit", State.COMPLETED)
    assert epoch_ms(T + suffix) == epoch_ms(T)


@pytest.mark.parametrize(
    "name",
    [
        "history", "hoodie.properties", "hoodie.properties.backup", f".{T}.commit.crc", "archived", "lock",
        f"{T}_{C}.commit.1b4e28ba-2fa1-11d2-883f-0016d3cca427", f"{T}.commit.tmp",
    ],
)  # fmt: skip
def test_what_else_lies_there_is_no_instant(name: str) -> None:
    assert parse_instant_name(name) is None


@pytest.mark.parametrize(
    "name", [f"{T}.comit", f"{T}.commit.requestd", f"{T}_{C}.commit.inflight", f"{T}_1.commit", f"{T}9.commit", f"{T}_"]
)
def test_what_begins_like_an_instant_and_is_none_is_named(name: str) -> None:
    with pytest.raises(DamagedTable, match=name) as caught:
        parse_instant_name(name, ".hoodie/timeline")
    assert caught.value.path == f".hoodie/timeline/{name}"


def test_a_compaction_ends_as_a_commit() -> None:
    pending = Instant(T, "compaction", State.REQUESTED).as_inflight()
    assert pending.as_completed(C) == Instant(T, "commit", State.COMPLETED, C)
    assert pending.as_requested() == Instant(T, "compaction", State.REQUESTED)
