"""The timeline of a native table as one process knows it: a listing, and what was published since by the claim log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hudi_locks.clock import Clock
from hudi_locks.format import Instant, State
from hudi_locks.format.claim import Claim, ClaimKind
from hudi_locks.storage import Entry, Storage
from hudi_locks.timeline import Timeline, TimelineReader
from hudi_locks.timeline.archive import is_archived
from hudi_locks.timeline.claims import ClaimEntry, ClaimLog
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER
from hudi_locks.transaction.foreign_writers import Notices, find_unclaimed
from hudi_locks.transaction.operations import INGESTION

__all__ = ["KnownTimeline"]

_LISTED_S: Final = 1.0
"""How long a listing serves. No safety rests on it: it bounds how long dead writers, archival and a JVM writer that
should not be there go unnoticed."""
_CLAIMS: Final = 1_000
"""After so many claims a listing is cheaper."""
_Beats = Mapping[str, Entry]


@dataclass(frozen=True)
class _Known:
    """What is known of the timeline.

    Attributes:
        timeline: Holds all that the claims up to `number` decide.
        number: Of the last claim that was seen to before `timeline` was listed, or that was added to it.
        listed_s: When the listing was asked for, by the monotonic clock.
        listed_time: The newest time that the listing showed; "" if it was empty.
    """

    timeline: Timeline
    number: int
    listed_s: float
    listed_time: str


class KnownTimeline:
    """Answers from the claim log what a listing would answer, where every writer claims. Thread-safe.

    A PUBLISH tells all that changes by it. Any other claim leads to more than it says, done before or after it was
    read, so a listing follows: rollbacks remove instants, plans are carried out, a restore does both.

    Not known between two listings are pending writes that others began, what services finished without a claim (as a
    clean), and archival. Each of them might as well have come a moment later than it did, for a begin that holds no
    lock. But times must lie after those of pending writes, which the heartbeats tell. These tell also of what has no
    claim: a JVM writer that should not be there, and a pending instant that somebody has taken away.

    Args:
        storage: Of the table.
        reader: Lists its timeline.
        log: The claim log as this process sees it.
        notices: Told of an instant that nobody claimed.
        clock: Says when a listing was long ago.
    """

    def __init__(
        self, storage: Storage, reader: TimelineReader, *, log: ClaimLog, notices: Notices, clock: Clock
    ) -> None:
        self._storage = storage
        self._reader = reader
        self._log = log
        self._notices = notices
        self._clock = clock
        self._known: _Known | None = None

    def peek(self) -> Timeline | None:
        """What was known at the last look, however long ago that was; None before the first."""
        return self._known.timeline if self._known is not None else None

    def at(self, head: ClaimEntry, *, for_begin: bool) -> Timeline:
        """The timeline with all that the claims up to `head` decide, and perhaps more.

        Args:
            head: A claim that was seen to, so that nothing which it decides is still to be done.
            for_begin: Whether times of writes that are not on the timeline yet are to be known too.

        Raises:
            DamagedTable: See `Timeline.load`.
            StorageError: The store failed.
        """
        before = self._known
        is_known = before is not None and self._serves(before, head)
        beats: _Beats = {}
        if is_known or for_begin:
            beats = {entry.name: entry for entry in self._storage.list(HEARTBEAT_FOLDER)}
        known = self._carry_on(before, head, beats) if before is not None and is_known else None
        known = known or self._list(head, before)
        reserved = max(filter(str.isdigit, beats), default="")
        self._known = known = replace(known, timeline=known.timeline.reserving(reserved))
        return known.timeline

    def _serves(self, known: _Known, head: ClaimEntry) -> bool:
        is_fresh = self._clock.monotonic() - known.listed_s <= _LISTED_S
        return is_fresh and head.number - known.number <= _CLAIMS

    def _carry_on(self, known: _Known, head: ClaimEntry, beats: _Beats) -> _Known | None:
        """What is known once the claims after it are added; None if they may not tell all that changed."""
        writes = _find_published(known, self._log.since(known.number, head))
        if writes is None:
            return None
        timeline = known.timeline.completing(writes)
        if _shows_more(timeline, beats):
            return None
        return replace(known, timeline=timeline, number=max(known.number, head.number))

    def _list(self, head: ClaimEntry, before: _Known | None) -> _Known:
        listed_s = self._clock.monotonic()
        timeline = self._reader.load()
        if before is not None:
            self._look_for_strangers(before, timeline, head)
        return _Known(timeline, head.number, listed_s, timeline.newest_time() or "")

    def _look_for_strangers(self, before: _Known, timeline: Timeline, head: ClaimEntry) -> None:
        claims = self._log.since(before.number, head)
        if not find_unclaimed(timeline, known=before.timeline, claims=claims):
            return
        claims = self._log.since(before.number, self._log.read_head())  # what was claimed a moment ago is listed too
        for instant in find_unclaimed(timeline, known=before.timeline, claims=claims):
            # A publisher that slept may bring an archived instant back for a moment.
            if not is_archived(self._storage, timeline.layout, requested=instant.requested):
                self._notices.see_foreign_writer(instant.requested)
                return


def _find_published(known: _Known, claims: Sequence[Claim]) -> list[Instant] | None:
    """The writes that `claims` complete, as far as the timeline does not show them; None if that is not all."""
    writes = []
    for claim in claims:
        found = known.timeline.get(claim.instant)
        if claim.kind is not ClaimKind.PUBLISH or (found is None and claim.instant <= known.listed_time):
            return None  # what is not listed among later ones may be archived already
        if found is None or not found.is_completed:
            writes.append(Instant(claim.instant, claim.action, State.INFLIGHT).as_completed(claim.time))
    return writes


def _shows_more(timeline: Timeline, beats: _Beats) -> bool:
    """Whether something may have been done that no claim tells.

    A heartbeat without content may be of a JVM writer; a pending write that has none any more was ended by somebody;
    a restore takes instants away as it goes on.
    """
    return (
        any(not beat.size for beat in beats.values())
        or any(instant.requested not in beats for instant in timeline.pending(INGESTION))
        or bool(timeline.pending(("restore",)))
    )
