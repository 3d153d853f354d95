"""Instants, their times and file names, and where a table keeps them (Hudi's HoodieInstant and its layouts)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone, tzinfo
from enum import IntEnum
from typing import Final

from hudi_locks.errors import BadInput, DamagedTable

__all__ = [
    "ACTIONS",
    "BOOTSTRAPS",
    "FIRST_TIME",
    "LAST_TIME",
    "LAYOUT_1",
    "LAYOUT_2",
    "METADATA_BOOTSTRAP",
    "TIME",
    "WRITE_ACTIONS",
    "Instant",
    "State",
    "TimelineLayout",
    "add_ms",
    "comparable_action",
    "epoch_ms",
    "format_time",
    "is_time",
    "parse_instant_name",
    "parse_moment",
]

ACTIONS: Final = frozenset(
    {
        "clean", "clustering", "commit", "compaction", "deltacommit", "indexing", "logcompaction", "replacecommit",
        "restore", "rollback", "savepoint", "schemacommit",
    }
)  # fmt: skip
WRITE_ACTIONS: Final = frozenset(
    {"clustering", "commit", "compaction", "deltacommit", "logcompaction", "replacecommit"}
)
"""Actions that bring data files: Hudi's write timeline."""
FIRST_TIME: Final = "19700102000000000"
"""Before every instant, and still a day after the epoch, for what is counted back from it."""
LAST_TIME: Final = "9" * 17
"""After every instant."""
METADATA_BOOTSTRAP: Final = "00000000000001"
"""Requested time of the commit of a bootstrap that wrote meta columns alone, whenever it ran."""
BOOTSTRAPS: Final = frozenset({METADATA_BOOTSTRAP, "00000000000002"})
"""Also of that which wrote whole rows."""
_COMPLETED_AS: Final = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}

_NAME = re.compile(r"(\d+)(?:_(\d+))?\.([a-z]+)(?:\.([a-z]+))?")
_LOOKS_LIKE_INSTANT = re.compile(r"\d{14}")
_TEMPORARY = re.compile(r".*\.(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|tmp|_COPYING_|crc)")
TIME: Final = r"\d{14}(?:\d{3}){0,3}"
"""The form of an instant time: 14 or 17 digits; metadata tables of version 6 have suffixes of 3 digits, up to two."""
_TIME = re.compile(TIME)
_DIGITS = re.compile(r"\d{0,20}")
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{3}))?)?")
_FIRST_OF_YEAR = "00000101000000000"
_WHOLE_FIELDS = range(4, 14, 2)
"""Lengths of a time that ends with its year, month, day, hour or minute."""
_FIELDS = ((4, 6), (6, 8), (8, 10), (10, 12), (12, 14))
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class State(IntEnum):
    """How far an instant has come; a later state replaces an earlier one."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


@dataclass(frozen=True, order=True)
class Instant:
    """One action on the timeline, in one state.

    Attributes:
        requested: When it was begun, as 17 digits `yyyyMMddHHmmssSSS` in the zone of the timeline (14 in old tables).
            Names the instant: times are compared as text, as Hudi does.
        action: As its file says it: a pending compaction is a `compaction`, a completed one a `commit`.
        state: REQUESTED, INFLIGHT or COMPLETED.
        completion: When it was completed, in the same form; None while it is pending.
    """

    requested: str
    action: str
    state: State
    completion: str | None = None

    @property
    def is_completed(self) -> bool:
        """Whether readers see it."""
        return self.state is State.COMPLETED

    def as_inflight(self) -> Instant:
        """The same action, under way."""
        return replace(self, state=State.INFLIGHT, completion=None)

    def as_requested(self) -> Instant:
        """The same action, asked for."""
        return replace(self, state=State.REQUESTED, completion=None)

    def as_completed(self, completion: str) -> Instant:
        """The same action, done at `completion`: a compaction ends as a commit, clustering as a replacecommit."""
        return Instant(self.requested, comparable_action(self.action), State.COMPLETED, completion)

    def file_name(self, layout_version: int) -> str:
        """Its name in the timeline folder (table versions 8 and 9: layout 2; 6: layout 1)."""
        if self.state is State.REQUESTED:
            return f"{self.requested}.{self.action}.requested"
        if self.state is State.INFLIGHT:
            infix = "" if self.action == "commit" else f".{self.action}"
            return f"{self.requested}{infix}.inflight"
        stem = self.requested if layout_version == 1 or not self.completion else f"{self.requested}_{self.completion}"
        return f"{stem}.{self.action}"


def comparable_action(action: str) -> str:
    """The action under which a completed instant is filed: pending and completed files of one instant share it."""
    return _COMPLETED_AS.get(action, action)


def parse_instant_name(name: str, folder: str = "") -> Instant | None:
    """The instant that a file of the timeline folder stands for; None for anything else that may lie there.

    A completed name without completion time (layout 1, or left over in a table that was upgraded) gives None as
    completion; the file's modification time stands for it.

    Raises:
        DamagedTable: The name begins like an instant and is none; named, since skipping it could hide a commit.
    """
    if not _LOOKS_LIKE_INSTANT.match(name) or _TEMPORARY.fullmatch(name):
        return None
    match = _NAME.fullmatch(name)
    instant = _interpret(*match.groups()) if match else None
    if instant is None or not is_time(instant.requested) or not is_time(instant.completion or instant.requested):
        path = f"{folder}/{name}" if folder else name
        message = (
            f"{path} begins like an instant and is none that Hudi writes; look who put it there before removing it"
        )
        raise DamagedTable(message, path=path)
    return instant


def _interpret(requested: str, completion: str | None, word: str, suffix: str | None) -> Instant | None:
    if word == "inflight" and suffix is None and completion is None:
        return Instant(requested, "commit", State.INFLIGHT)
    if word not in ACTIONS:
        return None
    if suffix is None:
        return Instant(requested, word, State.COMPLETED, completion)
    state = {"requested": State.REQUESTED, "inflight": State.INFLIGHT}.get(suffix)
    return Instant(requested, word, state) if state is not None and completion is None else None


def is_time(text: str) -> bool:
    """Whether `text` has the form of an instant time."""
    return _TIME.fullmatch(text) is not None


def parse_moment(text: str) -> str:
    """A moment that a user named, as text that compares with instant times.

    Args:
        text: An instant time or the beginning of one (`0`: before all), or as the JVM takes it for `as.of.instant`:
            `yyyy-MM-dd`, `yyyy-MM-dd HH:mm:ss` or `yyyy-MM-dd HH:mm:ss.SSS`, in the zone of the timeline.

    Raises:
        BadInput: It is none of these.
    """
    match = _MOMENT.fullmatch(text)
    digits = "".join(match.groups("")) if match else text
    if len(digits) in _WHOLE_FIELDS:
        digits += _FIRST_OF_YEAR[len(digits) :]
    if not (_DIGITS.fullmatch(digits) and _is_in_calendar(digits)):
        message = f"{text!r} is no time of this table: give one such as WriteResult.completion_time, or yyyy-MM-dd"
        raise BadInput(message, time=text)
    return digits


def _is_in_calendar(digits: str) -> bool:
    """Whether it may be reckoned with; what is no whole time is only compared."""
    try:
        return not is_time(digits) or epoch_ms(digits) is not None
    except DamagedTable:
        return False


def format_time(ms: int, zone: tzinfo = timezone.utc) -> str:
    """Milliseconds since the epoch as an instant time, 17 digits, in `zone`."""
    moment = (_EPOCH + timedelta(milliseconds=ms)).astimezone(zone)
    return f"{moment:%Y%m%d%H%M%S}{ms % 1000:03d}"


def epoch_ms(time: str, zone: tzinfo = timezone.utc) -> int:
    """An instant time, written in `zone`, in milliseconds since the epoch.

    For arithmetic Hudi takes the last millisecond of a 14-digit time and drops what exceeds 17 digits; so do we. Those
    of a bootstrap are before all others.

    Raises:
        DamagedTable: It is no moment.
    """
    if time in BOOTSTRAPS:
        time = FIRST_TIME
    digits = (time + "999")[:17] if len(time) == 14 else time[:17]
    try:
        if not is_time(time):
            raise ValueError(time)
        month, day, hour, minute, second = (int(digits[start:end]) for start, end in _FIELDS)
        moment = datetime(int(digits[:4]), month, day, hour, minute, second, tzinfo=zone)
    except ValueError:
        raise DamagedTable(f"{time!r} is no instant time: yyyyMMddHHmmssSSS is wanted", time=time) from None
    return (moment - _EPOCH) // timedelta(milliseconds=1) + int(digits[14:])


def add_ms(time: str, duration_ms: int) -> str:
    """The instant time `duration_ms` milliseconds after `time`, 17 digits."""
    return format_time(epoch_ms(time) + duration_ms)


@dataclass(frozen=True)
class TimelineLayout:
    """One of Hudi's two timeline layouts.

    Attributes:
        version: `hoodie.timeline.layout.version`: 1 for table version 6, 2 for 8 and 9.
        folder: Of the active instants, relative to the base path.
        archive: Of the archived ones.
        zone: In which instants are written.
        has_old_logs: Whether logs may be there that are named by the base file below them, and hold blocks of several
            writes, as those of a table that is of version 6, or was.
    """

    version: int
    folder: str
    archive: str
    zone: tzinfo = timezone.utc
    has_old_logs: bool = False

    @property
    def is_version_6(self) -> bool:
        """Whether the table is of version 6, the only one with timeline layout 1 that is read here."""
        return self.version == 1

    def path(self, instant: Instant) -> str:
        """The file of `instant`, relative to the base path."""
        return f"{self.folder}/{instant.file_name(self.version)}"

    def time(self, ms: int) -> str:
        """Milliseconds since the epoch as an instant time of this table."""
        return format_time(ms, self.zone)


LAYOUT_1 = TimelineLayout(1, ".hoodie", ".hoodie/archived", has_old_logs=True)
LAYOUT_2 = TimelineLayout(2, ".hoodie/timeline", ".hoodie/timeline/history")
