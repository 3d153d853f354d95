"""Back doors to a lock object for the conformance kit: what others could do to it, done on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Final
from unittest import mock

from hudi_locks.config import lock_keys, table_keys
from hudi_locks.errors import BackendUnavailable
from hudi_locks.lock import LockScope
from hudi_locks_providers._storage.stores import import_obstore
from hudi_locks_providers._wire.storage_lock import StorageRecord, decode_record, encode_record

__all__ = ["StorageHooks"]

_LONG_MS: Final = 3_600_000


class StorageHooks:
    """Reads and damages the lock objects of one provider, past the provider.

    Attributes:
        virtual_time: Whether it keeps the time of its clock alone.
        lease_options: Options with which a lease ends by itself.
        short_lease_options: Options with which it does so as soon as Hudi allows.
        other_lease_options: Options with which it does so later.
        slow_renewal_options: Options that ask for renewals as rare as the ends of leases.
        tamper_os: None, for its requests go to a service.
        remove_parent: None, for a bucket is not removed while objects are in it.
        waiters: None, for nobody queues.

    Args:
        provider: The `StorageLockProvider` whose objects are meant.
    """

    virtual_time: ClassVar[bool] = True
    tamper_os: ClassVar[None] = None
    remove_parent: ClassVar[None] = None
    waiters: ClassVar[None] = None
    lease_options: ClassVar[Mapping[str, str]] = {lock_keys.STORAGE_VALIDITY_TIMEOUT_SECS.name: "300"}
    short_lease_options: ClassVar[Mapping[str, str]] = {
        lock_keys.STORAGE_VALIDITY_TIMEOUT_SECS.name: "10",
        lock_keys.STORAGE_RENEW_INTERVAL_SECS.name: "1",
    }
    other_lease_options: ClassVar[Mapping[str, str]] = {lock_keys.STORAGE_VALIDITY_TIMEOUT_SECS.name: "600"}
    slow_renewal_options: ClassVar[Mapping[str, str]] = {lock_keys.STORAGE_RENEW_INTERVAL_SECS.name: "300"}

    @staticmethod
    def fresh_options(options: Mapping[str, str], name: str) -> dict[str, str]:
        """Options for a table that nobody has used."""
        base = options[table_keys.BASE_PATH.name].rstrip("/")
        return {**options, table_keys.BASE_PATH.name: f"{base}/conformance/{name}"}

    @staticmethod
    def unreachable_options(options: Mapping[str, str]) -> dict[str, str]:
        """Options for a service that does not answer."""
        return {
            **options,
            lock_keys.STORAGE_ENDPOINT_URL.name: "http://127.0.0.1:1",
            lock_keys.STORAGE_ALLOW_HTTP.name: "true",
        }

    @staticmethod
    def faults() -> list[tuple[Exception, bool, str]]:
        """What the service may answer instead, as obstore raises it, if that may pass, and at which requests."""
        errors = import_obstore().exceptions
        busy = [_answer(errors.GenericError, status) for status in ("409 Conflict", "429 Too Many Requests")]
        down = [_answer(errors.GenericError, status) for status in ("500 Internal Server Error", "503 Slow Down")]
        refused = _answer(errors.PermissionDeniedError, "403 Forbidden")
        unknown = _answer(errors.UnauthenticatedError, "401 Unauthorized")
        met = _answer(errors.PreconditionError, "412 Precondition Failed")
        passing = [(error, True, "") for error in (*busy, *down)]
        return [*passing, (met, True, "put"), (refused, False, ""), (unknown, False, "")]

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._objects = provider._objects  # noqa: SLF001  # a back door

    def peek(self, scope: LockScope) -> bytes | None:
        """The raw record, or None."""
        found = self._objects.read(self._provider.key(scope))
        return found.data if found else None

    def record_form(self, scope: LockScope) -> dict[str, str]:
        """The fields of the object, each with its type, their order, and whether blanks stand between them."""
        data = self.peek(scope)
        if data is None:
            return {}
        fields = json.loads(data)
        compact = json.dumps(fields, separators=(",", ":")).encode() == data
        types = {name: type(value).__name__ for name, value in fields.items()}
        return {**types, "(order)": " ".join(fields), "(compact)": str(compact)}

    def corrupt(self, scope: LockScope, data: bytes) -> None:
        """Put `data` in place of a record, as a foreign program would."""
        self._objects.put(self._provider.key(scope), data, "overwrite")

    def remove(self, scope: LockScope) -> None:
        """Delete the record."""
        self._objects.remove(self._provider.key(scope))

    def expire(self, scope: LockScope) -> None:
        """Make the record look as if its holder had died long ago."""
        record = decode_record(self.peek(scope) or b"")
        if record is not None:
            self.corrupt(scope, encode_record(replace(record, valid_until_ms=0)))

    def steal(self, scope: LockScope) -> None:
        """Replace the record by that of a JVM writer."""
        until_ms = self._provider.clock.wall_ms() + _LONG_MS
        self.corrupt(scope, encode_record(StorageRecord(False, until_ms, "00000000-0000-4000-8000-000000000001")))

    @contextmanager
    def tamper(self, meddle: Callable[[str, Callable[[], Any]], Any]) -> Iterator[None]:
        """Let each request pass through `meddle(name, send)`; a `TimeoutError` of it is an answer that did not come."""
        with mock.patch.object(self._objects, "send", meddle):
            yield

    @contextmanager
    def fail_acquire(self, *, after_effect: bool) -> Iterator[None]:
        """Let writes of lock records fail as over a bad network: before their effect, or with their answer lost."""
        put, folder = self._objects.put, "/.hudi_locks/tokens/"

        def fail(key: str, data: bytes, mode: Any) -> Any:
            if folder in key:
                return put(key, data, mode)
            if after_effect:
                put(key, data, mode)
            raise BackendUnavailable("planted by the conformance kit: no answer", key=key)

        with mock.patch.object(self._objects, "put", fail):
            yield


def _answer(kind: type[Exception], status: str) -> Exception:
    return kind(f"Error performing the request: Server returned non-2xx status code: {status}: planted by the kit")
