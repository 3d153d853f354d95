"""Faults in what a lock is and whose: its file, its name, its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from hudi_locks import (
    BackendUnavailable,
    Capability,
    Holder,
    Lease,
    LockScope,
    Owner,
    SystemClock,
)
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = [
    "CollidingNames",
    "GrantsAlways",
    "HalfMade",
    "KeepsTheFirstOfMany",
    "LosesAnswers",
    "MakesFolderOnce",
    "NamesNobody",
    "NeverReleases",
    "NotAtomic",
    "OneLockForAll",
    "ReleasesAnything",
    "ReleasesTwiceBadly",
    "StealsGarbage",
    "TellsAnotherRecord",
]


class NotAtomic(SampleLockProvider):
    """Looks whether the name is free, and then makes the file."""

    def create(self, path: Path, data: bytes) -> bool:
        """Check, then act."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.send("look", path.exists):
            return False
        SystemClock().sleep(0.001)
        self.send("write", lambda: path.write_bytes(data))
        return True


class ReleasesAnything(SampleLockProvider):
    """Deletes the file whoever's it is."""

    def release(self, lease: Lease) -> None:
        """Delete by name."""
        self.held.pop(lease.scope, None)
        self.path(lease.scope).unlink(missing_ok=True)


class ReleasesTwiceBadly(SampleLockProvider):
    """Does not stand a second release."""

    def release(self, lease: Lease) -> None:
        """Raise when nothing is held."""
        del self.held[lease.scope]
        self.path(lease.scope).unlink()


class NeverReleases(SampleLockProvider):
    """Forgets the file."""

    def release(self, lease: Lease) -> None:
        """Forget the lease and leave its file."""
        self.held.pop(lease.scope, None)


class OneLockForAll(SampleLockProvider):
    """Has one file for all scopes."""

    def path(self, scope: LockScope) -> Path:  # noqa: ARG002
        """The same for all."""
        return self.folder / "lock"


class CollidingNames(SampleLockProvider):
    """Takes letters out of names that it does not like."""

    def path(self, scope: LockScope) -> Path:
        """A name that is not unique."""
        return self.folder / "".join(char for char in f"{scope.partition}-{scope.file_id}"[-200:] if char.isalnum())


class NamesNobody(SampleLockProvider):
    """Claims to name the holder, and does not."""

    def holder(self, scope: LockScope) -> Holder | None:
        """A holder without an owner."""
        found = super().holder(scope)
        return found and replace(found, owner=Owner(""))


class LosesAnswers(SampleLockProvider):
    """Takes a lost answer for a refusal."""

    def settle(self, lease: Lease, error: OSError) -> bool:
        """Do not look."""
        raise BackendUnavailable(f"{self.path(lease.scope)}: {error}") from error


class HalfMade(SampleLockProvider):
    """Makes a file of the lock's name before it is sure to get the lock."""

    def create(self, path: Path, data: bytes) -> bool:
        """Leave an empty file behind when anything fails."""
        try:
            return super().create(path, data)
        except OSError:
            path.touch()
            raise


class StealsGarbage(SampleLockProvider):
    """Takes a record that it cannot read for none."""

    def is_over(self, scope: LockScope) -> bool:
        """Also what has no end."""
        record = self.read(scope)
        return (record is not None and "until" not in record) or super().is_over(scope)


class GrantsAlways(SampleLockProvider):
    """Excludes nobody."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:  # noqa: ARG002
        """Always granted."""
        return Lease(scope, owner)

    def renew(self, lease: Lease) -> Lease:
        """Always renewed."""
        return lease


class TellsAnotherRecord(SampleLockProvider):
    """Shows something that is not the record."""

    def holder(self, scope: LockScope) -> Holder | None:
        """The holder, with a record of its own making."""
        found = super().holder(scope)
        return found and replace(found, raw=f"held by {found.owner}")


class MakesFolderOnce(SampleLockProvider):
    """Believes that nobody else makes the folder meanwhile."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities

    def create(self, path: Path, data: bytes) -> bool:
        """Look, wait, make."""
        if not path.parent.exists():
            SystemClock().sleep(0.01)
            path.parent.mkdir(parents=True)
        return super().create(path, data)


class KeepsTheFirstOfMany(SampleLockProvider):
    """Does not let go of the locks that it got before one of many was refused."""

    def acquire_many(self, scopes: Sequence[LockScope], owner: Owner, timeout_s: float) -> list[Lease] | None:
        """One after the other."""
        leases = [self.try_acquire(scope, owner, timeout_s) for scope in scopes]
        return None if None in leases else [lease for lease in leases if lease]
