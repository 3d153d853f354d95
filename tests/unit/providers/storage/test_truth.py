"""A service that accepts a condition and ignores it is refused by name, before its first lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hudi_locks_providers._storage import truth
from waiting import until

from hudi_locks import BackendRefused, BackendUnavailable, LockScope, Owner

Make = Callable[..., Any]


@pytest.fixture(autouse=True)
def forget(monkeypatch: Any) -> None:
    monkeypatch.setattr(truth, "_PROVEN", set())


def findings(provider: Any) -> dict[str, bool]:
    return {finding.name: finding.ok for finding in provider.probe() if finding.name != "clock-offset"}


def test_an_honest_service_is_proven_once_and_remembered(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, tmp_path: Path
) -> None:
    make_storage(proven=False).try_acquire(table, ada, 0)
    assert stub.count("/probe/") > 20
    assert not any("/probe/" in key for key in stub.objects)
    assert len(list((tmp_path / "cache" / "hudi-locks" / "proven").iterdir())) == 1
    stub.requests.clear()
    truth._PROVEN.clear()
    make_storage(proven=False).try_acquire(table, ada, 0)
    assert stub.count("/probe/") == 0


@pytest.mark.parametrize(
    ("ignored", "failing"),
    [
        ({"If-None-Match"}, {"create-once", "create-race-has-one-winner"}),
        ({"If-Match"}, {"stale-version-refused", "missing-key-refused", "update-race-has-one-winner"}),
    ],
)
def test_a_pretender_is_found_out(make_storage: Make, stub: Any, ignored: set[str], failing: set[str]) -> None:
    stub.ignores = ignored
    found = findings(make_storage())
    assert {name for name, ok in found.items() if not ok} == failing
    assert len(found) == 5


@pytest.mark.parametrize("ignored", ["If-None-Match", "If-Match"])
def test_a_pretender_gets_no_lock(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, ignored: str, tmp_path: Path
) -> None:
    stub.ignores = {ignored}
    for _ in range(2):
        with pytest.raises(BackendRefused, match=r"s3://bucket/ http.*(create-once|stale-version).*use a store"):
            make_storage(proven=False).try_acquire(table, ada, 0)
    assert not any("table_lock" in key for key in stub.objects)
    assert not (tmp_path / "cache").exists()


def test_threads_that_are_first_together_do_not_take_each_other_for_a_pretender(
    make_storage: Make, stub: Any, ada: Owner
) -> None:
    provider, creates = make_storage(proven=False), []

    def meet(method: str, key: str) -> None:
        if method == "PUT" and key.endswith("/once"):
            creates.append(key)
            until(lambda: len(creates) > 1, 0.2)

    stub.rules.append(meet)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(provider.try_acquire, LockScope.file_group("p", name), ada, 0) for name in ("a", "b")]
        assert all(one.result(60) for one in asked)


def test_a_service_that_is_down_is_not_called_a_pretender(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner
) -> None:
    stub.always(503)
    with pytest.raises(BackendUnavailable):
        make_storage(proven=False).try_acquire(table, ada, 0)


def test_a_race_in_which_some_get_no_answer_is_judged_by_the_others(make_storage: Make, stub: Any) -> None:
    refused = iter([429, 429, 429])
    stub.rules.append(lambda method, key: next(refused, None) if method == "PUT" and "race-" in key else None)
    assert all(findings(make_storage()).values())


def test_scratch_that_may_not_be_deleted_is_told(make_storage: Make, stub: Any) -> None:
    stub.always(403, "POST")
    stub.always(403, "DELETE")
    last = make_storage().probe()[-1]
    assert (last.name, last.ok) == ("scratch-removed", True)
    assert "grant s3:DeleteObject" in last.found
    assert any("/probe/" in key for key in stub.objects)


def test_the_clock_is_compared_with_the_services(make_storage: Make, clock: Any) -> None:
    """The stub tells real time, and the provider is in virtual time."""
    last = make_storage().probe()[-1]
    assert (last.name, last.ok) == ("clock-offset", False)
    assert "NTP" in last.advice
