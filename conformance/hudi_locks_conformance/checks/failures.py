"""Group H, first part: a lock service that fails, and records that nobody wrote."""

from __future__ import annotations

import contextlib
from typing import Final

from hudi_locks import BackendUnavailable, DamagedLockRecord, Lease, LockError, SystemClock
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Mode, check

_RECORDS: Final = (b"", b"{", b"\xff\x00\xfe garbage", b"null", b'{"lockThreadName":"a writer of another kind"}')
_WITHIN_S: Final = 10.0


@check(
    "H1",
    "error-before-effect",
    why="a failed attempt that half-holds blocks everybody",
    mode=Mode.FORCED,
    beyond_process=True,
)
def error_before_effect(bench: Bench) -> None:
    """An acquire whose request fails raises, or answers None, and leaves nothing."""
    provider = bench.provider()
    lease = None
    with bench.hook(provider, "fail_acquire")(after_effect=False), contextlib.suppress(BackendUnavailable):
        lease = provider.try_acquire(bench.scope(), bench.owner(), 0.0)
    bench.expect(lease is None, "a lock was granted although its request failed")
    bench.expect_free(bench.scope(), "a failed attempt left the lock taken")
    provider.release(bench.acquire(provider, bench.scope()))


@check(
    "H2",
    "lost-answer",
    why="a lock that was granted to somebody who does not know is held for ever",
    mode=Mode.FORCED,
    beyond_process=True,
)
def lost_answer(bench: Bench) -> None:
    """An acquire that took effect but lost its answer is recognised as own, or cleaned away."""
    provider = bench.provider()
    lease: Lease | None = None
    with bench.hook(provider, "fail_acquire")(after_effect=True), contextlib.suppress(BackendUnavailable):
        lease = provider.try_acquire(bench.scope(), bench.owner(), 0.0)
    if lease is None:
        bench.expect_free(bench.scope(), "not held, and yet taken: the lock is nobody's")
        return
    provider.renew(lease)
    bench.expect_taken(bench.scope(), "held, and yet free")
    provider.release(lease)
    bench.expect_free(bench.scope(), "the lock outlived its release")


@check(
    "H5",
    "unreachable-is-said",
    why="a writer that cannot reach the lock must say which, and not hang",
    beyond_process=True,
)
def unreachable_is_said(bench: Bench) -> None:
    """A lock service that cannot be reached is an error that names the key or host, within seconds."""
    options = bench.need_hook("unreachable_options")(bench.harness.options)
    changed = [value for name, value in options.items() if bench.harness.options.get(name) != value]
    began_s = SystemClock().monotonic()
    with bench.expect_raises(LockError, "an unreachable lock service is no error") as answer:
        bench.provider(options).try_acquire(bench.scope(), bench.owner(), 0.0)
    bench.expect(SystemClock().monotonic() - began_s < _WITHIN_S, f"it took more than {_WITHIN_S} s")
    bench.expect(
        any(value in str(answer.error) for value in changed), f"the error names none of {changed}: {answer.error}"
    )


@check(
    "H8",
    "strange-record-is-no-free-lock",
    why="a record that cannot be read may be a living writer's",
    mode=Mode.FORCED,
    beyond_process=True,
)
def strange_record_is_no_free_lock(bench: Bench) -> None:
    """A record that is empty, garbage or foreign is never taken over in silence, nor changed."""
    for number, data in enumerate(_RECORDS):
        scope, provider = bench.scope(number), bench.provider()
        bench.hook(provider, "corrupt")(scope, data)
        lease = None
        with contextlib.suppress(DamagedLockRecord):
            lease = provider.try_acquire(scope, bench.owner(), 0.0)
        bench.expect(lease is None, f"the lock was granted over the record {data!r}")
        bench.expect(bench.hook(provider, "peek")(scope) == data, f"the record {data!r} was changed")
        provider.close()
        bench.expect(bench.hook(provider, "peek")(scope) == data, f"close removed the record {data!r}")
        bench.hook(provider, "remove")(scope)
