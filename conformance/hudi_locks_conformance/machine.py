"""A seeded walk over the verbs of a lock, beside a reference that knows what must hold."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from hudi_locks import AlreadyHeld, BackendUnavailable, Capability, Lease, LockError, LockLost, LockProvider, LockScope
from hudi_locks_conformance.bench import Bench
from hudi_locks_conformance.faults.link import Link

__all__ = ["Machine"]

_LONGEST_S: Final = 90.0
_LAST_STEPS: Final = 8
_SPARED: Final = 2
"""So many requests of a walk may have no answer, where a server is asked."""
_LOOKS: Final = 40


@dataclass(eq=False)
class _Client:
    """One contender, and what the reference knows of it.

    Attributes:
        lease: What it was granted and did not let go of.
        ended: Whether its hold was ended from outside, by the hook `expire`.
        is_cut: Whether its link is cut.
    """

    name: str
    link: Link
    provider: LockProvider
    lease: Lease | None = None
    ended: bool = False
    is_cut: bool = False


@dataclass
class Machine:
    """Three clients of one lock, walked at random; every step is compared with the reference.

    At most one client holds validly; tokens grow; a lock that was let go of in order is granted to whoever asks.

    Attributes:
        bench: Of the check; its seed is the walk's.
        scope: The lock.
        number: Of the walk, for messages.
    """

    bench: Bench
    scope: LockScope
    number: int
    clients: list[_Client] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    last_token: int = 0
    is_clean: bool = True
    """Whether the lock is free for certain once nobody holds it."""

    def __post_init__(self) -> None:
        self.options: dict[str, str] = {
            **self.bench.harness.options,
            **(getattr(self.bench.harness.hooks, "lease_options", None) or {}),
        }
        self._spared = iter(range(_SPARED))
        self.clients = [self._make(f"{name}-{self.number}") for name in ("a", "b", "c")]

    def _make(self, name: str) -> _Client:
        link = Link(self.bench, self.options)
        return _Client(name, link, link.provider())

    def walk(self, length: int) -> None:
        """Take so many steps, then heal and release all, after which the lock must be obtainable."""
        try:
            for _ in range(length):
                self._step()
        finally:
            for client in self.clients:
                client.link.heal()
                client.is_cut = False
        for client in self.clients:
            self._release(client)
        self._expect(self._becomes_free(), "the lock never became free after all had let go of it")

    def _step(self) -> None:
        client = self.bench.rng.choice(self.clients)
        verbs: list[Callable[[_Client], None]] = [self._close]
        verbs += [self._acquire] * 5 + [self._release] * 3 + [self._renew] * 3
        if self.bench.is_virtual:
            verbs += [self._advance] * 3 + [self._cut, self._heal, self._heal]
            verbs += [self._expire] if hasattr(self.bench.harness.hooks, "expire") else []
        verb = self.bench.rng.choice(verbs)
        self.steps.append(f"{client.name} {verb.__name__.strip('_')}")
        verb(client)

    def _expect(self, holds: object, said: str) -> None:
        if not holds:
            self._record(self.clients[0], "verify", "info")  # an end, up to which the last holds last
        walk = ", ".join(self.steps[-_LAST_STEPS:])
        seed = self.bench.harness.seed
        self.bench.expect(holds, f"{said} (seed {seed}, walk {self.number}, step {len(self.steps)}: … {walk})")

    def _expect_cut(self, client: _Client, said: str) -> None:
        """Where a server is asked, of hundreds of requests one may have no answer."""
        is_spared = self.bench.harness.server is not None and next(self._spared, None) is not None
        self._expect(client.is_cut or is_spared, said)

    def _is_valid(self, client: _Client) -> bool:
        lease = client.lease
        if lease is None or client.ended:
            return False
        return lease.deadline_s is None or self.bench.clock.monotonic() < lease.deadline_s

    def _record(self, client: _Client, verb: str, kind: str, token: int | None = None) -> None:
        self.bench.history.add(client.name, verb, kind, t_s=len(self.bench.history.operations) / 1000, token=token)

    def _acquire(self, client: _Client) -> None:
        if client.lease is not None:
            return
        certain = self.is_clean and not client.is_cut and all(one.lease is None for one in self.clients)
        others = [one for one in self.clients if one is not client and self._is_valid(one)]
        self._record(client, "acquire", "invoke")
        try:
            lease = client.provider.try_acquire(self.scope, self.bench.owner(client.name), 0.0)
        except (BackendUnavailable, AlreadyHeld) as error:
            self._record(client, "acquire", "info")
            if isinstance(error, BackendUnavailable):
                self._expect_cut(client, f"an acquire failed over a whole link: {error}")
            self.is_clean = False
            return
        self._record(client, "acquire", "ok" if lease else "fail", lease.token if lease else None)
        self._expect(lease is not None or not certain, "a lock that is free was not granted")
        if lease is not None:
            self._grant(client, lease, others)

    def _grant(self, client: _Client, lease: Lease, others: list[_Client]) -> None:
        self._expect(not others, f"{client.name} was granted what {', '.join(one.name for one in others)} holds")
        if Capability.FENCING in self.bench.harness.claims:
            token = lease.token or 0
            self._expect(token > self.last_token, f"token {token} after token {self.last_token}")
            self.last_token = token
        for one in self.clients:
            self._lose(one)
        client.lease, client.ended, self.is_clean = lease, False, True

    def _lose(self, client: _Client) -> None:
        """Take note that a hold is over without a release."""
        if client.lease is not None:
            self._record(client, "release", "invoke")
            self._record(client, "release", "info")
            client.lease = None

    def _release(self, client: _Client) -> None:
        if client.lease is None:
            return
        was_valid = self._is_valid(client)
        self._record(client, "release", "invoke")
        try:
            client.provider.release(client.lease)
        except BackendUnavailable as error:
            self._record(client, "release", "info")
            self._expect_cut(client, f"a release failed over a whole link: {error}")
            client.ended, self.is_clean = True, False
            return
        self._record(client, "release", "ok")
        client.lease = None
        self.is_clean = self.is_clean and was_valid

    def _renew(self, client: _Client) -> None:
        if client.lease is None:
            return
        was_valid = self._is_valid(client)
        others = [one for one in self.clients if one is not client and self._is_valid(one)]
        try:
            lease = client.provider.renew(client.lease)
        except LockLost as error:
            self._expect(not was_valid, f"a valid hold was lost: {error}")
            self._lose(client)
            self.is_clean = False
            return
        except BackendUnavailable as error:
            self._expect_cut(client, f"a renewal failed over a whole link: {error}")
            return
        self._expect(not client.is_cut, "a renewal was confirmed over a link that is cut")
        self._expect(not others, "a hold was renewed that another has")
        client.lease, client.ended = lease, False

    def _advance(self, client: _Client) -> None:  # noqa: ARG002  # time is everybody's
        self.bench.let_pass(self.bench.rng.uniform(0, _LONGEST_S))
        if any(one.lease is not None and not self._is_valid(one) for one in self.clients):
            self.is_clean = False

    def _expire(self, client: _Client) -> None:
        if client.lease is not None and self._is_valid(client) and not client.is_cut:
            self.bench.hook(client.provider, "expire")(self.scope)
            client.ended, self.is_clean = True, False

    def _cut(self, client: _Client) -> None:
        client.link.cut()
        client.is_cut = True

    def _heal(self, client: _Client) -> None:
        client.link.heal()
        client.is_cut = False

    def _close(self, client: _Client) -> None:
        """Close a client in order, and put a new one in its place."""
        if client.is_cut:
            return
        was_valid, held = self._is_valid(client), client.lease is not None
        self._lose(client)
        with contextlib.suppress(LockError):
            client.provider.close()
        self.is_clean = self.is_clean and (was_valid or not held)
        client.provider = client.link.provider()

    def _becomes_free(self) -> bool:
        watcher = self.bench.provider(self.options)
        for _ in range(_LOOKS):
            lease = watcher.try_acquire(self.scope, self.bench.owner("watcher"), 0.0)
            if lease is not None:
                watcher.release(lease)
                return True
            self.bench.let_pass(_LONGEST_S / 3 if self.bench.is_virtual else 1.0)
        return False
