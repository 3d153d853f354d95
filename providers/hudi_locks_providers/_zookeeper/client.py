"""The locks that one process holds in ZooKeeper over one connection."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from kazoo.protocol.serialization import Exists
from kazoo.protocol.states import EventType

from hudi_locks.clock import Clock
from hudi_locks.errors import AlreadyHeld, BackendUnavailable, LockLost, ProviderClosed
from hudi_locks.lock import Lease, LockScope, LossCallback, LossReason, Owner
from hudi_locks.lock.lease import generation
from hudi_locks.redaction import open_log
from hudi_locks_providers._wire.zookeeper import encode_payload
from hudi_locks_providers._zookeeper.bulk import Bulk
from hudi_locks_providers._zookeeper.inspection import Inspection
from hudi_locks_providers._zookeeper.keeper import Keeper
from hudi_locks_providers._zookeeper.line import Contender, Line, Orphan, PlaceLost
from hudi_locks_providers._zookeeper.place import NodePlace
from hudi_locks_providers._zookeeper.session import Session, SessionListener, translate
from hudi_locks_providers._zookeeper.settings import Settings

__all__ = ["LockClient", "NodeHold"]

_logger = open_log(__name__)
_WATCH_AFTER_S: Final = 0.1
"""Holds shorter than this are not worth a watch, which costs as much as a third of a lock cycle."""


_LINK_S: Final = 5.0
"""As long as it may take to connect and log in, also where a lock is wanted sooner."""


@dataclass(frozen=True)
class NodeHold:
    """What the provider knows of a lease: the `state` of it."""

    contender: Contender
    generation: int


@dataclass(eq=False)
class _Entry:
    lease: Lease
    since_s: float
    watched: bool = False
    hear: Callable[[Any], None] = field(init=False)


class LockClient(SessionListener):
    """Acquires, renews and releases; tells of losses. Thread-safe; of no use in a forked child.

    Args:
        find_place: Where the lock of a scope lies.
        on_lost: See `LockProvider`. Called on kazoo's connection thread, or the keeper's.
    """

    def __init__(
        self, settings: Settings, find_place: Callable[[LockScope], NodePlace], *, clock: Clock, on_lost: LossCallback
    ) -> None:
        self.session: Session = Session(settings, clock=clock, listener=self)
        self.line: Line = Line(self.session, clock)
        self.inspection: Inspection = Inspection(self.session, clock)
        self._bulk = Bulk(self.session, self.line, clock)
        self._find_place = find_place
        self._clock = clock
        self._on_lost = on_lost
        self._keeper = Keeper(self._tend, clock)
        self._entries: dict[tuple[LockScope, Owner], _Entry] = {}
        self._unconfirmed: set[str] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._generation = generation()

    def acquire(self, scope: LockScope, owner: Owner, timeout_s: float) -> Lease | None:
        """See `LockProvider.try_acquire`."""
        place = self._find_place(scope)
        until_s = self._clock.monotonic() + (timeout_s if timeout_s > 0 else 0.0)
        self._check_open(scope)
        self._check_not_held(scope, owner)
        self._await_first_link(timeout_s)
        try:
            return self._contend(scope, owner, place, until_s)
        except BackendUnavailable:
            self._check_open(scope)
            raise
        except PlaceLost:
            left_s = until_s - self._clock.monotonic()
        if left_s <= 0:
            message = f"the place in the line for {place.folder} was lost: its session ended, or somebody removed it"
            raise BackendUnavailable(message, key=place.folder)
        return self.acquire(scope, owner, left_s)

    def _await_first_link(self, timeout_s: float) -> None:
        """Wait little longer for a server than for the lock; who does not wait for that has to reach one too."""
        self.session.await_link(max(timeout_s, _LINK_S) if timeout_s > 0 else math.inf)

    def _contend(self, scope: LockScope, owner: Owner, place: NodePlace, until_s: float) -> Lease | None:
        try:
            contender, children, sent_s = self.line.enter(place, encode_payload(owner))
        finally:
            self._nudge_for_orphans()
        try:
            turn_s = self.line.await_turn(contender, (children, sent_s), until_s, closing=self._closing)
            lease = None if turn_s is None else self._grant(scope, owner, contender, turn_s)
        except BaseException:
            self._withdraw(contender)
            raise
        if lease is None:
            self._withdraw(contender)
            self._check_open(scope)
        return lease

    def acquire_many(self, scopes: Sequence[LockScope], owner: Owner, timeout_s: float) -> list[Lease] | None:
        """See `LockProvider.acquire_many`.

        In the order of their names, those that are free by one transaction, and those that are not one by one: whoever
        waits holds only what comes before.
        """
        until_s = self._clock.monotonic() + (timeout_s if timeout_s > 0 else 0.0)
        order = sorted(set(scopes), key=str)
        leases: list[Lease] = []
        try:
            contested = False
            while len(leases) < len(order):
                more = self._take_next(order[len(leases) :], owner, until_s, contested=contested)
                if more is None and contested:
                    self.release_many(leases)
                    return None
                contested = contested or not more
                leases += more or []
        except BaseException:
            self.release_many(leases)
            raise
        return leases

    def _take_next(
        self, scopes: list[LockScope], owner: Owner, until_s: float, *, contested: bool
    ) -> list[Lease] | None:
        """Locks on the first scopes: as many as are free, or, in a contested line, at least the first one."""
        leases = self._grasp(scopes, owner, until_s, contested=contested)
        if leases or not contested:
            return leases
        lease = self.acquire(scopes[0], owner, until_s - self._clock.monotonic())
        return None if lease is None else [lease]

    def _grasp(self, scopes: list[LockScope], owner: Owner, until_s: float, *, contested: bool) -> list[Lease] | None:
        for scope in scopes:
            self._check_open(scope)
            self._check_not_held(scope, owner)
        places = list(itertools.takewhile(lambda place: place.is_group, map(self._find_place, scopes)))
        self._await_first_link(until_s - self._clock.monotonic())
        free = self._bulk.count_free(places) if contested else len(places)
        try:
            found = self._bulk.grasp(places[:free], encode_payload(owner)) if free else None
        finally:
            self._nudge_for_orphans()
        return None if found is None else self._grant_all(scopes[:free], owner, *found)

    def _grant_all(
        self, scopes: list[LockScope], owner: Owner, contenders: list[Contender], sent_s: float
    ) -> list[Lease]:
        leases: list[Lease] = []
        try:
            for scope, contender in zip(scopes, contenders, strict=True):
                leases.append(self._grant(scope, owner, contender, sent_s))  # those before a failure count
        except PlaceLost:
            folder = contenders[0].place.folder
            raise BackendUnavailable(f"the session ended while {folder} and others were locked", key=folder) from None
        except BaseException:
            self.release_many(leases)
            self._bulk.leave_all(contenders[len(leases) :])
            raise
        return leases

    def _withdraw(self, contender: Contender) -> None:
        self.line.withdraw(contender)
        self._nudge_for_orphans()

    def _nudge_for_orphans(self) -> None:
        if self.line.orphans:
            self._keeper.nudge()

    def _grant(self, scope: LockScope, owner: Owner, contender: Contender, sent_s: float) -> Lease:
        """Take note of a hold.

        Raises:
            PlaceLost: The session ended in the meantime.
            ProviderClosed: The client was closed.
        """
        deadline_s = sent_s + self.session.timeout_s
        lease = Lease(scope, owner, contender.czxid, deadline_s, NodeHold(contender, self._generation))
        entry = _Entry(lease, sent_s)
        entry.hear = partial(self._hear, entry)
        with self._lock:
            self._entries[scope, owner] = entry
        if contender.session_id != self.session.id or self._closing.is_set():
            self._forget(lease)
            self._check_open(scope)
            raise PlaceLost
        self._keeper.nudge()
        return lease

    def _check_open(self, scope: LockScope) -> None:
        if self._closing.is_set():
            raise ProviderClosed("the zookeeper lock provider is closed", scope=scope)

    def _check_not_held(self, scope: LockScope, owner: Owner) -> None:
        entry = self._entries.get((scope, owner))
        if entry is not None and self._is_ours(entry.lease):
            raise AlreadyHeld(f"{owner} holds the lock on {scope} already", scope=scope, owner=owner)

    def _is_ours(self, lease: Lease) -> bool:
        try:
            self.renew(lease)
        except LockLost:
            return False
        return True

    def renew(self, lease: Lease) -> Lease:
        """See `LockProvider.renew`: the node is looked for, which also keeps the session alive, and watched."""
        entry = self._find_entry(lease)
        if entry is None:
            raise self._lost(lease, self._guess_reason(lease))
        self._await_link_while_leased(entry.lease)
        sent_s = self._clock.monotonic()
        contender: Contender = lease.state.contender
        (stat,) = self.session.call(Exists(contender.path, entry.hear))
        if isinstance(stat, Exception):
            raise translate(stat, contender.path) from stat
        if stat is None or self._find_entry(lease) is None:
            self._lose(entry, LossReason.DELETED)
            raise self._lost(lease, self._guess_reason(lease))
        entry.watched = True
        entry.lease = replace(lease, deadline_s=sent_s + self.session.timeout_s)
        return entry.lease

    def _await_link_while_leased(self, lease: Lease) -> None:
        if not self.session.is_linked:
            left_s = (lease.deadline_s or 0.0) - self._clock.monotonic()
            self.session.await_link(max(0.0, left_s))

    def _find_entry(self, lease: Lease) -> _Entry | None:
        entry = self._entries.get((lease.scope, lease.owner))
        return entry if entry is not None and entry.lease.state is lease.state else None

    def _guess_reason(self, lease: Lease) -> LossReason:
        state = lease.state
        if not isinstance(state, NodeHold):
            return LossReason.DELETED
        if state.generation != generation():
            return LossReason.FORKED
        return LossReason.DELETED if state.contender.session_id == self.session.id else LossReason.SESSION

    def _lost(self, lease: Lease, reason: LossReason) -> LockLost:
        return lease.lost(reason, key=self._find_place(lease.scope).folder)

    def release(self, lease: Lease) -> None:
        """See `LockProvider.release`; may be called again after `BackendUnavailable`."""
        own = self._forget(lease)
        if own or (isinstance(lease.state, NodeHold) and lease.state.contender.path in self._unconfirmed):
            self._leave(lease.state.contender)

    def _leave(self, contender: Contender) -> None:
        self._unconfirmed.add(contender.path)
        try:
            self.line.leave(contender)
        finally:
            self._nudge_for_orphans()
        self._unconfirmed.discard(contender.path)

    def release_many(self, leases: Sequence[Lease]) -> None:
        """Let go of many leases by few transactions; what is not confirmed is done later."""
        self._bulk.leave_all([lease.state.contender for lease in leases if self._forget(lease)])
        self._nudge_for_orphans()

    def _forget(self, lease: Lease) -> bool:
        """Strike a hold off the list; whether it was on it."""
        with self._lock:
            if self._find_entry(lease) is None:
                return False
            del self._entries[lease.scope, lease.owner]
            return True

    def session_suspended(self) -> None:
        """See `SessionListener`: the watches are gone with the link."""
        for entry in list(self._entries.values()):
            entry.watched = False
        self._keeper.nudge()

    def session_resumed(self) -> None:
        """See `SessionListener`."""
        self.line.wake()
        self._keeper.nudge()

    def session_lost(self) -> None:
        """See `SessionListener`: all holds are over, before another session can begin."""
        for entry in list(self._entries.values()):
            self._lose(entry, LossReason.SESSION)
        self.line.wake()

    def _lose(self, entry: _Entry, reason: LossReason) -> None:
        if not self._forget(entry.lease):
            return
        try:
            self._on_lost(entry.lease, reason)
        except Exception:  # the losses of others must be told too
            _logger.exception("the callback for the lost lock on %s failed", entry.lease.scope)

    def _tend(self) -> bool:
        now_s = self._clock.monotonic()
        suspended_s = self.session.suspended_s
        if suspended_s is not None and now_s - suspended_s >= self.session.timeout_s:
            self._give_up_all()
        if self.session.is_linked:
            self._watch_old(now_s)
            self.line.sweep()
        return bool(self.line.orphans) or any(not entry.watched for entry in list(self._entries.values()))

    def _give_up_all(self) -> None:
        """The link has been down for as long as a session lives: nobody may count on the holds any more."""
        for entry in list(self._entries.values()):
            contender = entry.lease.state.contender
            self.line.orphans.add(Orphan(contender.place, contender.name))
            self._lose(entry, LossReason.UNREACHABLE)

    def _watch_old(self, now_s: float) -> None:
        for entry in list(self._entries.values()):
            if not entry.watched and now_s - entry.since_s >= _WATCH_AFTER_S:
                self._watch(entry)

    def _watch(self, entry: _Entry) -> None:
        entry.watched = True
        (stat,) = self.session.call(Exists(entry.lease.state.contender.path, entry.hear))
        if stat is None:
            self._lose(entry, LossReason.DELETED)
        elif isinstance(stat, Exception):
            entry.watched = False

    def _hear(self, entry: _Entry, event: Any) -> None:
        entry.watched = False
        if event.type == EventType.DELETED:
            self._lose(entry, LossReason.DELETED)
        elif event.type == EventType.CHANGED:
            self._keeper.nudge()

    def close(self) -> None:
        """Release all, end the session, the threads, and waits with `ProviderClosed`; in a forked child do nothing."""
        if self._generation != generation():
            return
        self._closing.set()
        self.line.wake()
        self._keeper.close()
        self.release_many([entry.lease for entry in list(self._entries.values())])
        self.line.sweep_partitions()
        self.session.close()
