"""Real servers for a part of the tests, and tables that are copied to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hudi_locks_conformance.servers import KINDS, Server, ServerUnavailable, fetch_bundle, fetch_s3a, start_server

from hudi_locks.storage import Storage, map_in_threads

__all__ = ["SHARED", "copy_table"]

_RELEASES = ("1.0.2", "1.1.1", "1.2.0")
"""Of JVM Hudi."""

SHARED = {name.replace("-server", "").replace("-", "_"): kind for name, kind in KINDS.items()}
"""What a server for the whole run is, by the name of its fixture."""
_FETCHES: Mapping[str, Callable[[], Any]] = {
    **{name: kind.fetch for name, kind in SHARED.items()},
    **{release: partial(fetch_bundle, release) for release in _RELEASES},
    "jvm_on_s3": fetch_s3a,
}


def copy_table(source: Storage, target: Storage) -> None:
    """All files of a table but the checksums that Spark leaves beside them."""
    paths = [path for path, _ in source.walk("") if not path.endswith(".crc")]
    map_in_threads(lambda path: target.create_if_absent(path, source.read(path) or b""), paths)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch the servers and bundles of these tests: to build one takes minutes, which are no test's own.

    What cannot be had is told by the test that asks for it.
    """
    names = {name for item in session.items for name in _name_needs(item)}
    map_in_threads(_fetch, names & set(_FETCHES))


def _fetch(name: str) -> None:
    with suppress(ServerUnavailable):
        _FETCHES[name]()


def _name_needs(item: pytest.Item) -> Iterator[str]:
    """Its fixtures, and parameters by which it asks for others: a server's name, or a release of JVM Hudi."""
    yield from getattr(item, "fixturenames", ())
    for value in item.callspec.params.values() if hasattr(item, "callspec") else ():
        yield from (word for word in (value if isinstance(value, tuple) else (value,)) if isinstance(word, str))


def _share(name: str) -> Callable[[], Iterator[Server]]:
    @pytest.fixture(scope="session", name=name)
    def serve() -> Iterator[Server]:
        """A server until the end of the run; where it cannot be had, a skip says which command helps."""
        try:
            server = start_server(SHARED[name])
        except ServerUnavailable as error:
            pytest.skip(str(error))
        with server:
            yield server

    return serve


azurite, dynamodb, fake_gcs, hive_metastore, minidfs, versitygw, zookeeper = map(_share, sorted(SHARED))
