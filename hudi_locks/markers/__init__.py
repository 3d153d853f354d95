"""Traces of files being written: what a commit reconciles and a rollback removes."""

from hudi_locks.markers.final_file import FinalFiles, MarkerMaker, StagedFile, end_turns, staging_folder
from hudi_locks.markers.marker_folder import DIRECT, MARKER_FOLDER, TIMELINE_SERVER_BASED, DirectMarkers, ServerFiles
from hudi_locks.markers.marker_index import Hashes, MarkerIndex
from hudi_locks.markers.peer import PeerMarkers, read_markers
from hudi_locks.markers.reconciliation import reconcile
from hudi_locks.markers.spare import SPARE_NUMBERS, SpareMarkers

__all__ = [
    "DIRECT",
    "MARKER_FOLDER",
    "SPARE_NUMBERS",
    "TIMELINE_SERVER_BASED",
    "DirectMarkers",
    "FinalFiles",
    "Hashes",
    "MarkerIndex",
    "MarkerMaker",
    "PeerMarkers",
    "ServerFiles",
    "SpareMarkers",
    "StagedFile",
    "end_turns",
    "read_markers",
    "reconcile",
    "staging_folder",
]
