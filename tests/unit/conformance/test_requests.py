"""Requests that are meddled with: which of them, though a client may need more of them the next time."""

from __future__ import annotations

import itertools

import pytest
from hudi_locks_conformance import Harness, Status, run_check, select_checks
from hudi_locks_conformance.faults.meddler import Meddler, fail_with

from hudi_locks import LockScope

_TRIED = 3
"""Scopes of the trial in which the requests of a lock's life are counted."""


def test_a_request_is_counted_among_those_of_its_kind() -> None:
    meddler = Meddler()
    meddler.begin({1: fail_with(OSError("planted"))}, to="put")
    assert [meddler(name, lambda: "sent") for name in ("get", "put", "get")] == ["sent"] * 3
    with pytest.raises(OSError, match="planted"):
        meddler("put", lambda: "sent")
    assert meddler("put", lambda: "sent") == "sent"
    assert meddler.names == ["get", "put", "get", "put", "put"]


@pytest.mark.parametrize("check_id", ["H9a", "H9b"])
def test_an_error_meets_no_request_that_it_cannot_answer(check_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scopes of the trial share a counter, so that it takes one request less than the same thing later."""
    number = itertools.count()
    seen: dict[LockScope, str] = {}

    def name_counter(scope: LockScope) -> str:
        return seen.setdefault(scope, str(max(_TRIED, next(number))))

    monkeypatch.setattr("hudi_locks_providers.storage.name_counter", name_counter)
    harness = Harness("storage", {"hoodie.base.path": "memory://conformance/requests"}, seed=5)
    outcome = run_check(select_checks(only=[check_id])[0], harness)
    assert outcome.status is Status.PASS, outcome.message
