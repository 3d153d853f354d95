"""HDFS with Kerberos: tables and locks by a keytab, and tables by the delegation token that executors get."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi_locks_conformance.servers import LocalServer, start_server
from hudi_locks_conformance.servers.key_center import Secrets
from hudi_locks_conformance.servers.mini_dfs import KerberosDfs, find_rpc_port
from waiting import until

from hudi_locks import LockManager, LockScope, Owner
from hudi_locks.errors import StorageError
from hudi_locks.storage import Storage, open_storage, refuse_unwritable

pytestmark = pytest.mark.servers
SITE = {"hadoop.security.authentication": "kerberos", "dfs.data.transfer.protection": "authentication"}


@pytest.fixture(scope="module")
def server(secrets: Secrets) -> Iterator[LocalServer]:
    with start_server(KerberosDfs(secrets)) as server:
        assert isinstance(server, LocalServer)
        until(lambda: "\nactive" in (server.folder / "log").read_text())
        yield server


@pytest.fixture(autouse=True)
def cluster(secrets: Secrets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hadoop's configuration of this machine, and no ticket."""
    told = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in SITE.items())
    (tmp_path / "core-site.xml").write_text(f"<configuration>{told}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("KRB5_CONFIG", str(secrets.config))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    for name in ("KRB5_CLIENT_KTNAME", "HADOOP_TOKEN_FILE_LOCATION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def base(server: LocalServer, tmp_path: Path) -> str:
    return f"hdfs://localhost:{find_rpc_port(server)}/tables/{tmp_path.name}"


@pytest.fixture
def with_keytab(secrets: Secrets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(secrets.keytab("writer")))


ROWS = pa.table({"id": list(range(10_000))})


def write_and_read(storage: Storage) -> pa.Table:
    staged = storage.stage("p/f.parquet", instant="20260101000000000")
    with staged.open() as out:
        pq.write_table(ROWS, out)
    assert storage.redeem(staged.seal(), "p/f.parquet")
    with storage.open_input("p/f.parquet") as file:
        return pq.read_table(file)


def test_without_a_ticket_it_says_how_to_get_one(base: str) -> None:
    with pytest.raises(StorageError, match=r"cannot read 'a': Kerberos: No credentials .*; get a ticket with kinit"):
        open_storage(base).read("a")


@pytest.mark.usefixtures("with_keytab")
def test_a_keytab_lets_a_driver_write(base: str) -> None:
    storage = open_storage(base)
    refuse_unwritable(storage)
    assert storage.create_if_absent("a", b"mine")
    assert not storage.create_if_absent("a", b"theirs")
    assert write_and_read(storage).equals(ROWS)


def test_a_delegation_token_lets_an_executor_write(
    base: str, server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = pickle.dumps(open_storage(base))
    monkeypatch.delenv("HADOOP_CONF_DIR")
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(server.folder / "token"))
    assert write_and_read(pickle.loads(storage)).equals(ROWS)


@pytest.mark.usefixtures("with_keytab")
def test_locks_are_held_there_too(base: str) -> None:
    options = {"hoodie.write.lock.filesystem.path": f"{base}/locks"}
    scope = LockScope.table()
    ada, bob = Owner("ada", "host-a", 11, "main", "etl"), Owner("bob", "host-b", 22, "main", "etl")
    with LockManager("filesystem", options) as one, LockManager("filesystem", options) as two:
        lease = one.provider.try_acquire(scope, ada, 0)
        assert lease is not None
        assert two.provider.try_acquire(scope, bob, 0) is None
        one.provider.release(lease)
        assert two.provider.try_acquire(scope, bob, 0) is not None
