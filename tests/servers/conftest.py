"""Real lock services, one of each kind for the whole run."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pytest
from hudi_locks_conformance.servers import LocalServer, Server, ServerUnavailable, find_tool, start_server
from hudi_locks_conformance.servers.key_center import KeyCenter, Secrets
from hudi_locks_providers.s3_storage import S3Storage
from real_servers import SHARED
from s3_proxy import S3Proxy, run_proxy
from s3_scratch import ENDPOINT

from hudi_locks.storage import Storage, open_storage

_SERVICES = {
    "test_storage.py::TestOnFakeGcs": 0,
    "test_storage.py::TestOnAzurite": 1,
    "test_filesystem.py::TestOnHdfs": 0,
    "test_chain.py::TestOverTwoServices": 1,
}
"""Further services of a provider that the whole kit judges on another one, and which half of it they play; a chain is
judged as a whole over two folders."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On a provider's further services every run plays half of the kit's checks, and the nightly run them all."""
    for item in items:
        half = _SERVICES.get("::".join(item.nodeid.rpartition("/")[2].split("::")[:2]))
        if half is not None and item.name.startswith("test_conforms[") and crc32(item.name.encode()) % 2 != half:
            item.add_marker(pytest.mark.nightly)


@pytest.fixture(autouse=True)
def revived(request: pytest.FixtureRequest) -> None:
    """A server that died since its last test is started anew, so that it fails no other; the run tells of it."""
    for name in set(SHARED) & set(request.fixturenames):
        revive(request.getfixturevalue(name))


def revive(server: Any) -> None:
    if isinstance(server, LocalServer) and not server.process.is_running():
        warnings.warn(f"server {server.kind.name} died and is started anew: {server.process.log_tail()}", stacklevel=1)
        server.start()
        server.kind.prepare(server.port)


@pytest.fixture(scope="session")
def jvm() -> None:
    """For tests beside JVM lock holders, which are fetched by Maven and compiled here."""
    try:
        for tool in ("java", "javac", "mvn"):
            find_tool(tool)
    except ServerUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def base(versitygw: Server) -> str:
    """The address of a table of one test on S3."""
    return f"{versitygw.options['hoodie.base.path']}/{uuid.uuid4().hex}"


@pytest.fixture
def storage(versitygw: Server, base: str) -> Storage:
    return open_storage(base, versitygw.options)


@pytest.fixture
def proxy(versitygw: Server) -> Iterator[S3Proxy]:
    with run_proxy(versitygw.options[ENDPOINT]) as proxy:
        yield proxy


@pytest.fixture
def lossy(versitygw: Server, base: str, proxy: S3Proxy) -> S3Storage:
    """The same table, reached by the proxy."""
    found = open_storage(base, {**versitygw.options, ENDPOINT: proxy.url})
    assert isinstance(found, S3Storage)
    return found


@pytest.fixture(scope="session")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secrets]:
    """What a key distribution center gave out, which runs as long."""
    made = Secrets(tmp_path_factory.mktemp("secrets"))
    try:
        center = start_server(KeyCenter(made))
    except ServerUnavailable as error:
        pytest.skip(str(error))
    with center:
        yield made
