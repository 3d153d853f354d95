"""Faults in what a good guest does: closing, leaks, output, settings."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from hudi_locks import (
    BackendUnavailable,
    Capability,
    Clock,
    Holder,
    Lease,
    LockScope,
    Owner,
    SystemClock,
)
from hudi_locks.lock import LossCallback
from hudi_locks_conformance.sample import SampleLockProvider

__all__ = [
    "AnswersWhenClosed",
    "ClaimsTwoScopes",
    "CloseForgets",
    "ConstructorWrites",
    "HidesFailure",
    "KeepsMapping",
    "LeaksThread",
    "PicklesItself",
    "Prints",
    "RaisesKeyError",
    "ShowsOptions",
    "Unreachable",
    "Untyped",
    "Warns",
]


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


class LeaksThread(SampleLockProvider):
    """Starts a thread for each lock, and never ends it."""

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Acquire, and leave a thread behind."""
        threading.Thread(target=threading.Event().wait, args=(30,), daemon=True).start()
        return super().try_acquire(scope, owner, timeout_s)


class ConstructorWrites(SampleLockProvider):
    """Makes its folder before anybody asks for a lock."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        with contextlib.suppress(OSError):
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
        if isinstance(options, dict):
            self.options._values = options  # noqa: SLF001  # the fault


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


class RaisesKeyError(SampleLockProvider):
    """Tells of a missing option as of a slip in its own code."""

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        options["hoodie.sample.folder"]
        super().__init__(options, clock=clock, on_lost=on_lost)


class Warns(SampleLockProvider):
    """Warns of nothing in particular."""

    def renew(self, lease: Lease) -> Lease:
        """Renew, with a warning."""
        warnings.warn("renewed", stacklevel=2)
        return super().renew(lease)


class ShowsItsPassword(SampleLockProvider):
    """Shows a secret option of its own in the error of a lock service that does not answer."""

    secret_options: ClassVar[frozenset[str]] = frozenset({"hoodie.sample.entrance"})

    def send(self, name: str, call: Callable[[], Any]) -> Any:
        """With all it knows in the error."""
        try:
            return super().send(name, call)
        except BackendUnavailable as error:
            raise BackendUnavailable(f"{error}, with {dict(self.options)}") from error
