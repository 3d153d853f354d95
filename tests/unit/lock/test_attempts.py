"""Attempts, native retries, pauses and their bounds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from hudi_locks import (
    AcquireTimeout,
    AlreadyHeld,
    BackendRefused,
    BackendUnavailable,
    Capability,
    ConfigError,
    Holder,
    LockScope,
    ManualClock,
    Owner,
    ProviderClosed,
)
from hudi_locks.config import Options
from hudi_locks.lock import RetryPolicy

Make = Callable[..., Any]


def gaps(asked: list[tuple[float, float]]) -> list[float]:
    return [after[0] - before[0] for before, after in pairwise(asked)]


@pytest.fixture
def waiting(scripted: type[Any]) -> type[Any]:
    class Waiting(scripted):  # type: ignore[misc]
        capabilities = scripted.capabilities | {Capability.TIMED_WAIT}

    return Waiting


def test_one_request_when_free(make_manager: Make) -> None:
    manager = make_manager()
    with manager.lock() as held:
        assert held.token == 1
    assert len(manager.provider.asked) == 1


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_exactly_one_attempt_more_than_client_retries(make_manager: Make, run: Any, waiting: Any, retries: int) -> None:
    manager = make_manager(waiting, **{"client.num_retries": retries})
    manager.provider.answers = [None] * 100
    with pytest.raises(AcquireTimeout) as caught:
        run(manager.lock)
    assert caught.value.attempts == retries + 1
    assert [timeout_s for _, timeout_s in manager.provider.asked] == pytest.approx([60.0] * (retries + 1))


@pytest.mark.parametrize(("native", "client"), [(0, 0), (0, 2), (3, 0), (3, 2)])
def test_native_retries_times_client_retries(make_manager: Make, run: Any, native: int, client: int) -> None:
    options = {
        "hoodie.write.lock.num_retries": native,
        "hoodie.write.lock.client.num_retries": client,
        "hoodie.write.lock.wait_time_ms_between_retry": 10,
    }
    manager = make_manager(**options)
    manager.provider.answers = [None] * 100
    with pytest.raises(AcquireTimeout):
        run(manager.lock)
    assert len(manager.provider.asked) == (native + 1) * (client + 1)


def test_an_attempt_lasts_wait_time_at_most(make_manager: Make, run: Any, clock: ManualClock) -> None:
    manager = make_manager(**{"wait_time_ms": 5000, "num_retries": 1000, "client.num_retries": 0})
    manager.provider.answers = [None] * 1000
    began_s = clock.monotonic()
    with pytest.raises(AcquireTimeout):
        run(manager.lock)
    assert manager.provider.asked[-1][0] - began_s == pytest.approx(5.0)


@pytest.mark.parametrize("native", [0, 2, 50])
def test_nobody_waits_longer_than_is_told(make_manager: Make, run: Any, clock: ManualClock, native: int) -> None:
    """The clock moves in steps, of which each of the pauses may take one more than it asked for."""
    manager = make_manager(**{"num_retries": native, "client.num_retries": 2, "wait_time_ms": 20_000})
    manager.provider.answers = [None] * 1000
    began_s = clock.monotonic()
    with pytest.raises(AcquireTimeout):
        run(manager.lock, 0.05)
    waited_s, told_s = clock.monotonic() - began_s, manager.policy.longest_wait_s(waits_at_service=False)
    assert told_s / 2 <= waited_s <= told_s + 0.05 * len(manager.provider.asked)


def test_pauses_within_an_attempt_double_within_their_bounds_and_are_jittered() -> None:
    policy = RetryPolicy.from_options(Options({}))
    pauses = [list(policy.request_pauses(random.Random(seed))) for seed in range(50)]
    for run_of_one in pauses:
        assert len(run_of_one) == 15
        assert all(1.0 <= pause_s <= min(16.0, 2.0**index) for index, pause_s in enumerate(run_of_one))
    assert len({tuple(run_of_one) for run_of_one in pauses}) == 50


def test_pauses_between_attempts_are_jittered_and_no_longer_than_asked(make_manager: Make, run: Any) -> None:
    options = {
        "num_retries": 0,
        "client.num_retries": 5,
        "hoodie.write.lock.client.wait_time_ms_between_retry": 4000,
    }
    manager = make_manager(**options)
    manager.provider.answers = [None] * 100
    with pytest.raises(AcquireTimeout):
        run(manager.lock, 0.05)
    found = gaps(manager.provider.asked)
    assert all(2.0 <= gap <= 4.1 for gap in found)
    assert len(set(found)) == 5


def test_a_first_pause_above_the_default_longest_stretches_it() -> None:
    policy = RetryPolicy.from_options(Options({"hoodie.write.lock.wait_time_ms_between_retry": 20_000}))
    assert set(policy.request_pauses(random.Random(1))) == {20.0}


def test_worst_case_of_the_defaults_is_most_of_an_hour() -> None:
    assert RetryPolicy.from_options(Options({})).worst_case_s == 51 * 60 + 50 * 5


@pytest.mark.parametrize(
    ("options", "polled_s", "at_service_s"),
    [
        ({}, 51 * 60 + 50 * 5, 51 * 60 + 50 * 5),
        ({"client.num_retries": 0}, 60, 60),
        ({"client.num_retries": 1, "num_retries": 0}, 5, 125),
        ({"client.num_retries": 0, "num_retries": 3}, 1 + 2 + 4, 60),
        ({"client.num_retries": 0, "num_retries": 3, "wait_time_ms": 2_000}, 2, 2),
        ({"client.num_retries": 0, "num_retries": 10**9, "wait_time_ms_between_retry": 0}, 0, 60),
        ({"client.num_retries": 0, "num_retries": 10**9, "wait_time_ms_between_retry": 1}, 60, 60),
    ],
)
def test_the_longest_wait_depends_on_who_waits(options: dict[str, int], polled_s: float, at_service_s: float) -> None:
    policy = RetryPolicy.from_options(Options({f"hoodie.write.lock.{key}": value for key, value in options.items()}))
    assert policy.longest_wait_s(waits_at_service=False) == polled_s
    assert policy.longest_wait_s(waits_at_service=True) == at_service_s
    assert max(polled_s, at_service_s) <= policy.worst_case_s


@pytest.mark.parametrize(
    "error",
    [
        BackendRefused("no permission"),
        ConfigError("bad"),
        ProviderClosed("closed"),
        AlreadyHeld("mine"),
        ZeroDivisionError("a slip"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_permanent_error_is_one_attempt(make_manager: Make, error: Exception) -> None:
    manager = make_manager()
    manager.provider.answers = [error]
    with pytest.raises(type(error)):
        manager.lock()
    assert len(manager.provider.asked) == 1
    assert manager.try_lock() is not None


def test_an_unreachable_service_is_asked_again_and_named_in_the_end(make_manager: Make, run: Any) -> None:
    manager = make_manager(**{"num_retries": 1, "client.num_retries": 1})
    manager.provider.answers = [BackendUnavailable("no route to zk1")] * 4
    with pytest.raises(AcquireTimeout, match="last failed with: no route to zk1") as caught:
        run(manager.lock)
    assert isinstance(caught.value.last_error, BackendUnavailable)
    manager.provider.answers = [BackendUnavailable("no route to zk1"), True]
    run(manager.lock).release()


def test_nobody_asks_a_service_that_does_not_answer_who_the_holder_is(
    make_manager: Make, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = make_manager(**{"num_retries": 0, "client.num_retries": 0})
    asked: list[LockScope] = []
    monkeypatch.setattr(manager.provider, "holder", asked.append)
    manager.provider.answers = [BackendUnavailable("no route to zk1"), None]
    with pytest.raises(AcquireTimeout, match="who holds it is not known; the lock service last failed with: no route"):
        run(manager.lock)
    assert asked == []
    with pytest.raises(AcquireTimeout, match="nobody seems to hold it now"):
        run(manager.lock)
    assert len(asked) == 1


def test_a_service_that_does_not_tell_its_holder_says_nothing_of_nobody(
    make_manager: Make, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(scope: LockScope) -> None:
        raise BackendUnavailable(f"no answer about {scope}")

    manager = make_manager(**{"num_retries": 0, "client.num_retries": 0})
    monkeypatch.setattr(manager.provider, "holder", fail)
    manager.provider.answers = [None]
    with pytest.raises(AcquireTimeout, match=r"who holds it is not known; .* last failed with: no answer about table"):
        run(manager.lock)


def test_try_lock_says_why_it_could_not_ask(make_manager: Make) -> None:
    manager = make_manager()
    manager.provider.answers = [None, BackendUnavailable("down")]
    assert manager.try_lock() is None
    with pytest.raises(BackendUnavailable):
        manager.try_lock()


def test_zero_timeout_is_one_request(make_manager: Make) -> None:
    manager = make_manager()
    manager.provider.answers = [None]
    with pytest.raises(AcquireTimeout):
        manager.lock(timeout_s=0)
    assert len(manager.provider.asked) == 1
    with manager.lock(timeout_s=0) as held:
        assert held.token == 1


@pytest.mark.parametrize("timeout_s", [0.5, 7.0, 130.0])
def test_timeout_bounds_everything_together(make_manager: Make, run: Any, clock: ManualClock, timeout_s: float) -> None:
    manager = make_manager()
    manager.provider.answers = [None] * 1000
    began_s = clock.monotonic()
    with pytest.raises(AcquireTimeout) as caught:
        run(lambda: manager.lock(timeout_s=timeout_s))
    assert manager.provider.asked[-1][0] - began_s == pytest.approx(timeout_s)
    assert caught.value.waited_s == pytest.approx(timeout_s)


@pytest.mark.parametrize("timeout_s", [-1, -0.001, math.nan])
def test_a_timeout_that_is_no_duration_is_refused(make_manager: Make, timeout_s: float) -> None:
    with pytest.raises(ConfigError, match="no duration"):
        make_manager().lock(timeout_s=timeout_s)


@pytest.mark.parametrize("timeout_s", [math.inf, 1e300, None])
def test_a_huge_timeout_leaves_the_number_of_attempts(make_manager: Make, run: Any, timeout_s: float | None) -> None:
    manager = make_manager(**{"num_retries": 1, "client.num_retries": 2})
    manager.provider.answers = [None] * 1000
    with pytest.raises(AcquireTimeout):
        run(lambda: manager.lock(timeout_s=timeout_s))
    assert len(manager.provider.asked) == 6


def test_wall_clock_jumps_change_nothing(make_manager: Make, run: Any, clock: ManualClock) -> None:
    manager = make_manager()
    manager.provider.answers = [None] * 1000
    manager.provider.on_request = lambda: clock.jump_wall(random.Random(3).choice([-3_600_000, 3_600_000]))
    began_s = clock.monotonic()
    with pytest.raises(AcquireTimeout):
        run(lambda: manager.lock(timeout_s=30))
    assert manager.provider.asked[-1][0] - began_s == pytest.approx(30)


def test_close_ends_a_wait(make_manager: Make, clock: ManualClock, run: Any) -> None:
    manager = make_manager()
    manager.provider.answers = [None] * 1000
    manager.provider.on_request = lambda: manager.close() if len(manager.provider.asked) == 3 else None
    with pytest.raises(ProviderClosed, match="while it waited"):
        run(manager.lock)


def test_an_interrupted_wait_leaves_the_line(make_manager: Make) -> None:
    manager = make_manager()
    manager.provider.answers = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        manager.lock()
    with manager.lock() as held:
        assert held.token == 1


def test_the_error_names_holder_age_and_the_next_command(make_manager: Make, scripted: type[Any]) -> None:
    manager = make_manager(**{"filesystem.path": "/locks/my table"})
    manager.provider.answers = [None]
    manager.provider.now_held = Holder("/locks/my table/lock", Owner("x", "h7", 12, "main", "etl"), age_ms=61_000)
    with pytest.raises(AcquireTimeout) as caught:
        manager.lock(LockScope.file_group("month=1", "f-0"), timeout_s=0)
    text = str(caught.value)
    assert "held by etl (pid 12 on h7) at /locks/my table/lock, last sign of life 61 s ago" in text
    assert "hudi-locks show --file-group month=1/f-0 --provider" in text
    assert "--option 'hoodie.write.lock.filesystem.path=/locks/my table'" in text
    assert caught.value.holder.pid == 12
    assert (caught.value.age_ms, caught.value.key) == (61_000, "/locks/my table/lock")


def test_the_command_repeats_no_secret(make_manager: Make) -> None:
    manager = make_manager(**{"azure.client.secret": "abc"})
    manager.provider.answers = [None]
    with pytest.raises(AcquireTimeout) as caught:
        manager.lock(timeout_s=0)
    assert "abc" not in str(caught.value)


def test_a_release_that_fails_again_is_repeated_also_for_a_provider_that_waits_itself(
    make_manager: Make, run: Any, waiting: Any
) -> None:
    manager = make_manager(waiting, **{"client.num_retries": 0, "num_retries": 3})
    held, provider = manager.lock(), manager.provider
    provider.releases = [BackendUnavailable("the link is down")] * 4
    with pytest.raises(BackendUnavailable):
        run(held.release)
    failed, provider.asked = len(provider.released), []
    again = run(lambda: manager.lock(timeout_s=30))
    assert (len(provider.released) - failed, len(provider.asked)) == (4 - failed + 1, 1)
    again.release()
