"""Looking for conflicts beside the creation of markers (Hudi's MarkerBasedEarlyConflictDetectionRunnable)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Set

from hudi_locks.early_conflict import DetectionContext, EarlyConflict, EarlyConflictDetectionStrategy, report
from hudi_locks.format import MarkerName
from hudi_locks.format.claim import FileGroupId
from hudi_locks.observe import EARLY_CONFLICT_CHECK, Metrics
from hudi_locks.redaction import open_log
from hudi_locks.timeline.heartbeat import heartbeat_path

__all__ = ["Checker", "groups_of"]

_log = open_log(__name__)


class Checker:
    """Looks at other writes for one instant, until it has found a conflict, is stopped, or the instant has ended.

    Whatever a look fails with, the next one comes: the JVM's ends for good with the first error of a reader.
    Thread-safe.

    Args:
        kind: How to look; one is kept for all rounds, so that it may remember what did not change.
        context: The instant, and what it knows of others; its clock spaces out the looks.
        initial_delay_s: Before the first look; with 0 that is made before the first names are answered.
        period_s: Between two.
        metrics: Gets how long each look took.

    Attributes:
        conflict: What was found; None so far.
        has_begun: Whether `begin` was called.
    """

    def __init__(
        self,
        kind: type[EarlyConflictDetectionStrategy],
        context: DetectionContext,
        *,
        initial_delay_s: float,
        period_s: float,
        metrics: Metrics,
    ) -> None:
        self.conflict: EarlyConflict | None = None
        self.has_begun: bool = False
        self._kind = kind
        self._context = context
        self._strategy = kind(context)
        self._initial_delay_s = initial_delay_s
        self._period_s = period_s
        self._metrics = metrics
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"marker-checker-{context.requested}", daemon=True)
        self._groups: Callable[[], Set[FileGroupId]] = frozenset

    def announce(self, names: Iterable[str]) -> None:
        """Take note of names that are about to be announced, before they are."""
        self._kind(self._context).announce(groups_of(names))

    def begin(self, groups: Callable[[], Set[FileGroupId]]) -> None:
        """Look for the first time, unless that is to come later, and go on in the background. Once; blocks.

        Args:
            groups: What the instant has announced so far; called at each look.
        """
        with self._lock:
            if self.has_begun or self._ended.is_set():
                return
            self._groups = groups
            if not self._initial_delay_s:
                self.look()
            self._thread.start()
            self.has_begun = True

    def stop(self) -> None:
        """End it, and wait for a look that is under way."""
        self._ended.set()
        with self._lock:
            has_begun = self.has_begun
        if has_begun:
            self._thread.join()

    def _run(self) -> None:
        pause_s = self._initial_delay_s or self._period_s
        while self.conflict is None and not self._context.clock.wait(self._ended, pause_s):
            pause_s = self._period_s
            self.look()

    def look(self) -> None:
        """One round: what is found is left for the driver, and remembered."""
        began_s = self._context.clock.monotonic()
        try:
            self._look()
        except Exception:  # noqa: BLE001  # of a strategy of a user's own too
            _log.warning(
                "a look for conflicts of %s failed, the next one comes", self._context.requested, exc_info=True
            )
        self._metrics.report(EARLY_CONFLICT_CHECK, self._context.clock.monotonic() - began_s)

    def _look(self) -> None:
        context, groups = self._context, self._groups()
        if not context.storage.exists(heartbeat_path(context.requested)):
            self._ended.set()  # committed, or rolled back by somebody
        elif groups and (found := self._strategy.find_conflict(groups)):
            report(context.storage, found)
            self.conflict = found


def groups_of(names: Iterable[str]) -> frozenset[FileGroupId]:
    """The file groups that names of markers announce."""
    parsed = (MarkerName.parse(name) for name in names)
    return frozenset(FileGroupId(name.partition_path, name.file_id) for name in parsed if name is not None)
