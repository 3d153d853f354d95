"""Looks at tables as long as somebody watches, and tells the watchers what changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from hudi_locks.cli.ui.panels import PANELS, WatchedTable
from hudi_locks.clock import Clock
from hudi_locks.display import say_time

__all__ = ["MOMENT", "Looker", "Watcher", "name_place"]

MOMENT: Final = "moment"
"""The place of the page that says when the tables were looked at."""


def name_place(table: int, panel: str) -> str:
    """Of the page, where a panel of the table of that number is."""
    return f"t{table}-{panel}"


class Watcher:
    """One open page. Its `wait` runs on one thread."""

    def __init__(self, looker: Looker) -> None:
        self._looker = looker
        self._news = threading.Event()
        self._seen: dict[str, str] = {}

    def tell(self) -> None:
        """There may be news."""
        self._news.set()

    def wait(self, timeout_s: float) -> dict[str, str]:
        """The places that changed since the last call, with their HTML; nothing if none did for so long."""
        self._looker.clock.wait(self._news, timeout_s)
        self._news.clear()
        drawn = self._looker.drawn
        changed = {place: html for place, html in drawn.items() if self._seen.get(place) != html}
        self._seen = drawn
        return changed


class Looker:
    """Looks at some tables, one look after the other, while a page is open; between pages it rests.

    A context manager, within which it looks.

    Args:
        tables: What is looked at.
        clock: Paces the looks.
        interval_s: Between two looks, in seconds.

    Attributes:
        drawn: HTML by place of the page; replaced whole by each look.
    """

    def __init__(self, tables: Sequence[WatchedTable], clock: Clock, *, interval_s: float) -> None:
        self.tables: Sequence[WatchedTable] = tables
        self.clock: Clock = clock
        self.drawn: dict[str, str] = {}
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._watchers: set[Watcher] = set()
        self._wanted, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="hudi-locks-ui", daemon=True)

    @property
    def has_ended(self) -> bool:
        """Whether it looks no more."""
        return self._ended.is_set()

    @contextmanager
    def watch(self) -> Iterator[Watcher]:
        """Open a page."""
        watcher = Watcher(self)
        with self._lock:
            self._watchers.add(watcher)
        self._wanted.set()
        try:
            yield watcher
        finally:
            with self._lock:
                self._watchers.discard(watcher)
                if not self._watchers:
                    self._wanted.clear()

    def look(self) -> None:
        """Look at each table once."""
        now_ms = self.clock.wall_ms()
        looks = [table.look(now_ms) for table in self.tables]
        drawn = {name_place(number, panel): look[panel] for number, look in enumerate(looks) for panel in PANELS}
        self.drawn = {**drawn, MOMENT: say_time(now_ms)}
        with self._lock:
            told = tuple(self._watchers)
        for watcher in told:
            watcher.tell()

    def _run(self) -> None:
        while not self.has_ended:
            self.clock.wait(self._wanted, None)
            if not self.has_ended:
                self.look()
                self.clock.wait(self._ended, self._interval_s)

    def __enter__(self) -> Looker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._wanted.set()
        self._thread.join()
