"""How far the writers of a table have come on the way from one lock provider to another, as its claim log tells.

The way is the provider `chain`, which holds both locks: it keeps out who holds either. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hudi_locks.errors import ConfigError
from hudi_locks.lock import load_provider_class, name_provider
from hudi_locks.table import Table
from hudi_locks.verification.grants import Grant, group_by_job, list_grants, list_unclaimed

__all__ = ["JobLock", "LockMigration", "follow_migration"]

_CHAIN: Final = "chain"
_STAGES: Final = {
    frozenset[str](): "nobody wrote",
    frozenset({"old"}): "old lock alone",
    frozenset({"old", "both"}): "moving to both",
    frozenset({"both"}): "both locks",
    frozenset({"both", "new"}): "moving to the new lock",
    frozenset({"new"}): "new lock alone",
}
_UNSAFE: Final = "unsafe"


@dataclass(frozen=True)
class JobLock:
    """Under which lock a job wrote last.

    Attributes:
        job: By the name of its application, else by its process.
        provider: Its lock provider; "" without one.
        holds: `old`, `both`, `new`, or `other` for a lock that keeps out neither the ones nor the others.
        instant: Requested time of what it decided last.
        time: When that was.
        entries: How many of the entries that were looked at are its own.
    """

    job: str
    provider: str
    holds: str
    instant: str
    time: str
    entries: int


@dataclass(frozen=True)
class LockMigration:
    """Where a migration stands.

    Attributes:
        old: The provider that writers leave.
        new: The one that they move to.
        stage: `nobody wrote`, `old lock alone`, `moving to both`, `both locks`, `moving to the new lock`, `new lock
            alone`, or `unsafe`: some jobs do not keep each other out.
        jobs: Those that wrote, the one that wrote last first.
        unclaimed: Requested times of the newest writes that no entry published: those of JVM writers, which hold one
            lock alone.
    """

    old: str
    new: str
    stage: str
    jobs: tuple[JobLock, ...]
    unclaimed: tuple[str, ...]

    @property
    def is_safe(self) -> bool:
        """Whether the jobs keep each other out, by the lock under which each wrote last."""
        return self.stage != _UNSAFE

    def list_jobs(self, *holds: str) -> tuple[str, ...]:
        """The jobs that hold so."""
        return tuple(one.job for one in self.jobs if one.holds in holds)


def follow_migration(table: Table, *, old: str, new: str, last: int) -> LockMigration:
    """See by the newest entry of each job which locks it holds.

    A job that has not written since it was changed counts by what it held before, and one that will never write again
    as long as its entries are among the newest.

    Args:
        table: The table.
        old: Lock provider, by any name that `hoodie.write.lock.provider` takes.
        new: The other one.
        last: Looked at are at most so many of the newest entries.

    Raises:
        ConfigError: The two are one provider, or one of them is the chain.
        ProviderLoadError: There is no such provider.
        DamagedTable: An entry, or the timeline, cannot be read.
        StorageError: The store failed.
    """
    left, entered = (_name_known(provider) for provider in (old, new))
    _refuse_no_way(left, entered)
    grants = list_grants(table.storage, last=last)
    jobs = tuple(_follow_jobs(grants, left, entered))
    stage = _STAGES.get(frozenset(one.holds for one in jobs), _UNSAFE)
    return LockMigration(left, entered, stage, jobs, list_unclaimed(table, grants))


def _name_known(provider: str) -> str:
    load_provider_class(provider)
    return name_provider(provider)


def _refuse_no_way(old: str, new: str) -> None:
    if _CHAIN in (old, new):
        raise ConfigError("the chain is the way from one lock to another: name the two providers that it holds")
    if old == new:
        message = (
            f"{old} is the old and the new lock: what the claim log keeps of a writer does not tell two locks of one"
            " provider apart; follow such a migration by the options of each writer"
        )
        raise ConfigError(message, value=old)


def _follow_jobs(grants: Sequence[Grant], old: str, new: str) -> Iterable[JobLock]:
    kinds = {old: "old", new: "new", _CHAIN: "both"}
    for job, own in group_by_job(grants).items():
        newest, provider = own[0], name_provider(own[0].provider)
        yield JobLock(job, provider, kinds.get(provider, "other"), newest.instant, newest.time, len(own))
