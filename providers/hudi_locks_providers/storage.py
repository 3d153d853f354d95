"""A lock that is an object: Hudi's StorageBasedLockProvider, on S3, Google Cloud Storage and Azure."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar, Final

from hudi_locks.clock import Clock
from hudi_locks.config import Options, lock_keys, table_keys
from hudi_locks.errors import (
    AlreadyHeld,
    DamagedLockRecord,
    LockError,
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
from hudi_locks.lock.lease import generation
from hudi_locks.redaction import open_log
from hudi_locks_providers._crowd import run_all, unwrap
from hudi_locks_providers._storage.audit import Audit
from hudi_locks_providers._storage.bucket import BucketMaker
from hudi_locks_providers._storage.hold import StorageHold, name_counter, name_file_group, name_hold
from hudi_locks_providers._storage.hooks import StorageHooks
from hudi_locks_providers._storage.iam import iam_policy
from hudi_locks_providers._storage.location import parse_location
from hudi_locks_providers._storage.objects import Objects
from hudi_locks_providers._storage.records import Gone, Records, Seen
from hudi_locks_providers._storage.stores import check_settings, find_lease_ms
from hudi_locks_providers._storage.tokens import StorageTokens
from hudi_locks_providers._storage.truth import StorageTruth
from hudi_locks_providers._wire.storage_lock import StorageRecord, decode_named, encode_named

__all__ = ["StorageLockProvider"]

_logger = open_log(__name__)
_FOLDER: Final = ".hoodie/.locks"
_DRIFT_MS: Final = 500
_BREAK_TRIES: Final = 5


class StorageLockProvider(LockProvider):
    """Holds `<table>/.hoodie/.locks/table_lock.json`, wire-compatible with JVM Hudi 1.0.2 and later.

    Every write is conditional on the version that was read or written before. A release marks the object as let go of
    and never deletes it. Expiry compares wall clocks, with half a second of grace as in the JVM. Before its first use
    on a machine the service is tried for what it only pretends to keep.

    Source: RFC-91; beyond the JVM's provider a hold has a name of its own, lost answers are found out by reading back,
    and a failed attempt is kept from taking effect late.
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
            Capability.NEEDS_CLOCK_SYNC,
            Capability.SURVIVES_RECONNECT,
            Capability.LINEARIZABLE,
            Capability.CREATES_BACKEND,
            Capability.JVM_COMPATIBLE,
            Capability.FORK_AWARE,
        }
    )
    short_options: ClassVar[dict[str, str]] = {
        "path": table_keys.BASE_PATH.name,
        "endpoint": lock_keys.STORAGE_ENDPOINT_URL.name,
        "validity": lock_keys.STORAGE_VALIDITY_TIMEOUT_SECS.name,
    }

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self._location = parse_location(self.options.get_value(table_keys.BASE_PATH))
        self._lease_ms = find_lease_ms(self.options)
        check_settings(self.options, self._location)
        folder = self._location.key(_FOLDER)
        self._own_folder = f"{folder}/.hudi_locks"
        self._table_key = f"{folder}/table_lock.json"
        self._objects = Objects(self.options, self._location)
        self._records = Records(self._objects, clock)
        self._tokens = StorageTokens(self._objects, clock, f"{self._own_folder}/tokens")
        self._audit = Audit(self._objects, clock, folder)
        self._generation = generation()
        self._lock = threading.Lock()
        self._holds: dict[LockScope, Lease] = {}
        self._closed = False

    @property
    def renewal_interval_s(self) -> float:
        """See `LockProvider.renewal_interval_s`."""
        return float(self.options.get_value(lock_keys.STORAGE_RENEW_INTERVAL_SECS))

    @cached_property
    def _truth(self) -> StorageTruth:
        return StorageTruth(self._objects, self.clock, f"{self._own_folder}/probe")

    def key(self, scope: LockScope) -> str:
        """The key of the lock object of `scope` within its bucket."""
        return self._table_key if scope.is_table else f"{self._own_folder}/file_groups/{name_file_group(scope)}.json"

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:  # noqa: ARG002  # the contract's signature
        """See `LockProvider.try_acquire`.

        Raises:
            DamagedLockRecord: Under the key lies something else than a lock record.
        """
        self._prepare([scope], owner)
        return self._attempt(scope, owner)

    def acquire_many(self, scopes: Sequence[LockScope], owner: Owner, timeout_s: float) -> list[Lease] | None:  # noqa: ARG002
        """See `LockProvider.acquire_many`: reads, counters and writes each all at the same time.

        The first of them in the fixed order is taken alone, so that of two callers with the same scopes one gets all.
        """
        ordered = sorted(scopes, key=str)
        self._prepare(ordered, owner)
        seen = unwrap(run_all([partial(self._look, scope) for scope in ordered]))
        if any(one is None for one in seen):
            return None
        plans = [(scope, one) for scope, one in zip(ordered, seen, strict=True) if one is not None]
        tokens = self._advance_many(ordered)
        takes = [partial(self._take_or_retry, scope, owner, over=one, token=tokens[scope]) for scope, one in plans]
        results = run_all(takes[:1])
        if isinstance(next(iter(results), None), Lease):
            results += run_all(takes[1:])
        return self._keep_all_or_none(results, len(ordered))

    def _keep_all_or_none(self, results: list[Lease | Exception | None], wanted: int) -> list[Lease] | None:
        granted = [result for result in results if isinstance(result, Lease)]
        if len(granted) == wanted:
            return granted
        self.release_many(granted)
        unwrap(results)
        return None

    def release_many(self, leases: Sequence[Lease]) -> None:
        """See `LockProvider.release_many`: all at the same time."""
        unwrap(run_all([partial(self.release, lease) for lease in leases]))

    def _prepare(self, scopes: Sequence[LockScope], owner: Owner) -> None:
        if self._generation != generation():
            raise ProviderClosed("this lock provider belongs to the parent process; build one in the child")
        if self._closed:
            raise ProviderClosed("the storage lock provider is closed", scopes=tuple(scopes))
        if len(set(scopes)) < len(scopes):
            raise AlreadyHeld("one scope is asked for twice at once", scopes=tuple(scopes), owner=owner)
        for scope in scopes:
            self._refuse_second(scope, owner)
        self._truth.prove()

    def _refuse_second(self, scope: LockScope, owner: Owner) -> None:
        own = self._holds.get(scope)
        if own is None or own.owner != owner or self._is_over(own):
            return
        hold: StorageHold = own.state
        found = self._records.find(hold.key).record
        if found is not None and found.owner == hold.record.owner and not found.expired:
            raise AlreadyHeld(f"{owner} holds the lock on {scope} already", scope=scope, owner=owner)

    def _is_over(self, lease: Lease) -> bool:
        return lease.deadline_s is not None and self.clock.monotonic() >= lease.deadline_s

    def _attempt(self, scope: LockScope, owner: Owner) -> Lease | None:
        """Take the lock over what was remembered if that was free, else over what is read."""
        key = self.key(scope)
        seen = self._records.recall(key)
        if seen is not None and self._is_free(key, seen):
            if lease := self._take(scope, owner, over=seen):
                return lease
            seen = self._records.recall(key)  # as it was read back a moment ago
        else:
            seen = self._records.find(key)
        if seen is None or not self._is_free(key, seen):
            return None
        return self._take(scope, owner, over=seen)

    def _look(self, scope: LockScope) -> Seen | None:
        """What the lock can be taken over; None if somebody holds it."""
        key = self.key(scope)
        seen = self._records.recall(key)
        if seen is None or not self._is_free(key, seen):
            seen = self._records.find(key)
        return seen if self._is_free(key, seen) else None

    def _is_free(self, key: str, seen: Seen) -> bool:
        if seen.is_absent:
            return True
        if seen.record is None:
            raise DamagedLockRecord(
                f"{self._location.url(key)} holds no lock record but {seen.data[:80]!r}; look who wrote it, and"
                " remove it with `hudi-locks unlock`",
                key=key,
            )
        return seen.record.expired or self._left_ms(seen.record) < 0 or self._records.is_orphan(key, seen.record)

    def _left_ms(self, record: StorageRecord) -> int:
        return record.valid_until_ms + _DRIFT_MS - self.clock.wall_ms()

    def _take_or_retry(self, scope: LockScope, owner: Owner, *, over: Seen, token: int) -> Lease | None:
        return self._take(scope, owner, over=over, token=token) or self._attempt(scope, owner)

    def _take(self, scope: LockScope, owner: Owner, *, over: Seen, token: int | None = None) -> Lease | None:
        """Write our record over what was seen. The token is taken after that was seen, and before it is replaced."""
        token = self._advance(scope) if token is None else token
        sent_s, now_ms = self.clock.monotonic(), self.clock.wall_ms()
        name = str(uuid.uuid4())
        record = StorageRecord(
            expired=False, valid_until_ms=now_ms + self._lease_ms, owner=encode_named(name, owner, now_ms)
        )
        seen = self._records.place(self.key(scope), record, over)
        if seen is None:
            return None
        trail = self._audit.begin(name, now_ms, lease_ms=self._lease_ms) if scope.is_table else None
        hold = StorageHold(self.key(scope), record, seen, trail=trail)
        lease = Lease(scope, owner, token, sent_s + self._lease_ms / 1000, hold)
        with self._lock:
            self._holds[scope] = lease
        return lease

    def _advance(self, scope: LockScope) -> int:
        return self._tokens.advance(name_counter(scope))

    def _advance_many(self, scopes: Sequence[LockScope]) -> dict[LockScope, int]:
        """A new token for each scope, with one request for each counter."""
        shares: dict[str, list[LockScope]] = {}
        for scope in scopes:
            shares.setdefault(name_counter(scope), []).append(scope)
        lasts = unwrap(run_all([partial(self._tokens.advance, name, len(share)) for name, share in shares.items()]))
        return {
            scope: last - place
            for share, last in zip(shares.values(), lasts, strict=True)
            for place, scope in enumerate(share)
        }

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`."""
        hold = self._own_hold(lease)
        with hold.turn:
            if hold.ended:
                raise self._lost(lease, LossReason.DELETED)
            sent_s, now_ms = self.clock.monotonic(), self.clock.wall_ms()
            own = self._holds.get(lease.scope, lease)
            if own.deadline_s is not None and sent_s >= own.deadline_s:
                raise self._lost(lease, LossReason.EXPIRED)
            hold.record = replace(hold.record, valid_until_ms=now_ms + self._lease_ms)
            try:
                hold.seen = self._records.rewrite(hold.key, hold.record, hold.seen)
            except Gone as gone:
                raise self._lost(lease, gone.reason) from None
            renewed = replace(lease, deadline_s=sent_s + self._lease_ms / 1000)
            self._keep(renewed)
        if hold.trail is not None:
            hold.trail.add("RENEW", now_ms, lease_ms=self._lease_ms)
        return renewed

    def _keep(self, renewed: Lease) -> None:
        with self._lock:
            if renewed.scope in self._holds and self._holds[renewed.scope].state is renewed.state:
                self._holds[renewed.scope] = renewed

    def _own_hold(self, lease: Lease) -> StorageHold:
        if isinstance(lease.state, StorageHold) and lease.state.generation != generation():
            raise self._lost(lease, LossReason.FORKED)
        own = self._holds.get(lease.scope)
        if own is None or own.state is not lease.state or own.owner != lease.owner:
            raise self._lost(lease, LossReason.DELETED if own is None else LossReason.STOLEN)
        hold: StorageHold = own.state
        return hold

    def _lost(self, lease: Lease, reason: LossReason) -> LockLost:
        return lease.lost(reason, key=self._location.url(self.key(lease.scope)))

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`; a release without an answer may be tried again."""
        try:
            hold = self._own_hold(lease)
        except LockLost:
            return
        with hold.turn:
            if hold.ended:
                return
            at_ms = self.clock.wall_ms()
            try:
                hold.seen = self._records.rewrite(hold.key, replace(hold.record, expired=True), hold.seen)
            except Gone:
                _logger.debug("%s was not ours any more when it was released", hold.key)
            hold.ended = True
        with self._lock:
            if lease.scope in self._holds and self._holds[lease.scope].state is hold:
                del self._holds[lease.scope]
        if hold.trail is not None:
            hold.trail.add("END", at_ms, lease_ms=self._lease_ms)

    def holder(self, scope: LockScope) -> Holder | None:
        """See `LockProvider.holder`."""
        return self._read_holder(self.key(scope), scope=str(scope))

    def list_holders(self) -> list[Holder]:
        """See `LockProvider.list_holders`; the names of file groups are kept as digests, so that none is told."""
        groups, _ = self._objects.list_children(f"{self._own_folder}/file_groups/")
        looks = [partial(self._read_holder, str(one["path"]), scope="") for one in groups]
        return list(filter(None, unwrap(run_all([partial(self.holder, LockScope.table()), *looks]))))

    def _read_holder(self, key: str, *, scope: str) -> Holder | None:
        found = self._records.find(key)
        if found.is_absent or (found.record is not None and found.record.expired):
            return None
        named = decode_named(found.record.owner) if found.record else None
        return Holder(
            key=self._location.url(key),
            owner=named.owner if named else Owner(""),
            since_ms=named.since_ms if named else None,
            age_ms=max(0, self.clock.wall_ms() - found.modified_ms),
            token=name_hold(found),
            expires_in_ms=self._left_ms(found.record) if found.record else None,
            raw=found.data.decode("utf-8", "replace"),
            scope=scope,
        )

    def break_if(self, scope: LockScope, token: str) -> bool:
        """See `LockProvider.break_if`: marks the object as let go of, under the condition that it did not change.

        A renewal of the same hold in between does not matter.
        """
        key = self.key(scope)
        for _ in range(_BREAK_TRIES):
            found = self._records.find(key)
            if found.is_absent or (found.record is not None and found.record.expired) or name_hold(found) != token:
                return False
            if self._records.expire(key, found):
                return True
        return False

    def probe(self) -> tuple[Finding, ...]:
        """See `LockProvider.probe`: conditional writes and the clock, on scratch keys below the table's locks."""
        return StorageTruth(self._objects, self.clock, f"{self._own_folder}/probe").examine()

    def set_up(self, terms: SetupTerms) -> tuple[SetupStep, ...]:
        """See `LockProvider.set_up`: the bucket, and rules of it that suit locks and tables."""
        kept = (self._table_key, f"{self._own_folder}/tokens/table")
        return tuple(BucketMaker(self.options, self._objects, kept=kept).set_up(terms))

    def close(self) -> None:
        """See `LockProvider.close`: releases what this very client holds, and what failed attempts of it left."""
        if self._generation != generation():
            return
        self._closed = True
        failures = [error for lease in list(self._holds.values()) if (error := self._release_quietly(lease))]
        self._records.free_orphans()
        if failures:
            raise failures[0]

    def _release_quietly(self, lease: Lease) -> LockError | None:
        try:
            self.release(lease)
        except LockError as error:
            return error
        return None

    @classmethod
    def iam_policy(cls, options: Mapping[str, object]) -> dict[str, Any] | None:
        """See `LockProvider.iam_policy`; for tables on S3."""
        return iam_policy(parse_location(Options(options).get_value(table_keys.BASE_PATH)))

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""
        return StorageHooks
