"""What each model of a lock allows, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hudi_locks_conformance.history import (
    FENCED,
    MODELS,
    MUTEX,
    OWNED,
    REENTRANT,
    History,
    Model,
    is_linearizable,
    judge,
)

Call = tuple[Any, ...]


def record(*calls: Call) -> History:
    """One call after the other, each a second long: process, action, token, ending."""
    history = History()
    for number, (process, f, *more) in enumerate(calls):
        token = more[0] if more else None
        ending = more[1] if len(more) > 1 else "ok"
        history.add(process, f, "invoke", t_s=2 * number, token=token if f == "write" else None)
        history.add(process, f, ending, t_s=2 * number + 1, token=token)
    return history


TURNS: Sequence[Call] = [("a", "acquire"), ("a", "release"), ("b", "acquire"), ("b", "release")]
STOLEN: Sequence[Call] = [("a", "acquire"), ("b", "acquire")]
TWICE: Sequence[Call] = [("a", "acquire"), ("a", "acquire"), ("a", "release"), ("a", "release"), ("b", "acquire")]
HALF: Sequence[Call] = [("a", "acquire"), ("a", "acquire"), ("a", "release"), ("b", "acquire")]
FOREIGN: Sequence[Call] = [("a", "acquire"), ("b", "release"), ("c", "acquire")]


@pytest.mark.parametrize(
    ("model", "calls", "verdict"),
    [
        (MUTEX, TURNS, True),
        (MUTEX, STOLEN, False),
        (MUTEX, FOREIGN, True),
        (MUTEX, TWICE, False),
        (OWNED, TURNS, True),
        (OWNED, STOLEN, False),
        (OWNED, FOREIGN, False),
        (OWNED, TWICE, False),
        (REENTRANT, TURNS, True),
        (REENTRANT, STOLEN, False),
        (REENTRANT, FOREIGN, False),
        (REENTRANT, TWICE, True),
        (REENTRANT, HALF, False),
    ],
)
def test_a_model_allows_its_own(model: Model, calls: Sequence[Call], verdict: bool) -> None:
    assert is_linearizable(record(*calls), model=model) is verdict


A1, A2, B2 = ("a", "acquire", 1), ("a", "acquire", 2), ("b", "acquire", 2)
A, B = ("a", "release"), ("b", "release")


@pytest.mark.parametrize(
    ("calls", "verdict"),
    [
        ([A1, A, B2, B], True),
        ([A2, A, ("b", "acquire", 2)], False),
        ([A2, A, ("b", "acquire", 1)], False),
        ([("a", "acquire")], False),
        ([A1, ("a", "write", 1), A, B2, ("b", "write", 2)], True),
        ([A1, A, B2, ("a", "write", 1, "fail"), ("b", "write", 2)], True),
        ([A1, A, B2, ("b", "write", 2), ("a", "write", 1, "fail")], True),
        ([A1, A, B2, ("b", "write", 2), ("a", "write", 1)], False),
        ([A1, ("a", "write", 1, "fail")], False),
        ([A1, ("a", "write", 7)], False),
        ([A1, ("b", "acquire", 0, "info"), A, B2], True),
    ],
)
def test_tokens_grow_and_a_stale_write_is_refused(calls: Sequence[Call], verdict: bool) -> None:
    assert is_linearizable(record(*calls), model=FENCED) is verdict


def test_the_model_follows_from_the_tokens_unless_it_is_named() -> None:
    assert judge(record(A1, A, B2)).model == "fenced"
    assert judge(record(*TURNS)).model == "owner"
    assert judge(record(*TWICE), REENTRANT).ok is True
    assert sorted(MODELS) == ["fenced", "mutex", "owner", "reentrant"]
