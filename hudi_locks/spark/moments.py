"""Times as users have them."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Final, TypeAlias

from hudi_locks.errors import BadInput
from hudi_locks.format import format_time

__all__ = ["Moment", "write_moment"]

Moment: TypeAlias = str | int | date
"""An instant time, or the beginning of one; or a date or datetime, without a zone in that of the timeline."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def write_moment(moment: Moment, zone: tzinfo | None) -> str:
    """The text that a timeline in `zone` has for a moment; None for a zone that is not known.

    Raises:
        BadInput: It is of another type, or has a zone, and that of the timeline is not known.
    """
    if isinstance(moment, datetime):
        return _write_datetime(moment, zone)
    if isinstance(moment, date):
        return moment.isoformat()
    if isinstance(moment, str) or (isinstance(moment, int) and not isinstance(moment, bool)):
        return str(moment)
    message = f"{moment!r} is no time of this table: give one such as WriteResult.completion_time, or a datetime"
    raise BadInput(message, time=moment)


def _write_datetime(moment: datetime, zone: tzinfo | None) -> str:
    if moment.tzinfo is not None and zone is None:
        message = f"{moment} has a time zone, and that of the table is not known: load the table with zone=..."
        raise BadInput(message, time=moment)
    known = zone or timezone.utc
    since = moment.replace(tzinfo=moment.tzinfo or known) - _EPOCH
    return format_time(since // timedelta(milliseconds=1), known)
