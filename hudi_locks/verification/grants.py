"""Under which lock each decision about a table was made, as its claim log tells. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hudi_locks.format import WRITE_ACTIONS
from hudi_locks.format.claim import Claim, ClaimKind
from hudi_locks.lock import name_job, name_provider
from hudi_locks.storage import Storage
from hudi_locks.table import Table
from hudi_locks.timeline.claims import find_last_claim, read_claims

__all__ = [
    "Grant",
    "GrantAudit",
    "Overlap",
    "audit_grants",
    "find_other_lock",
    "group_by_job",
    "list_grants",
    "list_unclaimed",
]

_CHAIN: Final = "chain"
_COUNTED_ANEW: Final = ("in_process", "noop")
"""Their tokens begin anew with each process, or are none."""


@dataclass(frozen=True)
class Grant:
    """An entry of the claim log, with the lock that its maker held.

    Attributes:
        number: Of the entry; the log has no gaps.
        decision: PUBLISH, ROLLBACK, VOID, SCHEDULE, RESTORE or VERSION.
        instant: Requested time of the instant that it is about.
        action: Of that instant.
        time: The completion time that a PUBLISH or ROLLBACK gave; else when it was decided.
        owner: Who made it.
        provider: Its lock provider, as its options named it; "" without one.
        fencing_token: Of the lock; None if it was made without one, or the provider gives none.
    """

    number: int
    decision: str
    instant: str
    action: str
    time: str
    owner: str
    provider: str
    fencing_token: int | None


@dataclass(frozen=True)
class Overlap:
    """Two entries that show two grants of one lock at a time: the later one was made under the older grant.

    Attributes:
        earlier: Made first.
        later: Made under a grant that had ended by then, for the earlier one has a newer token, or the same.
    """

    earlier: Grant
    later: Grant


@dataclass(frozen=True)
class GrantAudit:
    """What the claim log proves of the locks of a table.

    Attributes:
        entries: How many it has.
        ordered: How many of them have a token that was compared with those before.
        overlaps: Where two grants of one lock overlapped. The log kept the table safe: the later entry was made on top
            of the earlier one.
        changed: Numbers of entries that do not follow the bytes of the entry before, so that one of both was changed.
        instants: How many completed writes of the active timeline an entry published.
        unclaimed: Requested times of the other ones: those of JVM writers.
    """

    entries: int
    ordered: int
    overlaps: tuple[Overlap, ...]
    changed: tuple[int, ...]
    instants: int
    unclaimed: tuple[str, ...]

    @property
    def is_proof(self) -> bool:
        """Whether no two grants overlapped, as far as entries with tokens tell, and no entry was changed."""
        return not self.overlaps and not self.changed


def list_grants(storage: Storage, *, last: int) -> tuple[Grant, ...]:
    """The newest entries of the claim log, the oldest of them first.

    Args:
        storage: Of the table.
        last: At most so many.

    Raises:
        DamagedTable: An entry cannot be read.
        StorageError: The store failed.
    """
    number = find_last_claim(storage)
    return tuple(_describe(claim) for claim, _ in read_claims(storage, max(1, number - last + 1), number))


def group_by_job(grants: Sequence[Grant]) -> Mapping[str, Sequence[Grant]]:
    """The entries of each job, its newest one first; the job that made the newest of all comes first."""
    found: dict[str, list[Grant]] = {}
    for grant in reversed(grants):
        found.setdefault(name_job(grant.owner), []).append(grant)
    return found


def list_unclaimed(table: Table, grants: Sequence[Grant]) -> tuple[str, ...]:
    """Requested times of completed writes that no entry published: those of JVM writers.

    Args:
        table: The table.
        grants: The newest entries; looked at are writes since the oldest of them, or all if there is none.

    Raises:
        DamagedTable: The timeline cannot be read.
        StorageError: The store failed.
    """
    since = min((grant.instant for grant in grants), default="")
    claimed = {grant.instant for grant in grants}
    written = [one.requested for one in table.timeline().completed(WRITE_ACTIONS)]
    return tuple(one for one in written if one >= since and one not in claimed)


def find_other_lock(storage: Storage, provider: str, *, last: int) -> Grant | None:
    """The newest entry under a lock that does not keep a writer with `provider` out; None if there is none.

    Entries from before the first one under `provider` are those of a table that changed over to it. Under a chain of
    providers several are held, so that such entries, and those of a writer with a chain, are not compared.

    Args:
        storage: Of the table.
        provider: Of the writer, as its options name it.
        last: Looked at are at most so many of the newest entries.

    Raises:
        DamagedTable: An entry cannot be read.
        StorageError: The store failed.
    """
    asked = name_provider(provider)
    if asked == _CHAIN:
        return None
    grants = list_grants(storage, last=last)
    named = [(name, one) for one in grants if (name := name_provider(one.provider)) not in ("", _CHAIN)]
    others = [one for name, one in named if name != asked]
    same = [one for name, one in named if name == asked]
    if not others or (same and same[0].number > others[-1].number):
        return None
    return others[-1]


def audit_grants(table: Table) -> GrantAudit:
    """Compare the tokens of all entries with each other, and the writes of the timeline with the entries.

    Raises:
        DamagedTable: An entry, or the timeline, cannot be read.
        StorageError: The store failed.
    """
    written = {one.requested for one in table.timeline().completed(WRITE_ACTIONS)}
    ledger = _Ledger()
    for claim, digest in read_claims(table.storage, 1, find_last_claim(table.storage)):
        ledger.add(claim, digest)
    claimed = written & ledger.published
    unclaimed = tuple(sorted(written - claimed))
    return GrantAudit(
        ledger.entries, ledger.ordered, tuple(ledger.overlaps), tuple(ledger.changed), len(claimed), unclaimed
    )


class _Ledger:
    """Takes entries in their order."""

    def __init__(self) -> None:
        self.entries = self.ordered = 0
        self.overlaps: list[Overlap] = []
        self.changed: list[int] = []
        self.published: set[str] = set()
        self._newest: dict[str, Grant] = {}
        self._digest = ""

    def add(self, claim: Claim, digest: str) -> None:
        self.entries += 1
        if claim.previous != self._digest:
            self.changed.append(claim.number)
        self._digest = digest
        if claim.kind is ClaimKind.PUBLISH:
            self.published.add(claim.instant)
        grant = _describe(claim)
        lock = name_provider(grant.provider)
        if grant.fencing_token is not None and lock not in _COUNTED_ANEW:
            self._compare(grant, grant.fencing_token, lock)

    def _compare(self, grant: Grant, token: int, lock: str) -> None:
        self.ordered += 1
        newest = self._newest.get(lock)
        if newest is not None and newest.fencing_token is not None:
            is_other = newest.owner != grant.owner
            if token < newest.fencing_token or (token == newest.fencing_token and is_other):
                self.overlaps.append(Overlap(newest, grant))
                return
        self._newest[lock] = grant


def _describe(claim: Claim) -> Grant:
    return Grant(
        claim.number,
        claim.kind.value,
        claim.instant,
        claim.action,
        claim.time,
        claim.owner,
        claim.lock_key,
        claim.fencing_token,
    )
