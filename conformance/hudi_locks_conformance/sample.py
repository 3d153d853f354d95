"""A lock provider on one screen: a file for each lock, made whole by a hard link. Also what the kit tests itself on."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from hudi_locks import (
    AlreadyHeld,
    BackendUnavailable,
    Capability,
    Clock,
    ConfigError,
    Holder,
    Lease,
    LockLost,
    LockProvider,
    LockScope,
    LossReason,
    Owner,
    ProviderClosed,
)
from hudi_locks.lock import LossCallback

__all__ = ["SampleHooks", "SampleLockProvider"]


class SampleLockProvider(LockProvider):
    """Locks in the folder that the option `folder` names; a lease, of a minute by default, on the clock it is given."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.SCOPE_PROCESSES,
            Capability.LEASE,
            Capability.RENEWAL,
            Capability.OWNER_INFO,
            Capability.LIST,
            Capability.NEEDS_CLOCK_SYNC,
            Capability.CREATES_BACKEND,
        }
    )
    short_options: ClassVar[dict[str, str]] = {"folder": "hoodie.sample.folder", "lease": "hoodie.sample.lease_s"}

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        if "hoodie.sample.folder" not in self.options:
            raise ConfigError("the sample lock provider needs hoodie.sample.folder", key="hoodie.sample.folder")
        self.folder: Path = Path(self.options["hoodie.sample.folder"])
        self.lease_s: float = float(self.options.get("hoodie.sample.lease_s", "60"))
        self.held: dict[LockScope, Lease] = {}
        self.closed: bool = False
        self.serial: itertools.count[int] = itertools.count(1)

    def path(self, scope: LockScope) -> Path:
        """Where the lock's file lies."""
        named = f"{len(scope.partition or '')}:{scope.partition}/{scope.file_id}"
        return self.folder / hashlib.sha256(named.encode()).hexdigest()

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:  # noqa: ARG002
        """See `LockProvider.try_acquire`."""
        if self.closed:
            raise ProviderClosed("the sample lock provider is closed", scope=scope)
        held = self.held.get(scope)
        if held is not None and held.owner == owner and self.is_ours(held):
            raise AlreadyHeld(f"{owner} holds {scope} already", scope=scope, owner=owner)
        sent_s = self.clock.monotonic()
        lease = Lease(scope, owner, next(self.serial), sent_s + self.lease_s, uuid.uuid4().hex)
        try:
            self.remove_expired(scope)
            made = self.create(self.path(scope), self.encode(lease)) or self.is_ours(lease)
        except OSError as error:
            made = self.settle(lease, error)
        if made:
            self.held[scope] = lease
        return lease if made else None

    def settle(self, lease: Lease, error: OSError) -> bool:
        """Whether a create that failed was made nevertheless, its answer being lost."""
        with contextlib.suppress(OSError):
            if self.is_ours(lease):
                return True
        raise BackendUnavailable(f"{self.path(lease.scope)}: {error}", key=str(self.path(lease.scope))) from error

    def send(self, name: str, call: Callable[[], Any]) -> Any:
        """Make one request to the file system: all of them pass here, by their names."""
        try:
            return call()
        except OSError as error:
            if isinstance(error, FileExistsError) or (name == "read" and isinstance(error, FileNotFoundError)):
                raise  # answers, not failures
            raise BackendUnavailable(f"{self.folder}: {name}: {error}", key=str(self.folder)) from error

    def create(self, path: Path, data: bytes) -> bool:
        """Make a file whole or not at all; False if it is there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{uuid.uuid4().hex}")
        try:
            self.send("write", lambda: fresh.write_bytes(data))
            self.send("link", lambda: self.link(fresh, path))
        except FileExistsError:
            return False
        finally:
            fresh.unlink(missing_ok=True)
        return True

    def link(self, fresh: Path, path: Path) -> None:
        """Give a file its name; the one step that counts."""
        path.hardlink_to(fresh)

    def encode(self, lease: Lease) -> bytes:
        """The record of a lease."""
        owner = {"id": lease.owner.id, "host": lease.owner.host, "pid": lease.owner.pid}
        owner["scope"] = (lease.scope.partition, lease.scope.file_id)
        return json.dumps({**owner, "hold": lease.state, "until": self.clock.wall_ms() + 1000 * self.lease_s}).encode()

    def read(self, scope: LockScope) -> dict[str, Any] | None:
        """The record under the name: None if there is none, empty if it cannot be read."""
        return self.read_file(self.path(scope))

    def read_file(self, path: Path) -> dict[str, Any] | None:
        """The record in a file; see `read`."""
        try:
            record = json.loads(self.send("read", path.read_bytes))
        except FileNotFoundError:
            return None
        except ValueError:
            return {}
        return record if isinstance(record, dict) else {}

    def is_ours(self, lease: Lease) -> bool:
        """Whether the record is that of this lease."""
        return bool((self.read(lease.scope) or {}).get("hold") == lease.state)

    def is_over(self, scope: LockScope) -> bool:
        """Whether the record says of itself that it is over."""
        until_ms = (self.read(scope) or {}).get("until")
        return isinstance(until_ms, (int, float)) and until_ms < self.clock.wall_ms()

    def remove_expired(self, scope: LockScope) -> None:
        """Remove a record that is over, unless another client is about to: it would remove what that one makes."""
        if not self.is_over(scope):
            return
        with self.alone(scope) as alone:
            if alone and self.is_over(scope):
                self.path(scope).unlink(missing_ok=True)

    @contextlib.contextmanager
    def alone(self, scope: LockScope, *, waits: bool = False) -> Iterator[bool]:
        """Whether no other client takes, renews or frees this lock while the block runs; ends with the process too."""
        with self.path(scope).with_suffix(".guard").open("ab") as guard:
            try:
                fcntl.flock(guard, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
            else:
                yield True

    def change(self, lease: Lease, name: str, call: Callable[[], object]) -> bool:
        """Do something to the record if it is that of this lease, which nobody can take over meanwhile."""
        if not self.is_ours(lease):
            return False
        with self.alone(lease.scope, waits=True):
            ours = self.is_ours(lease)
            if ours:
                self.send(name, call)
            return ours

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`."""
        sent_s, path = self.clock.monotonic(), self.path(lease.scope)
        if self.is_held(lease) and self.is_ours(lease) and sent_s >= (lease.deadline_s or 0):
            raise LockLost(f"the lease on {lease.scope} is over", scope=lease.scope, reason=LossReason.EXPIRED)
        if not self.is_held(lease) or not self.change(lease, "renew", lambda: path.write_bytes(self.encode(lease))):
            reason = LossReason.DELETED if self.read(lease.scope) is None else LossReason.STOLEN
            raise LockLost(f"{lease.scope} is not held: {reason.value}", scope=lease.scope, reason=reason)
        return replace(lease, deadline_s=sent_s + self.lease_s)

    def is_held(self, lease: Lease) -> bool:
        """Whether this client acquired the lease, for its owner, and has not released it."""
        own = self.held.get(lease.scope)
        return own is not None and own.state == lease.state and own.owner == lease.owner

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`."""
        if self.is_held(lease):
            self.change(lease, "remove", lambda: self.path(lease.scope).unlink(missing_ok=True))
            del self.held[lease.scope]

    def list_holders(self) -> list[Holder]:
        """See `LockProvider.list_holders`."""
        if not self.folder.exists():
            return []
        records = [self.read_file(path) or {} for path in self.folder.iterdir() if not path.suffix]
        scopes = [LockScope(*record["scope"]) for record in records if "scope" in record]
        return list(filter(None, map(self.holder, scopes)))

    def holder(self, scope: LockScope) -> Holder | None:
        """See `LockProvider.holder`."""
        record = self.read(scope)
        if record is None:
            return None
        pid = record.get("pid")
        known = pid if isinstance(pid, int) else 0
        owner = Owner(str(record.get("id", "")), str(record.get("host", "")), known)
        raw = self.path(scope).read_bytes().decode("utf-8", "replace")
        token = str(record.get("hold", "unreadable"))
        return Holder(str(self.path(scope)), owner, token=token, raw=raw, scope=str(scope))

    def close(self) -> None:
        """See `LockProvider.close`."""
        self.closed = True
        for lease in list(self.held.values()):
            self.release(lease)

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""
        return SampleHooks


class SampleHooks:
    """The back doors of `SampleLockProvider`."""

    virtual_time: ClassVar[bool] = True
    lease_options: ClassVar[Mapping[str, str]] = {}
    other_lease_options: ClassVar[Mapping[str, str]] = {"hoodie.sample.lease_s": "120"}
    delivers_once: ClassVar[bool] = True
    delivers_in_order: ClassVar[bool] = True
    faults: ClassVar[Any] = None
    restart: ClassVar[Any] = None
    waiters: ClassVar[Any] = None

    def __init__(self, provider: Any) -> None:
        self._provider: SampleLockProvider = provider

    @staticmethod
    def fresh_options(options: Mapping[str, str], name: str) -> dict[str, str]:
        """Options for a folder that is not there yet."""
        return {**options, "hoodie.sample.folder": f"{options['hoodie.sample.folder']}/{name}"}

    @staticmethod
    def unreachable_options(options: Mapping[str, str]) -> dict[str, str]:
        """Options for a folder that cannot be."""
        return {**options, "hoodie.sample.folder": "/dev/null/locks"}

    def peek(self, scope: LockScope) -> bytes | None:
        """The raw record."""
        path = self._provider.path(scope)
        return path.read_bytes() if path.exists() else None

    def corrupt(self, scope: LockScope, data: bytes) -> None:
        """Put `data` in place of the record."""
        self._provider.folder.mkdir(parents=True, exist_ok=True)
        self._provider.path(scope).write_bytes(data)

    def remove(self, scope: LockScope) -> None:
        """Delete the record."""
        self._provider.path(scope).unlink(missing_ok=True)

    def remove_parent(self, scope: LockScope) -> None:  # noqa: ARG002  # all scopes have one folder
        """Delete the folder of the records, with all that is in it."""
        shutil.rmtree(self._provider.folder)

    @contextlib.contextmanager
    def tamper(self, meddle: Callable[[str, Callable[[], Any]], Any]) -> Iterator[None]:
        """Let each request pass through `meddle(name, send)`; a `TimeoutError` of it is an answer that did not come."""
        send = self._provider.send
        self._provider.send = lambda name, call: send(name, lambda: meddle(name, call))  # type: ignore[method-assign]
        try:
            yield
        finally:
            self._provider.send = send  # type: ignore[method-assign]

    tamper_os = tamper

    @contextlib.contextmanager
    def fail_acquire(self, *, after_effect: bool) -> Iterator[None]:
        """Let the next link fail, before its effect or after it."""
        link = self._provider.link

        def fail(fresh: Path, path: Path) -> None:
            if after_effect:
                link(fresh, path)
            raise OSError("planted by the conformance kit")

        self._provider.link = fail  # type: ignore[method-assign]
        try:
            yield
        finally:
            self._provider.link = link  # type: ignore[method-assign]
