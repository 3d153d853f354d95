"""Many locks in few transactions: all of them, or none."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from hudi_locks.errors import BackendUnavailable, LockError
from hudi_locks.lock import Lease, LockScope, Owner
from hudi_locks_providers._dynamodb.connection import ConditionFailed
from hudi_locks_providers._dynamodb.context import Context, DynamoHold, version_of
from hudi_locks_providers._dynamodb.requests import MOST_ACTIONS, Instead
from hudi_locks_providers._wire.dynamodb_item import Item

__all__ = ["acquire_all", "remove_holds"]

_TRIES = 4


def acquire_all(context: Context, scopes: Iterable[LockScope], owner: Owner) -> list[Lease] | None:
    """Acquire all of `scopes` or none; leases in the order of their keys.

    One transaction takes a hundred items, so that about ninety locks go into it: those of file groups that share a
    counter of fencing tokens step it together.
    """
    held: list[Lease] = []
    ordered = sorted(set(scopes), key=lambda scope: _order(context, scope))
    _find_counters(context, ordered)
    try:
        for chunk in _chunks(context, ordered):
            leases = _Chunk(context, chunk, owner).run()
            if leases is None:
                remove_holds(context, held)
                return None
            held += leases
    except BaseException:
        with contextlib.suppress(LockError):
            remove_holds(context, held)
        raise
    return held


def remove_holds(context: Context, leases: Sequence[Lease]) -> None:
    """Remove the items of holds, a hundred in one request; those that are not ours any more are left alone.

    Raises:
        BackendUnavailable: Some were not confirmed; such items are taken over when they are met again.
    """
    for start in range(0, len(leases), MOST_ACTIONS):
        holds: list[DynamoHold] = [lease.state for lease in leases[start : start + MOST_ACTIONS]]
        try:
            _remove(context, holds)
        except BackendUnavailable:
            for hold in holds:
                context.memory.orphans[hold.key].update(hold.versions)
            raise
        for hold in holds:
            hold.is_over = True


def _remove(context: Context, holds: list[DynamoHold]) -> None:
    try:
        context.requests.remove_all([(hold.key, hold.owner_name, hold.versions) for hold in holds])
    except ConditionFailed:
        for hold in holds:
            with contextlib.suppress(ConditionFailed):
                context.requests.remove(hold.key, hold.owner_name, hold.versions)


def _order(context: Context, scope: LockScope) -> tuple[str, str]:
    return context.keys.counter(scope), context.keys.lock(scope)


def _find_counters(context: Context, scopes: Sequence[LockScope]) -> None:
    """Read the counters that were not seen yet, in one request."""
    known = context.memory.counters
    unknown = sorted({context.keys.counter(scope) for scope in scopes} - known.keys())
    if unknown:
        for counter, item in zip(unknown, context.requests.find_all(unknown), strict=True):
            context.memory.note_counter(counter, item)


def _chunks(context: Context, scopes: Sequence[LockScope]) -> Iterator[list[LockScope]]:
    """Runs of scopes that fit into one transaction with their counters."""
    chunk: list[LockScope] = []
    counters: set[str] = set()
    for scope in scopes:
        counter = context.keys.counter(scope)
        if len(chunk) + len(counters | {counter}) >= MOST_ACTIONS:
            yield chunk
            chunk, counters = [], set()
        chunk.append(scope)
        counters.add(counter)
    if chunk:
        yield chunk


class _Chunk:
    """The locks of one transaction."""

    def __init__(self, context: Context, scopes: list[LockScope], owner: Owner) -> None:
        self._context = context
        self._memory = context.memory
        self._scopes = scopes
        self._owner = owner
        self._counts = Counter(context.keys.counter(scope) for scope in scopes)
        self._instead = dict.fromkeys(scopes, Instead())

    def run(self) -> list[Lease] | None:
        """The leases; None if somebody holds one of the locks, or others keep coming first."""
        for _ in range(_TRIES):
            sent_s = self._context.clock.monotonic()
            try:
                return self._transact(sent_s)
            except ConditionFailed as refusal:
                if not self._learn(refusal, sent_s):
                    return None
        return None

    def _transact(self, sent_s: float) -> list[Lease]:
        lasts = {counter: self._memory.counters.get(counter) for counter in self._counts}
        floor = self._context.clock.wall_ms()
        reached = {counter: floor if last is None else last for counter, last in lasts.items()}
        drafts: list[tuple[LockScope, Item, int]] = []
        for scope in self._scopes:
            counter = self._context.keys.counter(scope)
            reached[counter] += 1
            drafts.append((scope, self._context.draft(scope, self._owner, reached[counter]), reached[counter]))
        puts = [(item, self._instead[scope]) for scope, item, _ in drafts]
        try:
            self._context.requests.put_all(puts, {name: (lasts[name], reached[name]) for name in lasts})
        except ConditionFailed as refusal:
            if version_of(refusal.reasons[0].item) != version_of(puts[0][0]):
                raise
        except BackendUnavailable:
            if not self._has_landed([item for _, item, _ in drafts]):
                raise
        self._memory.counters.update(reached)
        grant = self._context.grant
        return [grant(scope, self._owner, item, token=token, sent_s=sent_s) for scope, item, token in drafts]

    def _has_landed(self, items: list[Item]) -> bool:
        """Whether all took effect: one tells for all."""
        landed = False
        try:
            landed = self._context.has_landed(items[0]["key"]["S"], version_of(items[0]))
        finally:
            if not landed:
                for item in items:
                    self._memory.orphans[item["key"]["S"]].add(version_of(item))
        return landed

    def _learn(self, refusal: ConditionFailed, sent_s: float) -> bool:
        """Whether another try may succeed."""
        blocked = False
        for scope, reason in zip(self._scopes, refusal.reasons, strict=False):
            if reason.failed:
                instead = self._context.judge(scope, reason.item, sent_s)
                blocked |= instead is None
                self._instead[scope] = instead or Instead()
        counted = refusal.reasons[len(self._scopes) :]
        for counter, reason in zip(self._counts, counted, strict=True):
            if reason.failed:
                self._memory.note_counter(counter, reason.item)
        return not blocked
