"""Real servers for a part of the tests, and tables that are copied to them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hudi_locks_conformance.servers import KINDS, Server, ServerUnavailable, start_server

from hudi_locks.storage import Storage, map_in_threads

__all__ = ["copy_table", "run_server"]


def run_server(name: str) -> Iterator[Server]:
    """A server until the end of the run; where it cannot be had, a skip says which command helps."""
    try:
        server = start_server(KINDS[name])
    except ServerUnavailable as error:
        pytest.skip(str(error))
    with server:
        yield server


def copy_table(source: Storage, target: Storage) -> None:
    """All files of a table but the checksums that Spark leaves beside them."""
    paths = [path for path, _ in source.walk("") if not path.endswith(".crc")]
    map_in_threads(lambda path: target.create_if_absent(path, source.read(path) or b""), paths)
