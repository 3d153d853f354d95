"""The HTTP service of markers: one place that all tasks of a write ask.

What serves needs the extra `server`, and is in modules that are loaded when it starts; what asks needs nothing.
"""

from hudi_locks.timeline_server.client import Endpoint, ServerMarkers, Unreachable
from hudi_locks.timeline_server.hosting import MarkerHost
from hudi_locks.timeline_server.settings import TOKEN_VARIABLE, ServerSettings

__all__ = ["TOKEN_VARIABLE", "Endpoint", "MarkerHost", "ServerMarkers", "ServerSettings", "Unreachable"]
