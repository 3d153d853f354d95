"""Locks in a SQLite file: a row for each lock, which others may remove once its holder has not renewed it in time."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from hudi_locks import Capability, Clock, Holder, Lease, LockProvider, LockScope, LossReason, Owner
from hudi_locks.config import Key
from hudi_locks.errors import AlreadyHeld, BackendUnavailable, LockLost, ProviderClosed

CLAIMS = "SCOPE_PROCESSES LEASE RENEWAL FENCING OWNER_INFO NEEDS_CLOCK_SYNC CREATES_BACKEND LINEARIZABLE"
COLUMNS = "token integer primary key autoincrement, scope text unique, until, id, host, pid, thread, application"
FILE = Key("my.sqlite.file", str, None, "the file that holds the locks")
LEASE = Key("my.sqlite.lease_s", int, 60, "how long a silent holder keeps its lock, in seconds", minimum=1)


class SqliteLockProvider(LockProvider):
    capabilities = frozenset(Capability[name] for name in CLAIMS.split())
    short_options = {"file": FILE.name, "lease_s": LEASE.name}

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: Any) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.file, self.lease_s = self.options.get_value(FILE), self.options.get_value(LEASE)
        self.closed = False
        self.held: dict[tuple[int | None, Owner], float] = {}

    def run(self, statement: str, *values: object) -> list[Any]:
        try:
            with closing(sqlite3.connect(self.file, isolation_level=None)) as db:
                db.execute(f"create table if not exists locks ({COLUMNS})")
                cursor = db.execute(statement, values)
                return cursor.fetchall() or cursor.rowcount * [cursor.lastrowid]
        except sqlite3.Error as error:
            raise BackendUnavailable(f"{self.file}: {error}", key=self.file) from error

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        if self.closed:
            raise ProviderClosed("the sqlite lock provider is closed", scope=scope)
        sent_s, now_s = self.clock.monotonic(), self.clock.wall_ms() / 1000
        row = (repr(scope), now_s + self.lease_s, owner.id, owner.host, owner.pid, owner.thread, owner.application)
        self.run("delete from locks where scope = ? and until < ?", row[0], now_s)
        try:
            made = self.run("insert or ignore into locks values (null, ?, ?, ?, ?, ?, ?, ?)", *row)
        except BackendUnavailable:
            self.run("delete from locks where scope = ? and until = ? and id = ?", *row[:3])
            raise
        if made:
            self.held[made[0], owner] = sent_s + self.lease_s
            return Lease(scope, owner, made[0], sent_s + self.lease_s)
        if (found := self.holder(scope)) and found.owner == owner:
            raise AlreadyHeld(f"{owner} holds {scope} already", scope=scope, owner=owner)
        return None

    def renew(self, lease: Lease) -> Lease:
        sent_s, until = self.clock.monotonic(), self.clock.wall_ms() / 1000 + self.lease_s
        if sent_s >= self.held.get((lease.token, lease.owner), 0):
            raise LockLost(f"{lease.scope} is not held any more", scope=lease.scope, reason=LossReason.EXPIRED)
        if not self.run("update locks set until = ? where token = ?", until, lease.token):
            raise LockLost(f"somebody removed {lease.scope}", scope=lease.scope, reason=LossReason.DELETED)
        self.held[lease.token, lease.owner] = sent_s + self.lease_s
        return Lease(lease.scope, lease.owner, lease.token, sent_s + self.lease_s)

    def release(self, lease: Lease) -> None:
        if (lease.token, lease.owner) in self.held:
            self.run("delete from locks where token = ?", lease.token)
            del self.held[lease.token, lease.owner]

    def holder(self, scope: LockScope) -> Holder | None:
        rows = self.run("select token, id, host, pid, thread, application from locks where scope = ?", repr(scope))
        return Holder(self.file, Owner(*rows[0][1:]), token=str(rows[0][0]), raw=str(rows[0])) if rows else None

    def close(self) -> None:
        self.closed = True
        while self.held:
            self.run("delete from locks where token = ?", self.held.popitem()[0][0])

    @classmethod
    def conformance_hooks(cls) -> Any:
        from my_lock_provider.hooks import SqliteHooks

        return SqliteHooks
