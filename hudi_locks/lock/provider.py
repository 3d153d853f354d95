"""The contract of a lock provider: all that a third party writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from hudi_locks.clock import Clock
from hudi_locks.config import Options
from hudi_locks.errors import Unsupported, refuse_pickling
from hudi_locks.lock.capability import Capability
from hudi_locks.lock.lease import Holder, Lease, LossReason, Owner
from hudi_locks.lock.probe import Finding
from hudi_locks.lock.scope import LockScope

__all__ = ["LockProvider", "LossCallback"]

LossCallback = Callable[[Lease, LossReason], None]


class LockProvider(ABC):
    """One client of one lock service: thread-safe, many leases over one connection. Runs on driver and executors.

    The constructor takes the configuration and does no I/O. Where a method raises, it raises `BackendUnavailable` for
    what another attempt may heal and `BackendRefused` for what none will.

    Attributes:
        capabilities: What this class claims; the conformance kit judges every claim.
        short_options: Short names for `--option` on the command line, each for a full key; a key that stands here is
            the provider's own, and never taken for a slip.
        secret_options: Full keys of the provider's own whose values must never be shown.

    Args:
        options: All keys of the writer, Hudi's own and the provider's.
        clock: The only source of time.
        on_lost: Called at most once for a lease that the provider itself learns to be lost (LOSS_NOTICE).
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    short_options: ClassVar[dict[str, str]] = {}
    secret_options: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        self.options = options if isinstance(options, Options) else Options(options)
        self.clock = clock
        self.on_lost = on_lost

    @abstractmethod
    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """Try to acquire `scope` once; None if somebody holds it.

        Waits up to `timeout_s` seconds only when the class claims TIMED_WAIT; otherwise `timeout_s` is ignored and the
        manager polls. An attempt that fails in any way leaves nothing behind that could block others.

        Raises:
            AlreadyHeld: `owner` holds it, and the class claims neither REENTRANT nor REACQUIRE.
            ProviderClosed: After `close`.
        """

    @abstractmethod
    def renew(self, lease: Lease) -> Lease:
        """Extend a lease and return its new form; a lease that never expires is verified.

        Raises:
            LockLost: The hold is no longer ours; its fact `reason` is a `LossReason`.
        """

    @abstractmethod
    def release(self, lease: Lease) -> None:
        """Let go of a lease. Quiet when it is released or lost already; never touches a lock that is not ours."""

    @abstractmethod
    def holder(self, scope: LockScope) -> Holder | None:
        """Who holds `scope` now, asked of the backend; None if nobody does."""

    @abstractmethod
    def close(self) -> None:
        """Release what is held and the connection. May be called twice."""

    def acquire_many(self, scopes: Sequence[LockScope], owner: Owner, timeout_s: float) -> list[Lease] | None:
        """Acquire all of `scopes` or none, in one fixed order so that two callers cannot block each other."""
        held: list[Lease] = []
        complete = False
        try:
            for scope in sorted(scopes, key=str):
                lease = self.try_acquire(scope, owner, timeout_s)
                if lease is None:
                    return None
                held.append(lease)
            complete = True
        finally:
            if not complete:
                self.release_many(held)
        return held

    def release_many(self, leases: Sequence[Lease]) -> None:
        """Let go of several leases, the last one first; one that fails does not keep the others. See `release`."""
        with ExitStack() as stack:
            for lease in leases:
                stack.callback(self.release, lease)

    def break_if(self, scope: LockScope, token: str) -> bool:
        """Remove the hold whose `Holder.token` is `token`; False if another hold, or none, is there now.

        Raises:
            Unsupported: The class does not claim BREAK.
        """
        raise Unsupported(
            f"{type(self).__name__} cannot remove {scope} held under {token!r}: it does not claim BREAK",
            scope=scope,
            token=token,
        )

    @property
    def renewal_interval_s(self) -> float | None:
        """Seconds between two renewals of a hold, where the class has a key of its own; None for Hudi's heartbeat."""
        return None

    def probe(self) -> tuple[Finding, ...]:
        """Try on scratch keys whether the lock service keeps what locks need: for `hudi-locks doctor`.

        Touches no lock, and leaves nothing behind. Empty where a class has nothing to try. What the service does wrong
        is a finding; that it cannot be asked is an error.

        Raises:
            BackendUnavailable: It does not answer.
            BackendRefused: It refuses the requests that locks need.
        """
        return ()

    @classmethod
    def iam_policy(cls, options: Mapping[str, object]) -> Mapping[str, Any] | None:  # noqa: ARG003  # for subclasses
        """The AWS policy document that users of the lock service need, for `hudi-locks doctor --iam`; None without."""
        return None

    @classmethod
    def conformance_hooks(cls) -> Any:
        """Back doors for the conformance kit (peek, expire, steal …); None leaves those checks not-run."""
        return None

    def __enter__(self) -> LockProvider:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        refuse_pickling(self, "send the options, and build a provider where it is needed")
