"""One way to start any server: by container where an engine runs, else as a local process."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

from hudi_locks_conformance.servers.container import ContainerServer, is_engine_running
from hudi_locks_conformance.servers.kind import ServerKind
from hudi_locks_conformance.servers.local import LocalServer

__all__ = ["Server", "find_free_port", "start_server"]

Server = LocalServer | ContainerServer
"""A running server; `options` is what its provider needs."""


def start_server(kind: ServerKind, folder: Path | None = None) -> Server:
    """Start a server and return once it answers. The caller stops it; at exit it is stopped in any case.

    Args:
        kind: What to run, with its settings.
        folder: For the data of a local process; a new temporary one when absent.

    Raises:
        ServerUnavailable: This machine lacks a tool, or the server does not come up.
    """
    in_container = kind.container is not None and is_engine_running()
    server = ContainerServer(kind, find_free_port()) if in_container else _prepare_local(kind, folder)
    server.start()
    kind.prepare(server.port)
    return server


def _prepare_local(kind: ServerKind, folder: Path | None) -> LocalServer:
    kind.fetch()
    place = folder or Path(tempfile.mkdtemp(prefix=f"hudi-locks-{kind.name}-"))
    place.mkdir(parents=True, exist_ok=True)
    return LocalServer(kind, place, find_free_port())


def find_free_port() -> int:
    """A port of loopback that nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
