"""Back doors to a lock's nodes for the conformance kit: what others could do to them, done on purpose."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final
from unittest import mock

from kazoo.exceptions import ConnectionLoss, KazooException, NoAuthError, NoNodeError, OperationTimeoutError
from kazoo.protocol.serialization import Create2

from hudi_locks.config import lock_keys, table_keys
from hudi_locks.lock import LockScope
from hudi_locks_providers._wire.zookeeper import contender_prefix, find_first, sort_contenders
from hudi_locks_providers._zookeeper.login import TicketLogin, make_client

__all__ = ["ZooKeeperHooks"]

_ANOTHER: Final = b"10.0.0.1"
_NOWHERE: Final = "127.0.0.1:1"
_PROTECTED: Final = re.compile(r"_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-\d{10}$")


class ZooKeeperHooks:
    """Reads and damages the nodes of one provider's locks over connections of its own.

    Attributes:
        lease_options: Options with which a lease ends by itself soon.
        short_lease_options: The same.
        other_lease_options: Options with which it does so later.
        delivers_once: True: within a session no request arrives twice.
        delivers_in_order: True: nor does one arrive after others that were sent later.
        tamper_os: None, for its requests go to a service.

    Args:
        provider: The `ZooKeeperLockProvider` whose locks are meant.
    """

    delivers_once: ClassVar[bool] = True
    delivers_in_order: ClassVar[bool] = True
    tamper_os: ClassVar[None] = None
    lease_options: ClassVar[Mapping[str, str]] = {lock_keys.ZOOKEEPER_SESSION_TIMEOUT_MS.name: "2000"}
    short_lease_options: ClassVar[Mapping[str, str]] = lease_options
    other_lease_options: ClassVar[Mapping[str, str]] = {lock_keys.ZOOKEEPER_SESSION_TIMEOUT_MS.name: "6000"}

    @staticmethod
    def fresh_options(options: Mapping[str, str], name: str) -> dict[str, str]:
        """Options for a place that nobody has used, nor made."""
        changed = dict(options)
        for key in (lock_keys.ZOOKEEPER_BASE_PATH.name, table_keys.BASE_PATH.name):
            if key in options:
                changed[key] = f"{options[key]}/fresh/{name}"
        return changed

    @staticmethod
    def unreachable_options(options: Mapping[str, str]) -> dict[str, str]:
        """Options for servers that cannot be reached."""
        timeout = {lock_keys.ZOOKEEPER_CONNECTION_TIMEOUT_MS.name: "1000"}
        return {**options, lock_keys.ZOOKEEPER_URL.name: _NOWHERE, **timeout}

    @staticmethod
    def faults() -> list[tuple[Exception, bool, str]]:
        """What a server may answer instead, as kazoo has it, if that may pass, and at which requests."""
        return [(OperationTimeoutError(), True, ""), (ConnectionLoss(), True, ""), (NoAuthError(), False, "")]

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._settings = provider.client.session.settings

    @contextmanager
    def _connect(self, **kwargs: Any) -> Iterator[Any]:
        security, timeout_s = self._settings.security, self._settings.session_timeout_s
        ticket = TicketLogin.from_security(security)
        client = make_client(security, ticket, hosts=self._settings.hosts, timeout=timeout_s, **kwargs)
        client.start()
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def _first(self, client: Any, scope: LockScope) -> str | None:
        folder = self._provider.find_folder(scope)
        try:
            name = find_first(client.get_children(folder))
        except NoNodeError:
            return None
        return None if name is None else f"{folder}/{name}"

    def peek(self, scope: LockScope) -> bytes | None:
        """The raw payload of the first in line, or None."""
        with self._connect() as client:
            path = self._first(client, scope)
            return None if path is None else bytes(client.get(path)[0])

    def record_form(self, scope: LockScope) -> dict[str, str]:
        """The parts of the first in line, each with the form that it has."""
        with self._connect() as client:
            path = self._first(client, scope)
            if path is None:
                return {}
            data, stat = client.get(path)
            pairs = [pair.partition("=") for pair in data.decode("utf-8", "replace").split(",")]
            return {
                "node": _PROTECTED.sub("_c_<uuid>-lock-<number>", path),
                "ephemeral": str(bool(stat.ephemeralOwner)),
                "rights": str([(acl.perms, acl.id.scheme, acl.id.id) for acl in client.get_acls(path)[0]]),
                **{name: "a text" if equals else "an address" for name, equals, _ in pairs},
            }

    def corrupt(self, scope: LockScope, data: bytes) -> None:
        """Put `data` in place of the payload of the first in line, or make a first one with it."""
        with self._connect() as client:
            path = self._first(client, scope)
            if path is None:
                self._add(client, scope, data)
            else:
                client.set(path, data)

    def _add(self, client: Any, scope: LockScope, data: bytes) -> None:
        """A contender that outlives its connection."""
        prefix = contender_prefix(str(uuid.uuid4()))
        client.create(f"{self._provider.find_folder(scope)}/{prefix}", data, sequence=True, makepath=True)

    def remove(self, scope: LockScope) -> None:
        """Take the lock away from whoever has it."""
        with self._connect() as client:
            path = self._first(client, scope)
            if path is not None:
                client.delete(path)

    def steal(self, scope: LockScope) -> None:
        """Put another writer in the place of the holder."""
        with self._connect() as client:
            path = self._first(client, scope)
            if path is not None:
                client.delete(path)
            self._add(client, scope, _ANOTHER)

    def expire(self, scope: LockScope) -> None:  # noqa: ARG002  # all of a session's locks end together
        """End the session of the provider, as the server does after a silence: by another connection to it."""
        session = self._provider.client.session
        with self._connect(client_id=session.credentials):
            return

    def waiters(self, scope: LockScope) -> int:
        """How many stand in line behind the holder."""
        with self._connect() as client:
            try:
                return max(0, len(sort_contenders(client.get_children(self._provider.find_folder(scope)))) - 1)
            except NoNodeError:
                return 0

    def remove_parent(self, scope: LockScope) -> None:
        """Delete the node under which the contenders are, with all below it."""
        with self._connect() as client:
            client.delete(self._provider.find_folder(scope), recursive=True)

    @contextmanager
    def tamper(self, meddle: Callable[[str, Callable[[], Any]], Any]) -> Iterator[None]:
        """Let requests that travel together pass through `meddle(name, send)`; a `TimeoutError` of it is no answer."""
        session = self._provider.client.session
        call = session.call

        def pass_on(*requests: Any) -> Any:
            try:
                return meddle(" ".join(type(request).__name__ for request in requests), lambda: call(*requests))
            except TimeoutError:
                return [ConnectionLoss()] * len(requests)
            except KazooException as error:
                return [error] * len(requests)

        with mock.patch.object(session, "call", pass_on):
            yield

    @contextmanager
    def fail_acquire(self, *, after_effect: bool) -> Iterator[None]:
        """Let the request that makes a contender fail, before its effect or with its answer lost."""
        session = self._provider.client.session
        call = session.call

        def fail(*requests: Any) -> list[Any]:
            if not any(isinstance(request, Create2) for request in requests):
                return list(call(*requests))
            if after_effect:
                call(*requests)
            return [ConnectionLoss()] * len(requests)

        with mock.patch.object(session, "call", fail):
            yield
