"""Providers whose fencing tokens are wrong in one way each."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from hudi_locks import Capability, Clock, Lease, LockScope, Owner
from hudi_locks.lock import LossCallback
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = [
    "AsksPythonsClock",
    "CountsInTheRecord",
    "Fenced",
    "KeepsTokensAtTakeover",
    "LeavesOutTokens",
    "RenewsTokens",
    "RestartsTokens",
    "ReusesTokens",
]


class Fenced(SampleLockProvider):
    """Counts its holds in the size of a file that outlives everything; nothing is wrong with it."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities | {Capability.FENCING}

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """See `LockProvider.try_acquire`."""
        lease = super().try_acquire(scope, owner, timeout_s)
        return None if lease is None else self.number(lease)

    def number(self, lease: Lease) -> Lease:
        """The lease with its token."""
        counter = self.folder / "holds"
        with counter.open("ab") as file:
            file.write(b".")
        return replace(lease, token=counter.stat().st_size)


class LeavesOutTokens(Fenced):
    """Gives no token for the lock on the table."""

    def number(self, lease: Lease) -> Lease:
        """See `Fenced.number`."""
        return replace(lease, token=None) if lease.scope.is_table else super().number(lease)


class ReusesTokens(Fenced):
    """Gives the number of the second in which the lock was made."""

    def number(self, lease: Lease) -> Lease:
        """See `Fenced.number`."""
        return replace(lease, token=self.clock.wall_ms() // 1000)


class RestartsTokens(Fenced):
    """Counts in memory: every client begins at one."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.holds: itertools.count[int] = itertools.count(1)

    def number(self, lease: Lease) -> Lease:
        """See `Fenced.number`."""
        return replace(lease, token=next(self.holds))


class RenewsTokens(Fenced):
    """Gives a new token with every renewal."""

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`."""
        return self.number(super().renew(lease))


class CountsInTheRecord(Fenced):
    """Keeps the count beside the lock, where whoever removes the record removes it too."""

    capabilities: ClassVar[frozenset[Capability]] = Fenced.capabilities | {Capability.BREAK}

    def number(self, lease: Lease) -> Lease:
        """See `Fenced.number`."""
        path = self.counter(lease.scope)
        token = int(path.read_text()) + 1 if path.exists() else 1
        path.write_text(str(token))
        return replace(lease, token=token)

    def counter(self, scope: LockScope) -> Path:
        """Where the count of a lock lies."""
        return self.path(scope).with_suffix(".token")

    def break_if(self, scope: LockScope, token: str) -> bool:
        """See `LockProvider.break_if`."""
        holder = self.holder(scope)
        if holder is None or holder.token != token:
            return False
        self.path(scope).unlink()
        self.counter(scope).unlink()
        return True

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""

        class Hooks(super().conformance_hooks()):  # type: ignore[misc]  # the base is a value
            def remove(self, scope: LockScope) -> None:
                """Delete the record and what lies beside it."""
                super().remove(scope)
                self._provider.counter(scope).unlink(missing_ok=True)

        return Hooks


class AsksPythonsClock(Fenced):
    """Gives the nanoseconds that the wall clock shows."""

    def number(self, lease: Lease) -> Lease:
        """See `Fenced.number`."""
        return replace(lease, token=time.time_ns())


class KeepsTokensAtTakeover(Fenced):
    """Gives the token of the hold that was over to whoever takes it over."""

    def encode(self, lease: Lease) -> bytes:
        """With the token, once it is known."""
        fields = json.loads(super().encode(lease))
        return json.dumps({**fields, "token": self.__dict__.get("last")}).encode()

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """See `LockProvider.try_acquire`."""
        self.last: Any = (self.read(scope) or {}).get("token")
        self.found: Any = self.last
        return super().try_acquire(scope, owner, timeout_s)

    def number(self, lease: Lease) -> Lease:
        """See `Fenced.number`."""
        numbered = lease if self.found else super().number(lease)
        self.last = self.found or numbered.token
        self.path(lease.scope).write_bytes(self.encode(lease))
        return replace(numbered, token=self.last)
