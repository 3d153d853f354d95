"""Traces of files being written: what other writers look at and a rollback removes."""

from collections.abc import Callable
from typing import Any

from hudi_locks.deprecation import forward_renamed
from hudi_locks.markers.marker_folder import (
    DIRECT,
    FALLBACK_NUMBERS,
    MARKER_FOLDER,
    TIMELINE_SERVER_BASED,
    DirectMarkers,
    FallbackMarkers,
    PeerMarkers,
    ServerFiles,
    drop_staged,
    read_markers,
    staging_folder,
)
from hudi_locks.markers.marker_index import Hashes, MarkerIndex
from hudi_locks.markers.staged_files import MarkerMaker, StagedFiles

__all__ = [
    "DIRECT",
    "FALLBACK_NUMBERS",
    "MARKER_FOLDER",
    "TIMELINE_SERVER_BASED",
    "DirectMarkers",
    "FallbackMarkers",
    "Hashes",
    "MarkerIndex",
    "MarkerMaker",
    "PeerMarkers",
    "ServerFiles",
    "StagedFiles",
    "drop_staged",
    "read_markers",
    "staging_folder",
]

__getattr__: Callable[[str], Any] = forward_renamed(
    __name__,
    {"FinalFiles": "StagedFiles", "SpareMarkers": "FallbackMarkers", "SPARE_NUMBERS": "FALLBACK_NUMBERS"},
    removed_in="0.3.0",
)
