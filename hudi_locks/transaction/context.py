"""What one writer process knows of a table, and how it takes times on the table's timeline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from hudi_locks.clock import Clock
from hudi_locks.config import table_keys
from hudi_locks.errors import ClockRefused
from hudi_locks.format import Instant, LogFileName, State, add_ms, epoch_ms
from hudi_locks.format.claim import Claim, ClaimKind
from hudi_locks.metadata_table import METADATA_LAYOUT, OLD_METADATA_LAYOUT, DeltaCommits, Indexed, MetadataTable
from hudi_locks.observe import Metrics
from hudi_locks.storage import Storage
from hudi_locks.table import TableConfig, read_current_properties
from hudi_locks.timeline import Timeline, TimelineLayout, TimelineReader
from hudi_locks.timeline.claims import ClaimEntry, ClaimLog
from hudi_locks.timeline.heartbeat import WriterHeartbeat
from hudi_locks.transaction.foreign_writers import Notices
from hudi_locks.transaction.hooks import StopPoint, Tracer
from hudi_locks.transaction.known_timeline import KnownTimeline
from hudi_locks.transaction.settings import WriterSettings

__all__ = ["TableContext", "View"]

_LOG_COMPACTION = "logcompaction"


@dataclass(frozen=True)
class View:
    """The table at one moment.

    Attributes:
        head: The last claim; it is seen to.
        timeline: Listed after that.
    """

    head: ClaimEntry
    timeline: Timeline


@dataclass(frozen=True)
class TableContext:
    """One writer process and one table.

    Attributes:
        storage: Of the table.
        layout: Of its timeline.
        version: Of the table when it was opened.
        settings: Of the writer.
        log: Its view of the claim log.
        notices: What every writer must know.
        clock: Its source of time.
        owner: Who it is, for a person.
        tracer: Called at every stop point; None for nobody.
        metrics: What it reports to.
        keeps_metadata: Whether the table kept a metadata table when it was loaded.
    """

    storage: Storage
    layout: TimelineLayout
    version: int
    settings: WriterSettings
    log: ClaimLog
    notices: Notices
    clock: Clock
    owner: str
    tracer: Tracer | None
    metrics: Metrics
    keeps_metadata: bool

    @cached_property
    def reader(self) -> TimelineReader:
        """Remembers the timeline between two looks."""
        return TimelineReader(self.storage, self.layout)

    @cached_property
    def delta_commits(self) -> DeltaCommits:
        """Those of the metadata table."""
        return DeltaCommits(self.storage, OLD_METADATA_LAYOUT if self.layout.is_version_6 else METADATA_LAYOUT)

    def find_metadata_table(self) -> MetadataTable | None:
        """The metadata table that the table keeps now; None if it keeps none.

        The table's properties are read anew: a JVM writer may have made one, or dropped it, since they were last read.
        Where none is expected they stay as they were.

        Raises:
            DamagedTable: The properties say that there is one, and it cannot be read.
            TableError: The table is of another version now.
            UnsupportedTable: It is one that is not written here.
        """
        is_fixed = not self.expects_foreign_writers() and not self.keeps_metadata
        self.notices.metadata_table_seen = False
        known = {} if is_fixed else read_current_properties(self.storage, self.version)
        names_it = bool(known.get(table_keys.METADATA_PARTITIONS.name))
        found = MetadataTable.of(self.storage, TableConfig.from_properties(known)) if names_it else None
        self.notices.metadata_table_seen = found is not None
        return found

    def find_named(self, paths: Collection[str]) -> frozenset[str]:
        """Those of some data files that the metadata table names: readers that go by it take them for there.

        Raises:
            DamagedTable: It cannot be read.
        """
        kept = self.find_metadata_table()
        if kept is None:
            return frozenset()
        files = kept.view(self.load_timeline()).files
        parts = ((path, *path.rpartition("/")[::2]) for path in paths)
        return frozenset(path for path, folder, name in parts if name in files.get(folder, ()))

    def delete_files(self, paths: Iterable[str]) -> set[str]:
        """Remove data files that nobody will ever commit; the paths removed.

        Change logs that the metadata table names stay. A restore of JVM Hudi 0.15 leaves those of what it undoes, and
        names every file that it finds afterwards. No reader opens them, since no commit tells of them.

        Raises:
            DamagedTable: The metadata table cannot be read.
            StorageError: The store failed.
        """
        going = set(paths)
        if change_logs := frozenset(filter(_is_change_log, going)):
            going -= self.find_named(change_logs)
        return set(filter(self.storage.delete, sorted(going)))

    def describe_indexed(self) -> Indexed | None:
        """What the tasks of a write are to report; None if the table keeps no metadata table.

        Raises:
            DamagedTable: The metadata table cannot be read.
            UnsupportedTable: It has a part that is not kept up to date here.
        """
        found = self.find_metadata_table()
        return None if found is None else found.describe_indexed(fresh=self.settings.fresh_key_groups)

    @cached_property
    def known_timeline(self) -> KnownTimeline:
        """What is known of the timeline without a look at it."""
        return KnownTimeline(self.storage, self.reader, log=self.log, notices=self.notices, clock=self.clock)

    @property
    def goes_by_claims(self) -> bool:
        """Whether every change of the table that a write must know of has a claim, so that few looks are needed.

        A single writer looks for others, of which the claims do not tell before they publish.
        """
        return self.settings.is_multi_writer and not self.expects_foreign_writers()

    def trace(self, point: StopPoint) -> None:
        """Tell the tracer, and the present span, what has just been done."""
        if self.tracer is not None:
            self.tracer(point)
        if self.metrics.tracing is not None:
            self.metrics.tracing.event(point.value, {})

    def load_timeline(self) -> Timeline:
        """What is on the timeline now."""
        return self.reader.load()

    def follow_timeline(self, head: ClaimEntry, *, for_begin: bool = False) -> Timeline:
        """As `load_timeline`, once `head` was seen to; where all writers claim, mostly by what they claimed.

        Pending instants of the last second may be missing then, and archived ones be there.

        Args:
            head: The last claim.
            for_begin: Whether times that other writes are about to begin with are to be known too.
        """
        return self.known_timeline.at(head, for_begin=for_begin) if self.goes_by_claims else self.load_timeline()

    def path(self, instant: Instant, state: State) -> str:
        """The pending file of `instant` in `state`."""
        return self.layout.path(Instant(instant.requested, instant.action, state))

    def is_inflight(self, claim: Claim) -> bool:
        """Whether the inflight file of a claim's instant is there: it outlives completion, not rollback or archival."""
        return self.storage.exists(self.layout.path(Instant(claim.instant, claim.action, State.INFLIGHT)))

    def is_free(self, requested: str) -> bool:
        """Whether no instant has this requested time, asked by whoever holds its heartbeat file.

        Instants of two actions would otherwise get one time: each has its heartbeat until it is done, and this listing
        shows what was done before.
        """
        return self.load_timeline().get(requested) is None

    def find_taken(self, requested: str, *, since: ClaimEntry) -> str | None:
        """As `is_free`, for a write: None if it may have this time, else one after which it is to look for another.

        Where all writers claim it is enough to look at the claims that came after the one after whose times it was
        taken, for nothing is done without one. A log compaction that was planned meanwhile must stay behind every write
        of an earlier time, so that a write that is not under way yet takes a later one.

        Args:
            requested: The time.
            since: That claim.
        """
        if not self.goes_by_claims:
            return None if self.is_free(requested) else requested
        later = self.log.since(since.number, self.log.read_head())
        if any(requested in (claim.instant, claim.rollback_instant) for claim in later):
            return requested
        planned = (
            claim.time for claim in later if claim.kind is ClaimKind.SCHEDULE and claim.action == _LOG_COMPACTION
        )
        return max((time for time in planned if time > requested), default=None)

    def new_claim(self, kind: ClaimKind, instant: Instant, *, time: str) -> Claim:
        """A claim of this writer about `instant`, without what it decides on beside that."""
        return Claim(
            kind=kind,
            instant=instant.requested,
            action=instant.action,
            time=time,
            owner=self.owner,
            lock_key=self.settings.lock_provider,
        )

    def reserve(
        self, requested: str, *, accept: Callable[[str], str | None] | None = None, is_beating: bool = True
    ) -> WriterHeartbeat:
        """Take the first requested time from `requested` on that no other instant has or gets. Inside the table lock.

        JVM writers see no heartbeat of this package: it returns when none of them can come to that time any more.

        Args:
            requested: The first time to try.
            accept: Asked while the time is held: None to keep it, else a time after which to look on. By default a time
                is kept that the timeline does not show.
            is_beating: Whether the heartbeat beats; else its file alone holds the time, also after this process ended.

        Returns:
            The heartbeat of that time; whoever finds it expired may go on with the work.

        Raises:
            StorageError: The store failed.
        """
        accept = accept or (lambda time: None if self.is_free(time) else time)
        while True:
            heartbeat = self.heartbeat(requested)
            if heartbeat.start() if is_beating else heartbeat.hold_time():
                with heartbeat.pause_on_error():
                    taken = accept(requested)
                    if taken is None:
                        self.wait_for_skew(requested)
                        return heartbeat
                heartbeat.stop()
                requested = taken
            requested = add_ms(requested, 1)

    def later_than(self, *times: str | None) -> str:
        """Now, or one millisecond after the latest of `times` if that is later."""
        return max(self.layout.time(self.clock.wall_ms()), *(add_ms(time, 1) for time in times if time), "")

    def time_after(self, view: View, *times: str) -> str:
        """Now, or one millisecond after every time that `view` shows and after `times`, if that is later."""
        return self.later_than(self.newest(view), *times)

    def newest(self, view: View) -> str | None:
        """The latest time of the table: whatever comes is to have a later one.

        A rollback that the store's clock proves to be from the future does not count, be it claimed or on the timeline:
        a process with a wrong clock made it, and it orders no data. All others would have to wait for that time.
        """
        known = max(filter(None, (view.head.time, view.timeline.newest_time())), default=None)
        if known is None or known <= self.layout.time(self.clock.wall_ms()):
            return known
        limit = self.layout.time(self.storage.now_ms() + self.settings.drift_ms)
        ordering = (self._last_ordering_claim(view.head, limit), view.timeline.newest_ordering_time(limit))
        return max(filter(None, ordering), default=None)

    def _last_ordering_claim(self, head: ClaimEntry, limit: str) -> str | None:
        """Times grow along the log, but for those rollbacks."""
        number, claim = head.number, head.claim
        while claim is not None and claim.kind in (ClaimKind.ROLLBACK, ClaimKind.VOID) and claim.time > limit:
            number -= 1
            claim = self.log.read(number) if number else None
        return claim.time if claim is not None else None

    def wait_for_skew(self, time: str) -> None:
        """Wait until no JVM writer can take `time` or an earlier one any more; not at all where there is none.

        The lock is to be held since `time` was taken (Hudi's SkewAdjustingTimeGenerator waits so too).
        """
        if self.expects_foreign_writers():
            past_ms = self.clock.wall_ms() - self.epoch_ms(time)
            self.clock.sleep(max(0, self.settings.skew_ms - past_ms) / 1000)

    def heartbeat(self, requested: str) -> WriterHeartbeat:
        """One for the instant begun at `requested`, not started yet."""
        return WriterHeartbeat(
            self.storage,
            requested,
            interval_ms=self.settings.heartbeat_interval_ms,
            tolerable_misses=self.settings.heartbeat_tolerable_misses,
            clock=self.clock,
            metrics=self.metrics,
        )

    def expects_foreign_writers(self) -> bool:
        """Whether JVM writers may be at work: as the table says, or as one of them was seen."""
        return self.settings.foreign_writers or self.notices.foreign_writer_seen

    def earliest(self, time: str) -> str:
        """The earliest time that a machine may give to what it does after `time`.

        Each clock may be off the store's by the allowed drift, which is far more than JVM writers wait for.
        """
        return add_ms(time, -2 * self.settings.drift_ms)

    def epoch_ms(self, time: str) -> int:
        """An instant time of this table in ms since the epoch."""
        return epoch_ms(time, self.layout.zone)

    def check_clock(self, timeline: Timeline) -> None:
        """Refuse to order instants by times that are far from the store's: everybody would be dragged along.

        Raises:
            ClockRefused: This machine's clock, or the newest time on the timeline, is out of bounds.
        """
        store_ms, now_ms, bound_ms = self.storage.now_ms(), self.clock.wall_ms(), self.settings.drift_ms
        newest, ahead_ms = self._look_ahead(timeline, store_ms)
        if abs(now_ms - store_ms) > bound_ms:
            found = f"this machine's clock is {now_ms - store_ms:+d} ms off the store's"
            way_out = "set the clocks right"
        elif ahead_ms > bound_ms and ahead_ms > bound_ms + self.notices.read_accepted_ahead_ms():
            found = f"the newest time on the timeline, {newest}, is {ahead_ms} ms ahead of the store's clock"
            way_out = "wait until then, restore the table to before it, or let writers go on after it by"
            way_out += " hudi-locks accept-times"
        else:
            return
        message = f"{found}, and {bound_ms} ms are allowed (hudi_locks.max_clock_drift_ms): {way_out}"
        raise ClockRefused(message, store_ms=store_ms, now_ms=now_ms, newest=newest, bound_ms=bound_ms)

    def accept_times(self, timeline: Timeline) -> str | None:
        """Let writers go on after the newest time on the timeline though that is out of bounds.

        Returns:
            That time; None if it is within bounds, and nothing was changed.

        Raises:
            ClockRefused: JVM writers may be at work.
            StorageError: The store failed.
        """
        newest, ahead_ms = self._look_ahead(timeline, self.storage.now_ms())
        if newest is None or ahead_ms <= self.settings.drift_ms:
            return None
        if self.expects_foreign_writers():
            message = (
                f"{newest} is {ahead_ms} ms ahead; JVM writers would go on with earlier times, and readers pass over"
                " such writes: restore the table to before it, or set hudi_locks.foreign_writers=false on it"
            )
            raise ClockRefused(message, newest=newest, ahead_ms=ahead_ms)
        self.notices.accept_ahead(newest, ahead_ms)
        return newest

    def _look_ahead(self, timeline: Timeline, store_ms: int) -> tuple[str | None, int]:
        """The newest time that orders data, and how far it is ahead of the store's clock, ms."""
        newest, limit = timeline.newest_time(), self.layout.time(store_ms + self.settings.drift_ms)
        if newest is not None and newest > limit:
            newest = timeline.newest_ordering_time(limit)
        is_ahead = newest is not None and newest > limit
        return newest, self.epoch_ms(newest) - store_ms if newest and is_ahead else 0


def _is_change_log(path: str) -> bool:
    name = LogFileName.parse(path.rpartition("/")[2])
    return name is not None and name.is_cdc
