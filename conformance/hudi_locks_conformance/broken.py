"""Providers with one fault each, and the check that must catch it: how the kit is judged itself."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

from hudi_locks import BackendUnavailable, Capability, Clock, Holder, Lease, LockProvider, LockScope, Owner, SystemClock
from hudi_locks.lock import LossCallback
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = ["BROKEN"]


class NotAtomic(SampleLockProvider):
    """Looks whether the name is free, and then makes the file."""

    def create(self, path: Path, data: bytes) -> bool:
        """Check, then act."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            return False
        SystemClock().sleep(0.001)
        path.write_bytes(data)
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


class CloseForgets(SampleLockProvider):
    """Keeps its locks when it is closed."""

    def close(self) -> None:
        """Only say so."""
        self.closed = True


class AnswersWhenClosed(SampleLockProvider):
    """Says 'taken' when it is closed."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Hide that it is closed."""
        return None if self.closed else super().try_acquire(scope, owner, timeout_s)


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


class LeaksThread(SampleLockProvider):
    """Starts a thread for each lock, and never ends it."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Acquire, and leave a thread behind."""
        threading.Thread(target=threading.Event().wait, args=(5,), daemon=True).start()
        return super().try_acquire(scope, owner, timeout_s)


class ConstructorWrites(SampleLockProvider):
    """Makes its folder before anybody asks for a lock."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "made").write_text("")


class ShowsOptions(SampleLockProvider):
    """Shows its options, secrets among them."""

    def __repr__(self) -> str:
        return f"ShowsOptions({dict(self.options)})"


class KeepsMapping(SampleLockProvider):
    """Follows later changes of what it was given."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self.options = options  # type: ignore[assignment]  # the fault


class NamesNobody(SampleLockProvider):
    """Claims to name the holder, and does not."""

    def holder(self, scope: LockScope) -> Holder | None:
        """A holder without an owner."""
        found = super().holder(scope)
        return found and replace(found, owner=Owner(""))


class GrantsTwice(SampleLockProvider):
    """Gives its holder a second lease, uncounted and unclaimed."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Answer the holder with what it has."""
        held = self.held.get(scope)
        return held if held and held.owner == owner else super().try_acquire(scope, owner, timeout_s)


class LiesAboutWaiting(SampleLockProvider):
    """Claims to wait, and does not."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities | {Capability.TIMED_WAIT}


class WaitsTooLong(LiesAboutWaiting):
    """Waits in steps of a second, whatever time it was given."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Ask, sleep, ask."""
        lease = super().try_acquire(scope, owner, timeout_s)
        if lease is None and timeout_s > 0:
            self.clock.sleep(1.0)
            lease = super().try_acquire(scope, owner, timeout_s)
        return lease


class MeasuresByWallClock(LiesAboutWaiting):
    """Waits until the wall clock says so."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Poll until the wall clock is past the end."""
        ends_ms = self.clock.wall_ms() + 1000 * timeout_s
        while (lease := super().try_acquire(scope, owner, 0.0)) is None and self.clock.wall_ms() < ends_ms:
            self.clock.sleep(0.01)
        return lease


class GrantsToGhosts(LiesAboutWaiting):
    """Grants a lock to a waiter that has given up: it queues, and nobody takes it out of the queue."""

    ghosts: ClassVar[list[tuple[str, LockScope]]] = []

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Wait, give up, and stay in the queue."""
        lease = super().try_acquire(scope, owner, 0.0)
        if lease is None and timeout_s > 0:
            self.clock.sleep(timeout_s)
            self.ghosts.append((owner.id, scope))
        return lease

    def release(self, lease: Lease) -> None:
        """Let go, and grant to the first in the queue."""
        super().release(lease)
        for ghost in [ghost for ghost in self.ghosts if ghost[1] == lease.scope]:
            self.ghosts.remove(ghost)
            super().try_acquire(lease.scope, Owner(ghost[0]), 0.0)


class ExpiresEarly(SampleLockProvider):
    """Takes a lock over when half of its lease has passed."""

    def remove_expired(self, scope: LockScope) -> None:
        """Judge by half the time."""
        until_ms = (self.read(scope) or {}).get("until")
        if until_ms is not None and until_ms - 30_000 < self.clock.wall_ms():
            self.path(scope).unlink(missing_ok=True)


class ExpiresNever(SampleLockProvider):
    """Claims leases, and never takes a dead holder's lock over."""

    def remove_expired(self, scope: LockScope) -> None:
        """Leave it."""


class BelievesTooLong(SampleLockProvider):
    """Tells its holder of a longer lease than others go by."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """A deadline twice as far away."""
        lease = super().try_acquire(scope, owner, timeout_s)
        if lease is None:
            return None
        self.held[scope] = longer = replace(lease, deadline_s=(lease.deadline_s or 0) + 60)
        return longer


class RenewsNothing(SampleLockProvider):
    """Answers renewals without renewing."""

    def renew(self, lease: Lease) -> Lease:
        """Pretend."""
        return replace(lease, deadline_s=self.clock.monotonic() + 60)


class LosesAnswers(SampleLockProvider):
    """Takes a lost answer for a refusal."""

    def is_ours(self, lease: Lease) -> bool:
        """Only what it knows to hold."""
        return lease.scope in self.held and super().is_ours(lease)


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

    def remove_expired(self, scope: LockScope) -> None:
        """Remove what has no end."""
        if "until" not in (self.read(scope) or {}):
            self.path(scope).unlink(missing_ok=True)


class HidesFailure(SampleLockProvider):
    """Says 'taken' when the lock service cannot be reached."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Swallow it."""
        try:
            return super().try_acquire(scope, owner, timeout_s)
        except BackendUnavailable:
            return None


class Prints(SampleLockProvider):
    """Prints."""

    def release(self, lease: Lease) -> None:
        """Release, loudly."""
        print("released")  # noqa: T201  # the fault
        super().release(lease)


class PicklesItself(SampleLockProvider):
    """Can be pickled, as a copy that releases what the original holds."""

    def __reduce__(self) -> Any:
        self.close()
        return PicklesItself, (dict(self.options),), None, None, None

    def __init__(self, options: Mapping[str, object], *, clock: Clock | None = None, on_lost: Any = print) -> None:
        super().__init__(options, clock=clock or SystemClock(), on_lost=on_lost)


class ClaimsTwoScopes(SampleLockProvider):
    """Claims two widest scopes."""

    capabilities: ClassVar[frozenset[Capability]] = SampleLockProvider.capabilities | {Capability.SCOPE_HOSTS}


class Unreachable(SampleLockProvider):
    """Has no lock service behind it."""

    def holder(self, scope: LockScope) -> Holder | None:
        """Never an answer."""
        raise BackendUnavailable(f"no answer about {scope}")


class Untyped(SampleLockProvider):
    """Has a public method without types."""

    def release(self, lease):  # type: ignore[no-untyped-def]
        """As it should be, but for its types."""
        super().release(lease)


BROKEN: Final[tuple[tuple[type[LockProvider], tuple[str, ...]], ...]] = (
    (AnswersWhenClosed, ("A7",)),
    (BelievesTooLong, ("E3",)),
    (ClaimsTwoScopes, ("A0",)),
    (CloseForgets, ("A6",)),
    (CollidingNames, ("A9",)),
    (ConstructorWrites, ("A12",)),
    (ExpiresEarly, ("E1",)),
    (ExpiresNever, ("E1",)),
    (GrantsToGhosts, ("D9",)),
    (GrantsTwice, ("C1",)),
    (HalfMade, ("H1",)),
    (HidesFailure, ("H5",)),
    (KeepsMapping, ("K9",)),
    (LeaksThread, ("A3", "L1")),
    (LiesAboutWaiting, ("D2",)),
    (LosesAnswers, ("H2",)),
    (MeasuresByWallClock, ("D11",)),
    (NamesNobody, ("C7",)),
    (NeverReleases, ("A2", "A10")),
    (NotAtomic, ("B2", "B3")),
    (OneLockForAll, ("A8",)),
    (PicklesItself, ("J5",)),
    (Prints, ("L2",)),
    (ReleasesAnything, ("A4", "C3", "C5")),
    (ReleasesTwiceBadly, ("A5",)),
    (RenewsNothing, ("E2",)),
    (ShowsOptions, ("A11", "K11")),
    (StealsGarbage, ("H8",)),
    (Unreachable, ("A1", "A11")),
    (Untyped, ("L6",)),
    (WaitsTooLong, ("D2",)),
)
"""Each faulty class and the checks that fail on it, sorted by the class."""
