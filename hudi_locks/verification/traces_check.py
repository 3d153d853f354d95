"""What writers at work leave beside the table: markers, heartbeats, numbers of buckets."""

from __future__ import annotations

from typing import Final

from hudi_locks.errors import ConfigError, DamagedTable
from hudi_locks.format import MarkerName, is_time
from hudi_locks.markers import MARKER_FOLDER, read_markers
from hudi_locks.table import find_bucket_counts
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER, Beating
from hudi_locks.verification.survey import Survey

__all__ = ["check_traces"]

_BY_SERVER: Final = "MARKERS"
_CHECKSUM: Final = ".crc"
"""Hadoop keeps one beside each file on a local disk."""
_SWEPT: Final = "nothing; `hudi-locks clean` sweeps what dead writers left"


def check_traces(survey: Survey) -> None:
    """Look at markers, heartbeats and the numbers of buckets."""
    for name in sorted(survey.storage.list_names(MARKER_FOLDER)):
        _check_markers(survey, name)
    for name in sorted(survey.storage.list_names(HEARTBEAT_FOLDER)):
        _check_heartbeat(survey, name)
    with survey.book.reading("buckets", ".hoodie/.bucket_index", "numbers of buckets"):
        try:
            find_bucket_counts(survey.storage, survey.timeline)
        except ConfigError as error:
            raise DamagedTable(str(error), path=".hoodie/.bucket_index") from error


def _check_markers(survey: Survey, name: str) -> None:
    path, book = f"{MARKER_FOLDER}/{name}", survey.book
    if not is_time(name) or name not in survey.pending:
        advice = _SWEPT
        book.note("marker", path, expected="markers of a write that is under way", found="none such", advice=advice)
        return
    book.checked["marker folders"] += 1
    found = survey.storage.walk(path)
    files = [file.removeprefix(f"{path}/") for file, entry in found if not entry.name.endswith(_CHECKSUM)]
    others = [file for file in files if not file.startswith(_BY_SERVER) and MarkerName.parse(file) is None]
    if others or (files and not read_markers(survey.storage, name).is_complete):
        advice = "nothing; a rollback of that write finds its files by listing"
        expected = "markers that name files of their own instant"
        book.damage("marker", path, expected=expected, found="others, or some that are cut off", advice=advice)


def _check_heartbeat(survey: Survey, name: str) -> None:
    path, book = f"{HEARTBEAT_FOLDER}/{name}", survey.book
    book.checked["heartbeats"] += 1
    data = survey.storage.read(path)
    if not is_time(name):
        book.note("heartbeat", path, expected="the time of an instant as name", found="another", advice=_SWEPT)
    elif data and Beating.decode(data) is None:
        advice = "nothing; its writer counts as living until its heartbeat has expired"
        book.note("heartbeat", path, expected="who beats, or nothing", found="something else", advice=advice)
