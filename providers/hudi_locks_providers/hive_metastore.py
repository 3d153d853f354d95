"""A lock of the Hive Metastore: Hudi's HiveMetastoreBasedLockProvider, with fencing tokens and a noticed loss."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from hudi_locks.clock import Clock
from hudi_locks.config import lock_keys
from hudi_locks.errors import AlreadyHeld, LockError, LockLost, ProviderClosed
from hudi_locks.lock import (
    Capability,
    Finding,
    Holder,
    Lease,
    LockProvider,
    LockScope,
    LossCallback,
    LossReason,
    Owner,
    SetupStep,
    SetupTerms,
)
from hudi_locks_providers._hive.hold import HiveHold
from hudi_locks_providers._hive.hooks import HiveHooks
from hudi_locks_providers._hive.metastore import LockGone, Metastore
from hudi_locks_providers._hive.requests import HiveRequests
from hudi_locks_providers._hive.settings import HiveSettings
from hudi_locks_providers._hive.truth import HiveTruth
from hudi_locks_providers._wire.hive_lock import LockRow, decode_owner

__all__ = ["HiveMetastoreLockProvider"]

_STEP: Final = "metastore"
_FRESH_S: Final = 1.0
"""Locks that were acquired together have one heartbeat: for so long after one it does for all of them."""


class HiveMetastoreLockProvider(LockProvider):
    """Holds an EXCLUSIVE lock on a table in the metastore, as JVM Hudi does; the table need not be there.

    The metastore drops a lock whose holder was silent for `hive.txn.timeout`, on its own clock, if its housekeeper
    runs: `hudi-locks doctor` asks. The lock's id, which grows with each request, is the fencing token. A request that
    is not granted is withdrawn at once, so nobody queues: the manager asks again.

    What it cannot promise: that a Hive query which locks the same table stays out of the way; and Hive metastores
    before the 2.3 line were not tried.

    Attributes:
        metastore: To which it talks.
        settings: What it locks there.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.SCOPE_HOSTS,
            Capability.LEASE,
            Capability.RENEWAL,
            Capability.FENCING,
            Capability.OWNER_INFO,
            Capability.LIST,
            Capability.BREAK,
            Capability.CLOCK_FREE,
            Capability.SURVIVES_RECONNECT,
            Capability.LINEARIZABLE,
            Capability.JVM_COMPATIBLE,
            Capability.FORK_AWARE,
        }
    )
    short_options: ClassVar[dict[str, str]] = {
        "database": lock_keys.HIVE_DATABASE.name,
        "table": lock_keys.HIVE_TABLE.name,
        "uris": lock_keys.HIVE_URIS.name,
    }

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.settings: HiveSettings = HiveSettings.from_options(self.options)
        self.metastore: Metastore = Metastore(self.options)
        self._requests = HiveRequests(self.metastore, self.settings.database)
        self._lock = threading.Lock()
        self._holds: dict[LockScope, Lease] = {}
        self._sights: dict[str, tuple[int, int, float]] = {}
        self._closed = False

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:  # noqa: ARG002  # the contract's signature
        """See `LockProvider.try_acquire`."""
        leases = self._acquire([scope], owner)
        return leases[0] if leases else None

    def acquire_many(self, scopes: Sequence[LockScope], owner: Owner, timeout_s: float) -> list[Lease] | None:  # noqa: ARG002  # the contract's signature
        """See `LockProvider.acquire_many`: one request, and one lock for all, which goes when the last is released."""
        return self._acquire(sorted(set(scopes), key=self.settings.table_of), owner) if scopes else []

    def _acquire(self, scopes: list[LockScope], owner: Owner) -> list[Lease] | None:
        for scope in scopes:
            self._check_free(scope, owner)
        lease_s = self._requests.find_timeout_s()
        sent_s = self.clock.monotonic()
        lock_id = self._requests.ask([self.settings.table_of(scope) for scope in scopes], owner)
        if lock_id is None:
            return None
        hold = HiveHold(lock_id, owner, self.metastore, set(scopes), sent_s)
        leases = [Lease(scope, owner, lock_id, sent_s + lease_s, hold) for scope in scopes]
        with self._lock:
            self._holds.update(zip(scopes, leases, strict=True))
        return leases

    def _check_free(self, scope: LockScope, owner: Owner) -> None:
        if self._closed:
            raise ProviderClosed("the Hive Metastore lock provider is closed", scope=scope)
        held = self._holds.get(scope)
        if held is None or held.owner != owner or held.state.pid != os.getpid():
            return
        try:
            self.metastore.heartbeat(held.state.lock_id)
        except LockGone:
            return
        raise AlreadyHeld(f"{owner} holds the lock on {scope} already", scope=scope, owner=owner)

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`."""
        sent_s, lease_s = self.clock.monotonic(), self._requests.find_timeout_s()
        hold = self._own_hold(lease)
        if lease.deadline_s is not None and sent_s >= lease.deadline_s:
            raise self._lost(lease, LossReason.EXPIRED)
        with hold.lock:
            if len(hold.scopes) == 1 or sent_s - hold.proven_s >= min(_FRESH_S, lease_s / 10):
                self._heartbeat(lease, hold, sent_s)
            return replace(lease, deadline_s=hold.proven_s + lease_s)

    def _heartbeat(self, lease: Lease, hold: HiveHold, sent_s: float) -> None:
        try:
            self.metastore.heartbeat(hold.lock_id)
        except LockGone:
            hold.scopes.clear()
            raise self._lost(lease, LossReason.DELETED) from None
        hold.proven_s = sent_s

    def _own_hold(self, lease: Lease) -> HiveHold:
        hold = lease.state
        if not isinstance(hold, HiveHold) or hold.owner != lease.owner or hold.metastore is not self.metastore:
            raise self._lost(lease, LossReason.STOLEN)
        if hold.pid != os.getpid():
            raise self._lost(lease, LossReason.FORKED)
        if lease.scope not in hold.scopes:
            raise self._lost(lease, LossReason.DELETED)
        return hold

    def _lost(self, lease: Lease, reason: LossReason) -> LockLost:
        return lease.lost(reason, key=self._show_key(lease.scope))

    def _show_key(self, scope: LockScope) -> str:
        return f"{self.settings.database}.{self.settings.table_of(scope)}"

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`; locks that were acquired together go with the last of them."""
        try:
            hold = self._own_hold(lease)
        except LockLost:
            return
        with self._lock:
            own = self._holds.get(lease.scope)
            if own is not None and own.state is hold:
                del self._holds[lease.scope]
        with hold.lock:
            if len(hold.scopes) <= 1:
                with contextlib.suppress(LockGone):
                    self.metastore.unlock(hold.lock_id)
            hold.scopes.discard(lease.scope)

    def holder(self, scope: LockScope) -> Holder | None:
        """See `LockProvider.holder`; a query of Hive that locks the table is a holder too."""
        rows = self.metastore.find_locks(self.settings.database, self.settings.table_of(scope))
        held = next((row for row in rows if row.is_granted), None)
        if held is None:
            return None
        line = sorted((row for row in rows if not row.is_granted), key=lambda row: row.lock_id)
        waiting = tuple(map(decode_owner, line))
        return replace(self._read_holder(held, scope=str(scope)), waiting=waiting)

    def list_holders(self) -> list[Holder]:
        """See `LockProvider.list_holders`; the names of file groups are kept as digests, so that none is told."""
        rows = self.metastore.find_locks_like(self.settings.database, self.settings.groups)
        groups = [self._read_holder(row, scope="") for row in rows if row.is_granted]
        return list(filter(None, [self.holder(LockScope.table()), *groups]))

    def _read_holder(self, row: LockRow, *, scope: str) -> Holder:
        age_ms = max(0, self.clock.wall_ms() - row.heartbeat_ms) if row.heartbeat_ms else None
        return Holder(
            key=f"{self.settings.database}.{row.table}",
            owner=decode_owner(row),
            since_ms=row.since_ms or None,
            age_ms=age_ms,
            token=str(row.lock_id),
            expires_in_ms=self._left_ms(row) if row.heartbeat_ms and not row.transaction else None,
            raw=row.show(),
            scope=scope,
        )

    def _left_ms(self, row: LockRow) -> int:
        """After how long the metastore may drop the lock, at most.

        Counted from when this client first saw its last sign of life: nobody tells what the metastore's clock says.
        """
        now_s = self.clock.monotonic()
        *seen, since_s = self._sights.get(row.table, (0, 0, now_s))
        if seen != [row.lock_id, row.heartbeat_ms]:
            since_s = now_s
        self._sights[row.table] = (row.lock_id, row.heartbeat_ms, since_s)
        return round((self._requests.find_timeout_s() - (now_s - since_s)) * 1000)

    def _find_row(self, scope: LockScope) -> LockRow | None:
        rows = self.metastore.find_locks(self.settings.database, self.settings.table_of(scope))
        return next((row for row in rows if row.is_granted), None)

    def break_if(self, scope: LockScope, token: str) -> bool:
        """See `LockProvider.break_if`; what was acquired together with it is removed as well.

        Raises:
            BackendRefused: It belongs to a transaction of Hive.
        """
        row = self._find_row(scope)
        if row is None or str(row.lock_id) != token:
            return False
        try:
            self.metastore.unlock(row.lock_id)
        except LockGone:
            return False
        return True

    def probe(self) -> tuple[Finding, ...]:
        """See `LockProvider.probe`: the metastore's own settings, and a race for a name that no table has."""
        return HiveTruth(self.metastore, self.settings.database, self._requests.find_timeout_s()).examine()

    def set_up(self, terms: SetupTerms) -> tuple[SetupStep, ...]:  # noqa: ARG002  # nothing is made
        """See `LockProvider.set_up`: the metastore locks names, so neither database nor table has to be made."""
        try:
            self.metastore.find_locks(self.settings.database, self.settings.table)
        except LockError as error:
            return (SetupStep.failed(_STEP, error),)
        locked = f"{self.settings.database}.{self.settings.table}"
        said = f"the metastore ({self.metastore.place}) keeps locks; {locked} is a name there, and need not be a table"
        return (SetupStep.not_needed(_STEP, said),)

    def close(self) -> None:
        """See `LockProvider.close`; requests whose outcome nobody knew are looked after a last time."""
        self._closed = True
        with contextlib.ExitStack() as stack:
            stack.callback(self.metastore.close)
            stack.callback(self._requests.settle_all)
            for lease in list(self._holds.values()):
                stack.callback(self.release, lease)

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""
        return HiveHooks
