"""A lock that is an item of a DynamoDB table: Hudi's DynamoDBBasedLockProvider, with fencing tokens."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from hudi_locks.clock import Clock
from hudi_locks.config import Options, lock_keys, table_keys
from hudi_locks.errors import (
    AlreadyHeld,
    BackendRefused,
    BackendUnavailable,
    ConfigError,
    DamagedLockRecord,
    LockLost,
    ProviderClosed,
)
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
from hudi_locks_providers._dynamodb.attempt import DynamoAttempt
from hudi_locks_providers._dynamodb.bulk import acquire_all, remove_holds
from hudi_locks_providers._dynamodb.connection import ConditionFailed, Connection
from hudi_locks_providers._dynamodb.context import Context, DynamoHold, version_of
from hudi_locks_providers._dynamodb.failures import NO_TABLE
from hudi_locks_providers._dynamodb.hooks import DynamoHooks
from hudi_locks_providers._dynamodb.iam import iam_policy
from hudi_locks_providers._dynamodb.keys import LockKeys
from hudi_locks_providers._dynamodb.lock_table import LockTable
from hudi_locks_providers._dynamodb.memory import Memory
from hudi_locks_providers._dynamodb.requests import DynamoRequests
from hudi_locks_providers._dynamodb.settings import DynamoSettings
from hudi_locks_providers._dynamodb.truth import DynamoTruth
from hudi_locks_providers._wire.dynamodb_item import KEY, Item, decode_item, show_item
from hudi_locks_providers._wire.implicit_key import implicit_key

__all__ = ["DynamoDBImplicitLockProvider", "DynamoDBLockProvider"]

_MOST_VERSIONS = 90
"""DynamoDB compares with a hundred values at most."""
_BREAK_TRIES = 5


class DynamoDBLockProvider(LockProvider):
    """Holds an item as the awslabs lock client does, wire-compatible with JVM Hudi; one item for each file group.

    A holder that dies is found out by watching: its item stays unchanged for longer than the lease that stands in it,
    on the watcher's monotonic clock. No wall clocks are compared. `hoodie.write.lock.wait_time_ms` is the lease, as in
    the JVM. Each hold has a token, counted in an item of its own: a JVM holder's put wipes what it does not know.

    An acquire and a release of a free lock are two requests. What it cannot promise: to notice the loss of the item
    before the next renewal, a third of the lease later, or `held.verify()`.

    Attributes:
        connection: To the lock service.
        table: The lock table.
        keys: Of the items there.
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
            Capability.CREATES_BACKEND,
            Capability.JVM_COMPATIBLE,
            Capability.FORK_AWARE,
        }
    )
    short_options: ClassVar[dict[str, str]] = {
        "table": lock_keys.DYNAMODB_TABLE.name,
        "key": lock_keys.DYNAMODB_PARTITION_KEY.name,
        "region": lock_keys.DYNAMODB_REGION.name,
        "endpoint": lock_keys.DYNAMODB_ENDPOINT_URL.name,
        "lease": lock_keys.WAIT_TIME_MS.name,
        "access_key": lock_keys.AWS_ACCESS_KEY.name,
        "secret_key": lock_keys.AWS_SECRET_KEY.name,
    }

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self._settings = DynamoSettings.from_options(self.options)
        self.keys: LockKeys = LockKeys(self._find_key())
        self.connection: Connection = Connection(self.options, self._settings)
        self.table: LockTable = LockTable(self.connection, clock)
        self._lock = threading.Lock()
        self._holds: dict[LockScope, Lease] = {}
        self._closed = False

    def _find_key(self) -> str:
        """The value of the key attribute that JVM writers of the same table use."""
        key = self.options.find(lock_keys.DYNAMODB_PARTITION_KEY) or self.options.find(table_keys.TABLE_NAME)
        if not key:
            raise ConfigError(
                f"the dynamodb lock provider needs {lock_keys.DYNAMODB_PARTITION_KEY.name} or"
                f" {table_keys.TABLE_NAME.name}",
                keys=(lock_keys.DYNAMODB_PARTITION_KEY.name, table_keys.TABLE_NAME.name),
            )
        return key

    @cached_property
    def _context(self) -> Context:
        return Context(
            requests=DynamoRequests(self.connection),
            memory=Memory(self.clock),
            keys=self.keys,
            clock=self.clock,
            lease_ms=self._settings.lease_ms,
            owner_name=f"{socket.gethostname()}{uuid.uuid4()}",
        )

    @property
    def renewal_interval_s(self) -> float:
        """See `LockProvider.renewal_interval_s`: a third of the lease, as in the JVM."""
        return self._settings.lease_s / 3

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:  # noqa: ARG002  # the contract's signature
        """See `LockProvider.try_acquire`."""
        self._check_free(scope, owner)
        with self._noticing_a_missing_table():
            self.table.ensure()
            lease = DynamoAttempt(self._context, scope, owner).run()
        if lease is not None:
            self._note([lease])
        return lease

    def acquire_many(self, scopes: Sequence[LockScope], owner: Owner, timeout_s: float) -> list[Lease] | None:  # noqa: ARG002  # the contract's signature
        """See `LockProvider.acquire_many`: about ninety locks in one request."""
        for scope in scopes:
            self._check_free(scope, owner)
        with self._noticing_a_missing_table():
            self.table.ensure()
            leases = acquire_all(self._context, scopes, owner)
        self._note(leases or [])
        return leases

    def _check_free(self, scope: LockScope, owner: Owner) -> None:
        if self._closed:
            raise ProviderClosed("the DynamoDB lock provider is closed", scope=scope)
        held = self._holds.get(scope)
        if held is None or held.owner != owner or held.state.pid != os.getpid():
            return
        if version_of(self._context.requests.find(held.state.key)) in held.state.versions:
            raise AlreadyHeld(f"{owner} holds the lock on {scope} already", scope=scope, owner=owner)

    @contextlib.contextmanager
    def _noticing_a_missing_table(self) -> Any:
        try:
            yield
        except BackendRefused as error:
            if error.facts.get("code") == NO_TABLE:
                self.table.forget()
            raise

    def _note(self, leases: Sequence[Lease]) -> None:
        with self._lock:
            self._holds.update((lease.scope, lease) for lease in leases)

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`."""
        sent_s = self.clock.monotonic()
        hold = self._own_hold(lease)
        if lease.deadline_s is not None and sent_s >= lease.deadline_s:
            raise self._lost(lease, LossReason.EXPIRED)
        version = str(uuid.uuid4())
        with hold.lock:
            known = hold.versions
            hold.versions = [*known[-_MOST_VERSIONS:], version]
            self._renew(lease, hold, known, version)
            hold.versions = [version]
        return replace(lease, deadline_s=sent_s + self._settings.lease_s)

    def _renew(self, lease: Lease, hold: DynamoHold, known: list[str], version: str) -> None:
        requests, lease_ms = self._context.requests, self._settings.lease_ms
        try:
            requests.renew(hold.key, hold.owner_name, known, version=version, lease_ms=lease_ms)
        except ConditionFailed as refusal:
            found = refusal.reasons[0].item
            if version_of(found) != version:
                raise self._lost(lease, LossReason.STOLEN if found else LossReason.DELETED) from None
        except BackendUnavailable:
            if version_of(requests.find(hold.key)) != version:
                raise

    def _own_hold(self, lease: Lease) -> DynamoHold:
        hold = lease.state
        if not isinstance(hold, DynamoHold) or hold.owner != lease.owner or hold.context is not self._context:
            raise self._lost(lease, LossReason.STOLEN)
        if hold.pid != os.getpid():
            raise self._lost(lease, LossReason.FORKED)
        if hold.is_over:
            raise self._lost(lease, LossReason.DELETED)
        return hold

    def _lost(self, lease: Lease, reason: LossReason) -> LockLost:
        return lease.lost(reason, key=self._show_key(lease.scope))

    def _show_key(self, scope: LockScope) -> str:
        return f"{self._settings.table}/{self.keys.lock(scope)}"

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`."""
        try:
            hold = self._own_hold(lease)
        except LockLost:
            return
        self._drop(lease)
        with hold.lock:
            self._remove(hold)
            hold.is_over = True

    def _drop(self, lease: Lease) -> None:
        with self._lock:
            own = self._holds.get(lease.scope)
            if own is not None and own.state is lease.state:
                del self._holds[lease.scope]

    def _remove(self, hold: DynamoHold) -> None:
        requests, memory = self._context.requests, self._context.memory
        try:
            requests.remove(hold.key, hold.owner_name, hold.versions)
        except ConditionFailed:
            return  # nobody's, or somebody else's
        except BackendUnavailable:
            memory.orphans[hold.key].update(hold.versions)
            if version_of(requests.find(hold.key)) in hold.versions:
                raise
        memory.forget(hold.key)

    def holder(self, scope: LockScope) -> Holder | None:
        """See `LockProvider.holder`; None as well if there is no table yet."""
        item = self._context.requests.find(self.keys.lock(scope))
        return None if item is None else self._read_holder(item)

    def list_holders(self) -> list[Holder]:
        """See `LockProvider.list_holders`; reads the whole lock table, for which it needs dynamodb:Scan."""
        table = self.holder(LockScope.table())
        groups = self._context.requests.find_by_prefix(self.keys.groups)
        return list(filter(None, [table, *map(self._read_holder, groups)]))

    def _read_holder(self, item: Item) -> Holder | None:
        key = item[KEY]["S"]
        shown, scope = f"{self._settings.table}/{key}", self.keys.name_scope(key)
        try:
            found = decode_item(item)
        except DamagedLockRecord:
            return Holder(shown, Owner(""), token=_token(item), raw=show_item(item), scope=scope)
        if found.is_released:
            return None
        return Holder(
            key=shown,
            owner=found.owner,
            since_ms=found.since_ms,
            token=_token(item),
            expires_in_ms=self._context.memory.left_ms(key, found),
            raw=show_item(item),
            scope=scope,
        )

    def break_if(self, scope: LockScope, token: str) -> bool:
        """See `LockProvider.break_if`; a heartbeat of the same hold in between does not matter."""
        for _ in range(_BREAK_TRIES):
            item = self._context.requests.find(self.keys.lock(scope))
            if item is None or _token(item) != token:
                return False
            try:
                self._context.requests.remove_found(item)
            except ConditionFailed:
                continue
            return True
        return False

    def probe(self) -> tuple[Finding, ...]:
        """See `LockProvider.probe`: conditional writes, alone, in a transaction and in a race, on scratch items."""
        self.table.ensure()
        return DynamoTruth(self._context.requests, self.keys.base).examine()

    def set_up(self, terms: SetupTerms) -> tuple[SetupStep, ...]:
        """See `LockProvider.set_up`: the lock table, without time to live, which would remove counters of tokens."""
        return (self.table.set_up(dry_run=terms.dry_run),)

    def close(self) -> None:
        """See `LockProvider.close`; requests whose outcome nobody knew are looked after a last time."""
        self._closed = True
        try:
            own = [lease for lease in self._holds.values() if lease.state.pid == os.getpid()]
            self._holds.clear()
            remove_holds(self._context, own)
            self._remove_orphans()
        finally:
            self.connection.close()

    def _remove_orphans(self) -> None:
        orphans = self._context.memory.orphans
        for key in list(orphans):
            versions = list(orphans.pop(key))
            for start in range(0, len(versions), _MOST_VERSIONS):
                with contextlib.suppress(ConditionFailed):
                    part = versions[start : start + _MOST_VERSIONS]
                    self._context.requests.remove(key, self._context.owner_name, part)

    @classmethod
    def iam_policy(cls, options: Mapping[str, object]) -> dict[str, Any]:
        """The IAM policy document for the lock table that `options` name.

        Hudi's seven documented actions, those that this package needs in a statement of their own; on the table's ARN.
        """
        return iam_policy(DynamoSettings.from_options(Options(options)))

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""
        return DynamoHooks


class DynamoDBImplicitLockProvider(DynamoDBLockProvider):
    """The same with a key made of the table's base path: Hudi's DynamoDBBasedImplicitPartitionKeyLockProvider."""

    def _find_key(self) -> str:
        base_path = self.options.find(table_keys.BASE_PATH)
        if not base_path:
            raise ConfigError(
                f"the dynamodb_implicit lock provider needs {table_keys.BASE_PATH.name}", key=table_keys.BASE_PATH.name
            )
        return implicit_key(base_path, normalise=self.options.get_value(lock_keys.IMPLICIT_KEY_NORMALISE))


def _token(item: Item) -> str:
    """Names the hold, and no other one: by its own word, else by the JVM client's name, else by all that is there."""
    try:
        return decode_item(item).hold
    except DamagedLockRecord:
        return f"damaged-{hashlib.sha256(show_item(item).encode()).hexdigest()[:16]}"
