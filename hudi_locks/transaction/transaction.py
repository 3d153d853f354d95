"""One write, from its begin to its publish or abort."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cached_property
from types import TracebackType
from typing import ClassVar, Final

from hudi_locks.deprecation import RenamedMember
from hudi_locks.early_conflict import GuardedMarkers, Markers
from hudi_locks.errors import HudiLocksError, StorageError, WriteAborted
from hudi_locks.format import CommitMetadata, epoch_ms
from hudi_locks.markers import DirectMarkers, MarkerMaker, StagedFiles, drop_staged
from hudi_locks.metadata_table import Indexed, StagedLog
from hudi_locks.observe import COMPACTION_COMPLETED, SpanName
from hudi_locks.redaction import open_log
from hudi_locks.table import BaseFile
from hudi_locks.timeline import Timeline
from hudi_locks.transaction.abort import abort_write, find_published
from hudi_locks.transaction.begin import Begin
from hudi_locks.transaction.concurrent_writes import EarlyConflictDriver
from hudi_locks.transaction.conflicts import ReadSet
from hudi_locks.transaction.coordinator import TableCoordinator
from hudi_locks.transaction.publish import Publish, Unless, check_conflict, remove_work_files
from hudi_locks.transaction.write_state import Conflict, Outcome, PublishResult, WriteState, find_loss

__all__ = ["Transaction"]

_log = open_log(__name__)
_SERVICES: Final = ("clean", "clustering", "compaction", "rollback")


class Transaction:
    """One write, from its begin to its publish or abort. Not for several threads at once. Runs on the driver.

    As a context manager it aborts when the block raises, or ends without a publish.

    Args:
        coordinator: Of the writer.
        state: Of the write.
        operation: What the user does, such as UPSERT; for a person.
        early: Looks for conflicts before files are written.

    Attributes:
        action: Of the instant.
        operation: What the user does.
    """

    def __init__(
        self, coordinator: TableCoordinator, state: WriteState, *, operation: str, early: EarlyConflictDriver
    ) -> None:
        self._table = coordinator
        self._state = state
        self._early = early
        self._lock = threading.Lock()
        self._ended = ""
        self._is_publishing = False
        self._has_markers = False
        self.action: str = state.instant.action
        self.operation = operation

    @property
    def instant(self) -> str:
        """Its requested time: names the files that it writes."""
        return self._state.instant.requested

    @property
    def timeline(self) -> Timeline:
        """The snapshot that it builds on; every file slice it reads is chosen by this one."""
        return self._state.timeline

    @property
    def claim_head(self) -> int:
        """Number of the last claim before that snapshot."""
        return self._state.claim_head

    @property
    def indexed(self) -> Indexed | None:
        """What the metadata table is to be told; None if the table keeps no metadata table."""
        return self._state.indexed

    @cached_property
    def files(self) -> StagedFiles:
        """Makes data files; send it to the executors.

        They are announced by direct markers where somebody reads those: JVM writers, early conflict detection, or
        table services that give way to living writers.
        """
        are_read = self._table.expects_foreign_writers() or self._table.strategy.reads_markers
        direct = DirectMarkers(self._table.storage, self.instant)
        return self.files_by(self.guard(direct) or (direct if are_read else None))

    def files_by(self, maker: MarkerMaker | None) -> StagedFiles:
        """Makes data files that `maker` announces; None for no markers."""
        instant, self._has_markers = self._state.instant, self._has_markers or maker is not None
        told = self._state.indexed or Indexed()
        where = (self._table.storage, self._table.layout, instant.requested, instant.action, maker)
        told_of = (told.columns, told.key_groups, told.has_filters)
        return StagedFiles(*where, *told_of, attempt=self._state.attempt)

    def guard(self, markers: Markers) -> GuardedMarkers | None:
        """What looks for conflicts before it makes `markers`; None if the write is not to look."""
        return self._early.guard(self._state, markers)

    @property
    def markers(self) -> DirectMarkers:
        """Its direct markers, and the folder of those of a timeline server. Who asks may make some."""
        self._has_markers = True
        return DirectMarkers(self._table.storage, self.instant)

    @property
    def lost_because(self) -> str:
        """Why the write cannot be published any more, as far as its heartbeat tells; "" while others see it alive."""
        return self._state.lost_because

    def find_loss(self) -> str:
        """The same by a look at the table, which knows it before the next beat; "" also for a write that has ended.

        Raises:
            DamagedTable: The claim log is unreadable.
            StorageError: The store failed.
        """
        return "" if self._ended else find_loss(self._table, self._state)

    def call_when_lost(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with the reason as soon as the heartbeat is lost, to stop work that would be wasted.

        It is called from the heartbeat's thread, or at once if it is lost already; never after the write has ended.
        """
        self._state.heartbeat.call_when_lost(callback)

    def call_at_conflict(self, callback: Callable[[], None]) -> AbstractContextManager[object]:
        """A context in which `callback` is called, once, when a task has found a conflict before it wrote.

        It is called from a thread of the context. Without early conflict detection it never is.
        """
        if not self._early.looks(self._state):
            return nullcontext()
        return self._early.watch(self._state, callback)

    def find_early_conflict(self) -> Conflict | None:
        """What a task found before it wrote; None if no task found anything.

        Raises:
            StorageError: The store failed.
        """
        return self._early.find(self._state) if self._early.looks(self._state) else None

    def check_conflict(self, metadata: CommitMetadata, *, reads: ReadSet | None = None) -> Conflict | None:
        """The conflict that a publish of `metadata` would meet now, without the lock and without ending the write.

        Lets a caller change its plan before publishing instead of retrying; `publish` checks again in any case. Files
        that are then left out of the metadata never get their names.

        Raises:
            DamagedTable: The timeline or the claim log is unreadable.
            StorageError: The store failed.
        """
        return check_conflict(self._table, self._state, metadata, reads=reads)

    foresee: ClassVar[RenamedMember] = RenamedMember("check_conflict", removed_in="0.3.0")

    def look_again(self) -> WriteState | None:
        """This write as if it had been begun by a look at the table as it is now; None if it cannot go on from there.

        Nothing changes by that: give it to `go_on`. It takes the table lock where a begin does.

        Raises:
            AcquireTimeout: The table lock could not be had.
            DamagedTable: The timeline or the claim log is unreadable.
            StorageError: The store failed.
        """
        return Begin(self._table).look_again(self._state)

    def go_on(self, later: WriteState, *, bases: Iterable[BaseFile]) -> bool:
        """Build on a later snapshot, under the same instant, and write anew only what is outdated by it.

        Readers show the file with the highest requested time of a file group. So nothing may be written on top of a
        file that was begun after this write; then False is returned, and nothing has changed.

        Args:
            later: By `look_again`.
            bases: The newest files, in that snapshot, of the file groups that are written from now on. All that was
                written before and stays must be as if it had been written from that snapshot. What is outdated is left
                out of the metadata, and never gets its name.
        """
        if any(file.instant >= self.instant for file in bases):
            return False
        self._state = later
        self.__dict__.pop("files", None)  # what looks for conflicts early goes by the snapshot
        return True

    def publish(
        self,
        metadata: CommitMetadata,
        *,
        reads: ReadSet | None = None,
        unless: Unless | None = None,
        key_logs: Sequence[StagedLog] | None = None,
    ) -> PublishResult:
        """Make the write part of the table, if no other got in its way. Nothing is raised for an abort: look at it.

        Args:
            metadata: What it wrote.
            reads: What its result rests on beside what it changes; None for nothing, as in an insert.
            unless: Asked inside the lock, with the timeline on which is decided, for a reason not to publish; "" to
                go on. May be asked several times.
            key_logs: What it tells the record index of the metadata table; None where there is none.

        Raises:
            AcquireTimeout: The table lock could not be had; the write stays open.
            ClockRefused: The times are out of bounds; the write stays open.
            DamagedTable: The timeline or the claim log is unreadable; the write stays open.
            StorageError: The store failed before the lock was taken; the write stays open.
            PossibleLostUpdate: Writes are refused until a notice is acknowledged; the write stays open.
            WriteAborted: The write has ended before.
        """
        with self._lock:
            self._require_open()
            self._is_publishing = True
            marked = self._has_markers
            publish = Publish(
                self._table,
                self._state,
                metadata=metadata,
                reads=reads,
                unless=unless,
                has_markers=marked,
                key_logs=key_logs,
            )
            with self._table.metrics.span(SpanName.PUBLISH, instant=self.instant, action=self.action) as span:
                result = publish.run()
                self._ended = result.outcome.value
                span.note(outcome=self._ended, reason=result.reason or None)
                if result.is_committed:
                    self._report(metadata, result)
            return result

    def _report(self, metadata: CommitMetadata, result: PublishResult) -> None:
        """Under JVM Hudi's names; services that are pending are those of the snapshot that the write builds on."""
        metrics, began_ms = self._table.metrics, epoch_ms(self.instant)
        took_ms = epoch_ms(result.completion_time or self.instant) - began_ms
        metrics.report(f"{self.action}.timer", took_ms / 1000)
        metrics.show(self.action, {**metadata.count_written(), "duration": took_ms, "commitTime": began_ms})
        if self.action == "compaction":
            metrics.count(COMPACTION_COMPLETED)
        for action in _SERVICES:
            pending = [one.requested for one in self.timeline.pending((action,)) if one.requested != self.instant]
            earliest = {f"earliestInflight{action.title()}Instant": int(pending[0])} if pending else {}
            metrics.show(action, {f"pending{action.title()}InstantCount": len(pending), **earliest})

    def abort(self, reason: str) -> PublishResult:
        """Roll the write back; COMMITTED if a publish was interrupted when it had made its claim.

        Raises:
            AcquireTimeout: See `publish`.
            DamagedTable: See `publish`.
            StorageError: The store does not say whether an interrupted publish made its claim; the write stays open.
            PossibleLostUpdate: See `publish`.
            WriteAborted: The write has ended before.
        """
        with self._lock:
            self._require_open()
            result = self._end(reason)
            self._ended = result.outcome.value
            return result

    def _end(self, reason: str) -> PublishResult:
        """Roll back, unless a publish was begun and made its claim.

        What tasks staged goes before the lock is asked for, since a lock may need room on the same disk; not where a
        claim that was made may need it.
        """
        if not self._is_publishing and not self._table.rollback.keeps_plan(self.action):
            with suppress(StorageError):  # it is tried again inside the lock, and told
                drop_staged(self._table.storage, [self.instant])
        with self._table.hold():
            claim = find_published(self._table, self._state) if self._is_publishing else None
            if claim is None:
                return abort_write(self._table, self._state, reason)
        left = remove_work_files(self._table, self._state)
        return PublishResult(self.instant, Outcome.COMMITTED, completion_time=claim.time, warnings=tuple(left))

    def _require_open(self) -> None:
        if self._ended:
            message = f"instant {self.instant} has ended ({self._ended}): begin a new write"
            raise WriteAborted(message, instant=self.instant)

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Abort what was not published; if that fails, let the heartbeat go out, so that others roll it back."""
        if self._ended:
            return
        try:
            self.abort(f"{type(error).__name__}: {error}" if error else "the block ended without a publish")
        except HudiLocksError as failure:
            if error is None:
                raise
            _log.warning("%s is not rolled back yet, the next writer does it: %s", self.instant, failure)
        finally:
            if not self._ended:
                self._state.heartbeat.pause()
