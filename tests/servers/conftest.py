"""Real lock services, one of each kind for the whole run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hudi_locks_conformance.servers import KINDS, LocalServer, Server, ServerUnavailable, find_tool
from real_servers import run_server

SHARED = {kind.replace("-server", "").replace("-", "_") for kind in KINDS}


@pytest.fixture(autouse=True)
def revived(request: pytest.FixtureRequest) -> None:
    """A server that died since its last test is started anew, so that it fails no other; the run tells of it."""
    for name in SHARED & set(request.fixturenames):
        revive(request.getfixturevalue(name))


def revive(server: Any) -> None:
    if isinstance(server, LocalServer) and not server.process.is_running():
        warnings.warn(f"server {server.kind.name} died and is started anew: {server.process.log_tail()}", stacklevel=1)
        server.start()
        server.kind.prepare(server.port)


@pytest.fixture(scope="session")
def dynamodb() -> Iterator[Server]:
    yield from run_server("dynamodb")


@pytest.fixture(scope="session")
def hive_metastore() -> Iterator[Server]:
    yield from run_server("hive_metastore")


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[Server]:
    yield from run_server("zookeeper")


@pytest.fixture(scope="session")
def jvm() -> None:
    """For tests beside JVM lock holders, which are fetched by Maven and compiled here."""
    try:
        for tool in ("java", "javac", "mvn"):
            find_tool(tool)
    except ServerUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def versitygw() -> Iterator[Server]:
    yield from run_server("versitygw")


@pytest.fixture(scope="session")
def fake_gcs() -> Iterator[Server]:
    yield from run_server("fake-gcs-server")


@pytest.fixture(scope="session")
def azurite() -> Iterator[Server]:
    yield from run_server("azurite")


@pytest.fixture(scope="session")
def minidfs() -> Iterator[Server]:
    yield from run_server("minidfs")
