"""What the live page shows of one table: a few panels, each a piece of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from html import escape
from typing import Final

from hudi_locks.cli.listing import find_holders
from hudi_locks.cli.picture import draw_instants
from hudi_locks.config import Options, write_keys
from hudi_locks.display import say_time
from hudi_locks.errors import HudiLocksError
from hudi_locks.lock import LockProvider
from hudi_locks.redaction import hide_secrets, open_log
from hudi_locks.services.activity import Activity, list_activity
from hudi_locks.services.met_conflicts import ConflictSummary, MetConflict, list_conflicts, list_left
from hudi_locks.services.overview import PendingInstant, TableOverview, list_pending, look_over
from hudi_locks.table import Table

__all__ = ["PANELS", "WatchedTable"]

PANELS: Final = {
    "table": "",
    "locks": "Locks",
    "pending": "Under way",
    "conflicts": "Conflicts",
    "timeline": "Timeline",
}
"""Their headings, in the order of the page."""
_log = open_log(__name__)
_COMPLETED: Final = "COMPLETED"
_COMMITS: Final = 50
"""So many of the newest are looked at for conflicts."""
_NEWEST: Final = 10
"""So many conflicts are shown one by one."""
_NO_PROVIDER: Final = "Which lock the table has was not said: give <code>--provider</code> and its options."


class WatchedTable:
    """One table, looked at again and again. Changes nothing, and takes no lock. Not thread-safe.

    Its files are listed anew only when a write was completed, since a listing costs a request for each partition.

    Args:
        table: The table.
        options: Hudi's keys of its writers: how long one may be silent, and which files are small.
        provider: Of its lock; None if it is not known.
        last: So many of the newest instants are shown.
    """

    def __init__(
        self, table: Table, options: Mapping[str, object], provider: LockProvider | None, *, last: int
    ) -> None:
        self.path: str = table.storage.base
        self._table, self._options, self._provider, self._last = table, Options(options), provider, last
        self._seen: dict[tuple[str, str], Activity] = {}
        self._kept: dict[str, str] = {}
        self._left: list[str] = []
        self._is_stale = True

    def look(self, now_ms: int) -> dict[str, str]:
        """Each panel as it is now; one that cannot be drawn says why.

        Args:
            now_ms: To which pending instants are drawn, in milliseconds since the epoch.
        """
        drawn = dict.fromkeys(PANELS, "")
        try:
            pending = list_pending(self._table, self._table.timeline(), self._options)
            self._is_stale |= self._take_up(pending) | self._take_up_left()
            if self._is_stale:
                self._kept = {"table": _draw_table(look_over(self._table, self._options)), "conflicts": self._meet()}
                self._is_stale = False
            shown = sorted(self._seen.values(), key=lambda one: (one.began_ms, one.requested))
            drawn |= {**self._kept, "pending": self._draw_pending(pending)}
            drawn |= {"timeline": draw_instants(shown, now_ms=now_ms), "locks": self._draw_locks()}
        except Exception as error:  # noqa: BLE001  # else the page would say "live", and show what was once
            drawn["table"] = f'<p class="trouble">{escape(self._describe(error))}</p>{self._kept.get("table", "")}'
        return drawn

    def _describe(self, error: Exception) -> str:
        if isinstance(error, HudiLocksError):
            return str(error)
        _log.error("%s was not looked at", self.path, exc_info=error)
        return f"{type(error).__name__}: {hide_secrets(str(error))}"

    def _take_up(self, pending: Sequence[PendingInstant]) -> bool:
        """Read what is new on the timeline; whether anything was completed, or taken back."""
        known = {one.identity for one in self._seen.values()}
        news = list_activity(self._table, last=self._last, known=known)
        present = {(one.requested, one.action) for one in pending}
        gone = [place for place, one in self._seen.items() if one.state != _COMPLETED and place not in present]
        for place in gone:
            del self._seen[place]
        self._seen |= {(one.requested, one.action): one for one in news}
        for place in sorted(self._seen)[: -self._last]:
            del self._seen[place]
        return bool(gone) or any(one.state == _COMPLETED for one in news)

    def _take_up_left(self) -> bool:
        """Whether another write gave up since, or was forgotten."""
        before, self._left = self._left, list_left(self._table.storage)
        return before != self._left

    def _meet(self) -> str:
        return _draw_conflicts(list_conflicts(self._table, last=_COMMITS))

    def _draw_pending(self, pending: Sequence[PendingInstant]) -> str:
        limit_ms = self._options.get_value(write_keys.HEARTBEAT_INTERVAL_IN_MS) * self._options.get_value(
            write_keys.HEARTBEAT_TOLERABLE_MISSES
        )
        rows = [
            (one.requested, one.action, one.state.lower(), _say_span(one.age_ms), one.writer, _say_life(one, limit_ms))
            for one in pending
        ]
        return _draw_rows(("instant", "action", "state", "begun", "writer", "sign of life"), rows, nothing="Nothing.")

    def _draw_locks(self) -> str:
        if self._provider is None:
            return f"<p>{_NO_PROVIDER}</p>"
        try:
            held = find_holders(self._provider)
        except HudiLocksError as error:
            return f'<p class="trouble">{escape(str(error))}</p>'
        shown = ("since", "last sign of life", "others may take it", "in line", "token")
        told = [(one, dict(one.describe())) for one in held]
        rows = [
            (one.scope or "a file group", str(one.owner), *(words.get(name, "") for name in shown))
            for one, words in told
        ]
        return _draw_rows(("lock", "holder", *shown), rows, nothing="Nobody holds a lock.")


def _draw_table(found: TableOverview) -> str:
    settings, files = found.settings, found.files
    facts = (
        ("type", f"{settings.table_type}, version {settings.version}"),
        ("record key", ", ".join(settings.record_key)),
        ("index", settings.index or "as its writers say"),
        ("metadata table", ", ".join(settings.metadata_parts) or "none"),
        (
            "file groups",
            f"{files.file_groups:,} in {files.partitions:,} partitions, {files.base_bytes / 2**20:,.1f} MiB",
        ),
        ("small files", f"{files.small_files:,}"),
        ("logs", f"{files.logs:,}, {files.log_bytes / 2**20:,.1f} MiB"),
        ("last write", say_time(found.last_completed_ms) or "none"),
        ("savepoints", ", ".join(found.savepoints) or "none"),
        ("left behind", f"markers of {found.marker_folders} instants" if found.marker_folders else "nothing"),
    )
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{escape(told)}</dd>' for name, told in facts)}</dl>"


def _draw_conflicts(found: ConflictSummary) -> str:
    rows = [
        (
            one.job,
            one.other_job,
            *map(str, (one.conflicts, one.early, one.rewritten, one.given_up)),
            f"{one.lost_ms / 1000:.1f} s",
        )
        for one in found.jobs
    ]
    nothing = f"None of the newest {found.commits} commits met one, and nothing gave up."
    head = ("job", "gave way to", "conflicts", "early", "rewritten", "gave up", "lost")
    return _draw_rows(head, rows, nothing=nothing) + _draw_newest(found.conflicts[::-1][:_NEWEST])


def _draw_newest(conflicts: Sequence[MetConflict]) -> str:
    if not conflicts:
        return ""
    rows = [
        (
            say_time(one.met_ms) if one.met_ms else one.instant,
            one.writer,
            f"{one.other_action} {one.other}",
            one.other_writer,
            _say_place(one),
            one.found,
            one.ending or "went on, and was committed",
        )
        for one in conflicts
    ]
    head = ("when", "writer", "gave way to", "of", "where", "found", "and then")
    return _draw_rows(head, rows, nothing="")


def _say_place(one: MetConflict) -> str:
    """The file group in question, as far as it is known."""
    if one.partition is None:
        return "the whole table"
    return f"{one.partition}/{one.file_id}" if one.file_id else one.partition


def _draw_rows(head: Iterable[str], rows: Sequence[Iterable[str]], *, nothing: str) -> str:
    if not rows:
        return f"<p>{escape(nothing)}</p>"
    told = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f'<div class="wide"><table><thead><tr>{names}</tr></thead><tbody>{told}</tbody></table></div>'


def _say_span(ms: int) -> str:
    return f"{timedelta(seconds=ms // 1000)} ago"


def _say_life(one: PendingInstant, limit_ms: int) -> str:
    """The last one, and how long the writer may still be silent until others take it for dead."""
    if one.heartbeat_age_ms is None:
        return "none: its writer is dead, or beats nowhere"
    return f"{_say_span(one.heartbeat_age_ms)}, {max(0, limit_ms - one.heartbeat_age_ms) // 1000} s left"
