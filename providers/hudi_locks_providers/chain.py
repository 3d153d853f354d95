"""Two locks held as one, so that a table can move from one lock service to another while its writers go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hudi_locks.clock import Clock
from hudi_locks.config import lock_keys
from hudi_locks.errors import LockError, LockLost, Unsupported
from hudi_locks.lock import (
    Capability,
    Finding,
    Holder,
    Lease,
    LockProvider,
    LockScope,
    LossCallback,
    LossReason,
    Owner,
    SetupStep,
    SetupTerms,
)
from hudi_locks_providers._chain.hooks import ChainHooks
from hudi_locks_providers._chain.members import NEEDED, combine_claims, find_members, merge_policies

__all__ = ["ChainLockProvider"]


@dataclass
class _Hold:
    """The leases of one hold, in the order of the providers, as they were last renewed."""

    parts: list[Lease]


class ChainLockProvider(LockProvider):
    """Holds the lock of an old and of a new provider, always in that order; the loss of either is the loss of both.

    It excludes every writer that holds either of them. Neither member waits by itself: one that waited while the other
    is held would keep others from it for nothing.

    Attributes:
        capabilities: On the class, what holds for any two providers; on an instance, what holds for its own two.
    """

    capabilities: ClassVar[frozenset[Capability]] = NEEDED | {Capability.NEEDS_CLOCK_SYNC}
    short_options: ClassVar[dict[str, str]] = {"providers": lock_keys.CHAIN_PROVIDERS.name}

    def __init__(self, options: Mapping[str, object], *, clock: Clock, on_lost: LossCallback) -> None:
        super().__init__(options, clock=clock, on_lost=on_lost)
        self._told = self.options.get_value(lock_keys.CHAIN_TOKEN).lower()
        members = find_members(self.options)
        self.members: tuple[LockProvider, ...] = tuple(
            member.kind(member.options, clock=clock, on_lost=self._part_lost) for member in members
        )
        self._names = tuple(member.name for member in members)
        self.capabilities = combine_claims(*(member.kind.capabilities for member in members))  # type: ignore[misc]  # an instance knows more
        self._lock = threading.Lock()
        self._holds: dict[LockScope, Lease] = {}
        self._ungiven: list[tuple[LockProvider, list[Lease]]] = []

    @property
    def renewal_interval_s(self) -> float | None:
        """See `LockProvider.renewal_interval_s`: the shorter one."""
        own = [wanted for member in self.members if (wanted := member.renewal_interval_s)]
        heartbeat_s = self.options.get_value(lock_keys.HEARTBEAT_INTERVAL_MS) / 1000
        return min([*own, heartbeat_s]) if own else None

    def try_acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:  # noqa: ARG002  # the contract's signature
        """See `LockProvider.try_acquire`."""
        found = self._acquire([scope], lambda member: _listed(member.try_acquire(scope, owner, 0.0)))
        return found[0] if found else None

    def acquire_many(self, scopes: Sequence[LockScope], owner: Owner, timeout_s: float) -> list[Lease] | None:  # noqa: ARG002
        """See `LockProvider.acquire_many`: all of the old locks, then all of the new ones."""
        ordered = sorted(scopes, key=str)
        return self._acquire(ordered, lambda member: member.acquire_many(ordered, owner, 0.0))

    def _acquire(
        self, scopes: Sequence[LockScope], ask: Callable[[LockProvider], list[Lease] | None]
    ) -> list[Lease] | None:
        self._let_go_again()
        with ExitStack() as undo:
            columns: list[dict[LockScope, Lease]] = []
            for member in self.members:
                leases = ask(member)
                if leases is None:
                    return None
                undo.callback(self._let_go, member, leases)
                columns.append({lease.scope: lease for lease in leases})
            undo.pop_all()
        return [self._hold([column[scope] for column in columns]) for scope in scopes]

    def _let_go(self, member: LockProvider, leases: list[Lease]) -> None:
        """Give back the locks of an attempt that failed; without an answer, before the next attempt."""
        self._ungiven.append((member, leases))
        member.release_many(leases)
        self._ungiven.remove((member, leases))

    def _let_go_again(self) -> None:
        for member, leases in list(self._ungiven):
            member.release_many(leases)
            self._ungiven.remove((member, leases))

    def _hold(self, parts: list[Lease]) -> Lease:
        lease = self._join(parts, _Hold(parts))
        with self._lock:
            self._holds[lease.scope] = lease
        return lease

    def _join(self, parts: list[Lease], hold: _Hold) -> Lease:
        told = parts[0 if self._told == "first" else -1]
        deadlines = [part.deadline_s for part in parts if part.deadline_s is not None]
        return Lease(told.scope, told.owner, told.token, min(deadlines, default=None), hold)

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`."""
        hold = self._own_hold(lease)
        errors: list[LockError] = []
        for place, member in enumerate(self.members):
            try:
                hold.parts[place] = member.renew(hold.parts[place])
            except LockError as error:  # noqa: PERF203  # the other one is renewed in any case: this one may come back
                errors.append(error)
        if errors:
            raise next((told for told in errors if isinstance(told, LockLost)), errors[0])
        return self._join(hold.parts, hold)

    def _own_hold(self, lease: Lease) -> _Hold:
        if not self._is_own(lease):
            reason = LossReason.STOLEN if lease.scope in self._holds else LossReason.DELETED
            raise lease.lost(reason, key=f"the chained locks on {lease.scope}")
        hold: _Hold = lease.state
        return hold

    def _part_lost(self, part: Lease, reason: LossReason) -> None:
        own = self._holds.get(part.scope)
        if own is not None and own.owner == part.owner:
            self.on_lost(own, reason)

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`: the new one first; what fails is tried again by another call."""
        self.release_many([lease])

    def release_many(self, leases: Sequence[Lease]) -> None:
        """See `LockProvider.release_many`: all of the new locks, then all of the old ones."""
        holds = [lease.state for lease in leases if self._is_own(lease)]
        with ExitStack() as stack:
            for place, member in enumerate(self.members):
                stack.callback(member.release_many, [hold.parts[place] for hold in holds])
        with self._lock:
            for lease in leases:
                if self._is_own(lease):
                    del self._holds[lease.scope]

    def _is_own(self, lease: Lease) -> bool:
        own = self._holds.get(lease.scope)
        return own is not None and own.state is lease.state and own.owner == lease.owner

    def holder(self, scope: LockScope) -> Holder | None:
        """See `LockProvider.holder`: of the first lock that is held; the token is for both."""
        found = [member.holder(scope) for member in self.members]
        told = next((holder for holder in found if holder is not None), None)
        if told is None:
            return None
        return replace(told, token="|".join(holder.token if holder else "" for holder in found))

    def list_holders(self) -> list[Holder]:
        """See `LockProvider.list_holders`; each of the two lists its own.

        Raises:
            Unsupported: Always; the error names them.
        """
        names = " and ".join(self._names)
        raise Unsupported(f"two lock providers list different holds: ask {names} one after the other, by --provider")

    def break_if(self, scope: LockScope, token: str) -> bool:
        """See `LockProvider.break_if`: whichever of the two are held so; False if one of them is held otherwise."""
        parts = zip(self.members, token.partition("|")[::2], strict=True)
        broken = [member.break_if(scope, part) for member, part in parts if part]
        return bool(broken) and all(broken)

    def probe(self) -> tuple[Finding, ...]:
        """See `LockProvider.probe`: the findings of both."""
        return tuple(
            replace(finding, name=f"{name}: {finding.name}")
            for name, member in zip(self._names, self.members, strict=True)
            for finding in member.probe()
        )

    def set_up(self, terms: SetupTerms) -> tuple[SetupStep, ...]:
        """See `LockProvider.set_up`: what both need."""
        return tuple(
            replace(step, name=f"{name}: {step.name}")
            for name, member in zip(self._names, self.members, strict=True)
            for step in _set_up(member, terms)
        )

    def close(self) -> None:
        """See `LockProvider.close`: the new one first."""
        with ExitStack() as stack:
            for member in self.members:
                stack.callback(member.close)

    @classmethod
    def iam_policy(cls, options: Mapping[str, object]) -> Mapping[str, Any] | None:
        """See `LockProvider.iam_policy`: what either of the two needs."""
        return merge_policies([member.kind.iam_policy(member.options) for member in find_members(options)])

    @classmethod
    def conformance_hooks(cls) -> Any:
        """See `LockProvider.conformance_hooks`."""
        return ChainHooks


def _set_up(member: LockProvider, terms: SetupTerms) -> tuple[SetupStep, ...]:
    """The steps of one; that it cannot be reached keeps nothing from the other."""
    try:
        return member.set_up(terms)
    except LockError as error:
        return (SetupStep.failed("reached", error),)


def _listed(lease: Lease | None) -> list[Lease] | None:
    return None if lease is None else [lease]
