"""A lock among the threads of one process: Hudi's InProcessLockProvider."""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from hudi_locks.clock import Clock
from hudi_locks.config import Options, table_keys
from hudi_locks.errors import AlreadyHeld, ConfigError, LockLost, ProviderClosed
from hudi_locks.lock import Capability, Holder, Lease, LockProvider, LockScope, LossCallback, LossReason, Owner

__all__ = ["InProcessLockProvider"]


@dataclass(eq=False)
class _Hold:
    provider: InProcessLockProvider
    owner: Owner
    token: int
    since_ms: int
    pid: int = field(default_factory=os.getpid)
    lease: Lease | None = None


@dataclass(eq=False)
class _Waiter:
    provider: InProcessLockProvider
    owner: Owner
    granted: threading.Event = field(default_factory=threading.Event)
    hold: _Hold | None = None


@dataclass
class _Entry:
    hold: _Hold | None = None
    waiters: deque[_Waiter] = field(default_factory=deque)


class _Registry:
    """All locks of this process. An entry stays while it is held or waited for, and a forked child begins empty."""

    def __init__(self) -> None:
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        self.lock = threading.Lock()
        self.entries: dict[tuple[str, LockScope], _Entry] = {}
        self.tokens = itertools.count(1)


_REGISTRY: Final = _Registry()


class InProcessLockProvider(LockProvider):
    """Excludes threads of this process that use the same `hoodie.base.path`, first come, first served.

    It cannot exclude another process, and no JVM writer.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.SCOPE_THREADS,
            Capability.TIMED_WAIT,
            Capability.LOSS_NOTICE,
            Capability.FENCING,
            Capability.FAIR,
            Capability.CANCEL,
            Capability.OWNER_INFO,
            Capability.LIST,
            Capability.BREAK,
            Capability.LINEARIZABLE,
            Capability.CREATES_BACKEND,
            Capability.FORK_AWARE,
        }
    )
    short_options: ClassVar[dict[str, str]] = {"path": table_keys.BASE_PATH.name}

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self._base = _base_path(self.options)
        self._closed = False

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """See `LockProvider.try_acquire`."""
        waiter = _Waiter(self, owner)
        with _REGISTRY.lock:
            self._check(scope, owner)
            entry = _REGISTRY.entries.setdefault((self._base, scope), _Entry())
            if entry.hold is None:
                self._grant(entry, waiter)
            elif timeout_s > 0:
                entry.waiters.append(waiter)
        if waiter.hold is None and timeout_s > 0:
            self._wait(scope, waiter, timeout_s)
        return self._lease(scope, waiter)

    def _check(self, scope: LockScope, owner: Owner) -> None:
        if self._closed:
            raise ProviderClosed("the in-process lock provider is closed", scope=scope)
        entry = _REGISTRY.entries.get((self._base, scope))
        if entry and entry.hold and entry.hold.owner == owner:
            raise AlreadyHeld(f"{owner} holds the lock on {scope} already", scope=scope, owner=owner)

    def _grant(self, entry: _Entry, waiter: _Waiter) -> None:
        entry.hold = waiter.hold = _Hold(
            waiter.provider, waiter.owner, next(_REGISTRY.tokens), waiter.provider.clock.wall_ms()
        )
        waiter.granted.set()

    def _wait(self, scope: LockScope, waiter: _Waiter, timeout_s: float) -> None:
        try:
            self.clock.wait(waiter.granted, timeout_s)
        except BaseException:
            self._withdraw(scope, waiter)
            if waiter.hold is not None:
                self._free(scope, waiter.hold)
            raise
        self._withdraw(scope, waiter)

    def _withdraw(self, scope: LockScope, waiter: _Waiter) -> None:
        with _REGISTRY.lock:
            entry = _REGISTRY.entries.get((self._base, scope))
            if entry and waiter in entry.waiters:
                entry.waiters.remove(waiter)

    def _lease(self, scope: LockScope, waiter: _Waiter) -> Lease | None:
        hold = waiter.hold
        if hold is None and self._closed:
            raise ProviderClosed(f"the in-process lock provider was closed while it waited for {scope}", scope=scope)
        if hold is not None:
            hold.lease = Lease(scope, waiter.owner, hold.token, None, hold)
        return None if hold is None else hold.lease

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`: there is nothing to extend, the hold is verified."""
        if isinstance(lease.state, _Hold) and lease.state.pid != os.getpid():
            raise self._lost(lease, LossReason.FORKED)
        with _REGISTRY.lock:
            entry = _REGISTRY.entries.get((self._base, lease.scope))
            hold = entry.hold if entry else None
        if hold is None:
            raise self._lost(lease, LossReason.DELETED)
        if hold is not lease.state or hold.owner != lease.owner:
            raise self._lost(lease, LossReason.STOLEN)
        return lease

    def _lost(self, lease: Lease, reason: LossReason) -> LockLost:
        return lease.lost(reason, key=self._key(lease.scope))

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`."""
        hold = lease.state
        if isinstance(hold, _Hold) and hold.provider is self and hold.owner == lease.owner:
            self._free(lease.scope, hold)

    def _free(self, scope: LockScope, hold: _Hold) -> bool:
        with _REGISTRY.lock:
            entry = _REGISTRY.entries.get((self._base, scope))
            if entry is None or entry.hold is not hold:
                return False
            entry.hold = None
            if entry.waiters:
                self._grant(entry, entry.waiters.popleft())
            else:
                del _REGISTRY.entries[self._base, scope]
        return True

    def holder(self, scope: LockScope) -> Holder | None:
        """See `LockProvider.holder`."""
        hold = self._present(scope)
        if hold is None:
            return None
        return Holder(
            key=self._key(scope),
            owner=hold.owner,
            since_ms=hold.since_ms,
            age_ms=max(0, self.clock.wall_ms() - hold.since_ms),
            token=str(hold.token),
            raw=str(hold.owner),
            scope=str(scope),
        )

    def list_holders(self) -> list[Holder]:
        """See `LockProvider.list_holders`."""
        with _REGISTRY.lock:
            scopes = [scope for base, scope in _REGISTRY.entries if base == self._base]
        return list(filter(None, map(self.holder, scopes)))

    def count_waiters(self, scope: LockScope) -> int:
        """How many threads wait for `scope` now."""
        with _REGISTRY.lock:
            entry = _REGISTRY.entries.get((self._base, scope))
            return len(entry.waiters) if entry else 0

    def _present(self, scope: LockScope) -> _Hold | None:
        with _REGISTRY.lock:
            entry = _REGISTRY.entries.get((self._base, scope))
            return entry.hold if entry else None

    def _key(self, scope: LockScope) -> str:
        return f"{self._base} ({scope}, in process {os.getpid()})"

    def break_if(self, scope: LockScope, token: str) -> bool:
        """See `LockProvider.break_if`; the broken holder is told."""
        hold = self._present(scope)
        if hold is None or str(hold.token) != token or not self._free(scope, hold):
            return False
        if hold.lease is not None:
            hold.provider.on_lost(hold.lease, LossReason.DELETED)
        return True

    def close(self) -> None:
        """See `LockProvider.close`: frees what this client holds, and ends its waits with `ProviderClosed`."""
        with _REGISTRY.lock:
            self._closed = True
            mine = [item for item in _REGISTRY.entries.items() if item[0][0] == self._base]
            for _, entry in mine:
                self._end_waits(entry)
        for (_, scope), entry in mine:
            if entry.hold is not None and entry.hold.provider is self:
                self._free(scope, entry.hold)

    def _end_waits(self, entry: _Entry) -> None:
        for waiter in [waiter for waiter in entry.waiters if waiter.provider is self]:
            entry.waiters.remove(waiter)
            waiter.granted.set()

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""
        return _Hooks


class _Hooks:
    """Back doors for the conformance kit."""

    virtual_time: ClassVar[bool] = True
    tamper: ClassVar[None] = None

    @staticmethod
    def fresh_options(options: Mapping[str, str], name: str) -> dict[str, str]:
        """Options for a table that nobody has locked."""
        base = table_keys.BASE_PATH.name
        return {**options, base: f"{options[base]}/{name}"}

    def __init__(self, provider: Any) -> None:
        self._provider: InProcessLockProvider = provider

    def peek(self, scope: LockScope) -> bytes | None:
        """The raw record, or None."""
        holder = self._provider.holder(scope)
        return None if holder is None else holder.raw.encode()

    def waiters(self, scope: LockScope) -> int:
        """How many stand in line behind the holder."""
        return self._provider.count_waiters(scope)

    def remove(self, scope: LockScope) -> None:
        """Take the hold away from whoever has it."""
        holder = self._provider.holder(scope)
        if holder is not None:
            self._provider.break_if(scope, holder.token)


def _base_path(options: Options) -> str:
    base = options.find(table_keys.BASE_PATH)
    if not base:
        raise ConfigError(
            f"the in_process lock provider needs {table_keys.BASE_PATH.name}", key=table_keys.BASE_PATH.name
        )
    return base
