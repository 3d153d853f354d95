"""What a table tells of the writers that it had, compared with a lock provider. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hudi_locks.config import Options, write_keys
from hudi_locks.lock import name_provider
from hudi_locks.table import Table
from hudi_locks.verification.grants import Grant, group_by_job, list_grants, list_unclaimed

__all__ = ["WriterTrace", "WriterTraces", "trace_writers"]

_CHAIN: Final = "chain"


@dataclass(frozen=True)
class WriterTrace:
    """What the claim log tells of one job. It keeps no other option than the lock provider.

    Attributes:
        job: By the name of its application, else by its process.
        provider: The lock provider under which it wrote last; "" without one.
        instant: Requested time of what it decided last.
        entries: How many of the entries that were looked at are its own.
        difference: What is another provider than the one that is asked about; "" if it is the same.
    """

    job: str
    provider: str
    instant: str
    entries: int
    difference: str


@dataclass(frozen=True)
class WriterTraces:
    """What a table tells of its writers.

    Attributes:
        jobs: Writers of this package, the one that wrote last first.
        unclaimed: Requested times of writes that no entry published: those of JVM writers, of which nothing tells the
            lock.
        contradictions: What the table says of its writers and they disprove.
    """

    jobs: tuple[WriterTrace, ...] = ()
    unclaimed: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()


def trace_writers(table: Table, provider: str, *, last: int) -> WriterTraces:
    """Which jobs wrote to a table, and under which lock providers.

    Args:
        table: The table.
        provider: With which theirs are compared, as options name it; "" for none.
        last: Looked at are at most so many of the newest entries of the claim log.

    Raises:
        DamagedTable: An entry, or the timeline, cannot be read.
        StorageError: The store failed.
    """
    grants = list_grants(table.storage, last=last)
    unclaimed = list_unclaimed(table, grants)
    return WriterTraces(tuple(_trace(grants, provider)), unclaimed, tuple(_disprove(table, unclaimed)))


def _trace(grants: Sequence[Grant], provider: str) -> Iterator[WriterTrace]:
    for job, own in group_by_job(grants).items():
        held = name_provider(own[0].provider)
        difference = _compare(held, name_provider(provider))
        yield WriterTrace(job, held, own[0].instant, len(own), difference)


def _compare(held: str, asked: str) -> str:
    if held == asked:
        return ""
    if not (held and asked):
        return "it wrote without a lock" if asked else f"it wrote under {held}, and these options take no lock"
    if _CHAIN in (held, asked):
        return f"it wrote under {held}: compare the two providers of the chain with the other one by hand"
    return f"it wrote under {held}, which does not keep out a writer with {asked}"


def _disprove(table: Table, unclaimed: Sequence[str]) -> Iterator[str]:
    key = write_keys.FOREIGN_WRITERS
    if unclaimed and not Options(table.config.extra).get_value(key):
        yield (
            f"the table was made with {key.name}=false, for writers of this package alone, and {len(unclaimed)} writes"
            f" of others were completed, the last of {unclaimed[-1]}: stop those writers, or updates may be lost unseen"
        )
