"""Group H, first part: a lock service that fails, and records that nobody wrote."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Final

from hudi_locks import BackendUnavailable, DamagedLockRecord, Lease, LockError, LockProvider, LockScope, SystemClock
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.check import Late, Mode, NotRun, check

_RECORDS: Final = (b"", b"{", b"\xff\x00\xfe garbage", b"null", b'{"lockThreadName":"a writer of another kind"}')
_WITHIN_S: Final = 10.0
_SEPARATORS: Final = re.compile(r"[\s/:;,=@?&]+")
_SCHEME: Final = re.compile(r"^\w+://")
_SHORTEST_PART: Final = 4


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
    changed = {name: value for name, value in options.items() if bench.harness.options.get(name) != value}
    began_s = SystemClock().monotonic()
    with bench.expect_raises(LockError, "an unreachable lock service is no error") as answer:
        bench.provider(options).try_acquire(bench.scope(), bench.owner(), 0.0)
    if SystemClock().monotonic() - began_s > _WITHIN_S:
        raise Late(f"it took more than {_WITHIN_S} s")
    bench.expect(_names_any(str(answer.error), changed), f"the error names none of {changed}: {answer.error}")


def _names_any(text: str, options: Mapping[str, str]) -> bool:
    """Whether an error names a setting, its value, or a part of it: a host, a port, a folder."""
    parts = {part for value in options.values() for part in _SEPARATORS.split(_SCHEME.sub("", value))}
    parts = {part for part in parts if len(part) >= _SHORTEST_PART}
    return any(word.lower() in text.lower() for word in (*options, *options.values(), *parts))


@check(
    "H8",
    "strange-record-is-no-free-lock",
    why="a record that cannot be read may be a living writer's",
    mode=Mode.FORCED,
    beyond_process=True,
)
def strange_record_is_no_free_lock(bench: Bench) -> None:
    """A record that is empty, garbage or foreign is never taken over in silence, nor changed."""
    planted = [_expect_spared(bench, bench.scope(number), data) for number, data in enumerate(_RECORDS)]
    if not any(planted):
        raise NotRun("the hook 'corrupt' could plant none of the strange records: 'peek' does not show them")


def _expect_spared(bench: Bench, scope: LockScope, data: bytes) -> bool:
    """Fail if a strange record is taken over or changed; False where the hook cannot plant it."""
    provider = bench.provider()
    if _plant(bench, provider, scope, data):
        lease = None
        with contextlib.suppress(DamagedLockRecord):
            lease = provider.try_acquire(scope, bench.owner(), 0.0)
        bench.expect(lease is None, f"the lock was granted over the record {data!r}")
        bench.expect(bench.hook(provider, "peek")(scope) == data, f"the record {data!r} was changed")
        provider.close()
        bench.expect(bench.hook(provider, "peek")(scope) == data, f"close removed the record {data!r}")
        bench.hook(provider, "remove")(scope)
        return True
    return False


def _plant(bench: Bench, provider: LockProvider, scope: LockScope, data: bytes) -> bool:
    """Whether the record is there now: a column with a type, say, takes no garbage."""
    corrupt, peek = bench.hook(provider, "corrupt"), bench.hook(provider, "peek")
    try:
        corrupt(scope, data)
    except Exception as error:  # noqa: BLE001  # a back door that does not open is no fault of the provider
        bench.note(f"the hook 'corrupt' cannot plant {data!r}: {error}")
        return False
    if peek(scope) == data:
        return True
    bench.note(f"the hook 'corrupt' did not plant {data!r}")
    return False
