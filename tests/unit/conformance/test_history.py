"""Histories: overlaps, linearizability, and their form on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hudi_locks_conformance import History, find_overlaps, is_linearizable
from hypothesis import given, settings
from hypothesis import strategies as st


def record(*events: tuple[str, str, str, float]) -> History:
    history = History()
    for process, f, kind, t_s in events:
        history.add(process, f, kind, t_s=t_s)
    return history


def test_holds_that_follow_each_other_do_not_overlap() -> None:
    history = record(
        ("a", "acquire", "invoke", 0),
        ("a", "acquire", "ok", 1),
        ("b", "acquire", "invoke", 1.5),
        ("a", "release", "invoke", 2),
        ("b", "acquire", "ok", 2.1),
        ("a", "release", "ok", 2.2),
        ("b", "release", "invoke", 3),
        ("b", "release", "ok", 4),
    )
    assert find_overlaps(history) == []
    assert [hold.process for hold in history.holds()] == ["a", "b"]
    assert is_linearizable(history) is True


def test_two_holders_are_named_with_the_time_they_shared() -> None:
    history = record(
        ("a", "acquire", "invoke", 0),
        ("a", "acquire", "ok", 1),
        ("b", "acquire", "invoke", 1),
        ("b", "acquire", "ok", 2),
        ("a", "release", "invoke", 2.003),
        ("a", "release", "ok", 3),
    )
    (overlap,) = find_overlaps(history)
    assert str(overlap) == "two holders for 3.000 ms: a (hold 1) and b (hold 1)"
    assert is_linearizable(history) is False


def test_an_uncertain_release_may_have_happened_or_not() -> None:
    events = [
        ("a", "acquire", "invoke", 0.0),
        ("a", "acquire", "ok", 1.0),
        ("a", "release", "invoke", 2.0),
        ("b", "acquire", "invoke", 3.0),
        ("b", "acquire", "ok", 4.0),
    ]
    assert is_linearizable(record(*events)) is True
    assert is_linearizable(record(*events[:2], *events[3:])) is False


def test_an_uncertain_acquire_explains_a_refusal_but_no_second_grant() -> None:
    assert is_linearizable(record(("a", "acquire", "invoke", 0), ("a", "acquire", "info", 1))) is True


def test_the_search_says_when_it_gave_up() -> None:
    history = History()
    for number in range(8):
        history.add(f"p{number}", "acquire", "invoke", t_s=0)
        history.add(f"p{number}", "acquire", "ok", t_s=1)
    assert is_linearizable(history, budget=3) is None
    assert is_linearizable(history) is False


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=8))
def test_every_history_of_one_real_lock_is_linearizable(order: list[str]) -> None:
    history = History()
    for number, process in enumerate(order):
        for step, (f, kind) in enumerate(
            [("acquire", "invoke"), ("acquire", "ok"), ("release", "invoke"), ("release", "ok")]
        ):
            history.add(process, f, kind, t_s=4 * number + step)
    assert is_linearizable(history) is True
    assert find_overlaps(history) == []


def test_a_history_survives_its_file(tmp_path: Path) -> None:
    history = record(("a", "acquire", "invoke", 0.25), ("a", "acquire", "ok", 1))
    history.add("a", "write", "fail", t_s=2, token=7, error="no")
    history.dump(tmp_path / "deep" / "h.jsonl")
    assert History.load(tmp_path / "deep" / "h.jsonl").operations == history.operations
    (tmp_path / "bad.jsonl").write_text('{"i": 1}\n')
    with pytest.raises(ValueError, match=r"bad.jsonl:1 is no operation"):
        History.load(tmp_path / "bad.jsonl")
