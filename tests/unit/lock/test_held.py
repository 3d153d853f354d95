"""A hold: its states, renewal, loss, release."""

from __future__ import annotations

import itertools
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
import waiting

from hudi_locks import (
    BackendRefused,
    BackendUnavailable,
    Lease,
    LockLost,
    LockManager,
    LockScope,
    LossReason,
    NotHeld,
    ProviderClosed,
)

Make = Callable[..., Any]


@pytest.fixture
def leased(scripted: type[Any]) -> type[Any]:
    class Leased(scripted):  # type: ignore[misc]
        lease_s = 60.0

    return Leased


def unavailable(times: int) -> list[BackendUnavailable]:
    return [BackendUnavailable("down") for _ in range(times)]


def test_a_living_holder_keeps_its_lease(make_manager: Make, leased: Any, clock: Any) -> None:
    manager = make_manager(leased)
    with manager.lock() as held:
        for _ in range(50):
            clock.let_pass(60)
            held.check()
    assert len(manager.provider.renewed) >= 100


def test_a_hold_tells_the_name_of_the_job(scripted: type[Any], clock: Any) -> None:
    with LockManager(scripted, {"hoodie.write.lock.app_id": "nightly"}, clock=clock) as manager, manager.lock() as held:
        assert held.lease.owner.application == "nightly"


def test_a_hold_without_a_lease_is_looked_after_each_heartbeat(make_manager: Make, clock: Any) -> None:
    manager = make_manager(**{"hoodie.write.lock.heartbeat_interval_ms": 7_000})
    held = manager.lock()
    for _ in range(3):
        clock.let_pass(7)
    waiting.until(lambda: len(manager.provider.renewed) == 3)
    assert [later - earlier for earlier, later in itertools.pairwise(manager.provider.renewed)] == [7.0, 7.0]
    held.release()


def test_the_lease_counts_from_before_the_request(make_manager: Make, leased: Any, clock: Any) -> None:
    manager = make_manager(leased)
    manager.provider.on_request = lambda: clock.advance(30)
    manager.provider.renewals = unavailable(100)
    held = manager.lock()
    clock.let_pass(25.5)
    assert held.state.name == "UNSURE"
    clock.let_pass(4.5)
    assert held.state.name == "LOST"


def test_failures_within_the_margin_are_tolerated(make_manager: Make, leased: Any, clock: Any) -> None:
    manager = make_manager(leased)
    manager.provider.renewals = unavailable(3)
    held = manager.lock()
    clock.let_pass(34)
    assert (held.state.name, len(manager.provider.renewed)) == ("HELD", 3)
    clock.let_pass(600)
    assert held.state.name == "HELD"


def test_held_then_unsure_then_lost_and_told_once(make_manager: Make, leased: Any, clock: Any) -> None:
    manager = make_manager(leased)
    manager.provider.renewals = unavailable(1000)
    told: list[LossReason] = []
    held = manager.lock(on_lost=lambda lost, reason: told.append(reason))
    clock.let_pass(54)
    assert held.state.name == "HELD"
    clock.let_pass(1.5)
    assert held.state.name == "UNSURE"
    with pytest.raises(LockLost):
        held.check()
    assert told == []
    clock.let_pass(5)
    assert (held.state.name, held.reason, told) == ("LOST", LossReason.UNREACHABLE, [LossReason.UNREACHABLE])
    clock.let_pass(600)
    assert told == [LossReason.UNREACHABLE]
    with pytest.raises(LockLost, match="did not answer within the safety margin") as caught:
        held.check()
    assert caught.value.reason is LossReason.UNREACHABLE


def test_unsure_becomes_held_again_by_proof_alone(make_manager: Make, leased: Any, clock: Any) -> None:
    manager = make_manager(leased)
    manager.provider.renewals = unavailable(8)
    held = manager.lock()
    clock.let_pass(56)
    assert held.state.name == "UNSURE"
    held.check()
    assert held.state.name == "HELD"


@pytest.mark.parametrize("reason", [LossReason.STOLEN, LossReason.DELETED, LossReason.EXPIRED])
def test_a_terminal_answer_ends_the_hold_at_once(
    make_manager: Make, leased: Any, clock: Any, reason: LossReason
) -> None:
    manager = make_manager(leased)
    manager.provider.renewals = [LockLost("gone", reason=reason)]
    told: list[LossReason] = []
    held = manager.lock(on_lost=lambda lost, why: told.append(why))
    clock.let_pass(20.5, until=lambda: told)
    assert (held.state.name, held.reason, told) == ("LOST", reason, [reason])
    assert len(manager.provider.renewed) == 1
    clock.let_pass(600)
    assert len(manager.provider.renewed) == 1
    assert manager.metrics.counter("lock.lost") == 1


def test_a_refused_renewal_is_terminal(make_manager: Make, leased: Any, clock: Any) -> None:
    manager = make_manager(leased)
    manager.provider.renewals = [BackendRefused("no permission")]
    held = manager.lock()
    clock.let_pass(21, until=lambda: held.reason)
    assert held.reason is LossReason.UNREACHABLE


def test_a_failing_callback_does_not_stop_other_renewals(make_manager: Make, leased: Any, clock: Any) -> None:
    manager = make_manager(leased)
    other = manager.lock(LockScope.file_group("p", "f"))

    def fail(lost: Any, reason: LossReason) -> None:
        raise ZeroDivisionError

    held = manager.lock(on_lost=fail)
    manager.provider.on_renew = lambda lease: raise_lost() if lease.scope.is_table else None
    clock.let_pass(300, until=lambda: held.reason)
    assert held.state.name == "LOST"
    other.check()


def raise_lost() -> None:
    raise LockLost("gone", reason=LossReason.DELETED)


def test_the_callback_may_release_and_close(make_manager: Make, leased: Any, clock: Any) -> None:
    manager = make_manager(leased)
    done = threading.Event()

    def finish(lost: Any, reason: LossReason) -> None:
        lost.release()
        manager.close()
        done.set()

    manager.provider.renewals = [LockLost("gone", reason=LossReason.DELETED)]
    manager.lock(on_lost=finish)
    clock.let_pass(21)
    assert done.wait(5)
    assert manager.provider.closed == 1


def test_a_hung_renewal_does_not_keep_others_from_being_renewed(make_manager: Make, leased: Any, clock: Any) -> None:
    manager = make_manager(leased)
    hung, go_on = threading.Event(), threading.Event()

    def hang(lease: Lease) -> None:
        if lease.scope.is_table:
            hung.set()
            clock.wait(go_on, None)

    manager.provider.on_renew = hang
    told: list[LossReason] = []
    stuck = manager.lock(on_lost=lambda lost, reason: told.append(reason))
    other = manager.lock(LockScope.file_group("p", "f"))
    clock.let_pass(20)
    assert hung.wait(5)
    for _ in range(20):
        clock.let_pass(5, parked=2)
    assert other.state.name == "HELD"
    assert stuck.state.name == "LOST"
    assert told == [LossReason.EXPIRED]
    go_on.set()


def test_a_lock_acquired_while_a_renewal_hangs_is_renewed(make_manager: Make, leased: Any, clock: Any) -> None:
    manager = make_manager(leased)
    hung, go_on = threading.Event(), threading.Event()

    def hang(lease: Lease) -> None:
        if lease.scope.is_table:
            hung.set()
            clock.wait(go_on, None)

    manager.provider.on_renew = hang
    manager.lock()
    clock.let_pass(20)
    assert hung.wait(5)
    other = manager.lock(LockScope.file_group("p", "f"))
    for _ in range(20):
        clock.let_pass(5, parked=2)
    assert other.state.name == "HELD"
    go_on.set()


def test_release_wins_over_a_renewal_in_flight(make_manager: Make, leased: Any, clock: Any) -> None:
    manager = make_manager(leased)
    inside, go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def pause(lease: Lease) -> None:
        inside.set()
        clock.wait(go_on, None)
        order.append("renewed")

    manager.provider.on_renew = pause
    held = manager.lock()
    clock.let_pass(20)
    assert inside.wait(5)
    releaser = threading.Thread(target=held.release)
    releaser.start()
    go_on.set()
    releaser.join(5)
    clock.let_pass(200)
    assert order == ["renewed"]
    assert len(manager.provider.released) == 1
    assert held.state.name == "RELEASED"


def test_release_twice_from_anywhere_is_one_release(make_manager: Make) -> None:
    manager = make_manager()
    held = manager.lock()
    thread = threading.Thread(target=held.release)
    thread.start()
    thread.join()
    held.release()
    assert len(manager.provider.released) == 1
    with pytest.raises(NotHeld):
        held.check()


def test_a_failing_release_is_tried_again_then_told_and_tried_at_close(make_manager: Make, run: Any) -> None:
    manager = make_manager()
    manager.provider.releases = unavailable(2)
    run(manager.lock().release, 0.05)
    assert len(manager.provider.released) == 3
    manager.provider.releases = unavailable(3)
    held = manager.lock()
    with pytest.raises(BackendUnavailable):
        run(held.release, 0.05)
    assert manager.metrics.counter("lock.release.failure") == 1
    manager.close()
    assert len(manager.provider.released) == 7


def test_the_block_keeps_its_own_error(make_manager: Make) -> None:
    manager = make_manager()
    manager.provider.releases = [BackendRefused("no")]
    with pytest.raises(ZeroDivisionError), manager.lock():
        raise ZeroDivisionError
    with pytest.raises(BackendRefused), manager.lock():
        manager.provider.releases = [BackendRefused("no")]


def test_a_loss_within_the_block_is_raised_at_its_end(make_manager: Make, leased: Any, clock: Any) -> None:
    manager = make_manager(leased)
    manager.provider.renewals = [LockLost("gone", reason=LossReason.STOLEN)]
    with pytest.raises(LockLost, match="names another owner"), manager.lock():
        clock.let_pass(25)


def test_a_lost_hold_does_not_block_the_local_queue(make_manager: Make, leased: Any, clock: Any) -> None:
    manager = make_manager(leased)
    manager.provider.renewals = [LockLost("gone", reason=LossReason.STOLEN)]
    lost = manager.lock()
    clock.let_pass(25)
    again = manager.lock()
    lost.release()
    again.check()
    assert manager.unlock() is True
    assert manager.unlock() is False


def test_unlock_leaves_the_hold_of_another_thread_alone(make_manager: Make) -> None:
    manager = make_manager()
    held = manager.lock()
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(manager.unlock()))
    thread.start()
    thread.join()
    assert found == [False]
    held.check()


def test_the_provider_may_tell_of_a_loss(make_manager: Make, clock: Any) -> None:
    manager = make_manager()
    told = threading.Event()
    held = manager.lock(on_lost=lambda lost, reason: told.set())
    manager.provider.on_lost(held.lease, LossReason.SESSION)
    assert held.reason is LossReason.SESSION
    assert told.wait(5)


def test_verify_asks_the_service_and_check_does_not(make_manager: Make) -> None:
    manager = make_manager()
    held = manager.lock()
    held.check()
    assert manager.provider.renewed == []
    held.verify()
    assert len(manager.provider.renewed) == 1
    manager.provider.renewals = unavailable(1)
    with pytest.raises(LockLost):
        held.verify()
    manager.provider.renewals = [LockLost("gone", reason=LossReason.DELETED)]
    with pytest.raises(LockLost) as caught:
        held.verify()
    assert caught.value.reason is LossReason.DELETED


def test_nothing_alive_is_pickled(make_manager: Make) -> None:
    manager = make_manager()
    with manager.lock() as held:
        for live in (manager, held, manager.provider):
            with pytest.raises(TypeError, match="cannot be pickled"):
                pickle.dumps(live)


def test_a_closed_manager_refuses(make_manager: Make) -> None:
    manager = make_manager()
    held = manager.lock()
    manager.close()
    manager.close()
    assert manager.provider.closed == 1
    assert held.state.name == "RELEASED"
    for call in (manager.lock, manager.try_lock, manager.holder):
        with pytest.raises(ProviderClosed):
            call()


def test_no_thread_survives_close(make_manager: Make, leased: Any, clock: Any) -> None:
    before = set(threading.enumerate())
    manager = make_manager(leased)
    manager.lock()
    clock.let_pass(100)
    manager.close()
    assert set(threading.enumerate()) <= before


def test_metrics_of_a_known_script(make_manager: Make, clock: Any, run: Any) -> None:
    manager = make_manager(num_retries=0)
    manager.provider.answers = [None, None, True, None]
    with run(manager.lock):
        clock.let_pass(2)
    assert manager.try_lock() is None
    seen = manager.metrics.snapshot()
    assert seen["lock.acquire.attempts"] == 4
    assert seen["lock.acquire.success"] == 1
    assert seen["lock.acquire.failure"] == 1
    assert seen["lock.release.success"] == 1
    assert seen["lock.acquire.duration"].total_s == pytest.approx(2, abs=0.5)
    assert seen["lock.request.latency"].count == 2


def test_a_lock_whose_release_failed_is_let_go_of_before_it_is_asked_for_again(make_manager: Make, run: Any) -> None:
    manager = make_manager()
    provider = manager.provider
    provider.releases = unavailable(3)
    held = manager.lock()
    with pytest.raises(BackendUnavailable):
        run(held.release, 0.05)
    provider.released.clear()
    provider.releases = unavailable(1)
    asked = len(provider.asked)
    again = run(lambda: manager.lock(timeout_s=60))
    assert provider.released == [held.lease] * 2
    assert len(provider.asked) == asked + 1
    again.release()
    assert provider.released[2:] == [again.lease]
