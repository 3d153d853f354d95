"""What happened to a table lately, and who did it: the timeline beside the claim log. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from hudi_locks.format import WRITE_ACTIONS, CommitMetadata, Instant, epoch_ms
from hudi_locks.format.claim import Claim, ClaimKind
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table import Table, read_commit
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.claims import find_last_claim, read_entry
from hudi_locks.timeline.heartbeat import name_writer

__all__ = ["Activity", "list_activity"]

_MORE_CLAIMS: Final = 2
"""Claims for each instant: most have one, some are taken back and made again."""
_READ_TOGETHER: Final = 16


@dataclass(frozen=True)
class Activity:
    """One instant of the active timeline.

    Attributes:
        requested: Its requested time.
        action: As its file says it.
        state: REQUESTED, INFLIGHT or COMPLETED.
        operation: Of a completed write, in Hudi's spelling; "" otherwise.
        began_ms: When it was begun, in milliseconds since the epoch.
        completed_ms: When it became visible; None while it is pending, or if the timeline does not say.
        rows_inserted: Rows of a completed write that were new; rows of a service that it wrote.
        rows_updated: Rows that it replaced.
        rows_deleted: Rows that it took out.
        file_groups: How many file groups it wrote or ended.
        bytes_written: Size of its data files.
        writer: Who made it, as the claim log or a heartbeat tells; "" of a JVM writer.
        fencing_token: Of the lock that was held when it was published; None if not told.
        lock_wait_ms: How long its writer waited for the lock, to begin and to publish it; None if not told.
        lock_held_ms: How long it held the lock for both, until it was decided; None if not told.
    """

    requested: str
    action: str
    state: str
    operation: str
    began_ms: int
    completed_ms: int | None
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    file_groups: int = 0
    bytes_written: int = 0
    writer: str = ""
    fencing_token: int | None = None
    lock_wait_ms: int | None = None
    lock_held_ms: int | None = None

    @property
    def identity(self) -> tuple[str, str, str]:
        """What no other instant shares, nor this one in another state."""
        return self.requested, self.action, self.state


def list_activity(table: Table, *, last: int, known: Collection[tuple[str, str, str]] = ()) -> tuple[Activity, ...]:
    """The newest instants of the active timeline, in the order in which they were begun.

    Args:
        table: The table.
        last: At most so many.
        known: Of these, by their `Activity.identity`, those that are left out, and not read again.

    Raises:
        DamagedTable: The timeline, a commit or a claim cannot be read.
        StorageError: The store failed.
    """
    timeline = table.timeline()
    newest = timeline.instants[-last:] if last > 0 else ()
    shown = [one for one in newest if (one.requested, one.action, one.state.name) not in known]
    claims = _find_claims(table.storage, shown)
    return tuple(map_in_threads(lambda instant: _describe(table, timeline, instant, claims), shown))


def _find_claims(storage: Storage, shown: Iterable[Instant]) -> Mapping[str, Claim]:
    """The claim by which each was published, as far as the newest claims tell."""
    wanted = {instant.requested for instant in shown if instant.is_completed}
    found: dict[str, Claim] = {}
    number = find_last_claim(storage)
    most = max(0, number - _MORE_CLAIMS * len(wanted))
    while number > most and not wanted <= found.keys():
        numbers = range(number, max(most, number - _READ_TOGETHER), -1)
        for entry in map_in_threads(lambda one: read_entry(storage, one), numbers):
            claim = entry.claim if entry else None
            if claim and claim.kind is ClaimKind.PUBLISH and claim.instant in wanted:
                found.setdefault(claim.instant, claim)
        number -= len(numbers)
    return found


def _describe(table: Table, timeline: Timeline, instant: Instant, claims: Mapping[str, Claim]) -> Activity:
    is_write = instant.is_completed and instant.action in WRITE_ACTIONS
    commit = read_commit(table.storage, timeline, requested=instant.requested) if is_write else CommitMetadata()
    claim = claims.get(instant.requested)
    zone, stats = table.layout.zone, commit.stats
    return Activity(
        instant.requested,
        instant.action,
        instant.state.name,
        commit.operation or "",
        began_ms=epoch_ms(instant.requested, zone),
        completed_ms=None if instant.completion is None else epoch_ms(instant.completion, zone),
        rows_inserted=sum(stat.num_inserts for stat in stats),
        rows_updated=sum(stat.num_update_writes for stat in stats),
        rows_deleted=sum(stat.num_deletes for stat in stats),
        file_groups=len(commit.written_file_groups | commit.replaced_file_groups),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        writer=_name(table.storage, instant, claim),
        fencing_token=None if claim is None else claim.fencing_token,
        lock_wait_ms=None if claim is None else claim.lock_wait_ms,
        lock_held_ms=None if claim is None else claim.lock_held_ms,
    )


def _name(storage: Storage, instant: Instant, claim: Claim | None) -> str:
    if claim is not None:
        return claim.owner
    return "" if instant.is_completed else name_writer(storage, instant.requested)
