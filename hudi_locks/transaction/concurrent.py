"""Looking for conflicts of one write: before its claim, and once more after it was completed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hudi_locks.errors import UpdateEndangered
from hudi_locks.format import CommitMetadata, Instant
from hudi_locks.format.claim import Claim
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.archive import is_archived, list_archived_since
from hudi_locks.transaction.advice import ADVICE_ON_COLUMNS, ADVICE_ON_KEYS, advise
from hudi_locks.transaction.begun import Begun
from hudi_locks.transaction.candidates import (
    archived_operations,
    claimed_operations,
    completed_operation,
    this_operation,
)
from hudi_locks.transaction.conflicts import ConcurrentOperation, ConflictResolutionStrategy
from hudi_locks.transaction.context import Context
from hudi_locks.transaction.foreign import find_unclaimed
from hudi_locks.transaction.outcome import Conflict
from hudi_locks.transaction.pending import (
    earlier_operations,
    find_planner,
    living_operations,
    planned_operations,
)
from hudi_locks.transaction.read_set import AbsentKeys, ReadSet
from hudi_locks.transaction.schemas import find_schema, unite_schemas

__all__ = ["ConcurrentWrites"]


class ConcurrentWrites:
    """What happened beside one write."""

    def __init__(
        self,
        context: Context,
        begun: Begun,
        *,
        metadata: CommitMetadata,
        strategy: ConflictResolutionStrategy,
        reads: ReadSet | None = None,
    ) -> None:
        self._context = context
        self._begun = begun
        self._strategy = strategy
        reads = reads or ReadSet()
        self._absent_keys = reads.absent_keys
        self._this = this_operation(begun.instant, metadata, reads=reads)

    def is_ahead(self, timeline: Timeline, claims: Iterable[Claim]) -> bool:
        """Whether `timeline` shows writes that none of `claims` tells of: foreign ones, or claimed a moment ago."""
        return bool(self._unclaimed(timeline, claims, known=self._begun.timeline))

    def look_ahead(self) -> None:
        """Look for absent keys that others brought while the table lock is not held yet: that reads files.

        Raises:
            DamagedTable: The metadata of a completed instant is unreadable.
        """
        if self._absent_keys is not None:
            timeline = self._context.load_timeline()
            came = self._unclaimed(timeline, (), known=self._begun.timeline)
            for instant in came:
                self._brought_keys(completed_operation(self._context.storage, timeline, instant))

    def find_conflict(self, timeline: Timeline, claims: list[Claim]) -> Conflict | None:
        """The first conflict with anything that came after the snapshot of the write.

        Raises:
            DamagedTable: The metadata of a foreign instant, or a plan, is unreadable.
        """
        unclaimed = self._unclaimed(timeline, claims, known=self._begun.timeline)
        if unclaimed and not self._context.expects_foreign_writers():
            self._context.notices.see_foreign_writer(unclaimed[0].requested)
        storage = self._context.storage
        others = [*claimed_operations(claims, self._begun.timeline)]
        others += [completed_operation(storage, timeline, instant) for instant in unclaimed]
        if self._context.expects_foreign_writers():
            others += self._archived(claims)
        others += self._under_way(timeline)
        conflict = next((self._describe(other) for other in others if self._is_conflict(other)), None)
        return conflict or self._find_brought(others)

    def unite_columns(self, timeline: Timeline, metadata: CommitMetadata) -> tuple[CommitMetadata, Conflict | None]:
        """The metadata with the columns that the table got meanwhile; a conflict if they contradict those written.

        Raises:
            DamagedTable: A commit is unreadable.
        """
        before = self._begun.timeline
        if not self._context.settings.unites_columns or metadata.schema is None:
            return metadata, None
        if not timeline.completed_since(before):
            return metadata, None
        storage = self._context.storage
        now, instant = find_schema(storage, timeline)
        united = unite_schemas(find_schema(storage, before)[0], now, ours=metadata.schema)
        if united.clashes and instant is not None:
            other = completed_operation(storage, timeline, instant)
            found = self._describe(other)
            return metadata, replace(found, groups=(), columns=united.clashes, advice=ADVICE_ON_COLUMNS)
        return replace(metadata, extra={**metadata.extra, "schema": united.schema}), None

    def detect(self, claim: Claim, checked: Timeline) -> list[str]:
        """Look again after the write was completed, if foreign writers may be at work; mark the table if it is hurt.

        With a working lock nothing can have happened since `checked` was listed. A lock that was lost lets a JVM
        writer in, which no claim keeps out: then the damage is named, not prevented.

        Returns:
            What was found, in words.

        Raises:
            UpdateEndangered: The instant is gone again, so that nobody may be told that it is committed.
        """
        if not self._context.expects_foreign_writers():
            return []
        head = self._context.log.read_head()
        claims = self._context.log.since(self._begun.claim_head, head)
        timeline = self._context.load_timeline()
        storage = self._context.storage
        unclaimed = self._unclaimed(timeline, claims, known=checked)
        intruders = [completed_operation(storage, timeline, instant) for instant in unclaimed]
        found = [self._intrusion(other) for other in intruders if self._is_conflict(other)]
        self._require_present(claim, timeline)
        return found

    def _find_brought(self, others: Iterable[ConcurrentOperation]) -> Conflict | None:
        brought = ((other, self._brought_keys(other)) for other in others if other.is_completed)
        return next((self._describe_keys(other, keys) for other, keys in brought if keys), None)

    def _brought_keys(self, other: ConcurrentOperation) -> tuple[str, ...]:
        """Keys that this write looked for in vain and `other` wrote, in any file group."""
        if self._absent_keys is None or not (paths := self._shared_paths(other, self._absent_keys)):
            return ()
        return self._absent_keys.find_among(paths, other.requested)

    def _shared_paths(self, other: ConcurrentOperation, absent: AbsentKeys) -> frozenset[str]:
        return frozenset(path for path in other.paths if path.rpartition("/")[0] in absent.partitions)

    def _under_way(self, timeline: Timeline) -> list[ConcurrentOperation]:
        storage = self._context.storage
        planned = [*planned_operations(storage, timeline)]
        limit_ms = self._context.settings.heartbeat_limit_ms
        if self._this.is_log_compaction:
            load, this = self._context.load_timeline, self._this
            return [*planned, *earlier_operations(storage, load, this=this, limit_ms=limit_ms)]
        if not self._strategy.heeds_living_writers(self._this):
            return planned
        now = self._context.load_timeline() if self._context.goes_by_claims else timeline
        return [*planned, *living_operations(storage, now, limit_ms=limit_ms)]

    def _unclaimed(self, timeline: Timeline, claims: Iterable[Claim], *, known: Timeline) -> list[Instant]:
        found = find_unclaimed(timeline, known=known, claims=claims)
        return [instant for instant in found if instant.requested != self._this.requested]

    def _archived(self, claims: Iterable[Claim]) -> list[ConcurrentOperation]:
        since = self._context.earliest(self._this.requested)
        found = list_archived_since(self._context.storage, self._context.layout, completed_after=since)
        claimed = frozenset(claim.instant for claim in claims)
        return archived_operations(found, self._begun.timeline, archived=self._begun.archived, claimed=claimed)

    def _is_conflict(self, other: ConcurrentOperation) -> bool:
        return other.requested != self._this.requested and self._strategy.is_conflict(self._this, other)

    def _intrusion(self, other: ConcurrentOperation) -> str:
        found = (
            f"{other.action} {other.requested} of {other.writer} was completed while {self._this.requested} was being"
            f" published under the table lock, and changes the same file groups: the lock did not hold"
        )
        self._context.notices.endanger(self._this.requested, other=other.requested, found=found)
        return found

    def _require_present(self, claim: Claim, timeline: Timeline) -> None:
        mine = timeline.get(claim.instant)
        if mine is not None and mine.is_completed:
            return
        if is_archived(self._context.storage, self._context.layout, requested=claim.instant):
            return
        others = [i.requested for i in timeline.instants if i.action in ("rollback", "restore")]
        found = f"{claim.instant} was completed and is gone from the timeline: rolled back outside the claim log"
        other = others[-1] if others else ""
        self._context.notices.endanger(claim.instant, other=other, found=found)
        raise UpdateEndangered(found, instant=claim.instant, other=other, found=found)

    def _describe(self, other: ConcurrentOperation) -> Conflict:
        unseen = self._this.find_unseen(other)
        overwritten = {group.partition for group in unseen} | self._this.find_outdated(other)
        groups = self._strategy.conflicting_groups(self._this, other) | unseen
        outdated = self._strategy.outdated_groups(self._this, other)
        return Conflict(
            instant=self._this.requested,
            groups=tuple(sorted(groups or outdated)),
            is_read=bool(outdated) and not groups and not overwritten,
            overwritten=tuple(sorted(overwritten)),
            other=other.requested,
            other_action=other.action,
            other_writer=self._name_writer(other),
            other_age_ms=self._age_ms(other),
            other_is_pending=not other.is_completed,
            advice=advise(self._this, other),
        )

    def _describe_keys(self, other: ConcurrentOperation, keys: tuple[str, ...]) -> Conflict:
        paths = self._shared_paths(other, self._absent_keys) if self._absent_keys is not None else ()
        partitions = tuple(sorted({path.rpartition("/")[0] for path in paths}))
        return replace(self._describe(other), groups=(), partitions=partitions, keys=keys, advice=ADVICE_ON_KEYS)

    def _name_writer(self, other: ConcurrentOperation) -> str:
        if other.is_completed or other.action not in ("clustering", "replacecommit", "compaction", "logcompaction"):
            return other.writer
        return find_planner(self._context.log, other.requested) or other.writer

    def _age_ms(self, other: ConcurrentOperation) -> int:
        """Since it was completed, or begun; whoever it is of, the timeline tells."""
        time = other.completion_time or other.requested
        return max(0, self._context.clock.wall_ms() - self._context.epoch_ms(time))
