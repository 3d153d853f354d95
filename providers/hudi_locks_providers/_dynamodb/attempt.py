"""One attempt at one lock."""

from __future__ import annotations

import contextlib

from hudi_locks.errors import BackendUnavailable, LockError
from hudi_locks.lock import Lease, LockScope, Owner
from hudi_locks_providers._dynamodb.connection import ConditionFailed
from hudi_locks_providers._dynamodb.context import Context, version_of
from hudi_locks_providers._dynamodb.requests import Instead
from hudi_locks_providers._wire.dynamodb_item import Item

__all__ = ["DynamoAttempt"]

_TRIES = 4
_TRANSACTIONS = 2


class DynamoAttempt:
    """Tries to acquire one scope for one owner.

    A lock that is believed to be free is put at once, together with its fencing token, by one transaction. A holder
    that was seen before is looked at first: a transaction that meets a request of the JVM makes that one fail, and the
    JVM's client does not repeat it. Therefore, too, once a JVM client was seen the item is put by a request of its own
    and the token counted by another one; likewise when counters are so busy that transactions keep losing.
    """

    def __init__(self, context: Context, scope: LockScope, owner: Owner) -> None:
        self._context = context
        self._memory = context.memory
        self._scope = scope
        self._owner = owner
        self._key = context.keys.lock(scope)
        self._counter = context.keys.counter(scope)

    def run(self) -> Lease | None:
        """The lease; None if somebody holds the lock, or others keep coming first."""
        instead = self._look()
        for number in range(_TRIES):
            if instead is None:
                return None
            sent_s = self._context.clock.monotonic()
            try:
                if number >= _TRANSACTIONS or (self._memory.met_jvm and self._scope.is_table):
                    return self._put_then_count(instead, sent_s)
                return self._transact(instead, sent_s)
            except ConditionFailed as refusal:
                instead = self._learn(refusal, instead, sent_s)
        return None

    def _look(self) -> Instead | None:
        """What to put the item in place of: nothing, without asking, unless a holder was seen or no counter was."""
        asked_s = self._context.clock.monotonic()
        requests = self._context.requests
        if self._counter not in self._memory.counters:
            item, counted = requests.find_all([self._key, self._counter])
            self._memory.note_counter(self._counter, counted)
        elif self._memory.watches(self._key):
            item = requests.find(self._key)
        else:
            return Instead()
        return self._context.judge(self._scope, item, asked_s)

    def _learn(self, refusal: ConditionFailed, instead: Instead, sent_s: float) -> Instead | None:
        lock, *counted = refusal.reasons
        if counted and counted[0].failed:
            self._memory.note_counter(self._counter, counted[0].item)
        return self._context.judge(self._scope, lock.item, sent_s) if lock.failed else instead

    def _transact(self, instead: Instead, sent_s: float) -> Lease:
        last = self._memory.counters.get(self._counter)
        token = (self._context.clock.wall_ms() if last is None else last) + 1
        item = self._context.draft(self._scope, self._owner, token)
        try:
            self._context.requests.put_all([(item, instead)], {self._counter: (last, token)})
        except ConditionFailed as refusal:
            if version_of(refusal.reasons[0].item) != version_of(item):
                raise
        except BackendUnavailable:
            if not self._context.has_landed(self._key, version_of(item)):
                raise
        self._memory.counters[self._counter] = token
        return self._context.grant(self._scope, self._owner, item, token=token, sent_s=sent_s)

    def _put_then_count(self, instead: Instead, sent_s: float) -> Lease | None:
        item = self._context.draft(self._scope, self._owner, None)
        try:
            self._context.requests.put(item, instead)
        except ConditionFailed as refusal:
            if version_of(refusal.reasons[0].item) != version_of(item):
                raise
        except BackendUnavailable:
            if not self._context.has_landed(self._key, version_of(item)):
                raise
        return self._count(item, sent_s)

    def _count(self, item: Item, sent_s: float) -> Lease | None:
        """The lease with its token; None if counting took so long that others may have come in between."""
        context = self._context
        try:
            token = context.requests.advance(self._counter, context.clock.wall_ms())
        except BaseException:
            self._take_back(item)
            raise
        self._memory.counters[self._counter] = token
        lease = context.grant(self._scope, self._owner, item, token=token, sent_s=sent_s)
        if context.clock.monotonic() >= (lease.deadline_s or 0.0):
            self._take_back(item)
            return None
        return lease

    def _take_back(self, item: Item) -> None:
        """Remove the item of a lock that was not granted after all; what stays is taken over when it is met again."""
        self._memory.orphans[self._key].add(version_of(item))
        with contextlib.suppress(ConditionFailed, LockError):
            self._context.requests.remove(self._key, self._context.owner_name, [version_of(item)])
