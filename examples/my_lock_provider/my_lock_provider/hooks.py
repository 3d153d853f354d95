"""Back doors for the conformance kit: with them no check that the provider is asked for stays not-run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from hudi_locks import BackendUnavailable, LockScope


class SqliteHooks:
    virtual_time = True  # the provider keeps the time of its clock alone, so minutes are judged in milliseconds
    lease_options: Mapping[str, str] = {}
    other_lease_options = {"my.sqlite.lease_s": "120"}
    short_lease_options = {"my.sqlite.lease_s": "1"}

    def __init__(self, provider: Any) -> None:
        self.provider = provider

    @staticmethod
    def fresh_options(options: Mapping[str, str], name: str) -> dict[str, str]:
        return {**options, "my.sqlite.file": str(Path(options["my.sqlite.file"]).with_name(f"{name}.db"))}

    @staticmethod
    def unreachable_options(options: Mapping[str, str]) -> dict[str, str]:
        return {**options, "my.sqlite.file": "/dev/null/locks.db"}

    def peek(self, scope: LockScope) -> bytes | None:
        holder = self.provider.holder(scope)
        if holder is None:
            return None
        text: str = holder.raw if holder.owner.pid else holder.owner.id
        return text.encode("latin-1")

    def remove(self, scope: LockScope) -> None:
        self.provider.run("delete from locks where scope = ?", repr(scope))

    def corrupt(self, scope: LockScope, data: bytes) -> None:
        statement = "insert or replace into locks values (null, ?, ?, ?, '', 0, '', '')"
        self.provider.run(statement, repr(scope), 9e9, data.decode("latin-1"))

    @contextmanager
    def fail_acquire(self, *, after_effect: bool) -> Iterator[None]:
        run = self.provider.run

        def fail(statement: str, *values: object) -> Any:
            if not statement.startswith("insert"):
                return run(statement, *values)
            if after_effect:
                run(statement, *values)
            raise BackendUnavailable("planted by the conformance kit")

        with mock.patch.object(self.provider, "run", fail):
            yield
