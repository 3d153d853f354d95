"""Faults in making a lock's name of a scope: two scopes meet in one."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from hudi_locks import AlreadyHeld, Lease, LockScope, Owner
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = [
    "CutsNames",
    "FoldsCase",
    "GoesByFileId",
    "JoinsWithSlash",
    "KeepsTheEndOfNames",
    "NormalisesNames",
    "TakesNamesForPatterns",
]


class _Naming(SampleLockProvider):
    """Tells an owner who meets a lock of its own that it holds it, whichever scope it asked for."""

    def name(self, scope: LockScope) -> str:
        """What becomes of a scope."""
        return f"{len(scope.partition or '')}:{scope.partition}/{scope.file_id}"

    def path(self, scope: LockScope) -> Path:
        """See `SampleLockProvider.path`."""
        return super().path(LockScope("", self.name(scope)))

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """See `LockProvider.try_acquire`."""
        lease = super().try_acquire(scope, owner, timeout_s)
        if lease is None and (self.read(scope) or {}).get("id") == owner.id:
            raise AlreadyHeld(f"{owner} holds {self.name(scope)} already", scope=scope, owner=owner)
        return lease


class JoinsWithSlash(_Naming):
    """Joins partition and file id by a slash, which both may contain."""

    def name(self, scope: LockScope) -> str:
        """See `_Naming.name`."""
        return f"{scope.partition}/{scope.file_id}"


class FoldsCase(_Naming):
    """Compares names as a column or a file system without case does."""

    def name(self, scope: LockScope) -> str:
        """See `_Naming.name`."""
        return super().name(scope).lower()


class CutsNames(_Naming):
    """Has a column of 255 letters for names."""

    def name(self, scope: LockScope) -> str:
        """See `_Naming.name`."""
        return super().name(scope)[:255]


class KeepsTheEndOfNames(_Naming):
    """Keeps the last 255 letters of names, where the file ids are."""

    def name(self, scope: LockScope) -> str:
        """See `_Naming.name`."""
        return super().name(scope)[-255:]


class NormalisesNames(_Naming):
    """Takes two forms of one accented letter for one name."""

    def name(self, scope: LockScope) -> str:
        """See `_Naming.name`."""
        partition = unicodedata.normalize("NFC", scope.partition or "")
        return f"{len(partition)}:{partition}/{scope.file_id}"


class GoesByFileId(_Naming):
    """Has one lock for file groups of one id in several partitions."""

    def name(self, scope: LockScope) -> str:
        """See `_Naming.name`."""
        return str(scope.file_id)


class TakesNamesForPatterns(_Naming):
    """Looks names up as a pattern, in which an underscore stands for any letter."""

    def name(self, scope: LockScope) -> str:
        """See `_Naming.name`."""
        return super().name(scope).replace("-", "_").replace(".", "_")
