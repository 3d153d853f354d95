"""In which zone a JVM writes instants that it calls LOCAL: the files' times of modification tell."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from datetime import timedelta, timezone, tzinfo
from itertools import groupby
from typing import Final
from zoneinfo import ZoneInfo

from hudi_locks.errors import DamagedTable
from hudi_locks.format import Instant, State, epoch_ms, parse_instant_name
from hudi_locks.storage import Entry, Storage
from hudi_locks.timeline import TimelineLayout

__all__ = ["find_zone", "infer_zone"]

_STEP_MS: Final = 15 * 60_000
"""Offsets of zones are multiples of a quarter of an hour."""
_SLACK_MS: Final = 3 * 60_000
"""How long after the time in its name a file may be written, clocks that differ included."""
_HOUR: Final = 4
_ASKED: Final = 20
_OFFSET: Final = re.compile(r"UTC([+-])(\d\d):(\d\d)")
_log = logging.getLogger(__name__)


def find_zone(name: str) -> tzinfo:
    """The zone of an IANA name, or of an offset such as UTC+05:30.

    Raises:
        ValueError: There is none (`ZoneInfoNotFoundError`, a KeyError, if the name is well-formed).
    """
    if match := _OFFSET.fullmatch(name.upper()):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-offset if match[1] == "-" else offset)
    return timezone.utc if name.upper() == "UTC" else ZoneInfo(name)


def infer_zone(storage: Storage, layout: TimelineLayout) -> str | None:
    """The zone in which the newest instants are written, as an offset from UTC; UTC if there are no instants.

    An instant's time is taken just before its file is written, so the two differ by the zone's offset. A table that was
    copied has other times of modification: then nothing is said, as where instants were written in several zones. A
    change to summer time and back is none of these.

    Args:
        storage: Of the table.
        layout: Of its timeline.

    Returns:
        A name for `find_zone`; None where the files contradict each other.

    Raises:
        StorageError: The timeline cannot be listed.
    """
    instants = list(_list_instants(storage, layout))
    offsets = [_tell_offset(time, entry) for time, entry in instants[-_ASKED:]]
    told = [offset for offset, _ in groupby(offsets)]
    known = [offset for offset in told if offset is not None]
    if len(known) < len(told) or len(known) > 2 or max(known, default=0) - min(known, default=0) not in (0, _HOUR):
        return None
    name = _name_offset(known[-1]) if known else "UTC"
    _log.info("instants of %s are in LOCAL time: taken for %s, by %d files", storage.base, name, len(offsets))
    return name


def _list_instants(storage: Storage, layout: TimelineLayout) -> Iterator[tuple[str, Entry]]:
    """(a time, the file that was written just then), in the order of the names."""
    for entry in storage.list(layout.folder):
        try:
            instant = None if entry.is_folder else parse_instant_name(entry.name)
        except DamagedTable:
            continue  # whoever loads the timeline tells of it
        if instant is not None and (time := _time_of(instant, layout)):
            yield time, entry


def _time_of(instant: Instant, layout: TimelineLayout) -> str | None:
    """Completion time where names have one (layout 2), requested time of a requested file elsewhere."""
    if not layout.is_version_6:
        return instant.completion
    return instant.requested if instant.state is State.REQUESTED else None


def _tell_offset(time: str, entry: Entry) -> int | None:
    """By how many quarters of an hour the clock on the wall was ahead of UTC; None if the file was written later."""
    ahead_ms = epoch_ms(time) - entry.modified_ms
    steps = round(ahead_ms / _STEP_MS)
    return steps if abs(ahead_ms - steps * _STEP_MS) <= _SLACK_MS and abs(steps) <= 14 * _HOUR else None


def _name_offset(steps: int) -> str:
    hours, quarters = divmod(abs(steps), _HOUR)
    return f"UTC{'-' if steps < 0 else '+'}{hours:02d}:{quarters * 15:02d}" if steps else "UTC"
