"""Locks in PostgreSQL: a row for each lock, with a lease by the server's clock."""

import json
import ssl
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from typing import Any, ClassVar

from pg8000.exceptions import DatabaseError, Error
from pg8000.native import Connection, identifier, literal

from hudi_locks import Capability, Clock, Holder, Lease, LockProvider, LockScope, LossReason, Owner
from hudi_locks.config import Key
from hudi_locks.errors import AlreadyHeld, BackendRefused, BackendUnavailable, ConfigError, LockLost, ProviderClosed
from hudi_locks.lock import LossCallback

CLAIMS = "SCOPE_HOSTS LEASE RENEWAL FENCING OWNER_INFO BREAK CLOCK_FREE LINEARIZABLE CREATES_BACKEND"
DSN = Key("my.postgresql.dsn", str, None, "how to reach the server: host=db port=5432 dbname=etl user=etl")
PASSWORD = Key("my.postgresql.password", str, "", "password of that user")
LEASE = Key("my.postgresql.lease_s", int, 60, "how long a silent holder keeps its lock, in seconds", minimum=1)
TABLE = Key("my.postgresql.table", str, "hudi_locks", "the table of the locks; made where it is missing")

CREATE = """
select pg_advisory_xact_lock(hashtext('create hudi-locks'));
create table if not exists {table} (scope text primary key, hold text, until timestamptz, record text);
create sequence if not exists {tokens}
"""
# One statement is one step. The number is drawn for a row that was taken, so it grows with the grants of a lock.
ACQUIRE = """
with taken as (
  insert into {table} as there values (:scope, :hold, clock_timestamp() + :lease, :record)
  on conflict (scope) do update
  set hold = excluded.hold, until = clock_timestamp() + :lease, record = excluded.record
  where there.until < clock_timestamp() returning hold)
select nextval({tokens_text}) from taken
"""
RENEW = """
update {table} set until = clock_timestamp() + :lease
where scope = :scope and hold = :hold and until >= clock_timestamp() returning 1
"""
REMOVE = "delete from {table} where scope = :scope and hold = :hold returning 1"
FIND = """
select hold, record, case when isfinite(until) then extract(epoch from until - clock_timestamp()) end
from {table} where scope = :scope
"""
NO_TABLE = "42P01"
FINAL = ("42501", "28", "25006")  # what the SQLSTATE begins with: no permission, no such login, a read-only server

WORDS = {"host": "host", "port": "port", "dbname": "database", "user": "user", "sslmode": "ssl_context"}
TLS = {"disable": False, "prefer": None, "require": True, "verify-full": ssl.create_default_context()}


class NoTable(BackendUnavailable):
    """The table of the locks, or their sequence, is missing."""


class PostgresqlLockProvider(LockProvider):
    """A row for each lock; who has its `hold` may renew or remove it, and anybody may take it when its time is over.

    The server alone measures leases, from when a statement runs; a holder counts from when it sent it, so it knows
    first. Every statement is a transaction of its own, so a client that stands still keeps nobody waiting.
    """

    capabilities = frozenset(Capability[name] for name in CLAIMS.split())
    short_options: ClassVar[dict[str, str]] = {"dsn": DSN.name, "password": PASSWORD.name, "lease_s": LEASE.name}
    secret_options = frozenset({PASSWORD.name})

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.server, self.table = parse_dsn(self.options.get_value(DSN)), self.options.get_value(TABLE)
        self.lease_s = self.options.get_value(LEASE)
        self.closed, self.lock = False, threading.RLock()
        self.connection: Connection | None = None
        self.held: dict[LockScope, Lease] = {}

    def scope(self, scope: LockScope) -> str:
        """What the column `scope` says of a lock."""
        return json.dumps([scope.partition, scope.file_id])

    def run(self, statement: str, **values: object) -> list[Any]:
        """Run one statement, on one connection that is made anew where it broke; its rows."""
        with self.lock:
            try:
                return self._run(statement, values)
            except NoTable:
                self._run(CREATE, {})
                return self._run(statement, values)

    def _run(self, statement: str, values: Mapping[str, object]) -> list[Any]:
        try:
            return self._connect().run(self._name(statement), **values) or []
        except (Error, OSError) as error:
            self._disconnect()
            raise self._explain(error) from error
        except BaseException:  # such as an interrupt: the answer would be taken for that of the next statement
            self._disconnect()
            raise

    def _explain(self, error: Exception) -> Exception:
        told = error.args[0] if isinstance(error, DatabaseError) else {}
        code, said = told.get("C", ""), told.get("M", error)
        if code.startswith(FINAL):
            return BackendRefused(f"PostgreSQL refuses it: {said}", key=self.table)
        kind = NoTable if code == NO_TABLE else BackendUnavailable
        return kind(f"PostgreSQL did not do it: {said}", key=self.table)

    def _name(self, statement: str) -> str:
        table, tokens = identifier(self.table), identifier(f"{self.table}_tokens")
        return statement.format(table=table, tokens=tokens, tokens_text=literal(tokens))

    def _connect(self) -> Connection:
        if self.connection is None:
            most_ms = max(1000 * self.lease_s // 3, 1)
            self.connection = Connection(
                **self.server,
                password=self.options.get_value(PASSWORD),
                application_name="hudi-locks",
                timeout=5 + most_ms / 1000,  # the server's own limit comes first
                startup_params={"statement_timeout": str(most_ms), "client_encoding": "UTF8"},
            )
        return self.connection

    def _disconnect(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            with suppress(Error, OSError):  # it may be broken already
                connection.close()

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """See `LockProvider.try_acquire`."""
        if self.closed:
            raise ProviderClosed("the PostgreSQL lock provider is closed", scope=scope)
        hold, name = uuid.uuid4().hex, self.scope(scope)
        record, sent_s = json.dumps({**asdict(owner), "hold": hold}), self.clock.monotonic()
        try:
            rows = self.run(ACQUIRE, scope=name, hold=hold, record=record, lease=timedelta(seconds=self.lease_s))
        except BackendUnavailable:
            with suppress(BackendUnavailable):  # the answer may be lost, and the row there: then nobody holds it
                self.run(REMOVE, scope=name, hold=hold)
            raise
        if rows:
            lease = Lease(scope, owner, rows[0][0], sent_s + self.lease_s, hold)
            with self.lock:
                self.held[scope] = lease
            return lease
        if (found := self.holder(scope)) and found.owner == owner:
            raise AlreadyHeld(f"{owner} holds {scope} already", scope=scope, owner=owner)
        return None

    def own(self, lease: Lease) -> Lease | None:
        """The hold that is meant by a lease, as long as this client has it."""
        own = self.held.get(lease.scope)
        return own if own is not None and (own.state, own.owner) == (lease.state, lease.owner) else None

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`."""
        sent_s, own, name = self.clock.monotonic(), self.own(lease), self.scope(lease.scope)
        if own is None or sent_s >= (own.deadline_s or 0):
            raise LockLost(f"{lease.scope} is not held any more", scope=lease.scope, reason=LossReason.EXPIRED)
        if not self.run(RENEW, scope=name, hold=lease.state, lease=timedelta(seconds=self.lease_s)):
            rows = self.run(FIND, scope=name)
            reason = LossReason.DELETED if not rows else LossReason.STOLEN
            reason = LossReason.EXPIRED if rows and rows[0][0] == lease.state else reason
            raise LockLost(f"the row of {lease.scope} is {reason.value}", scope=lease.scope, reason=reason)
        renewed = Lease(lease.scope, lease.owner, lease.token, sent_s + self.lease_s, lease.state)
        with self.lock:
            if self.own(lease) is not None:
                self.held[lease.scope] = renewed
        return renewed

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`."""
        if self.own(lease) is not None:
            self.run(REMOVE, scope=self.scope(lease.scope), hold=lease.state)
            with self.lock:
                self.held.pop(lease.scope, None)

    def holder(self, scope: LockScope) -> Holder | None:
        """See `LockProvider.holder`."""
        rows = self.run(FIND, scope=self.scope(scope))
        if not rows:
            return None
        hold, raw, left_s = rows[0]
        expires_in_ms = None if left_s is None else round(1000 * left_s)
        return Holder(self.table, decode_owner(raw), token=hold or raw, raw=raw, expires_in_ms=expires_in_ms)

    def break_if(self, scope: LockScope, token: str) -> bool:
        """See `LockProvider.break_if`."""
        return bool(self.run(REMOVE, scope=self.scope(scope), hold=token))

    def close(self) -> None:
        """See `LockProvider.close`."""
        self.closed = True
        try:
            self.release_many(list(self.held.values()))
        finally:
            with self.lock:
                self._disconnect()

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""
        from postgresql_lock_provider.hooks import PostgresqlHooks

        return PostgresqlHooks


def parse_dsn(dsn: str) -> dict[str, Any]:
    """What the words `key=value` of `my.postgresql.dsn` say, as arguments of a `Connection`."""
    told: dict[str, Any] = {"sslmode": "prefer"}
    for number, word in enumerate(dsn.split(), 1):
        name, sign, value = word.partition("=")
        if name not in WORDS or not value:
            found = name if sign and name.isidentifier() else f"word {number}"  # which may be a password, so not shown
            raise malformed(f"{', '.join(WORDS)}, each as key=value; {found} of it is not that")
        told[name] = value
    if "user" not in told:
        raise malformed("the name of a user, as user=etl")
    if not told.get("port", "5432").isdecimal():
        raise malformed(f"a number as port, not {told['port']}")
    if told["sslmode"] not in TLS:
        raise malformed(f"{', '.join(TLS)} as sslmode, not {told['sslmode']}")
    told["sslmode"] = TLS[told["sslmode"]]
    return {WORDS[name]: value for name, value in told.items()}


def malformed(wanted: str) -> ConfigError:
    """What is wrong with `my.postgresql.dsn`."""
    return ConfigError(f"{DSN.name} takes {wanted}; a password belongs in {PASSWORD.name}", key=DSN.name)


def decode_owner(record: str) -> Owner:
    """Whose a record is, as far as it tells."""
    try:
        fields = json.loads(record)
    except ValueError:
        fields = None
    told = fields if isinstance(fields, dict) else {}
    return Owner(**{"id": "", **{name: value for name, value in told.items() if name in Owner.__dataclass_fields__}})
