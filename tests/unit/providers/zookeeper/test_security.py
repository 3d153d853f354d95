"""How a client of ZooKeeper logs in, and what contradicts itself is refused before any connection."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hudi_locks_providers._zookeeper.security import Security
from hudi_locks_providers.zookeeper import ZooKeeperLockProvider

from hudi_locks import ConfigError, ManualClock, ProviderLoadError
from hudi_locks.config import Options

USE, LOGIN = {"hudi_locks.zookeeper.use_ssl": "true"}, {"hudi_locks.zookeeper.sasl.user": "ada"}
CA, CERT = "hudi_locks.zookeeper.ssl.ca_file", "hudi_locks.zookeeper.ssl.cert_file"
DIGEST, ACL = "hudi_locks.zookeeper.digest", "hudi_locks.zookeeper.acl"
MECHANISM, PRINCIPAL = "hudi_locks.zookeeper.sasl.mechanism", "hudi_locks.zookeeper.sasl.principal"


def parse(given: Mapping[str, object]) -> Security:
    return Security.from_options(Options(given))


@pytest.fixture
def pem(tmp_path: Path) -> str:
    (tmp_path / "one.pem").write_text("-")
    return str(tmp_path / "one.pem")


def test_by_default_a_connection_is_plain_and_nameless_as_hudis() -> None:
    assert parse({}) == Security()
    assert Security().arguments == {}


def test_the_client_gets_what_the_keys_say(pem: str) -> None:
    files = {CA: pem, CERT: pem, "hudi_locks.zookeeper.ssl.key_file": pem}
    secrets = {"hudi_locks.zookeeper.ssl.key_password": "pw", "hudi_locks.zookeeper.sasl.password": "pw"}
    lax = {"hudi_locks.zookeeper.ssl.check_hostname": "false"}
    found = parse({**USE, **files, **secrets, **lax, **LOGIN, DIGEST: "ada:a:b", ACL: "creator"})
    assert found.restricts
    assert found.arguments == {
        "use_ssl": True,
        "check_hostname": False,
        "ca": pem,
        "certfile": pem,
        "keyfile": pem,
        "keyfile_password": "pw",
        "auth_data": [("digest", "ada:a:b")],
        "sasl_options": {"mechanism": "DIGEST-MD5", "username": "ada", "password": "pw"},
    }
    assert "pw" not in repr(found)
    assert "a:b" not in repr(found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({CA: "PEM"}, "hudi_locks.zookeeper.use_ssl is not true: set it, or leave them out"),
        ({**USE, CERT: "PEM"}, "needs both .*cert_file and .*key_file"),
        ({**USE, CA: "/nowhere.pem"}, "ca_file='/nowhere.pem': there is no such file"),
        ({DIGEST: "ada"}, "digest is not of the form user:password"),
        ({DIGEST: ":pw"}, "digest is not of the form user:password"),
        (LOGIN, "needs both .*sasl.user and .*sasl.password"),
        ({ACL: "creator"}, "acl=creator is for clients that log in: give hudi_locks.zookeeper.digest"),
        ({ACL: "mine"}, "acl='mine': give open or creator"),
        ({PRINCIPAL: "zk/h"}, "sasl.principal is for logins by Kerberos: give .*mechanism=GSSAPI"),
        ({MECHANISM: "digest-md5"}, "mechanism=digest-md5 needs hudi_locks.zookeeper.sasl.user too"),
        ({MECHANISM: "PLAIN"}, "mechanism"),
        ({MECHANISM: "GSSAPI", PRINCIPAL: "zk"}, "'zk' is no principal of a service: give .*sasl.principal=service/_H"),
        (
            {MECHANISM: "GSSAPI", **LOGIN, "hudi_locks.zookeeper.sasl.password": "pw"},
            "mechanism=GSSAPI logs in by a ticket: leave .*user and .*password out",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(pem: str, given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse({name: pem if value == "PEM" else value for name, value in given.items()})


@pytest.mark.parametrize(
    ("given", "principal"),
    [({}, "zookeeper/_HOST"), ({PRINCIPAL: "zk/h@R"}, "zk/h@R"), ({ACL: "creator"}, "zookeeper/_HOST")],
)
def test_a_login_by_ticket_asks_for_the_principal_of_servers(given: dict[str, str], principal: str) -> None:
    found = parse({MECHANISM: "gssapi", **given})
    assert (found.principal, found.restricts, found.arguments) == (principal, ACL in given, {})


def test_a_login_by_sasl_names_the_package_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    options = {"hoodie.write.lock.zookeeper.url": "h:1", "hoodie.table.name": "t", **LOGIN}
    options |= {"hudi_locks.zookeeper.sasl.password": "pw"}
    options["hoodie.write.lock.zookeeper.base_path"] = "/locks"
    provider = ZooKeeperLockProvider(options, clock=ManualClock(), on_lost=lambda *_: None)
    with pytest.raises(ProviderLoadError, match=r"pip install 'kazoo\[sasl\]'"):
        _ = provider.client


def test_a_login_by_ticket_names_the_package_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    options = {"hoodie.write.lock.zookeeper.url": "h:1", "hoodie.table.name": "t", MECHANISM: "GSSAPI"}
    options["hoodie.write.lock.zookeeper.base_path"] = "/locks"
    provider = ZooKeeperLockProvider(options, clock=ManualClock(), on_lost=lambda *_: None)
    with pytest.raises(ProviderLoadError, match=r"pip install 'hudi-locks\[kerberos\]'"):
        _ = provider.client
