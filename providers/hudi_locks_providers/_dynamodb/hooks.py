"""Back doors to a lock item for the conformance kit: what others could do to it, done on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar
from unittest import mock

from hudi_locks.config import lock_keys
from hudi_locks.errors import BackendUnavailable
from hudi_locks.lock import LockScope, Owner, import_extra
from hudi_locks_providers._wire.dynamodb_item import KEY, LEASE_DURATION, RECORD_VERSION, Item, encode_item, show_item

__all__ = ["DynamoHooks"]

_DATA = "data"
_PUTS = frozenset({"put_item", "transact_write_items"})


class DynamoHooks:
    """Reads and damages the items of one provider, past the provider.

    Attributes:
        virtual_time: Whether it keeps the time of its clock alone.
        lease_options: Options with which a lease ends by itself.
        short_lease_options: Options with which it does so within seconds.
        other_lease_options: Options with which it does so later.
        tamper_os: None, for its requests go to a service.
        waiters: None, for nobody queues.

    Args:
        provider: The `DynamoDBLockProvider` whose items are meant.
    """

    virtual_time: ClassVar[bool] = True
    tamper_os: ClassVar[None] = None
    waiters: ClassVar[None] = None
    lease_options: ClassVar[Mapping[str, str]] = {lock_keys.WAIT_TIME_MS.name: "60000"}
    short_lease_options: ClassVar[Mapping[str, str]] = {lock_keys.WAIT_TIME_MS.name: "3000"}
    other_lease_options: ClassVar[Mapping[str, str]] = {lock_keys.WAIT_TIME_MS.name: "120000"}

    @staticmethod
    def fresh_options(options: Mapping[str, str], name: str) -> dict[str, str]:
        """Options for a table that nobody has used, nor made."""
        return {**options, lock_keys.DYNAMODB_TABLE.name: f"kit-{name}"}

    @staticmethod
    def unreachable_options(options: Mapping[str, str]) -> dict[str, str]:
        """Options for a service that cannot be reached."""
        return {**options, lock_keys.DYNAMODB_ENDPOINT_URL.name: "http://127.0.0.1:1"}

    @staticmethod
    def faults() -> list[tuple[Exception, bool, str]]:
        """What the service may answer instead, as boto3 raises it, if that may pass, and at which requests."""
        client_error = import_extra("botocore.exceptions", provider="dynamodb").ClientError
        passing = {"ThrottlingException": 400, "TransactionConflictException": 400, "InternalServerError": 500}
        final = {"AccessDeniedException": 400, "UnrecognizedClientException": 400}
        return [
            (client_error(_answer(code, status), "Planted"), heals, "")
            for codes, heals in ((passing, True), (final, False))
            for code, status in codes.items()
        ]

    def __init__(self, provider: Any) -> None:
        self._provider = provider

    def _key(self, scope: LockScope) -> str:
        key: str = self._provider.keys.lock(scope)
        return key

    def _send(self, method: str, operation: str, **request: Any) -> dict[str, Any]:
        connection = self._provider.connection
        table = connection.settings.table
        answer: dict[str, Any] = connection.send(method, operation, TableName=table, **request)
        return answer

    def _find(self, scope: LockScope) -> Item | None:
        answer = self._send("get_item", "GetItem", Key={KEY: {"S": self._key(scope)}}, ConsistentRead=True)
        found: Item | None = answer.get("Item")
        return found

    def _put(self, item: Item) -> None:
        self._provider.table.ensure()
        self._send("put_item", "PutItem", Item=item)

    def peek(self, scope: LockScope) -> bytes | None:
        """The raw record, or None; of an item that is no lock, the bytes that `corrupt` put there."""
        found = self._find(scope)
        if found is None:
            return None
        if RECORD_VERSION not in found and _DATA in found:
            return bytes(found[_DATA]["B"])
        return show_item(found).encode()

    def record_form(self, scope: LockScope) -> dict[str, str]:
        """The attributes of the item, each with its type, and whether it is a decimal number."""
        found = self._find(scope) or {}
        types = {name: next(iter(value.items())) for name, value in found.items()}
        return {name: kind + " decimal" * str(value).isdecimal() for name, (kind, value) in types.items()}

    def expire(self, scope: LockScope) -> None:
        """Let the holder's lease be over as soon as somebody watches it."""
        found = self._find(scope)
        if found is not None:
            self._put({**found, LEASE_DURATION: {"S": "0"}})

    def steal(self, scope: LockScope) -> None:
        """Replace the record by that of another writer."""
        other = Owner("somebody else", "another-host", 1, "main", "")
        self._put(
            encode_item(
                self._key(scope),
                other,
                owner_name="somebody else",
                version="stolen",
                lease_ms=60_000,
                token=None,
                since_ms=0,
            )
        )

    def corrupt(self, scope: LockScope, data: bytes) -> None:
        """Put `data` in place of a record, as a foreign program would: an item as `peek` tells it, or bytes in one."""
        self._put(_read_item(data) or {KEY: {"S": self._key(scope)}, _DATA: {"B": data}})

    @contextmanager
    def tamper(self, meddle: Callable[[str, Callable[[], Any]], Any]) -> Iterator[None]:
        """Let each request pass through `meddle(name, send)`; a `TimeoutError` of it is an answer that did not come."""
        timeout = import_extra("botocore.exceptions", provider="dynamodb").ReadTimeoutError

        def pass_on(operation: str, request: Callable[[], dict[str, Any]]) -> Any:
            try:
                return meddle(operation, request)
            except TimeoutError as error:
                raise timeout(endpoint_url="planted", error=error) from error

        with mock.patch.object(self._provider.connection, "pass_on", pass_on):
            yield

    def remove_parent(self, scope: LockScope) -> None:  # noqa: ARG002  # all scopes are in one table
        """Delete the lock table."""
        self._send("delete_table", "DeleteTable")

    @contextmanager
    def fail_acquire(self, *, after_effect: bool) -> Iterator[None]:
        """Let the request that makes the item fail as over a bad network: before its effect, or its answer lost."""
        connection = self._provider.connection
        send = connection.send

        def fail(method: str, operation: str, **request: Any) -> dict[str, Any]:
            if method not in _PUTS:
                answer: dict[str, Any] = send(method, operation, **request)
                return answer
            if after_effect:
                send(method, operation, **request)
            raise BackendUnavailable("planted by the conformance kit")

        with mock.patch.object(connection, "send", fail):
            yield

    def remove(self, scope: LockScope) -> None:
        """Delete the record, as a TTL rule or a person would."""
        self._send("delete_item", "DeleteItem", Key={KEY: {"S": self._key(scope)}})


def _read_item(data: bytes) -> Item | None:
    """The item that `data` shows; None if it shows none."""
    try:
        item = json.loads(data)
    except ValueError:
        return None
    return item if isinstance(item, dict) and RECORD_VERSION in item else None


def _answer(code: str, status: int) -> dict[str, Any]:
    error = {"Code": code, "Message": "planted by the conformance kit"}
    return {"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}
