"""The lock manager: what a writer uses."""

from __future__ import annotations

import atexit
import logging
import math
import random
import threading
import warnings
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, Final

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.config import Options, add_defaults, check_options, lock_keys
from hudi_locks.errors import ConfigError, ProviderClosed, refuse_pickling
from hudi_locks.lock.acquisition import Acquisition, LocalQueue, RetryPolicy
from hudi_locks.lock.capability import Capability
from hudi_locks.lock.explanation import explain_timeout
from hudi_locks.lock.held import Held, OnLost
from hudi_locks.lock.held_many import HeldMany
from hudi_locks.lock.lease import Holder, Identity, Lease, LockScope, LossReason, Renewals, generation
from hudi_locks.lock.lock_trace import LockTrace
from hudi_locks.lock.provider import LockProvider, load_provider_class
from hudi_locks.observe import (
    LOCK_ACQUIRE_ATTEMPTS,
    LOCK_ACQUIRE_DURATION,
    LOCK_ACQUIRE_FAILURE,
    LOCK_ACQUIRE_SUCCESS,
    LOCK_LOST,
    LOCK_RELEASE_FAILURE,
    LOCK_RELEASE_SUCCESS,
    LOCK_REQUEST_LATENCY,
    Metrics,
)
from hudi_locks.redaction import open_log

__all__ = ["LockManager"]

_logger = open_log(__name__)
_ONE_REQUEST: Final = RetryPolicy(0.0, 0, 0.0, 0.0, 0, 0.0)
_TABLE: Final = LockScope.table()


class LockManager:
    """Locks of one table: attempts and waits by Hudi's keys, renewal, loss notice, a local queue, metrics.

    Thread-safe; one for each process and table is enough. Runs where it was made: it cannot be pickled, and in a
    forked child it holds nothing and refuses to work. A context manager that closes.

    Args:
        provider: A config string as `load_provider_class` takes it, or a class of `LockProvider`.
        options: Hudi's keys, before those of this machine's `hudi-defaults.conf`; slips and contradictions are refused.
        clock: Source of time; the system's when None.
        application: What a person would call the job; `hoodie.write.lock.app_id` when empty.
        require: Capabilities that the provider must claim.
        metrics: Where to report; a registry of its own when None.

    Raises:
        ConfigError: The options cannot be used.
        ProviderLoadError: The provider cannot be loaded, or lacks a capability.
    """

    def __init__(
        self,
        provider: str | type[LockProvider],
        options: Mapping[str, object] | None = None,
        *,
        clock: Clock | None = None,
        application: str = "",
        require: Iterable[Capability] = (),
        metrics: Metrics | None = None,
    ) -> None:
        kind = load_provider_class(provider, require=require)
        self.options: Options = check_options(add_defaults(options), known=kind.short_options.values())
        self.policy: RetryPolicy = RetryPolicy.from_options(self.options)
        self.metrics: Metrics = metrics or Metrics()
        self.metrics.trace_by(self.options)
        self._clock = clock or SystemClock()
        self._identity = Identity(application or self.options.find(lock_keys.APP_ID) or "")
        self._name = provider if isinstance(provider, str) else f"{provider.__module__}:{provider.__qualname__}"
        self.provider: LockProvider = kind(self.options, clock=self._clock, on_lost=self._provider_lost)
        heartbeat_s = self.options.get_value(lock_keys.HEARTBEAT_INTERVAL_MS) / 1000
        self._heartbeat_s = self.provider.renewal_interval_s or heartbeat_s
        self._generation = generation()
        self._rng = random.Random()  # noqa: S311  # spreads contenders, guards nothing
        self._turns = LocalQueue(self._clock)
        self._renewals = Renewals(self._clock)
        self._holds: dict[LockScope, Held] = {}
        self._unreleased: list[Lease] = []
        self._closing = threading.Event()
        self._closed = threading.Lock()
        weakref.finalize(self, self._renewals.close)
        _OPEN.add(self)

    @classmethod
    def from_options(
        cls,
        options: Mapping[str, object],
        *,
        clock: Clock | None = None,
        application: str = "",
        require: Iterable[Capability] = (),
        metrics: Metrics | None = None,
    ) -> LockManager:
        """A manager with the provider that `hoodie.write.lock.provider` names; there is no default.

        Raises:
            ConfigError: The key is absent, or the options cannot be used.
            ProviderLoadError: See `load_provider_class`.
        """
        name = add_defaults(options).get_value(lock_keys.PROVIDER)
        return cls(name, options, clock=clock, application=application, require=require, metrics=metrics)

    def lock(self, scope: LockScope = _TABLE, timeout_s: float | None = None, *, on_lost: OnLost | None = None) -> Held:
        """Acquire `scope`, waiting for it as long as Hudi's keys say (`RetryPolicy`).

        Args:
            scope: The table, or one file group.
            timeout_s: A bound in seconds for all waiting together, attempts, pauses and local queue; 0 for one
                request. It is exceeded by the duration of one request at most.
            on_lost: Called once, on a thread of the manager, when the hold is lost. May release and close.

        Raises:
            AcquireTimeout: Somebody else held it all the time; the error names them.
            AlreadyHeld: The calling thread holds it.
            BackendRefused: The lock service says no for good; other permanent errors end the wait at once too.
            ProviderClosed: The manager is closed, or was made in another process.
        """
        return self._lock([scope], timeout_s, on_lost)[0]

    def _lock(self, scopes: Sequence[LockScope], timeout_s: float | None, on_lost: OnLost | None) -> list[Held]:
        acquisition = self._prepare(scopes, timeout_s=timeout_s, policy=self.policy)
        holds = self._run(acquisition, on_lost)
        if holds is None:
            local = next((held for scope in scopes if (held := self._holds.get(scope))), None)
            raise explain_timeout(acquisition, self.provider, name=self._name, local=local)
        return holds

    def try_lock(self, scope: LockScope = _TABLE, *, on_lost: OnLost | None = None) -> Held | None:
        """Acquire `scope` with one request; None if somebody holds it. Raises what `lock` raises otherwise."""
        acquisition = self._prepare([scope], timeout_s=0.0, policy=_ONE_REQUEST)
        holds = self._run(acquisition, on_lost)
        if holds is None and acquisition.last_error is not None:
            raise acquisition.last_error
        return holds[0] if holds else None

    def lock_many(
        self, scopes: Iterable[LockScope], timeout_s: float | None = None, *, on_lost: OnLost | None = None
    ) -> HeldMany:
        """Acquire all of `scopes` or none, with as few requests as the provider needs.

        Two callers cannot block each other for ever. `timeout_s` bounds all of it. Raises what `lock` raises.
        """
        order = sorted(set(scopes), key=str)
        return HeldMany(self._lock(order, timeout_s, on_lost) if order else [])

    def unlock(self, scope: LockScope = _TABLE) -> bool:
        """Release what the calling thread holds of `scope`; False, and nothing done, if that is nothing."""
        held = self._holds.get(scope)
        if held is None or held.owner != self._identity.owner():
            return False
        held.release()
        return True

    def holder(self, scope: LockScope = _TABLE) -> Holder | None:
        """Who holds `scope` now, asked of the lock service; None if nobody does."""
        self._check_open()
        return self.provider.holder(scope)

    def break_if(self, token: str, scope: LockScope = _TABLE) -> bool:
        """Remove the hold whose `Holder.token` is `token`, whoever has it; False if it is another one by now.

        Raises:
            Unsupported: The provider does not claim BREAK.
        """
        self._check_open()
        broken = self.provider.break_if(scope, token)
        _logger.warning("%s the lock on %s held under %s", "broke" if broken else "did not break", scope, token)
        return broken

    def close(self) -> None:
        """Release everything, end the threads and the connection. May be called twice; a forked child does nothing.

        Raises:
            LockError: The lock service did not confirm a release, even now.
        """
        if self._generation != generation() or not self._closed.acquire(blocking=False):
            return
        self._closing.set()
        with ExitStack() as stack:
            stack.callback(self.provider.close)
            stack.callback(self._renewals.close)
            stack.callback(lambda: self._release_again({lease.scope for lease in self._unreleased}))
            for held in list(self._holds.values()):
                stack.callback(held.release)

    def _warn_of_holds(self) -> None:
        if self._holds and self._generation == generation():
            scopes = ", ".join(sorted(str(scope) for scope in list(self._holds)))
            message = f"the process ends with {len(self._holds)} locks that were never released: {scopes}; release them"
            warnings.warn(message, ResourceWarning, stacklevel=2)

    def _release_again(self, scopes: Collection[LockScope]) -> None:
        """See to releases that had failed: until then the lock service takes what they left for a hold of ours."""
        for lease in [lease for lease in self._unreleased if lease.scope in scopes]:
            self.provider.release(lease)
            self._unreleased.remove(lease)

    def _prepare(self, scopes: Sequence[LockScope], *, timeout_s: float | None, policy: RetryPolicy) -> Acquisition:
        self._check_open()
        if timeout_s is not None and not timeout_s >= 0:
            raise ConfigError(f"timeout_s={timeout_s} is no duration; give 0 or more seconds, or None", scope=scopes[0])
        trace = LockTrace.start(self.metrics, scopes, self._name)
        return Acquisition(
            self.provider,
            scopes,
            owner=trace.mark(self._identity.owner()),
            policy=policy,
            timeout_s=math.inf if timeout_s is None else timeout_s,
            before=partial(self._release_again, scopes),
            trace=trace,
        )

    def _check_open(self) -> None:
        if self._generation != generation():
            raise ProviderClosed("this manager belongs to the parent process; build one in the child")
        if self._closing.is_set():
            raise ProviderClosed("this manager is closed; build another one")

    def _run(self, acquisition: Acquisition, on_lost: OnLost | None) -> list[Held] | None:
        holds = None
        with acquisition.trace:
            if not self._enter(acquisition):
                self._note_failure(acquisition)
                return None
            try:
                holds = self._ask(acquisition, on_lost)
            finally:
                if holds is None:
                    self._leave(acquisition.scopes)
        return holds

    def _enter(self, acquisition: Acquisition) -> bool:
        """Stand in the local line of every scope, in order; False, and in none of them, if a turn did not come."""
        bound_s = min(acquisition.timeout_s, acquisition.policy.worst_case_s)
        entered = 0
        try:
            for scope in acquisition.scopes:
                left_s = bound_s if not entered else bound_s - (self._clock.monotonic() - acquisition.started_s)
                if (held := self._holds.get(scope)) is not None:
                    acquisition.trace.meet(held.owner)
                if not self._turns.enter(scope, acquisition.owner, max(0.0, left_s)):
                    break
                entered += 1
        finally:
            if entered < len(acquisition.scopes):
                self._leave(acquisition.scopes[:entered])
        return entered == len(acquisition.scopes)

    def _leave(self, scopes: Sequence[LockScope]) -> None:
        for scope in scopes:
            self._turns.leave(scope)

    def _ask(self, acquisition: Acquisition, on_lost: OnLost | None) -> list[Held] | None:
        leases = None
        holds: list[Held] = []
        try:
            leases = acquisition.run(self._closing, self._rng)
            if leases is None:
                self._note_failure(acquisition)
                return None
            acquisition.trace.grant([lease.token for lease in leases])
            for lease in leases:
                holds.append(self._hold(lease, acquisition, on_lost))  # noqa: PERF401  # counted when interrupted
            self._note_success(acquisition)
            self._check_open()
        except BaseException:
            for held in holds:
                self._holds.pop(held.scope)
                self._renewals.discard(held)
            if leases:
                self.provider.release_many(leases)
            raise
        return holds

    def _hold(self, lease: Lease, acquisition: Acquisition, on_lost: OnLost | None) -> Held:
        held = Held(
            lease,
            self.provider,
            granted_s=acquisition.sent_s,
            renewals=self._renewals,
            heartbeat_s=self._heartbeat_s,
            on_lost=on_lost,
            on_end=self._end,
            on_released=self._note_release,
            trace=acquisition.trace,
        )
        self._holds[lease.scope] = held
        self._renewals.add(held)
        return held

    def _end(self, held: Held) -> None:
        if self._holds.get(held.scope) is held:
            del self._holds[held.scope]
            self._turns.leave(held.scope)
            is_lost = held.reason is not None
            held.trace.release("lost" if is_lost else "not confirmed" if held.lease in self._unreleased else "released")
            if is_lost:
                self.metrics.count(LOCK_LOST)

    def _provider_lost(self, lease: Lease, reason: LossReason) -> None:
        held = self._holds.get(lease.scope)
        if held is not None and held.owner == lease.owner:
            held.lose(reason)

    def _note_success(self, acquisition: Acquisition) -> None:
        waited_s = self._note_attempts(acquisition, LOCK_ACQUIRE_SUCCESS, len(acquisition.scopes))
        if _logger.isEnabledFor(logging.DEBUG):
            _logger.debug(
                "%s holds %s after attempt %d and %.3f s",
                acquisition.owner,
                acquisition,
                acquisition.attempts,
                waited_s,
            )

    def _note_failure(self, acquisition: Acquisition) -> None:
        waited_s = self._note_attempts(acquisition, LOCK_ACQUIRE_FAILURE, 1)
        _logger.info(
            "%s did not get %s after attempt %d and %.3f s",
            acquisition.owner,
            acquisition,
            acquisition.attempts,
            waited_s,
        )

    def _note_attempts(self, acquisition: Acquisition, outcome: str, number: int) -> float:
        waited_s = self._clock.monotonic() - acquisition.started_s
        counts = ((LOCK_ACQUIRE_ATTEMPTS, acquisition.attempts), (outcome, number))
        self.metrics.report(LOCK_REQUEST_LATENCY, waited_s, counts=counts)
        acquisition.trace.note_attempts(acquisition.attempts, requests=acquisition.requests)
        return waited_s

    def _note_release(self, held: Held, failure: Exception | None) -> None:
        held_s = self._clock.monotonic() - held.granted_s
        outcome = LOCK_RELEASE_SUCCESS if failure is None else LOCK_RELEASE_FAILURE
        self.metrics.report(LOCK_ACQUIRE_DURATION, held_s, counts=((outcome, 1),))
        if failure is not None:
            self._unreleased.append(held.lease)
        if _logger.isEnabledFor(logging.DEBUG):
            _logger.debug("%s let go of %s after %.3f s", held.owner, held.scope, held_s)

    def __enter__(self) -> LockManager:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LockManager({self._name!r}, holds={len(self._holds)}, closed={self._closing.is_set()})"

    def __reduce__(self) -> Any:
        refuse_pickling(self, "send its options, and build a manager where it is needed")


_OPEN: Final[weakref.WeakSet[LockManager]] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Free at exit what was never released, so that others need not wait for it to expire."""
    with ExitStack() as stack:
        for manager in list(_OPEN):
            stack.callback(manager.close)
            stack.callback(manager._warn_of_holds)  # noqa: SLF001  # one room
