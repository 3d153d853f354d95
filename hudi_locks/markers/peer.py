"""Markers of any instant, whoever wrote them: direct ones, and those of a JVM peer's timeline server.

The server keeps `MARKERS.type` and `MARKERS0` … in the marker folder; each flush overwrites a whole file, so that a
reader may meet a line that is cut off, and after a restart of the server a line of several names joined by commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hudi_locks.errors import DamagedTable
from hudi_locks.format import MarkerName
from hudi_locks.markers.direct import DirectMarkers
from hudi_locks.storage import Entry, Storage

__all__ = ["PeerMarkers", "read_markers"]

_TYPE_FILE: Final = "MARKERS.type"
_SERVER_TYPE: Final = "TIMELINE_SERVER_BASED"
_SERVER_FILE: Final = re.compile(r"MARKERS\d+")
_ONE_NAME: Final = re.compile(r",?(.+?\.marker\.(?:CREATE|MERGE|APPEND))(?=,|$)")


@dataclass(frozen=True)
class PeerMarkers:
    """What the marker folder of an instant tells.

    Attributes:
        names: Every marker found.
        is_complete: Whether nothing speaks for more: the folder is there and no line was cut off. Otherwise a rollback
            looks for the instant's files by listing.
    """

    names: frozenset[MarkerName]
    is_complete: bool


def read_markers(storage: Storage, requested: str) -> PeerMarkers:
    """The markers of the instant begun at `requested`, in either form, or both.

    Raises:
        DamagedTable: `MARKERS.type` names a form that does not exist.
    """
    markers = DirectMarkers(storage, requested)
    entries = storage.list(markers.folder)
    _check_type(storage, f"{markers.folder}/{_TYPE_FILE}")
    lines = _server_lines(storage, markers.folder, entries)
    names = {*markers.names(), *(name for line in lines for name in _parse_line(line))}
    return PeerMarkers(frozenset(names), bool(entries) and all(map(_is_whole, lines)))


def _check_type(storage: Storage, path: str) -> None:
    kind = (storage.read(path) or b"").strip().decode(errors="replace")
    if kind not in ("", _SERVER_TYPE):
        raise DamagedTable(f"{path} says {kind!r}; only {_SERVER_TYPE} is known", path=path)


def _server_lines(storage: Storage, folder: str, entries: Iterable[Entry]) -> list[str]:
    files = [entry.name for entry in entries if _SERVER_FILE.fullmatch(entry.name)]
    texts = [(storage.read(f"{folder}/{name}") or b"").decode(errors="replace") for name in files]
    return [line for text in texts for line in text.split("\n") if line]


def _parse_line(line: str) -> list[MarkerName]:
    parsed = [MarkerName.parse(match[1]) for match in _ONE_NAME.finditer(line)]
    return [marker for marker in parsed if marker is not None]


def _is_whole(line: str) -> bool:
    return sum(len(match[0]) for match in _ONE_NAME.finditer(line)) == len(line)
