"""Early conflict detection of one writer, as its driver has to do with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final

from hudi_locks.early_conflict import ConflictWatch, EarlyDetection, GuardedMarkers, Markers, find_reported
from hudi_locks.observe import EARLY_CONFLICT_COMMIT, EARLY_CONFLICT_MARKER
from hudi_locks.timeline.heartbeat import find_alive
from hudi_locks.transaction.context import TableContext
from hudi_locks.transaction.operations import find_publication
from hudi_locks.transaction.outcome import Conflict
from hudi_locks.transaction.write_state import WriteState

__all__ = ["EarlyConflictDriver"]

_LOOK_S: Final = 1.0
_KINDS: Final = {"marker": EARLY_CONFLICT_MARKER, "commit": EARLY_CONFLICT_COMMIT}


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
        self._detection = EarlyDetection.of(
            options,
            heartbeat_limit_ms=context.settings.heartbeat_limit_ms,
            is_bucketed=context.settings.is_bucketed,
        )

    def looks(self, state: WriteState) -> bool:
        """Whether the tasks of a write, or its timeline server, look for conflicts."""
        return self._detection.looks(state.instant.action)

    def guard(self, state: WriteState, markers: Markers) -> GuardedMarkers | None:
        """What makes the markers of a write after a look at others; None if nothing is looked at."""
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
