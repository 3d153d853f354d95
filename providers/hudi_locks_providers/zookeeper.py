"""Locks in ZooKeeper: Hudi's ZookeeperBasedLockProvider and its implicit sister, with what they lack."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hudi_locks.clock import Clock
from hudi_locks.config import Options, lock_keys, table_keys
from hudi_locks.errors import ConfigError, ProviderLoadError
from hudi_locks.lock import (
    Capability,
    Finding,
    Holder,
    Lease,
    LockProvider,
    LockScope,
    LossCallback,
    Owner,
    SetupStep,
    SetupTerms,
)
from hudi_locks.lock.lease import generation
from hudi_locks.redaction import open_log
from hudi_locks_providers._kerberos import import_gssapi
from hudi_locks_providers._wire.implicit_key import implicit_key
from hudi_locks_providers._zookeeper.place import PlaceFinder
from hudi_locks_providers._zookeeper.settings import Settings

if TYPE_CHECKING:
    from hudi_locks_providers._zookeeper.client import LockClient

__all__ = ["ZooKeeperImplicitLockProvider", "ZooKeeperLockProvider"]

_logger = open_log(__name__)
_IMPLICIT_ROOT: Final = "/tmp"  # noqa: S108  # a node of ZooKeeper, by Hudi's choice
_IMPLICIT_KEY: Final = "lock_key"


class ZooKeeperLockProvider(LockProvider):
    """Stands in line under `<base_path>/<lock_key>` as Curator's mutex does, so that JVM Hudi's writers wait too.

    What it promises beyond the JVM's: a holder whose session ended, or whose node was removed, is told; an answer that
    got lost is found again; nothing is left behind by a failed attempt; the payload tells who holds. A lease lasts as
    long as the session that the server granted, counted from before the last answered request was sent, so that a
    holder that was frozen knows that it lost before it does anything else.

    What it cannot promise: a JVM holder whose session ended goes on believing that it holds.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.SCOPE_HOSTS,
            Capability.TIMED_WAIT,
            Capability.LEASE,
            Capability.SESSION,
            Capability.RENEWAL,
            Capability.LOSS_NOTICE,
            Capability.FENCING,
            Capability.FAIR,
            Capability.CANCEL,
            Capability.OWNER_INFO,
            Capability.LIST,
            Capability.BREAK,
            Capability.CLOCK_FREE,
            Capability.SURVIVES_RECONNECT,
            Capability.LINEARIZABLE,
            Capability.CREATES_BACKEND,
            Capability.JVM_COMPATIBLE,
            Capability.FORK_AWARE,
        }
    )
    short_options: ClassVar[dict[str, str]] = {
        "url": lock_keys.ZOOKEEPER_URL.name,
        "port": lock_keys.ZOOKEEPER_PORT.name,
        "base_path": lock_keys.ZOOKEEPER_BASE_PATH.name,
        "lock_key": lock_keys.ZOOKEEPER_LOCK_KEY.name,
        "session_timeout_ms": lock_keys.ZOOKEEPER_SESSION_TIMEOUT_MS.name,
        "connection_timeout_ms": lock_keys.ZOOKEEPER_CONNECTION_TIMEOUT_MS.name,
    }

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self._settings = Settings.from_options(self.options)
        base_path, lock_key = self._find_key(self.options)
        self._places = PlaceFinder(self._settings.chroot, base_path, lock_key)
        self._clients: dict[int, LockClient] = {}

    @staticmethod
    def _find_key(options: Options) -> tuple[str, str]:
        """Base path and lock key.

        Raises:
            ConfigError: They were not given.
        """
        base_path = options.get_value(lock_keys.ZOOKEEPER_BASE_PATH)
        lock_key = options.find(lock_keys.ZOOKEEPER_LOCK_KEY) or options.find(table_keys.TABLE_NAME)
        if not lock_key:
            keys = (lock_keys.ZOOKEEPER_LOCK_KEY.name, table_keys.TABLE_NAME.name)
            raise ConfigError(f"the zookeeper lock provider needs {' or '.join(keys)}", keys=keys)
        return base_path, lock_key

    @property
    def client(self) -> LockClient:
        """The client of this process; it connects when it is first asked for something.

        Raises:
            ProviderLoadError: kazoo is not installed.
        """
        found = self._clients.get(generation())
        return found or self._clients.setdefault(generation(), self._make_client())

    def _make_client(self) -> LockClient:
        try:
            from hudi_locks_providers._zookeeper.client import LockClient
        except ImportError as error:
            raise ProviderLoadError(
                "the zookeeper lock providers need kazoo: pip install 'hudi-locks[zookeeper]'", module="kazoo"
            ) from error
        security = self._settings.security
        if security.principal:
            import_gssapi()
        if (security.sasl or security.principal) and importlib.util.find_spec("puresasl") is None:
            raise ProviderLoadError("a login by SASL needs pure-sasl: pip install 'kazoo[sasl]'", module="puresasl")
        return LockClient(self._settings, self._places.find, clock=self.clock, on_lost=self.on_lost)

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """See `LockProvider.try_acquire`; waits in a queue, first come, first served."""
        return self.client.acquire(scope, owner, timeout_s)

    def acquire_many(self, scopes: Sequence[LockScope], owner: Owner, timeout_s: float) -> list[Lease] | None:
        """See `LockProvider.acquire_many`; free file groups take one transaction, whose size ZooKeeper bounds."""
        return self.client.acquire_many(scopes, owner, timeout_s)

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`."""
        return self.client.renew(lease)

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`.

        Raises:
            BackendUnavailable: Not confirmed. The node goes once the link is back, or with its session.
        """
        self.client.release(lease)

    def release_many(self, leases: Sequence[Lease]) -> None:
        """Release many leases by few transactions; what is not confirmed is done once the link is back."""
        self.client.release_many(leases)

    def holder(self, scope: LockScope) -> Holder | None:
        """See `LockProvider.holder`."""
        found = self.client.inspection.find_holder(self._places.find(scope).folder)
        return found and replace(found, scope=str(scope))

    def list_holders(self) -> list[Holder]:
        """See `LockProvider.list_holders`: all below the base path, those of other tables that share it too."""
        table = self.holder(LockScope.table())
        groups = self.client.inspection.find_holders(self._places.base, without=self._places.table.folder)
        return list(filter(None, [table, *groups]))

    def break_if(self, scope: LockScope, token: str) -> bool:
        """See `LockProvider.break_if`; a holder of ours is told, one of the JVM is not."""
        return self.client.inspection.break_if(self._places.find(scope), token)

    def probe(self) -> tuple[Finding, ...]:
        """See `LockProvider.probe`: how long a session the server grants, for that is how long a lease is."""
        session = self.client.session
        session.await_link()
        granted_s, asked_s = session.timeout_s, self._settings.session_timeout_s
        advice = f"set {lock_keys.ZOOKEEPER_SESSION_TIMEOUT_MS.name} to {granted_s * 1000:.0f}, or the server's bounds"
        found = f"a session lives {granted_s:g} s without a sign of its client; {asked_s:g} s were asked for"
        return (Finding("session-timeout", ok=True, found=found, advice="" if granted_s == asked_s else advice),)

    def set_up(self, terms: SetupTerms) -> tuple[SetupStep, ...]:
        """See `LockProvider.set_up`: the nodes above the lock's, those of the chroot too."""
        from hudi_locks_providers._zookeeper.nodes import NodeMaker  # needs kazoo

        return tuple(NodeMaker(self.client.session, self._settings.chroot).make(self._places.table, terms))

    def find_folder(self, scope: LockScope) -> str:
        """The node under which contenders for `scope` stand in line, the chroot included."""
        return self._places.find(scope).folder

    def close(self) -> None:
        """See `LockProvider.close`: ends the session, and so everything that it holds or waits for."""
        self.client.close()

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""
        from hudi_locks_providers._zookeeper.hooks import ZooKeeperHooks

        return ZooKeeperHooks


class ZooKeeperImplicitLockProvider(ZooKeeperLockProvider):
    """Derives the lock's node from the table's base path, `/tmp/<hash>/lock_key`, so that no key need be agreed on."""

    @staticmethod
    def _find_key(options: Options) -> tuple[str, str]:
        path = options.get_value(table_keys.BASE_PATH)
        verbatim = implicit_key(path, normalise=False)
        if not options.get_value(lock_keys.IMPLICIT_KEY_NORMALISE):
            return f"{_IMPLICIT_ROOT}/{verbatim}", _IMPLICIT_KEY
        found = implicit_key(path, normalise=True)
        if found != verbatim:
            _logger.warning(
                "%s=%r has blanks or slashes at its ends: this writer locks /tmp/%s, Hudi 1.0 to 1.2 lock /tmp/%s;"
                " give it without them, or set %s=false",
                table_keys.BASE_PATH.name,
                path,
                found,
                verbatim,
                lock_keys.IMPLICIT_KEY_NORMALISE.name,
            )
        return f"{_IMPLICIT_ROOT}/{found}", _IMPLICIT_KEY
