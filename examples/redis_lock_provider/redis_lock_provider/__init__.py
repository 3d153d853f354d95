"""Locks in Redis: a key for each lock, which the server removes once its holder has not renewed it in time."""

import json
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, ClassVar

import redis

from hudi_locks import Capability, Clock, Holder, Lease, LockProvider, LockScope, LossReason, Owner
from hudi_locks.config import Key
from hudi_locks.errors import AlreadyHeld, BackendRefused, BackendUnavailable, LockLost, ProviderClosed
from hudi_locks.lock import LossCallback

CLAIMS = "SCOPE_HOSTS LEASE RENEWAL FENCING OWNER_INFO BREAK CLOCK_FREE LINEARIZABLE"
URL = Key("my.redis.url", str, None, "address of the server, redis://host:6379/0")
PASSWORD = Key("my.redis.password", str, "", "password of the server's user")
LEASE = Key("my.redis.lease_s", int, 60, "how long a silent holder keeps its lock, in seconds", minimum=1)
PREFIX = Key("my.redis.prefix", str, "hudi-locks", "what the names of all keys begin with")

# Each script is one step for the server. The token is counted in the step that grants, so it grows with the grants.
ACQUIRE = """
if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('incr', KEYS[2]) end
return redis.call('get', KEYS[1])
"""
RENEW = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0"
REMOVE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
ERRORS = redis.exceptions
CLOSED = (AttributeError, ValueError)  # what the client says of a connection that another thread closed meanwhile
FINAL = (ERRORS.AuthenticationError, ERRORS.AuthorizationError, ERRORS.NoPermissionError)


class RedisLockProvider(LockProvider):
    """A key with an expiry for each lock; its value names the hold, and only who shows it may renew or remove the key.

    The server alone measures leases, from when a request arrives; a holder counts from when it sent it, so it knows
    first. One server (or one primary) is the truth: a failover that loses writes loses locks, and tokens with them.
    """

    capabilities = frozenset(Capability[name] for name in CLAIMS.split())
    short_options: ClassVar[dict[str, str]] = {"url": URL.name, "password": PASSWORD.name, "lease_s": LEASE.name}
    secret_options = frozenset({PASSWORD.name})

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.lease_s, self.prefix = self.options.get_value(LEASE), self.options.get_value(PREFIX)
        self.redis: Any = redis.Redis.from_url(
            self.options.get_value(URL),
            password=self.options.get_value(PASSWORD) or None,
            socket_timeout=self.lease_s / 3,
            socket_connect_timeout=self.lease_s / 3,
        )
        self.closed, self.lock = False, threading.Lock()
        self.held: dict[LockScope, Lease] = {}

    def key(self, scope: LockScope) -> str:
        """The name of a lock's key."""
        return f"{self.prefix}:lock:{json.dumps([scope.partition, scope.file_id])}"

    def send(self, name: str, *words: object) -> Any:
        """Make one request; its failures become errors of a lock service."""
        try:
            return self.redis.execute_command(name, *words)
        except FINAL as error:
            raise BackendRefused(f"Redis refuses {name}: {error}", key=self.prefix) from error
        except (redis.RedisError, *CLOSED) as error:
            raise BackendUnavailable(f"Redis did not do {name}: {error}", key=self.prefix) from error

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """See `LockProvider.try_acquire`."""
        if self.closed:
            raise ProviderClosed("the Redis lock provider is closed", scope=scope)
        record = json.dumps({**asdict(owner), "hold": uuid.uuid4().hex}).encode()
        sent_s, counter = self.clock.monotonic(), f"{self.prefix}:token"
        try:
            answer = self.send("EVAL", ACQUIRE, 2, self.key(scope), counter, record, 1000 * self.lease_s)
        except BackendUnavailable:
            with suppress(BackendUnavailable):  # the answer may be lost, and the key there: then nobody holds it
                self.send("EVAL", REMOVE, 1, self.key(scope), record)
            raise
        if isinstance(answer, int):
            lease = Lease(scope, owner, answer, sent_s + self.lease_s, record)
            with self.lock:
                self.held[scope] = lease
            return lease
        if answer is not None and decode_owner(answer) == owner:
            raise AlreadyHeld(f"{owner} holds {scope} already", scope=scope, owner=owner)
        return None

    def own(self, lease: Lease) -> Lease | None:
        """The hold that is meant by a lease, as long as this client has it."""
        own = self.held.get(lease.scope)
        return own if own is not None and (own.state, own.owner) == (lease.state, lease.owner) else None

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`."""
        sent_s, own = self.clock.monotonic(), self.own(lease)
        if own is None or sent_s >= (own.deadline_s or 0):
            raise LockLost(f"{lease.scope} is not held any more", scope=lease.scope, reason=LossReason.EXPIRED)
        if not self.send("EVAL", RENEW, 1, self.key(lease.scope), lease.state, 1000 * self.lease_s):
            there = self.send("EXISTS", self.key(lease.scope))
            reason = LossReason.STOLEN if there else LossReason.DELETED
            raise LockLost(f"the key of {lease.scope} is {reason.value}", scope=lease.scope, reason=reason)
        renewed = Lease(lease.scope, lease.owner, lease.token, sent_s + self.lease_s, lease.state)
        with self.lock:
            if self.own(lease) is not None:
                self.held[lease.scope] = renewed
        return renewed

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`."""
        if self.own(lease) is not None:
            self.send("EVAL", REMOVE, 1, self.key(lease.scope), lease.state)
            with self.lock:
                self.held.pop(lease.scope, None)

    def holder(self, scope: LockScope) -> Holder | None:
        """See `LockProvider.holder`."""
        record, left_ms = self.send("GET", self.key(scope)), self.send("PTTL", self.key(scope))
        if record is None:
            return None
        raw, hold = record.decode("utf-8", "replace"), decode(record).get("hold")
        expires_in_ms = left_ms if left_ms >= 0 else None
        return Holder(self.key(scope), decode_owner(record), token=hold or raw, raw=raw, expires_in_ms=expires_in_ms)

    def break_if(self, scope: LockScope, token: str) -> bool:
        """See `LockProvider.break_if`."""
        record = self.send("GET", self.key(scope))
        if record is None or token not in (decode(record).get("hold"), record.decode("utf-8", "replace")):
            return False
        return bool(self.send("EVAL", REMOVE, 1, self.key(scope), record))

    def close(self) -> None:
        """See `LockProvider.close`."""
        self.closed = True
        try:
            self.release_many(list(self.held.values()))
        finally:
            self.redis.close()

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""
        from redis_lock_provider.hooks import RedisHooks

        return RedisHooks


def decode(record: bytes) -> dict[str, Any]:
    """The fields of a record; empty where somebody else wrote something else."""
    try:
        fields = json.loads(record)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def decode_owner(record: bytes) -> Owner:
    """Whose a record is, as far as it tells."""
    told = {name: value for name, value in decode(record).items() if name in Owner.__dataclass_fields__}
    return Owner(**{"id": "", **told})
