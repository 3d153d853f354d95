"""Back doors to metastore locks for the conformance kit: what others could do to them, done on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final
from unittest import mock

from hudi_locks.config import lock_keys
from hudi_locks.errors import BackendUnavailable
from hudi_locks.lock import LockScope, import_extra

__all__ = ["HiveHooks"]

_STRANGER: Final = "stranger-of-the-kit"


class HiveHooks:
    """Reads and damages the locks of one provider, past the provider.

    Attributes:
        lease_options: Options with which a lease ends by itself: it always does, by the metastore's own setting.
        short_lease_options: The same.
        other_lease_options: None: a client cannot choose it.
        delivers_once: True: a call travels over a connection of its own, and is sent once.
        tamper_os: None, for its requests go to a service.
        remove_parent: None, for the table that a lock names need not be there.
        waiters: None, for nobody queues.

    Args:
        provider: The `HiveMetastoreLockProvider` whose locks are meant.
    """

    lease_options: ClassVar[Mapping[str, str]] = {}
    short_lease_options: ClassVar[Mapping[str, str]] = {}
    other_lease_options: ClassVar[Mapping[str, str]] = {}
    delivers_once: ClassVar[bool] = True
    tamper_os: ClassVar[None] = None
    remove_parent: ClassVar[None] = None
    waiters: ClassVar[None] = None

    @staticmethod
    def fresh_options(options: Mapping[str, str], name: str) -> dict[str, str]:
        """Options for a table that nobody has locked."""
        return {**options, lock_keys.HIVE_TABLE.name: f"kit_{name.replace('-', '_')}"}

    @staticmethod
    def unreachable_options(options: Mapping[str, str]) -> dict[str, str]:
        """Options for metastores that cannot be reached."""
        return {**options, lock_keys.HIVE_URIS.name: "thrift://127.0.0.1:1"}

    @staticmethod
    def faults() -> list[tuple[Exception, bool, str]]:
        """What a metastore may answer instead, as Thrift raises it, if that may pass, and at which requests."""
        error = import_extra("thrift.Thrift", provider="hive_metastore").TApplicationException
        return [
            (error(error.INTERNAL_ERROR, "planted by the conformance kit"), True, ""),
            (error(error.UNKNOWN_METHOD, "planted by the conformance kit"), False, "lock"),
        ]

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._metastore = provider.metastore

    def _place(self, scope: LockScope) -> tuple[str, str]:
        settings = self._provider.settings
        return settings.database, settings.table_of(scope)

    def _granted(self, scope: LockScope) -> Any:
        return next((row for row in self._metastore.find_locks(*self._place(scope)) if row.is_granted), None)

    def peek(self, scope: LockScope) -> bytes | None:
        """The lock as the metastore shows it, or None; of one that `corrupt` made, the bytes given to it."""
        row = self._granted(scope)
        if row is None:
            return None
        return bytes(row.agent.encode("latin-1")) if row.host == _STRANGER else bytes(row.show().encode())

    def record_form(self, scope: LockScope) -> dict[str, str]:
        """What the metastore has of the lock: what must be the same as it is, the rest by whether there is any."""
        row = self._granted(scope)
        if row is None:
            return {}
        same = {"database": row.database, "table": row.table, "transaction": str(row.transaction)}
        return {**same, **{name: str(bool(getattr(row, name))) for name in ("user", "host", "agent")}}

    def remove(self, scope: LockScope) -> None:
        """Take the lock away, as an administrator does."""
        row = self._granted(scope)
        if row is not None:
            self._metastore.unlock(row.lock_id)

    def steal(self, scope: LockScope) -> None:
        """Take the lock away and give it to another writer."""
        self.remove(scope)
        self._metastore.lock(self._place(scope)[0], [self._place(scope)[1]], host="another-host", agent="Unknown")

    def corrupt(self, scope: LockScope, data: bytes) -> None:
        """A lock whose agent is `data`, as a foreign program's."""
        database, table = self._place(scope)
        self._metastore.lock(database, [table], host=_STRANGER, agent=data.decode("latin-1"))

    @contextmanager
    def tamper(self, meddle: Callable[[str, Callable[[], Any]], Any]) -> Iterator[None]:
        """Let each call pass through `meddle(name, send)`; a `TimeoutError` of it is an answer that did not come."""
        with mock.patch.object(self._metastore, "pass_on", meddle):
            yield

    @contextmanager
    def fail_acquire(self, *, after_effect: bool) -> Iterator[None]:
        """Let the call that locks fail as over a bad network: before its effect, or with its answer lost."""
        call = self._metastore.call

        def fail(method: str, *arguments: Any) -> Any:
            if method != "lock":
                return call(method, *arguments)
            if after_effect:
                call(method, *arguments)
            raise BackendUnavailable("planted by the conformance kit")

        with mock.patch.object(self._metastore, "call", fail):
            yield
