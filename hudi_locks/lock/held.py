"""A lock in somebody's hands."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final

from hudi_locks.clock import Clock
from hudi_locks.errors import BackendRefused, BackendUnavailable, LockLost, NotHeld, ProviderClosed, refuse_pickling
from hudi_locks.lock.lease import Lease, LockScope, LossReason, Owner, Renewable, Renewals, generation
from hudi_locks.lock.lock_trace import LockTrace
from hudi_locks.lock.provider import LockProvider
from hudi_locks.redaction import open_log

__all__ = ["Held", "HoldState", "OnLost", "end_block", "release_together"]

_logger = open_log(__name__)
_RENEWALS_PER_LEASE: Final = 3
_RETRIES_PER_INTERVAL: Final = 4
_MARGIN_PART: Final = 0.1
_MOST_MARGIN_S: Final = 5.0
_RELEASE_PAUSES_S: Final = (0.1, 0.5)


class HoldState(enum.Enum):
    """Where a hold stands."""

    HELD = "ours"
    UNSURE = "not proven: renewals fail, and the lease runs out within the safety margin"
    LOST = "no longer ours; `reason` says why"
    RELEASED = "let go of"


OnLost = Callable[["Held", LossReason], None]


class Held(Renewable):
    """One hold of one scope; made by `LockManager.lock`. A context manager that releases. Thread-safe.

    The state is computed from the monotonic clock when it is asked for, and counts from before the request that
    acquired or renewed the lease was sent: a holder that was paused learns of its loss before it does anything else.

    What it cannot promise: between `check` and whatever follows, the process may be paused for longer than the lease.
    Only a write that the store itself refuses to a late comer (a fencing token, a create-if-absent) is safe from that.
    """

    def __init__(
        self,
        lease: Lease,
        provider: LockProvider,
        *,
        granted_s: float,
        renewals: Renewals,
        heartbeat_s: float,
        on_lost: OnLost | None,
        on_end: Callable[[Held], None],
        on_released: Callable[[Held, Exception | None], None],
        trace: LockTrace,
    ) -> None:
        self.trace = trace
        self._lease = lease
        self._provider = provider
        self._clock: Clock = provider.clock
        self._renewals = renewals
        self._on_lost = on_lost
        self._on_end = on_end
        self._on_released = on_released
        self._generation = generation()
        self._backend = threading.RLock()
        self._lost: LossReason | None = None
        self._told = False
        self._released = False
        self._failure: Exception | None = None
        lease_s = None if lease.deadline_s is None else lease.deadline_s - granted_s
        self._margin_s = 0.0 if lease_s is None else min(_MARGIN_PART * lease_s, _MOST_MARGIN_S)
        self._interval_s = heartbeat_s if lease_s is None else min(heartbeat_s, lease_s / _RENEWALS_PER_LEASE)
        self.granted_s = granted_s
        self.due_s = granted_s + self._interval_s

    @property
    def scope(self) -> LockScope:
        """What is held."""
        return self._lease.scope

    @property
    def owner(self) -> Owner:
        """Who holds it."""
        return self._lease.owner

    @property
    def token(self) -> int | None:
        """Fencing token, greater than that of every earlier hold; None where the provider has none."""
        return self._lease.token

    @property
    def lease(self) -> Lease:
        """The lease as it was last renewed."""
        return self._lease

    @property
    def state(self) -> HoldState:
        """Where the hold stands at this moment; asks the clock, not the lock service."""
        if self.reason is not None:
            return HoldState.LOST
        if self._released:
            return HoldState.RELEASED
        deadline_s = self._lease.deadline_s
        if deadline_s is None:
            return HoldState.UNSURE if self._failure else HoldState.HELD
        return HoldState.HELD if self._clock.monotonic() < deadline_s - self._margin_s else HoldState.UNSURE

    @property
    def reason(self) -> LossReason | None:
        """Why the hold is lost; None while it is not."""
        if self._generation != generation():
            return LossReason.FORKED
        deadline_s = self._lease.deadline_s
        if deadline_s is None or self._lost is not None or self._released:
            return self._lost
        if self._clock.monotonic() < deadline_s:
            return None
        return LossReason.UNREACHABLE if self._failure else LossReason.EXPIRED

    def check(self) -> None:
        """Return if the lock is ours. Asks the lock service only when the state is UNSURE.

        Raises:
            LockLost: It is not, or cannot be proven to be; its fact `reason` says why.
            NotHeld: It was released.
        """
        state = self.state
        if state is HoldState.UNSURE:
            self.verify()
        elif state is not HoldState.HELD:
            self._refuse(state)

    def verify(self) -> None:
        """Return if the lock service confirms that the lock is ours: `check` for the moment before a commit.

        Raises:
            LockLost: It does not.
            NotHeld: It was released.
        """
        if self.state in (HoldState.HELD, HoldState.UNSURE):
            self._renew()
        if self.state is not HoldState.HELD or self._failure:
            self._refuse(self.state)

    def _refuse(self, state: HoldState) -> None:
        if state is HoldState.RELEASED:
            raise NotHeld(f"the lock on {self.scope} was released by {self.owner}", scope=self.scope, owner=self.owner)
        reason = self.reason or LossReason.UNREACHABLE
        raise LockLost(
            f"the lock on {self.scope} is no longer held by {self.owner}: {reason.value}; stop, publish nothing,"
            " and begin again from a fresh state",
            scope=self.scope,
            owner=self.owner,
            reason=reason,
        )

    def release(self) -> None:
        """Let go of the lock. May be called twice, from any thread, and after a loss; a forked child does nothing.

        Raises:
            BackendUnavailable: The lock service did not confirm; `LockManager.close` tries again.
        """
        release_together((self,))

    def _begin_release(self) -> bool:
        """Whether it is to be released at the lock service now; then `_end_release` must follow."""
        if self._generation != generation():
            return False
        self._backend.acquire()
        if self._released:
            self._backend.release()
            return False
        self._released = True
        self._renewals.discard(self)
        return True

    def _end_release(self, failure: Exception | None) -> None:
        try:
            self._on_released(self, failure)
        finally:
            self._on_end(self)  # not before: the next in line would find the lock still taken
            self._backend.release()

    def _release_patiently(self, leases: Sequence[Lease]) -> None:
        pauses = iter(_RELEASE_PAUSES_S)
        while True:
            try:
                return self._provider.release(leases[0]) if len(leases) == 1 else self._provider.release_many(leases)
            except BackendUnavailable:
                pause_s = next(pauses, None)
                if pause_s is None:
                    raise
            self._clock.sleep(pause_s)

    def lose(self, reason: LossReason) -> None:
        """Take note that the lock service says the hold is over."""
        if self._lost is None and not self._released:
            self._lost = reason
            self._on_end(self)
            self.due_s = self._clock.monotonic()
            self._renewals.poke()

    def alarm_s(self) -> float:
        """See `Renewable.alarm_s`: when the lease runs out."""
        deadline_s = self._lease.deadline_s
        return float("inf") if deadline_s is None else deadline_s

    def tend(self) -> None:
        """See `Renewable.tend`."""
        if (reason := self.reason) is None:
            self._renew()
            return
        self.lose(reason)
        self._renewals.discard(self)
        self._tell(reason)

    def _tell(self, reason: LossReason) -> None:
        if self._told:
            return
        self._told = True
        _logger.error("lost the lock on %s held by %s: %s", self.scope, self.owner, reason.value)
        if self._on_lost is not None:
            try:
                self._on_lost(self, reason)
            except Exception:
                _logger.exception("the callback for the lost lock on %s failed", self.scope)

    def _renew(self) -> None:
        with self._backend:
            if self._released or self._lost is not None:
                return
            try:
                self._lease = self._provider.renew(self._lease)
            except LockLost as error:
                self.lose(error.facts.get("reason", LossReason.EXPIRED))
            except (BackendRefused, ProviderClosed):
                self.lose(LossReason.UNREACHABLE)
            except BackendUnavailable as error:
                _logger.warning("renewal of the lock on %s failed: %s", self.scope, error)
                self._note_failure(error)
            except Exception as error:  # whatever it is, it must not end the renewals of all others
                _logger.warning("renewal of the lock on %s failed", self.scope, exc_info=True)
                self._note_failure(error)
            else:
                self._failure = None
                self.due_s = self._clock.monotonic() + self._interval_s

    def _note_failure(self, error: Exception) -> None:
        self._failure = error
        self.due_s: float = min(self.alarm_s(), self._clock.monotonic() + self._interval_s / _RETRIES_PER_INTERVAL)

    def __enter__(self) -> Held:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release. A loss within the block raises `LockLost`, unless the block raised already."""
        end_block((self,), error)

    def __repr__(self) -> str:
        return f"Held({self.scope}, {self.state.name}, token={self.token}, owner={self.owner})"

    def __reduce__(self) -> Any:
        refuse_pickling(self, "send its token and scope, and keep the hold in the process that acquired it")


def release_together(holds: Sequence[Held]) -> None:
    """Let go of several holds of one manager, with as few requests as its provider needs. See `Held.release`."""
    due: list[Held] = []
    failure: Exception | None = None
    try:
        for held in holds:
            if held._begin_release():  # noqa: SLF001  # one room
                due.append(held)  # noqa: PERF401  # what was begun must be ended, also after an interrupt
        if due:
            due[0]._release_patiently([held.lease for held in due])  # noqa: SLF001
    except Exception as error:
        failure = error
        raise
    finally:
        for held in reversed(due):
            held._end_release(failure)  # noqa: SLF001


def _add_note(error: BaseException, note: str) -> None:
    """As `BaseException.add_note`, which Python 3.10 lacks."""
    error.__notes__ = [*getattr(error, "__notes__", []), note]  # type: ignore[attr-defined]  # typeshed has it from 3.11


def end_block(holds: Sequence[Held], error: BaseException | None) -> None:
    """Release at the end of a `with` block.

    Args:
        holds: Of one manager.
        error: What the block raised.

    Raises:
        LockLost: One was lost within the block, which raised nothing.
    """
    lost = next((held for held in holds if held.reason is not None), None)
    try:
        release_together(holds)
    except Exception as failure:
        if error is None:
            raise
        scopes = ", ".join(str(held.scope) for held in holds)
        _logger.exception("release of %s failed after an error of their holder", scopes)
        _add_note(error, f"besides, the release of {scopes} failed: {failure}")
    if error is None and lost is not None:
        lost._refuse(HoldState.LOST)  # noqa: SLF001
