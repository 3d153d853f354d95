"""Several locks at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hudi_locks import (
    AcquireTimeout,
    AlreadyHeld,
    BackendRefused,
    BackendUnavailable,
    ConfigError,
    Lease,
    LockLost,
    LockScope,
    LossReason,
    Owner,
)

Make = Callable[..., Any]
SCOPES = [LockScope.file_group("p", name) for name in ("b", "a", "b")]
ORDERED = [SCOPES[1], SCOPES[0]]


@pytest.fixture
def bulky(scripted: type[Any]) -> type[Any]:
    """Takes many in one request, and notes each request."""

    class Bulky(scripted):  # type: ignore[misc]
        lease_s = 60.0

        def __init__(self, options: Any, **given: Any) -> None:
            super().__init__(options, **given)
            self.many: list[Any] = []
            self.let_go: list[list[Lease]] = []

        def acquire_many(self, scopes: Sequence[LockScope], owner: Owner, timeout_s: float) -> list[Lease] | None:
            self.asked.append((self.clock.monotonic(), timeout_s))
            answer = self.many.pop(0) if self.many else True
            if isinstance(answer, BaseException):
                raise answer
            deadline_s = self.clock.monotonic() + 60
            return [Lease(scope, owner, next(self.tokens), deadline_s) for scope in scopes] if answer else None

        def release_many(self, leases: Sequence[Lease]) -> None:
            self.let_go.append(list(leases))
            if self.releases:
                raise self.releases.pop(0)

    return Bulky


def test_they_are_taken_and_let_go_with_one_request_each(make_manager: Make, bulky: Any) -> None:
    manager = make_manager(bulky)
    with manager.lock_many(SCOPES) as held:
        assert [one.scope for one in held] == ORDERED
        held.check()
        assert len(held) == 2
    assert len(manager.provider.asked) == len(manager.provider.let_go) == 1
    assert [lease.scope for lease in manager.provider.let_go[0]] == ORDERED
    assert manager.metrics.snapshot()["lock.acquire.success"] == 2
    assert manager.metrics.snapshot()["lock.release.success"] == 2
    held.release()
    assert len(manager.provider.let_go) == 1


def test_none_at_all_costs_nothing(make_manager: Make, bulky: Any) -> None:
    manager = make_manager(bulky)
    with manager.lock_many([]) as held:
        held.check()
    assert manager.provider.asked == []
    with pytest.raises(ConfigError):
        manager.lock_many(SCOPES, timeout_s=-1)


def test_they_are_waited_for_like_one(make_manager: Make, bulky: Any, run: Any) -> None:
    manager = make_manager(bulky)
    manager.provider.many = [None, BackendUnavailable("down"), None]
    run(lambda: manager.lock_many(SCOPES).release())
    assert len(manager.provider.asked) == 4
    manager.provider.many = [None] * 9
    with pytest.raises(AcquireTimeout, match="the lock on p/a and 1 others was not free") as caught:
        manager.lock_many(SCOPES, timeout_s=0)
    assert caught.value.scope == ORDERED[0]


def test_a_refusal_leaves_none_behind(make_manager: Make) -> None:
    manager = make_manager()
    manager.provider.answers = [True, BackendRefused("no")]
    with pytest.raises(BackendRefused):
        manager.lock_many(SCOPES)
    assert len(manager.provider.released) == 1
    manager.lock_many(SCOPES, timeout_s=0).release()
    manager.provider.answers = [True, False]
    with pytest.raises(AcquireTimeout):
        manager.lock_many(SCOPES, timeout_s=0)
    assert len(manager.provider.released) == 4


def test_a_thread_that_has_one_of_them_is_told_and_the_others_are_free(make_manager: Make, bulky: Any) -> None:
    manager = make_manager(bulky)
    with manager.lock(SCOPES[0]):
        with pytest.raises(AlreadyHeld, match="p/b"):
            manager.lock_many(SCOPES)
        manager.lock(SCOPES[1], timeout_s=0).release()
    manager.lock_many(SCOPES, timeout_s=0).release()


def test_a_thread_in_the_way_is_named_and_leaves_the_others_free(make_manager: Make, bulky: Any) -> None:
    manager = make_manager(bulky)
    errors: list[Exception] = []

    def want_all() -> None:
        try:
            manager.lock_many(SCOPES, timeout_s=0)
        except AcquireTimeout as error:
            errors.append(error)

    with manager.lock(SCOPES[0]):
        thread = threading.Thread(target=want_all)
        thread.start()
        thread.join()
        manager.lock(SCOPES[1], timeout_s=0).release()
    assert "in this process" in str(errors[0])


def test_a_release_that_is_not_confirmed_is_made_again_at_close(make_manager: Make, bulky: Any, run: Any) -> None:
    manager = make_manager(bulky)
    held = manager.lock_many(SCOPES)
    manager.provider.releases = [BackendUnavailable("down") for _ in range(3)]
    with pytest.raises(BackendUnavailable):
        run(held.release)
    assert manager.metrics.snapshot()["lock.release.failure"] == 2
    manager.close()
    assert {lease.scope for lease in manager.provider.released} == set(ORDERED)


def test_the_loss_of_one_ends_the_block_with_an_error(make_manager: Make, bulky: Any) -> None:
    manager = make_manager(bulky)
    with pytest.raises(LockLost) as caught, manager.lock_many(SCOPES) as held:
        manager.provider.on_lost(list(held)[1].lease, LossReason.DELETED)
    assert (caught.value.scope, caught.value.reason) == (ORDERED[1], LossReason.DELETED)


def test_an_error_of_the_block_wins_over_the_loss(make_manager: Make, bulky: Any) -> None:
    manager = make_manager(bulky)

    def lose_and_fail() -> None:
        with manager.lock_many(SCOPES) as held:
            manager.provider.on_lost(list(held)[1].lease, LossReason.DELETED)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        lose_and_fail()
