"""Tables and locks on object stores whose certificates are of an authority that no system knows."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trustme
from hudi_locks_conformance.servers import Server
from tls_proxy import open_tls_proxy

from hudi_locks import BackendRefused, ConfigError, LockManager
from hudi_locks.errors import StorageError
from hudi_locks.format import CommitMetadata
from hudi_locks.services import TableWriter
from hudi_locks.storage import open_storage
from hudi_locks.table import Table, TableConfig

pytestmark = pytest.mark.servers
ENDPOINT, CA = "hudi_locks.storage.endpoint_url", "hudi_locks.storage.ca_file"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return str(tmp_path / "ca.pem")


@pytest.fixture(params=["versitygw", "fake_gcs", "azurite"])
def options(request: pytest.FixtureRequest, authority: trustme.CA) -> Iterator[dict[str, str]]:
    """Of a table behind TLS."""
    server: Server = request.getfixturevalue(request.param)
    given = {key: value for key, value in server.options.items() if not key.endswith("allow_http")}
    with open_tls_proxy(authority, server.port) as port:
        given[ENDPOINT] = given[ENDPOINT].replace(f"http://127.0.0.1:{server.port}", f"https://127.0.0.1:{port}")
        yield {**given, "hoodie.base.path": f"{given['hoodie.base.path']}/tls/{uuid.uuid4().hex}"}


def test_a_table_is_made_locked_and_written_by_tls(options: dict[str, str], trusted: str) -> None:
    told = {**options, CA: trusted, "hoodie.write.lock.provider": "storage"}
    storage = open_storage(options["hoodie.base.path"], told)
    Table.create(storage, TableConfig("t", ("id",)))
    with TableWriter.open(options["hoodie.base.path"], told) as writer:
        transaction = writer.transactions.begin("commit", "UPSERT")
        staged = storage.stage("p/f.parquet", instant=transaction.instant)
        with staged.open() as sink:
            pq.write_table(pa.table({"id": ["a"]}), sink)
        assert storage.redeem(staged.seal(), "p/f.parquet")
        assert transaction.publish(CommitMetadata.of((), "UPSERT", schema=None)).is_committed
    assert pq.read_table(storage.open_input("p/f.parquet")).to_pydict() == {"id": ["a"]}


def test_a_certificate_that_is_not_trusted_is_told_with_the_way_out(options: dict[str, str]) -> None:
    with pytest.raises(StorageError, match=r"hudi_locks\.storage\.ca_file"):
        open_storage(options["hoodie.base.path"], options).create_if_absent("x", b"")
    with (
        LockManager("storage", options) as locks,
        pytest.raises(BackendRefused, match=r"hudi_locks\.storage\.ca_file"),
    ):
        locks.lock(timeout_s=0)


def test_a_file_of_authorities_that_is_not_there_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"ca_file='/nowhere/ca.pem': there is no such file"):
        open_storage(options["hoodie.base.path"], {**options, CA: "/nowhere/ca.pem"})
