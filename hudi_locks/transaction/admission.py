"""Who may begin a write: nobody beside a bootstrap or a restore, and a single writer only alone.

Hudi keeps a second single writer out by nothing: two jobs without lock configuration double rows and lose updates.
"""

from __future__ import annotations

from typing import Final

from hudi_locks.config import write_keys
from hudi_locks.errors import SecondWriterRefused, UnsupportedTable, WriteAborted
from hudi_locks.format import Instant
from hudi_locks.timeline import Timeline
from hudi_locks.timeline.heartbeat import find_alive
from hudi_locks.transaction.context import Context
from hudi_locks.transaction.pending import INGESTION

__all__ = ["Admission"]

_BOOTSTRAPS: Final = frozenset({"00000000000001", "00000000000002"})
"""Hudi gives a bootstrap one of these requested times, whenever it runs."""


class Admission:
    """Looks at the timeline before a write is begun. Runs on the driver, inside the table lock if there is one."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def check_table(self, timeline: Timeline) -> None:
        """Whether the table takes writes at all.

        Raises:
            UnsupportedTable: A bootstrap is not finished.
            WriteAborted: A restore is not finished.
        """
        if unfinished := [i for i in timeline.pending() if i.requested in _BOOTSTRAPS]:
            path = timeline.paths.get(unfinished[0], "")
            message = (
                f"{path} is a bootstrap that is not finished, and this package neither runs nor undoes one: finish it"
                " with the JVM job that began it, or roll it back there, before anybody writes"
            )
            raise UnsupportedTable(message, path=path, instant=unfinished[0].requested)
        if restoring := timeline.pending(("restore",)):
            message = f"restore {restoring[0].requested} is pending: let it finish before writing"
            raise WriteAborted(message, instant=restoring[0].requested)

    def check_alone(self, timeline: Timeline, *, own: str = "") -> None:
        """Whether no other writer is alive, where this one is the only one; without meaning for several writers.

        Args:
            timeline: After failed writes were rolled back.
            own: Requested time of the write itself, if it is on the timeline already.

        Raises:
            SecondWriterRefused: Another writer is alive, or died elsewhere less than a heartbeat's life ago.
        """
        pending = {i.requested: i for i in timeline.pending(INGESTION) if i.requested != own}
        if self._context.settings.is_multi_writer or not pending:
            return
        limit_ms = self._context.settings.heartbeat_limit_ms
        if alive := find_alive(self._context.storage, pending, limit_ms=limit_ms):
            requested, age_ms = min(alive.items())
            raise _refusal(pending[requested], age_ms, dead_in_ms=limit_ms - age_ms)


def _refusal(other: Instant, age_ms: int, *, dead_in_ms: int) -> SecondWriterRefused:
    mode = write_keys.CONCURRENCY_MODE.name
    message = (
        f"{mode} is {write_keys.SINGLE_WRITER}, and another writer is at work: {other.action} {other.requested} gave a"
        f" sign of life {age_ms / 1000:.1f} s ago. Let it finish; or, for several writers, give every one of them"
        f" {mode}={write_keys.OPTIMISTIC} and the same lock provider. If it has died, it counts as dead in"
        f" {dead_in_ms / 1000:.1f} s, and the next write rolls it back; resolve({other.requested!r}) does so at once"
    )
    facts = {"other": other.requested, "other_action": other.action, "heartbeat_age_ms": age_ms}
    return SecondWriterRefused(message, **facts, dead_in_ms=dead_in_ms)
