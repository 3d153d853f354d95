"""Markers of any instant, whoever wrote them: direct ones, and those of a timeline server."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_locks.format import MarkerName
from hudi_locks.markers.direct import DirectMarkers
from hudi_locks.markers.server_files import ServerFiles
from hudi_locks.storage import Storage

__all__ = ["PeerMarkers", "read_markers"]


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
    server = ServerFiles(storage, markers.folder)
    server.is_used()
    lines = server.read_lines(entry.name for entry in entries)
    names = {*markers.names(), *(name for line in lines for name in server.parse_line(line))}
    return PeerMarkers(frozenset(names), bool(entries) and all(map(server.is_whole, lines)))
