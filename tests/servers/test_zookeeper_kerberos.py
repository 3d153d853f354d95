"""A ZooKeeper to which clients have to log in by Kerberos: our writers beside JVM Hudi's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hudi_locks_conformance import Harness, Level
from hudi_locks_conformance.partners import JvmContender, Partner, hudi
from hudi_locks_conformance.servers import LocalServer, Server, start_server
from hudi_locks_conformance.servers.key_center import Secrets
from hudi_locks_conformance.servers.zookeeper import KerberosZooKeeper
from hudi_locks_conformance.suite import LockProviderSuite
from hudi_locks_providers.zookeeper import ZooKeeperLockProvider
from jvm_neighbours import ADA, TABLE, expect_our_hold_kept, makes, poll

from hudi_locks import AcquireTimeout, BackendRefused, LockManager
from hudi_locks.lock import SetupTerms

pytest.importorskip("gssapi", reason="pip install 'hudi-locks[kerberos]'")
pytestmark = pytest.mark.servers
URL = "hoodie.write.lock.zookeeper.url"
MECHANISM, PRINCIPAL = "hudi_locks.zookeeper.sasl.mechanism", "hudi_locks.zookeeper.sasl.principal"
JAVA = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
CLIENT = "Client { com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true; };"
Make = Callable[..., ZooKeeperLockProvider]


@pytest.fixture(scope="module")
def server(secrets: Secrets) -> Iterator[Server]:
    with start_server(KerberosZooKeeper(secrets=secrets, needs_login=True)) as server:
        yield server


@pytest.fixture(autouse=True)
def ticket(secrets: Secrets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """That of writer; another client, or none, logs in by a call."""

    def log_in(client: str) -> None:
        for name, value in secrets.environment(tmp_path / f"tickets-{client}", client).items():
            monkeypatch.setenv(name, value)

    log_in("writer")
    return log_in


@pytest.fixture
def options(server: Server, tmp_path: Path) -> dict[str, str]:
    named = {"hoodie.write.lock.zookeeper.base_path": f"/{tmp_path.name}", MECHANISM: "GSSAPI"}
    return {**server.options, "hoodie.write.lock.zookeeper.connection_timeout_ms": "5000", **named}


@pytest.fixture
def make(options: dict[str, str]) -> Iterator[Make]:
    with makes(ZooKeeperLockProvider, options) as make_one:
        yield make_one


def test_a_lock_is_held_beyond_a_session_and_kept_from_others(options: dict[str, str]) -> None:
    with LockManager("zookeeper", options) as first, LockManager("zookeeper", options) as second:
        held = first.lock()
        with pytest.raises(AcquireTimeout):
            second.lock(timeout_s=3)
        held.verify()
        held.release()
        assert second.try_lock() is not None


def test_a_link_that_breaks_is_logged_in_again(options: dict[str, str], server: Server) -> None:
    assert isinstance(server, LocalServer)
    patient = {**options, "hoodie.write.lock.zookeeper.session_timeout_ms": "30000"}
    with LockManager("zookeeper", patient) as locks, locks.lock() as held:
        server.restart()
        held.verify()


def test_nodes_are_kept_for_whoever_has_the_principal(make: Make, ticket: Callable[[str], None]) -> None:
    kept = {"hudi_locks.zookeeper.acl": "creator"}
    holder = make(**kept)
    assert {step.outcome for step in holder.set_up(SetupTerms())} == {"made"}
    assert holder.try_acquire(TABLE, ADA, 0) is not None
    assert make(**kept).try_acquire(TABLE, ADA, 0) is None
    ticket("stranger")
    with pytest.raises(BackendRefused, match="NoAuth"):
        make().try_acquire(TABLE, ADA, 0)


def test_a_principal_is_one_of_the_servers(make: Make) -> None:
    assert make(**{PRINCIPAL: "zookeeper/localhost@EXAMPLE.COM"}).try_acquire(TABLE, ADA, 0) is not None
    with pytest.raises(BackendRefused, match=r"/nobody fails \(.*\): give .* by hudi_locks.zookeeper.sasl.pri"):
        make(**{PRINCIPAL: "zookeeper/nobody"}).try_acquire(TABLE, ADA, 0)
    with pytest.raises(BackendRefused, match=r"refuses the login by SASL for .*: check .*principal"):
        make(**{PRINCIPAL: "hive/_HOST"}).try_acquire(TABLE, ADA, 0)


def test_without_a_ticket_it_says_how_to_get_one(make: Make, ticket: Callable[[str], None]) -> None:
    ticket("")
    with pytest.raises(BackendRefused, match=r"no valid Kerberos ticket \(.*\): get one with kinit, or name a keytab"):
        make().try_acquire(TABLE, ADA, 0)
    ticket("writer")
    assert make().try_acquire(TABLE, ADA, 0) is not None


def test_a_server_without_logins_is_told_apart(make: Make, zookeeper: Server) -> None:
    with pytest.raises(BackendRefused, match="ZooKeeper does not answer the login by Kerberos: give its server"):
        make(**{URL: zookeeper.options[URL]}).try_acquire(TABLE, ADA, 0)


def test_whoever_does_not_log_in_is_told_how(options: dict[str, str]) -> None:
    nameless = {key: value for key, value in options.items() if key != MECHANISM}
    with (
        makes(ZooKeeperLockProvider, nameless) as make_one,
        pytest.raises(BackendRefused, match="wants a login") as said,
    ):
        make_one().try_acquire(TABLE, ADA, 0)
    assert str(said.value).endswith("or for Kerberos ….mechanism=GSSAPI")


@pytest.fixture
def partner(
    options: dict[str, str], secrets: Secrets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jvm: None
) -> Partner:
    """JVM Hudi's provider, with a JAAS file and the ticket of a file."""
    (tmp_path / "login.conf").write_text(CLIENT)
    flags = (*secrets.jvm_flags, f"-Djava.security.auth.login.config={tmp_path}/login.conf")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", " ".join(flags))
    with LockManager("zookeeper", options) as locks:
        locks.lock().release()  # by the keytab; the file has a ticket now
    return hudi(JAVA, options)


class TestBesideTheJvm:
    def test_it_does_not_enter_while_we_hold(self, options: dict[str, str], partner: Partner) -> None:
        expect_our_hold_kept("zookeeper", options, partner, watch_s=5)

    def test_we_do_not_enter_while_it_holds(self, make: Make, partner: Partner) -> None:
        with JvmContender(partner, "hold", 1, until_told=True) as theirs:
            assert theirs.wait_held(60)
            assert make().try_acquire(TABLE, ADA, 0) is None
            theirs.let_go()
            assert poll(make(), 60) is not None


class TestConformance(LockProviderSuite):
    level = Level.CORE
    claims = ZooKeeperLockProvider.capabilities

    @pytest.fixture
    def harness(self, server: Server, options: dict[str, str]) -> Harness:
        return Harness("zookeeper", options, seed=1, server=server)
