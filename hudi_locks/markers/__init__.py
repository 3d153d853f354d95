"""Traces of files being written: what a commit reconciles and a rollback removes."""

from hudi_locks.markers.direct import MARKER_FOLDER, DirectMarkers
from hudi_locks.markers.final_file import FinalFiles, StagedFile, staging_folder
from hudi_locks.markers.peer import PeerMarkers, read_markers

__all__ = [
    "MARKER_FOLDER",
    "DirectMarkers",
    "FinalFiles",
    "PeerMarkers",
    "StagedFile",
    "read_markers",
    "staging_folder",
]
