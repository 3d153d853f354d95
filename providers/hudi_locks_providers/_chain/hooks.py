"""Back doors to two chained locks for the conformance kit, made of those that their providers offer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

from hudi_locks.config import lock_keys
from hudi_locks.lock import LockScope
from hudi_locks_providers._chain.members import PLACES, find_members

__all__ = ["ChainHooks"]


class ChainHooks:
    """Does to both locks what its name says; what is told of one record is told of the first.

    Attributes:
        virtual_time: False, for some providers keep a time of their own; a test that knows its two may say otherwise.
        faults: None, for the kit judges the two providers by themselves.
        tamper_os: None, likewise.
        remove_parent: None, likewise.
        restart: None, likewise.
        waiters: None, for nobody queues.
        lease_options: Options with which the leases of the file and the storage lock end at the same time.
        other_lease_options: Options with which they do so later.

    Args:
        provider: The `ChainLockProvider` whose locks are meant.
    """

    virtual_time: ClassVar[bool] = False
    faults: ClassVar[None] = None
    tamper_os: ClassVar[None] = None
    remove_parent: ClassVar[None] = None
    restart: ClassVar[None] = None
    waiters: ClassVar[None] = None
    lease_options: ClassVar[Mapping[str, str]] = {
        lock_keys.FILESYSTEM_EXPIRE.name: "1",
        lock_keys.STORAGE_VALIDITY_TIMEOUT_SECS.name: "60",
        lock_keys.STORAGE_RENEW_INTERVAL_SECS.name: "6",
    }
    other_lease_options: ClassVar[Mapping[str, str]] = {
        lock_keys.FILESYSTEM_EXPIRE.name: "2",
        lock_keys.STORAGE_VALIDITY_TIMEOUT_SECS.name: "120",
    }

    @staticmethod
    def fresh_options(options: Mapping[str, str], name: str) -> dict[str, str]:
        """Options for two places that nobody has used."""
        made = dict(options)
        for member, (_, prefix) in zip(find_members(options), PLACES, strict=True):
            fresh = member.kind.conformance_hooks().fresh_options(member.options, name)
            made |= {prefix + key: value for key, value in fresh.items() if member.options.get(key) != value}
        return made

    @staticmethod
    def unreachable_options(options: Mapping[str, str]) -> dict[str, str]:
        """Options for a first place that cannot be reached."""
        first, (_, prefix) = find_members(options)[0], PLACES[0]
        away = first.kind.conformance_hooks().unreachable_options(first.options)
        changed = {prefix + key: value for key, value in away.items() if first.options.get(key) != value}
        return {**options, **changed}

    def __init__(self, provider: Any) -> None:
        self._doors = [type(member).conformance_hooks()(member) for member in provider.members]

    @property
    def delivers_once(self) -> bool:
        """Whether both do."""
        return all(getattr(door, "delivers_once", False) for door in self._doors)

    @property
    def delivers_in_order(self) -> bool:
        """Whether both do."""
        return all(getattr(door, "delivers_in_order", False) for door in self._doors)

    @contextmanager
    def tamper(self, meddle: Callable[[str, Callable[[], Any]], Any]) -> Iterator[None]:
        """Let the requests of both pass through `meddle(name, send)`."""
        with ExitStack() as stack:
            for door in self._doors:
                stack.enter_context(door.tamper(meddle))
            yield

    def peek(self, scope: LockScope) -> bytes | None:
        """The raw record of the first lock, or None."""
        found: bytes | None = self._doors[0].peek(scope)
        return found

    def corrupt(self, scope: LockScope, data: bytes) -> None:
        """Put `data` in place of the first lock's record."""
        self._doors[0].corrupt(scope, data)

    def remove(self, scope: LockScope) -> None:
        """Delete both records."""
        for door in self._doors:
            door.remove(scope)

    def expire(self, scope: LockScope) -> None:
        """Make both records look as if their holder had died long ago."""
        for door in self._doors:
            door.expire(scope)

    def steal(self, scope: LockScope) -> None:
        """Replace both records by those of another writer."""
        for door in self._doors:
            door.steal(scope)

    @contextmanager
    def fail_acquire(self, *, after_effect: bool) -> Iterator[None]:
        """Let the calls that take either lock fail, before their effect or with the answer lost."""
        with ExitStack() as stack:
            for door in self._doors:
                stack.enter_context(door.fail_acquire(after_effect=after_effect))
            yield
