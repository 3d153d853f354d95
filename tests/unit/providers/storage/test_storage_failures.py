"""Lost answers are found out, failed attempts leave nothing, and what is final is told at once and by name."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from hudi_locks_providers._storage import stores

from hudi_locks import BackendRefused, BackendUnavailable, ConfigError, LockScope, ManualClock, Owner, SystemClock

Make = Callable[..., Any]
KEY = "t/.hoodie/.locks/table_lock.json"


def is_held(stub: Any) -> bool:
    return KEY in stub.objects and json.loads(stub.objects[KEY])["expired"] is False


@pytest.mark.parametrize("warm", [False, True])
def test_an_acquire_whose_answer_is_lost_is_ours(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, bob: Owner, warm: bool
) -> None:
    provider = make_storage()
    if warm:
        provider.release(provider.try_acquire(table, ada, 0))
    stub.once("lose")
    lease = provider.try_acquire(table, ada, 0)
    provider.renew(lease)
    assert make_storage().try_acquire(table, bob, 0) is None
    provider.release(lease)
    assert make_storage().try_acquire(table, bob, 0)


@pytest.mark.parametrize(("idle_s", "connections"), [(0.02, 2), (600.0, 1)])
def test_a_connection_that_was_idle_for_long_is_not_used_again(
    make_storage: Make, stub: Any, monkeypatch: pytest.MonkeyPatch, idle_s: float, connections: int
) -> None:
    monkeypatch.setattr(stores, "_IDLE_S", idle_s)
    objects = make_storage()._objects
    objects.read(KEY)
    for _ in range(20 if connections > 1 else 2):  # a busy machine gives a connection back late, idle from then on
        SystemClock().sleep(0.1)  # real time: the library's own
        objects.read(KEY)
        if len(set(stub.connections)) > 1:
            break
    assert len(set(stub.connections)) == connections


def test_an_acquire_that_conflicts_with_itself_is_ours(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner
) -> None:
    """A proxy that repeats a request gets the refusal for the success of the first one."""
    provider = make_storage()
    put = provider._objects.put

    def repeat(key: str, data: bytes, mode: Any) -> Any:
        put(key, data, mode)
        return put(key, data, mode)

    provider._tokens.advance("table")
    provider._objects.put = lambda key, data, mode: repeat(key, data, mode) if key == KEY else put(key, data, mode)
    assert provider.try_acquire(table, ada, 0)


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("verdict", ["drop", 500, 503, 429])
def test_an_attempt_that_fails_cannot_take_effect_later(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, bob: Owner, warm: bool, verdict: Any
) -> None:
    """A write that got stuck on its way waits for a version that is gone when it arrives."""
    provider, late = make_storage(), make_storage()
    if warm:
        provider.release(provider.try_acquire(table, ada, 0))
    seen = late._records.find(KEY)
    stub.once(verdict)
    with pytest.raises(BackendUnavailable, match=r"s3://bucket/t/.hoodie/.locks/table_lock.json at http"):
        provider.try_acquire(table, ada, 0)
    assert late._take(table, bob, over=seen) is None
    assert not is_held(stub)
    assert provider.try_acquire(table, ada, 0)


@pytest.mark.parametrize("by", ["the next attempt", "close"])
def test_what_an_unresolved_attempt_left_is_nobodys(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, by: str
) -> None:
    """The write took effect, and then the service was gone: the client knows once it is back."""
    provider = make_storage()
    stub.once("lose")
    provider._objects.read = _fail_second(provider._objects.read)
    with pytest.raises(BackendUnavailable):
        provider.try_acquire(table, ada, 0)
    assert is_held(stub)
    if by == "close":
        provider.close()
        assert not is_held(stub)
    else:
        assert provider.try_acquire(table, ada, 0)


def _fail_second(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """The second read of the record fails, which is the one that asks what became of a write."""
    reads = []

    def call(key: str) -> Any:
        reads.append(key)
        if reads.count(KEY) == 2 and key == KEY:
            raise BackendUnavailable("planted")
        return read(key)

    return call


def test_a_renewal_whose_answer_is_lost_is_found_again(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, clock: ManualClock
) -> None:
    provider = make_storage()
    lease = provider.try_acquire(table, ada, 0)
    clock.advance(5)
    stub.once("lose")
    with pytest.raises(BackendUnavailable):
        provider.renew(lease)
    clock.advance(5)
    assert provider.renew(lease).deadline_s == clock.monotonic() + 300


@pytest.mark.parametrize("verdict", ["lose", "drop", 500, 503, 429, 409])
def test_a_release_without_an_answer_is_tried_again(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, verdict: Any
) -> None:
    provider = make_storage()
    lease = provider.try_acquire(table, ada, 0)
    stub.once(verdict)
    try:
        provider.release(lease)
    except BackendUnavailable:
        provider.release(lease)
    assert not is_held(stub)


def test_close_frees_what_a_failed_release_left(make_storage: Make, stub: Any, table: LockScope, ada: Owner) -> None:
    provider = make_storage()
    lease = provider.try_acquire(table, ada, 0)
    stub.once(503)
    with pytest.raises(BackendUnavailable, match="503"):
        provider.release(lease)
    provider.close()
    assert not is_held(stub)


def test_obstore_repeats_no_request(make_storage: Make, stub: Any, table: LockScope, ada: Owner) -> None:
    rule = stub.always(503)
    with pytest.raises(BackendUnavailable, match="503 Told503"):
        make_storage().try_acquire(table, ada, 0)
    stub.rules.remove(rule)
    assert [method for method, _ in stub.requests].count("PUT") == 1


@pytest.mark.parametrize(
    ("verdict", "method", "right"),
    [(403, "GET", "s3:GetObject"), (403, "PUT", "s3:PutObject"), (401, "PUT", "s3:PutObject")],
)
def test_a_missing_right_is_named(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, verdict: int, method: str, right: str
) -> None:
    stub.always(verdict, method)
    with pytest.raises(BackendRefused, match=f"grant {right}, or check the credentials") as refused:
        make_storage().try_acquire(table, ada, 0)
    assert refused.value.right == right


@pytest.mark.parametrize("verdict", [400, 405, 501])
def test_what_no_retry_heals_is_refused(
    make_storage: Make, stub: Any, table: LockScope, ada: Owner, verdict: int
) -> None:
    stub.always(verdict)
    with pytest.raises(BackendRefused, match=f"cannot write it .{verdict}"):
        make_storage().try_acquire(table, ada, 0)


def test_a_missing_bucket_is_named(make_storage: Make, stub: Any, table: LockScope, ada: Owner) -> None:
    stub.always(404)
    with pytest.raises(BackendRefused, match=r"s3://bucket/ at http.*there is no such bucket"):
        make_storage().try_acquire(table, ada, 0)


def test_no_secret_is_in_an_error(make_storage: Make, stub: Any, table: LockScope, ada: Owner) -> None:
    stub.always(403)
    with pytest.raises(BackendRefused) as refused:
        make_storage().try_acquire(table, ada, 0)
    assert "top-secret" not in "".join(traceback.format_exception(refused.value))


def test_an_address_without_tls_must_be_allowed(make_storage: Make) -> None:
    with pytest.raises(ConfigError, match=r"hudi_locks.storage.allow_http=true if that is meant"):
        make_storage(**{"hudi_locks.storage.allow_http": False})
