"""A Hive Metastore that wants a login by Kerberos: locks and the catalog, beside JVM Hudi's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from hudi_locks_conformance import Harness, Level
from hudi_locks_conformance.partners import Partner, hudi
from hudi_locks_conformance.servers import Server, start_server
from hudi_locks_conformance.servers.hive_metastore import KerberosMetastore
from hudi_locks_conformance.servers.key_center import Secrets
from hudi_locks_conformance.suite import LockProviderSuite
from hudi_locks_providers.hive_catalog import HiveCatalog
from hudi_locks_providers.hive_metastore import HiveMetastoreLockProvider
from jvm_neighbours import expect_our_hold_kept, expect_their_hold_kept
from tls_proxy import open_tls_proxy

from hudi_locks import AcquireTimeout, BackendRefused, BackendUnavailable, LockManager, LockScope
from hudi_locks.catalog import CatalogTable, Column
from hudi_locks.config import Options

pytest.importorskip("gssapi", reason="pip install 'hudi-locks[kerberos]'")
pytestmark = pytest.mark.servers
URIS, TABLE = "hoodie.write.lock.hivemetastore.uris", "hoodie.write.lock.hivemetastore.table"
USE, PRINCIPAL = "hudi_locks.hive_metastore.use_kerberos", "hudi_locks.hive_metastore.principal"
JAVA = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"
SASL = {"hive.metastore.sasl.enabled": "true", "hive.metastore.kerberos.principal": "hive/_HOST@EXAMPLE.COM"}


@pytest.fixture(scope="module")
def server(secrets: Secrets) -> Iterator[Server]:
    with start_server(KerberosMetastore(secrets=secrets, protection="authentication,integrity,privacy")) as server:
        yield server


@pytest.fixture(autouse=True)
def ticket(secrets: Secrets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_in(secrets, tmp_path, monkeypatch, "writer")
    for name in ("HIVE_CONF_DIR", "HADOOP_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)


def log_in(secrets: Secrets, folder: Path, monkeypatch: pytest.MonkeyPatch, client: str) -> None:
    for name, value in secrets.environment(folder / f"tickets-{client}", client).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def options(server: Server, tmp_path: Path) -> dict[str, str]:
    """Of a lock there; the JVM knows no principal for a number in place of a host."""
    uris = f"thrift://localhost:{server.port}"
    return {**server.options, URIS: uris, TABLE: tmp_path.name, PRINCIPAL: "hive/_HOST@EXAMPLE.COM"}


def write_site(folder: Path, monkeypatch: pytest.MonkeyPatch, file: str, told: dict[str, str]) -> None:
    properties = "".join(f"<property><name>{name}</name><value>{told[name]}</value></property>" for name in told)
    (folder / file).write_text(f"<configuration>{properties}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(folder))


def expect_a_lock(options: dict[str, str]) -> None:
    with LockManager("hive_metastore", options) as first, LockManager("hive_metastore", options) as second:
        held = first.lock()
        assert second.try_lock() is None
        held.verify()
        held.release()
        assert second.try_lock() is not None


def test_a_lock_outlives_the_timeout_of_the_metastore_and_is_kept_from_others(options: dict[str, str]) -> None:
    with LockManager("hive_metastore", options) as first, LockManager("hive_metastore", options) as second:
        held = first.lock()
        with pytest.raises(AcquireTimeout):
            second.lock(timeout_s=7)
        held.verify()
        held.release()
        assert second.try_lock() is not None


@pytest.mark.parametrize(
    ("asked", "agreed"), [("authentication", "auth"), ("integrity", "auth-int"), ("privacy,integrity", "auth-conf")]
)
def test_a_connection_is_guarded_as_hadoop_says(
    options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, agreed: str
) -> None:
    write_site(tmp_path, monkeypatch, "core-site.xml", {"hadoop.rpc.protection": asked})
    expect_a_lock(options)
    with LockManager("hive_metastore", options) as locks:
        locks.lock().release()
        assert isinstance(locks.provider, HiveMetastoreLockProvider)
        (link,) = locks.provider.metastore._idle
        assert link.client._iprot.trans._login.protection == agreed


@pytest.mark.parametrize("is_named", [False, True])
def test_the_site_of_hadoop_says_that_it_wants_a_login(
    options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    """As with JVM Hudi, also of a metastore that a key names."""
    uris = options[URIS] if is_named else options.pop(URIS)
    del options[PRINCIPAL]
    write_site(tmp_path, monkeypatch, "hive-site.xml", {**SASL, "hive.metastore.uris": uris})
    expect_a_lock(options)


def test_it_goes_together_with_tls(options: dict[str, str], server: Server, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with open_tls_proxy(authority, server.port) as port:
        named = {"hudi_locks.hive_metastore.use_ssl": "true", URIS: f"thrift://127.0.0.1:{port}"}
        expect_a_lock({**options, **named, "hudi_locks.hive_metastore.ca_file": str(tmp_path / "ca.pem")})


def test_the_catalog_logs_in_too(options: dict[str, str], tmp_path: Path) -> None:
    synced = {"hoodie.datasource.hive_sync.metastore.uris": options[URIS], PRINCIPAL: options[PRINCIPAL]}
    catalog = HiveCatalog(Options(synced))
    input_format, columns = "org.apache.hudi.hadoop.HoodieParquetInputFormat", (Column("city", "string"),)
    table = CatalogTable("lake", "trips", tmp_path.as_uri(), (), columns, input_format, {}, {})
    catalog.create_database("lake")
    catalog.create(table)
    catalog.add_partitions(table, {("oslo",): f"{table.location}/oslo"})
    assert list(catalog.list_partitions(table)) == [("oslo",)]
    catalog.close()


class TestRefusals:
    def refuse(self, options: dict[str, str], error: type[Exception], said: str) -> None:
        with LockManager("hive_metastore", options) as locks, pytest.raises(error, match=said):
            locks.provider.holder(LockScope.table())

    def test_without_a_ticket_it_says_how_to_get_one(
        self, options: dict[str, str], secrets: Secrets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log_in(secrets, tmp_path, monkeypatch, "")
        said = r"no valid Kerberos ticket \(.*\): get one with kinit, or name a keytab in KRB5_CLIENT_KTNAME"
        self.refuse(options, BackendRefused, said)

    def test_a_principal_that_nobody_has_is_named(self, options: dict[str, str]) -> None:
        said = r"hive/nobody@EXAMPLE.COM fails \(.*\): give the principal .* by hudi_locks.hive_metastore.principal"
        self.refuse({**options, PRINCIPAL: "hive/nobody@EXAMPLE.COM"}, BackendRefused, said)

    def test_a_principal_of_another_service_is_refused_by_the_metastore(self, options: dict[str, str]) -> None:
        said = r"the metastore thrift://localhost:\d+ refuses the login by Kerberos \(.*\): its log says why"
        self.refuse({**options, PRINCIPAL: "zookeeper/_HOST@EXAMPLE.COM"}, BackendRefused, said)

    def test_a_metastore_without_logins_is_told_apart(self, options: dict[str, str], hive_metastore: Server) -> None:
        plain = {**options, URIS: hive_metastore.options[URIS]}
        said = r"does not answer the login by Kerberos \(.*\); .*hive_metastore.use_kerberos=false says so"
        self.refuse(plain, BackendUnavailable, said)

    def test_whoever_does_not_log_in_is_told_how(self, options: dict[str, str]) -> None:
        del options[PRINCIPAL]
        said = r"wants a login by Kerberos: hudi_locks.hive_metastore.principal=hive/_HOST@REALM asks for that"
        self.refuse({**options, USE: "false"}, BackendRefused, said)


@pytest.fixture
def partner(
    options: dict[str, str], secrets: Secrets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jvm: None
) -> Partner:
    """JVM Hudi's provider, with Hadoop's configuration before its jars, and the ticket of a file."""
    write_site(tmp_path, monkeypatch, "core-site.xml", {"hadoop.security.authentication": "kerberos"})
    write_site(tmp_path, monkeypatch, "hive-site.xml", SASL)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", " ".join(secrets.jvm_flags))
    with LockManager("hive_metastore", options) as locks:
        locks.lock().release()  # by the keytab; the file has a ticket now
    found = hudi(JAVA, options)
    return replace(found, jars=lambda: [str(tmp_path), *found.jars()])


class TestBesideTheJvm:
    def test_it_does_not_enter_while_we_hold(self, options: dict[str, str], partner: Partner) -> None:
        expect_our_hold_kept("hive_metastore", options, partner, watch_s=9)

    def test_we_do_not_enter_while_it_holds(self, options: dict[str, str], partner: Partner) -> None:
        with LockManager("hive_metastore", options) as locks:
            assert "Unknown" in expect_their_hold_kept(locks.provider, partner, hold_s=8).raw


@pytest.mark.nightly  # it is the login that differs, and no call
class TestConformance(LockProviderSuite):
    level = Level.CORE
    claims = HiveMetastoreLockProvider.capabilities

    @pytest.fixture
    def harness(self, server: Server, options: dict[str, str]) -> Harness:
        return Harness("hive_metastore", options, seed=1, server=server)
