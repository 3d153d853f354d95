"""Lost answers, removed nodes and ended sessions, each at a chosen moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hudi_locks_providers._wire.zookeeper import parse_sequence
from hudi_locks_providers.zookeeper import ZooKeeperLockProvider
from kazoo.exceptions import NoAuthError
from kazoo.protocol.serialization import Create2, Delete, GetChildren
from waiting import until

from hudi_locks import (
    AlreadyHeld,
    BackendRefused,
    BackendUnavailable,
    Lease,
    LockLost,
    LockScope,
    LossReason,
    ManualClock,
    Owner,
    ProviderClosed,
)

TABLE = LockScope.table()
GROUP = LockScope.file_group("p=1", "f-0")
ADA, BOB = Owner("ada", "host-a", 11), Owner("bob", "host-b", 22)
Make = Callable[[], ZooKeeperLockProvider]


def session(provider: ZooKeeperLockProvider) -> Any:
    return provider.client.session


def acquire(provider: ZooKeeperLockProvider, owner: Owner = ADA, scope: LockScope = TABLE) -> Lease:
    lease = provider.try_acquire(scope, owner, 0)
    assert lease is not None
    return lease


def tick(clock: ManualClock) -> bool:
    clock.advance(0.1)
    return True


def losing(kind: type, fate: str) -> Callable[[Any], str]:
    return lambda request: fate if isinstance(request, kind) else ""


def test_the_lost_answer_of_a_creation_is_found_again(make: Make, tree: Any) -> None:
    provider = make()
    provider.release(acquire(provider))
    session(provider).losing = losing(Create2, "answer")
    lease = acquire(provider)
    assert tree.children("/b/k") == [lease.state.contender.name]
    assert lease.token == tree.nodes[lease.state.contender.path].czxid


def test_a_creation_that_did_not_arrive_is_an_error(make: Make, tree: Any) -> None:
    provider = make()
    provider.release(acquire(provider))
    session(provider).losing = losing(Create2, "request")
    with pytest.raises(BackendUnavailable):
        provider.try_acquire(TABLE, ADA, 0)
    assert tree.children("/b/k") == []


def test_a_creation_whose_session_ended_meanwhile_is_no_hold(make: Make, tree: Any) -> None:
    provider = make()
    provider.release(acquire(provider))
    session(provider).losing = losing(Create2, "answer")
    session(provider).between = [lambda: None, session(provider).expire]
    with pytest.raises(BackendUnavailable):
        provider.try_acquire(TABLE, ADA, 0)
    assert until(lambda: tree.children("/b/k") == [])


def test_what_is_left_when_the_link_breaks_is_removed_when_it_is_back(
    make: Make, tree: Any, clock: ManualClock
) -> None:
    provider = make()
    provider.release(acquire(provider))
    link = session(provider)
    link.losing = losing(Create2, "answer")
    link.between = [lambda: None, link.cut]
    with pytest.raises(BackendUnavailable):
        provider.try_acquire(TABLE, ADA, 0)
    assert len(tree.children("/b/k")) == 1
    link.losing = lambda _: ""
    link.heal()
    assert until(lambda: tick(clock) and tree.children("/b/k") == [])


def test_parents_removed_between_their_making_and_ours(make: Make, tree: Any) -> None:
    provider = make()
    link = session(provider)

    def remove() -> None:
        for path in ("/b/k", "/b"):
            tree.nodes.pop(path, None)

    link.between = [lambda: None, remove, remove, remove]
    lease = acquire(provider)
    assert list(tree.nodes) == ["", "/b", "/b/k", lease.state.contender.path]


def test_parents_that_always_vanish_are_an_error(make: Make, tree: Any) -> None:
    provider = make()
    session(provider).losing = lambda request: "" if isinstance(request, Create2 | GetChildren) else "request"
    with pytest.raises(BackendUnavailable, match="/b/k"):
        provider.try_acquire(TABLE, ADA, 0)


def test_a_refusal_names_node_and_right(make: Make, tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = make()
    monkeypatch.setattr(session(provider), "call", lambda *requests: [NoAuthError()] * len(requests))
    with pytest.raises(BackendRefused, match=r"/b/k \(NoAuth\)") as refused:
        provider.try_acquire(TABLE, ADA, 0)
    assert refused.value.key == "/b/k"


def test_a_release_without_an_answer_is_told_and_done_again(make: Make, tree: Any) -> None:
    provider = make()
    lease = acquire(provider)
    session(provider).losing = losing(Delete, "request")
    with pytest.raises(BackendUnavailable):
        provider.release(lease)
    session(provider).losing = lambda _: ""
    provider.release(lease)
    assert tree.children("/b/k") == []
    with pytest.raises(LockLost):
        provider.renew(lease)


def test_a_release_whose_answer_was_lost_is_no_error_the_second_time(make: Make, tree: Any) -> None:
    provider = make()
    lease = acquire(provider)
    session(provider).losing = losing(Delete, "answer")
    with pytest.raises(BackendUnavailable):
        provider.release(lease)
    session(provider).losing = lambda _: ""
    provider.release(lease)
    assert acquire(make(), BOB)


def test_a_session_that_ends_is_told_once_and_its_lease_is_worth_nothing(make: Make, lost: list[Any]) -> None:
    provider = make()
    lease = acquire(provider)
    session(provider).expire()
    assert lost == [(lease, LossReason.SESSION)]
    with pytest.raises(LockLost) as error:
        provider.renew(lease)
    assert error.value.reason is LossReason.SESSION
    provider.release(lease)
    assert acquire(provider).token != lease.token
    assert len(lost) == 1


def test_a_silence_as_long_as_a_session_ends_all_holds(
    make: Make, tree: Any, clock: ManualClock, lost: list[Any]
) -> None:
    provider = make()
    lease = acquire(provider)
    session(provider).cut()
    assert until(clock.parked)
    clock.advance(29.0)
    assert lost == []
    clock.advance(1.5)
    assert until(lambda: lost == [(lease, LossReason.UNREACHABLE)])
    session(provider).heal()
    assert until(lambda: tick(clock) and tree.children("/b/k") == []), "the session lived, and its node stayed"


def test_a_short_silence_keeps_the_hold(make: Make, tree: Any, clock: ManualClock, lost: list[Any]) -> None:
    provider = make()
    lease = acquire(provider)
    session(provider).cut()
    clock.advance(20.0)
    with pytest.raises(BackendUnavailable):
        provider.renew(lease)
    session(provider).heal()
    assert provider.renew(lease).token == lease.token
    assert lost == []


def test_a_node_that_is_removed_is_told_by_its_watch(
    make: Make, tree: Any, clock: ManualClock, lost: list[Any]
) -> None:
    provider = make()
    lease = acquire(provider)
    path = lease.state.contender.path
    assert until(lambda: tick(clock) and tree.watches.get(path))
    tree.delete(path)
    assert lost == [(lease, LossReason.DELETED)]


def test_a_place_that_is_lost_in_the_wait_is_taken_again(make: Make, tree: Any, clock: ManualClock) -> None:
    provider, other = make(), make()
    lease = acquire(provider)
    got: list[Lease | None] = []
    waiter = threading.Thread(target=lambda: got.append(other.try_acquire(TABLE, BOB, 60)))
    waiter.start()
    assert until(lambda: len(tree.children("/b/k")) == 2 and clock.waits(waiter))
    session(other).expire()
    assert until(lambda: len(tree.children("/b/k")) == 2 and clock.waits(waiter))
    provider.release(lease)
    waiter.join(5)
    assert got
    assert got[0] is not None
    assert parse_sequence(got[0].state.contender.name) == 2


def test_closing_ends_a_wait_and_takes_its_node_along(make: Make, tree: Any, clock: ManualClock) -> None:
    provider, other = make(), make()
    acquire(provider)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            other.try_acquire(TABLE, BOB, 60)
        except ProviderClosed as error:
            errors.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert until(lambda: clock.waits(waiter))
    other.close()
    waiter.join(5)
    assert len(errors) == 1
    assert len(tree.children("/b/k")) == 1


def test_a_worn_line_is_made_anew_and_keeps_the_order_of_arrival(make: Make, tree: Any) -> None:
    provider, other = make(), make()
    provider.release(acquire(provider))
    tree.nodes["/b/k"].counter = 2**31 - 1
    lease = acquire(provider)
    assert parse_sequence(lease.state.contender.name) == 2**31 - 1
    assert other.try_acquire(TABLE, BOB, 0) is None, "a negative number stands behind the holder's"
    provider.release(lease)
    assert "/b/k" not in tree.nodes
    fresh = acquire(other, BOB)
    assert parse_sequence(fresh.state.contender.name) == 0
    assert (fresh.token or 0) > (lease.token or 0)


def test_the_owner_that_holds_is_refused_and_one_whose_node_went_is_not(make: Make, tree: Any) -> None:
    provider = make()
    lease = acquire(provider)
    with pytest.raises(AlreadyHeld):
        provider.try_acquire(TABLE, ADA, 0)
    del tree.nodes[lease.state.contender.path]
    assert acquire(provider).token != lease.token


def test_a_file_group_leaves_no_node_and_spares_those_who_wait(make: Make, tree: Any) -> None:
    provider, other = make(), make()
    lease = acquire(provider, ADA, GROUP)
    waiting, _, _ = other.client.line.enter(lease.state.contender.place, b"")
    provider.release(lease)
    assert tree.children("/b/p=1/f-0") == [waiting.name]
    other.client.line.leave(waiting)
    assert tree.children("/b/p=1") == []
    provider.close()
    assert "/b/p=1" not in tree.nodes


def test_a_callback_that_fails_does_not_keep_the_other_losses_from_being_told(make: Make) -> None:
    provider = make()
    told: list[LockScope] = []

    def fail(lease: Lease, reason: LossReason) -> None:
        told.append(lease.scope)
        raise ValueError("planted")

    provider.on_lost = fail
    acquire(provider)
    acquire(provider, ADA, GROUP)
    session(provider).expire()
    assert told == [TABLE, GROUP]


def test_the_probe_tells_what_the_server_grants(make: Make) -> None:
    (finding,) = make().probe()
    assert finding.ok
    assert "30 s" in finding.found
    assert "60 s were asked for" in finding.found
    assert "session_timeout_ms to 30000" in finding.advice


def test_an_orphan_is_done_with_though_others_stand_in_its_line(make: Make, tree: Any, clock: ManualClock) -> None:
    provider, other = make(), make()
    lease = acquire(provider, ADA, GROUP)
    waiting, _, _ = other.client.line.enter(lease.state.contender.place, b"")
    session(provider).losing = losing(Delete, "request")
    with pytest.raises(BackendUnavailable):
        provider.release(lease)
    session(provider).losing = lambda _: ""
    assert until(lambda: tick(clock) and not provider.client.line.orphans)
    assert tree.children("/b/p=1/f-0") == [waiting.name]


def test_the_release_of_a_hold_lost_to_silence_is_quiet(make: Make, clock: ManualClock, lost: list[Any]) -> None:
    provider = make()
    lease = acquire(provider)
    session(provider).cut()
    assert until(clock.parked)
    clock.advance(31.0)
    assert until(lambda: lost)
    provider.release(lease)
    provider.release(lease)


def test_an_interrupt_while_many_are_noted_leaves_none(make: Make, tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = make()
    groups = [LockScope.file_group("p=1", f"f-{number}") for number in range(4)]
    granted: list[LockScope] = []
    grant = provider.client._grant

    def interrupt(scope: LockScope, *rest: Any) -> Lease:
        if len(granted) == 2:
            raise KeyboardInterrupt
        granted.append(scope)
        return grant(scope, *rest)

    provider.release_many(provider.acquire_many(groups[:1], ADA, 0) or [])
    monkeypatch.setattr(provider.client, "_grant", interrupt)
    with pytest.raises(KeyboardInterrupt):
        provider.acquire_many(groups, ADA, 0)
    monkeypatch.undo()
    assert tree.children("/b/p=1") == []
    assert len(provider.acquire_many(groups, ADA, 0) or []) == 4
