"""Back doors for the conformance kit: with them no check that the provider is asked for stays not-run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

from hudi_locks import BackendUnavailable, LockScope

PUT = """
insert into {table} values (:scope, 'somebody else', 'infinity', :record)
on conflict (scope) do update set hold = excluded.hold, until = excluded.until, record = excluded.record
"""


class PostgresqlHooks:
    lease_options: Mapping[str, str] = {"my.postgresql.lease_s": "2"}  # the server measures leases: short ones here
    other_lease_options = {"my.postgresql.lease_s": "4"}
    short_lease_options = {"my.postgresql.lease_s": "1"}

    def __init__(self, provider: Any) -> None:
        self.provider = provider

    @staticmethod
    def fresh_options(options: Mapping[str, str], name: str) -> dict[str, str]:
        return {**options, "my.postgresql.table": name[:40]}

    @staticmethod
    def unreachable_options(options: Mapping[str, str]) -> dict[str, str]:
        return {**options, "my.postgresql.dsn": "host=127.0.0.1 port=1 dbname=postgres user=postgres"}

    def peek(self, scope: LockScope) -> bytes | None:
        rows = self.provider.run("select record from {table} where scope = :scope", scope=self.provider.scope(scope))
        return rows[0][0].encode() if rows else None

    def remove(self, scope: LockScope) -> None:
        self.provider.run("delete from {table} where scope = :scope", scope=self.provider.scope(scope))

    def corrupt(self, scope: LockScope, data: bytes) -> None:
        self.provider.run(PUT, scope=self.provider.scope(scope), record=data.replace(b"\0", b"?").decode("latin-1"))

    @contextmanager
    def fail_acquire(self, *, after_effect: bool) -> Iterator[None]:
        run, failures = self.provider.run, iter([True])

        def fail(statement: str, **values: object) -> Any:
            if not next(failures, False):  # what cleans up after it passes
                return run(statement, **values)
            if after_effect:
                run(statement, **values)
            raise BackendUnavailable("planted by the conformance kit")

        with mock.patch.object(self.provider, "run", fail):
            yield
