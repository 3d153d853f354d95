"""Looking for conflicts of one write: while its tasks begin, before its claim, and once more after it was completed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

from hudi_locks.early_conflict import ConflictWatch, EarlyDetection, GuardedMarkers, Markers, find_reported
from hudi_locks.errors import PossibleLostUpdate
from hudi_locks.format import CommitMetadata, Instant, State
from hudi_locks.format.claim import Claim, ClaimKind
from hudi_locks.observe import EARLY_CONFLICT_COMMIT, EARLY_CONFLICT_MARKER
from hudi_locks.table import NEWEST_COLUMNS
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.archive import find_archived_content, is_archived, list_archived_since
from hudi_locks.timeline.claims import ClaimEntry
from hudi_locks.timeline.heartbeat import find_alive
from hudi_locks.transaction.advice import ADVICE_ON_COLUMNS, ADVICE_ON_KEYS, advise
from hudi_locks.transaction.column_changes import find_changed_columns
from hudi_locks.transaction.conflicts import AbsentKeys, ConcurrentOperation, ReadSet
from hudi_locks.transaction.context import TableContext
from hudi_locks.transaction.coordinator import TableCoordinator
from hudi_locks.transaction.foreign_writers import find_unclaimed
from hudi_locks.transaction.operations import (
    altering_operations,
    archived_operations,
    claimed_operations,
    completed_operation,
    earlier_operations,
    find_planner,
    find_publication,
    living_operations,
    planned_operations,
    this_operation,
)
from hudi_locks.transaction.schemas import find_schema, unite_schemas
from hudi_locks.transaction.write_state import Conflict, WriteState

__all__ = ["ConcurrentWrites", "EarlyConflictDriver"]

_LOOK_S: Final = 1.0
_KINDS: Final = {"marker": EARLY_CONFLICT_MARKER, "commit": EARLY_CONFLICT_COMMIT}


class ConcurrentWrites:
    """What happened beside one write."""

    def __init__(
        self,
        coordinator: TableCoordinator,
        state: WriteState,
        *,
        metadata: CommitMetadata,
        reads: ReadSet | None = None,
    ) -> None:
        self._table = coordinator
        self._state = state
        self._strategy = coordinator.strategy
        reads = reads or ReadSet()
        self._absent_keys = reads.absent_keys
        self._this = this_operation(state.instant, metadata, reads=reads)

    def is_ahead(self, timeline: Timeline, claims: Iterable[Claim]) -> bool:
        """Whether `timeline` shows writes that none of `claims` tells of: foreign ones, or claimed a moment ago."""
        return bool(self._unclaimed(timeline, claims, known=self._state.timeline))

    def look_ahead(self) -> ClaimEntry | None:
        """Look for absent keys that others brought while the table lock is not held yet: that reads files.

        Returns:
            The last claim, seen to, where the claims tell all that others wrote; else None.

        Raises:
            DamagedTable: A claim, or the metadata of a completed instant, is unreadable.
            StorageError: The store failed.
        """
        if self._table.goes_by_claims:
            head = self._table.forward.to_head()
            claims = self._table.log.since(self._state.claim_head, head)
            others = self._claimed(claims)
        elif self._absent_keys is not None:
            head, timeline = None, self._table.load_timeline()
            came = self._unclaimed(timeline, (), known=self._state.timeline)
            others = [completed_operation(self._table.storage, timeline, instant) for instant in came]
        else:
            return None
        for other in others:
            self._brought_keys(other)
        return head

    def find_conflict(self, timeline: Timeline, claims: list[Claim]) -> Conflict | None:
        """The first conflict with anything that came after the snapshot of the write.

        Raises:
            DamagedTable: The metadata of a foreign instant, or a plan, is unreadable.
        """
        unclaimed = self._unclaimed(timeline, claims, known=self._state.timeline)
        if unclaimed and not self._table.expects_foreign_writers():
            self._table.notices.see_foreign_writer(unclaimed[0].requested)
        if gone := self._find_withdrawn(timeline):
            return self._describe(gone)
        storage = self._table.storage
        foreign = [completed_operation(storage, timeline, instant) for instant in unclaimed]
        others = [*self._claimed(claims), *foreign]
        if self._table.expects_foreign_writers():
            others += self._archived(claims)
            others += altering_operations(storage, timeline, beside=self._this.requested)
        others += self._under_way(timeline)
        conflict = next((self._describe(other) for other in others if self._is_conflict(other)), None)
        return conflict or self._find_brought(others)

    def unite_columns(self, timeline: Timeline, metadata: CommitMetadata) -> tuple[CommitMetadata, Conflict | None]:
        """The metadata with the columns that the table got meanwhile; a conflict if they contradict those written.

        Raises:
            DamagedTable: A commit is unreadable.
        """
        before = self._state.timeline
        if NEWEST_COLUMNS in metadata.extra:  # ids tell columns apart then, and each writer gives the next one
            found = find_changed_columns(self._table.storage, self._state, timeline, metadata=metadata)
            return metadata, found
        if not self._table.settings.unites_columns or metadata.schema is None:
            return metadata, None
        if not timeline.completed_since(before):
            return metadata, None
        storage = self._table.storage
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
            PossibleLostUpdate: The instant is gone again, so that nobody may be told that it is committed.
        """
        if not self._table.expects_foreign_writers():
            return []
        head = self._table.log.read_head()
        claims = self._table.log.since(self._state.claim_head, head)
        timeline = self._table.load_timeline()
        storage = self._table.storage
        unclaimed = self._unclaimed(timeline, claims, known=checked)
        intruders = [completed_operation(storage, timeline, instant) for instant in unclaimed]
        found = [self._intrusion(other) for other in intruders if self._is_conflict(other)]
        self._require_present(claim, timeline)
        return found

    def _claimed(self, claims: Iterable[Claim]) -> list[ConcurrentOperation]:
        found = list(claimed_operations(filter(self._is_met, claims), self._state.timeline))
        if not self._table.layout.is_version_6 or self._absent_keys is None:
            return found
        return [replace(other, paths=self._read_paths(other)) for other in found]

    def _is_met(self, claim: Claim) -> bool:
        """Not a restore that was finished before this attempt to run a plan began: what it left is merged."""
        return claim.kind is not ClaimKind.RESTORE or claim.number > self._state.attempt

    def _read_paths(self, other: ConcurrentOperation) -> frozenset[str]:
        """In version 6 names of logs do not follow from the write."""
        storage, layout = self._table.storage, self._table.layout
        completed = Instant(other.requested, other.action, State.COMPLETED)
        path = layout.path(completed)
        data = storage.read(path) or find_archived_content(storage, layout, instant=completed)
        return CommitMetadata.decode(data or b"", path, may_be_empty=True).paths

    def _find_withdrawn(self, timeline: Timeline) -> ConcurrentOperation | None:
        """A compaction that was planned when the write began, and is gone: in version 6 its logs are named by it."""
        known = self._state.timeline.pending(("compaction",)) if self._table.layout.is_version_6 else ()
        gone = (instant for instant in known if timeline.get(instant.requested) is None)
        groups = self._this.groups
        return next((ConcurrentOperation(i.requested, i.action, None, False, groups) for i in gone if groups), None)

    def _find_brought(self, others: Iterable[ConcurrentOperation]) -> Conflict | None:
        brought = ((other, self._brought_keys(other)) for other in others if other.is_completed)
        return next((self._describe_keys(other, keys) for other, keys in brought if keys), None)

    def _brought_keys(self, other: ConcurrentOperation) -> tuple[str, ...]:
        """Keys that this write looked for in vain and `other` wrote, in any file group; services bring none."""
        if self._absent_keys is None or other.is_service or not (paths := self._shared_paths(other, self._absent_keys)):
            return ()
        return self._absent_keys.find_among(paths, other.requested)

    def _shared_paths(self, other: ConcurrentOperation, absent: AbsentKeys) -> frozenset[str]:
        some = absent.partitions
        return frozenset(path for path in other.paths if some is None or path.rpartition("/")[0] in some)

    def _under_way(self, timeline: Timeline) -> list[ConcurrentOperation]:
        storage = self._table.storage
        planned = [*planned_operations(storage, timeline)]
        limit_ms = self._table.settings.heartbeat_limit_ms
        if self._this.is_log_compaction:
            load, this = self._table.load_timeline, self._this
            return [*planned, *earlier_operations(storage, load, this=this, limit_ms=limit_ms)]
        if not self._strategy.heeds_living_writers(self._this):
            return planned
        now = self._table.load_timeline() if self._table.goes_by_claims else timeline
        return [*planned, *living_operations(storage, now, limit_ms=limit_ms)]

    def _unclaimed(self, timeline: Timeline, claims: Iterable[Claim], *, known: Timeline) -> list[Instant]:
        found = find_unclaimed(timeline, known=known, claims=claims)
        return [instant for instant in found if instant.requested != self._this.requested]

    def _archived(self, claims: Iterable[Claim]) -> list[ConcurrentOperation]:
        since = self._table.earliest(self._this.requested)
        found = list_archived_since(self._table.storage, self._table.layout, completed_after=since)
        claimed = frozenset(claim.instant for claim in claims)
        return archived_operations(found, self._state.timeline, archived=self._state.archived, claimed=claimed)

    def _is_conflict(self, other: ConcurrentOperation) -> bool:
        if other.requested == self._this.requested or self._is_hidden_by(other):
            return False
        return self._hides_logs(other) or self._strategy.is_conflict(self._this, other)

    def _is_hidden_by(self, other: ConcurrentOperation) -> bool:
        """Whether `other` ended file groups of this compaction: in version 6 that must be run to its end all the same.

        Readers hide the base file, whose time is earlier.
        """
        is_old, is_later = self._table.layout.is_version_6, other.requested > self._this.requested
        return is_old and self._this.action == "compaction" and other.action == "replacecommit" and is_later

    def _hides_logs(self, other: ConcurrentOperation) -> bool:
        """Whether logs of this write are named by the base file that `other`, a compaction, is to replace without them.

        In version 6 such a name says which base file a log lies on. A compaction that was planned before is known.
        """
        is_old, was_known = self._table.layout.is_version_6, self._state.timeline.get(other.requested) is not None
        return is_old and other.is_compaction and not was_known and bool(self._this.groups & other.groups)

    def _intrusion(self, other: ConcurrentOperation) -> str:
        found = (
            f"{other.action} {other.requested} of {other.writer} was completed while {self._this.requested} was being"
            f" published under the table lock, and changes the same file groups: the lock did not hold"
        )
        self._table.notices.endanger(self._this.requested, other=other.requested, found=found)
        return found

    def _require_present(self, claim: Claim, timeline: Timeline) -> None:
        mine = timeline.get(claim.instant)
        if mine is not None and mine.is_completed:
            return
        if is_archived(self._table.storage, self._table.layout, requested=claim.instant):
            return
        others = [i.requested for i in timeline.instants if i.action in ("rollback", "restore")]
        found = f"{claim.instant} was completed and is gone from the timeline: rolled back outside the claim log"
        other = others[-1] if others else ""
        self._table.notices.endanger(claim.instant, other=other, found=found)
        raise PossibleLostUpdate(found, instant=claim.instant, other=other, found=found)

    def _describe(self, other: ConcurrentOperation) -> Conflict:
        unseen = self._this.find_unseen(other)
        overwritten = {group.partition for group in unseen} | self._this.find_outdated(other)
        groups = self._strategy.conflicting_groups(self._this, other) | unseen
        outdated = self._strategy.outdated_groups(self._this, other)
        planner = self._find_planner(other)
        return Conflict(
            instant=self._this.requested,
            groups=tuple(sorted(groups or outdated)),
            is_read=bool(outdated) and not groups and not overwritten,
            overwritten=tuple(sorted(overwritten)),
            other=other.requested,
            other_action=other.action,
            other_writer=planner or other.writer,
            other_age_ms=self._age_ms(other),
            other_is_pending=not other.is_completed,
            advice=advise(self._this, other, is_foreign=planner is None),
        )

    def _describe_keys(self, other: ConcurrentOperation, keys: tuple[str, ...]) -> Conflict:
        paths = self._shared_paths(other, self._absent_keys) if self._absent_keys is not None else ()
        partitions = tuple(sorted({path.rpartition("/")[0] for path in paths}))
        return replace(self._describe(other), groups=(), partitions=partitions, keys=keys, advice=ADVICE_ON_KEYS)

    def _find_planner(self, other: ConcurrentOperation) -> str | None:
        """Who made the plan that `other` is; None if it is none, or of a JVM writer."""
        if other.is_completed or other.action not in ("clustering", "replacecommit", "compaction", "logcompaction"):
            return None
        return find_planner(self._table.log, other.requested)

    def _age_ms(self, other: ConcurrentOperation) -> int:
        """Since it was completed, or begun; whoever it is of, the timeline tells."""
        time = other.completion_time or other.requested
        return max(0, self._table.clock.wall_ms() - self._table.epoch_ms(time))


class EarlyConflictDriver:
    """Gives tasks what they need to look for conflicts, and hears what they found. Runs on the driver.

    Args:
        context: Of the writer.
        options: Hudi's keys, as the writer was given them.

    Raises:
        ConfigError: The strategy cannot be loaded.
    """

    def __init__(self, context: TableContext, options: Mapping[str, object]) -> None:
        self._context = context
        limit_ms, is_bucketed = context.settings.heartbeat_limit_ms, context.settings.is_bucketed
        detection = EarlyDetection.of(options, heartbeat_limit_ms=limit_ms, is_bucketed=is_bucketed)
        self._detection = None if detection.strategy is None else detection

    def looks(self, state: WriteState) -> bool:
        """Whether the tasks of a write, or its timeline server, look for conflicts."""
        return self._detection is not None and self._detection.looks(state.instant.action)

    def guard(self, state: WriteState, markers: Markers) -> GuardedMarkers | None:
        """What makes the markers of a write after a look at others; None if nothing is looked at."""
        if self._detection is None:
            return None
        return self._detection.guard(markers, state.timeline, action=state.instant.action)

    def watch(self, state: WriteState, callback: Callable[[], None]) -> AbstractContextManager[object]:
        """See `Transaction.call_at_conflict`."""
        context = self._context
        return ConflictWatch(context.storage, state.requested, callback=callback, clock=context.clock)

    def find(self, state: WriteState) -> Conflict | None:
        """See `Transaction.find_early_conflict`; counts it."""
        found = find_reported(self._context.storage, state.requested)
        if found is None:
            return None
        self._context.metrics.count(_KINDS[found.kind])
        claim = find_publication(self._context.log, found.other) if found.kind == "commit" else None
        time = found.other if claim is None else claim.time
        age_ms = max(0, self._context.clock.wall_ms() - self._context.epoch_ms(time))
        unnamed = "a JVM writer" if found.kind == "commit" else "another writer"
        return Conflict(
            instant=found.instant,
            groups=(found.group,),
            other=found.other,
            other_action="the write" if claim is None else claim.action,
            other_writer=(claim.owner if claim else "") or found.owner or unnamed,
            other_age_ms=age_ms,
            advice=found.advice,
            other_is_pending=found.is_pending,
            is_early=True,
        )

    def await_end(self, instant: str, timeout_s: float) -> bool:
        """Wait until the write begun at `instant` is completed, rolled back or dead; False if it goes on.

        Whoever met it early would only meet it again.

        Raises:
            StorageError: The store failed.
        """
        clock, ends_s = self._context.clock, self._context.clock.monotonic() + timeout_s
        while self._is_at_work(instant):
            if clock.monotonic() >= ends_s:
                return False
            clock.sleep(_LOOK_S)
        return True

    def _is_at_work(self, instant: str) -> bool:
        found = self._context.load_timeline().get(instant)
        if found is None or found.is_completed:
            return False
        limit_ms = self._context.settings.heartbeat_limit_ms
        return bool(find_alive(self._context.storage, [instant], limit_ms=limit_ms))
