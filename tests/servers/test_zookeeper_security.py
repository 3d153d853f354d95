"""A ZooKeeper that asks for TLS, a login by SASL, or rights on its nodes; our writers beside JVM Hudi's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from hudi_locks_conformance.partners import JvmContender, hudi
from hudi_locks_conformance.servers import Launch, Server, ZooKeeper, find_free_port, start_server
from hudi_locks_providers.zookeeper import ZooKeeperLockProvider
from kazoo.client import KazooClient

from hudi_locks import BackendRefused, BackendUnavailable, LockScope, Owner, SystemClock
from hudi_locks.lock import SetupTerms

pytestmark = pytest.mark.servers
TABLE, OWNER = LockScope.table(), Owner("ada", "host-a", 11)
URL, OURS = "hoodie.write.lock.zookeeper.url", "hudi_locks.zookeeper"
DIGEST, ACL = {f"{OURS}.digest": "ada:s3cr:et"}, {f"{OURS}.acl": "creator"}
LOGIN = {f"{OURS}.sasl.user": "ada", f"{OURS}.sasl.password": "s3cret"}
JAVA = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
_SASL = "org.apache.zookeeper.server.auth"
Make = Callable[..., ZooKeeperLockProvider]


@dataclass(frozen=True)
class GuardedZooKeeper(ZooKeeper):
    """With a second port for TLS, and a login by SASL that clients may use, or have to.

    Attributes:
        certificates: A folder with `server.pem` (certificate and key) and `ca.pem`.
        secure_port: The second port.
        needs_login: Whether a session without a login is ended.
        needs_certificate: Whether a client of the second port must show a certificate.
    """

    container = None
    login: ClassVar[str] = f'Server {{ {_SASL}.DigestLoginModule required user_ada="s3cret"; }};'
    certificates: Path = Path()
    secure_port: int = 0
    needs_login: bool = False
    needs_certificate: bool = False

    def launch(self, folder: Path, port: int) -> Launch:
        (folder / "login.conf").write_text(self.login)
        started = super().launch(folder, port)
        java, *words = started.words
        return Launch([java, f"-Djava.security.auth.login.config={folder}/login.conf", *words], started.env)

    def _write_config(self, folder: Path, port: int) -> str:
        settings = {
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "secureClientPort": self.secure_port,
            "secureClientPortAddress": "127.0.0.1",
            "ssl.keyStore.location": self.certificates / "server.pem",
            "ssl.trustStore.location": self.certificates / "ca.pem",
            "ssl.enabledProtocols": "TLSv1.2,TLSv1.3",
            "ssl.clientAuth": "need" if self.needs_certificate else "none",
            "authProvider.1": f"{_SASL}.SASLAuthenticationProvider",
            "sessionRequireClientSASLAuth": str(self.needs_login).lower(),
        }
        return super()._write_config(folder, port) + "".join(f"{name}={value}\n" for name, value in settings.items())


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def certificates(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    for name, issued in (("server", authority.issue_cert("127.0.0.1")), ("writer", authority.issue_cert("writer"))):
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())  # all that ZooKeeper reads
        chain = b"".join(one.bytes() for one in issued.cert_chain_pems)
        (folder / f"{name}.pem").write_bytes(plain + chain)
    return folder


@pytest.fixture(scope="module")
def guarded(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    kind = GuardedZooKeeper(certificates=certificates, secure_port=find_free_port())
    with start_server(kind, tmp_path_factory.mktemp("guarded")) as server:
        yield server


@pytest.fixture(scope="module")
def strict(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One that wants a certificate of clients, and a login."""
    guards = {"needs_login": True, "needs_certificate": True}
    kind = GuardedZooKeeper(certificates=certificates, secure_port=find_free_port(), **guards)  # type: ignore[arg-type]
    with start_server(kind, tmp_path_factory.mktemp("strict")) as server:
        yield server


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[ZooKeeperLockProvider] = []

    def make_one(options: Mapping[str, str]) -> ZooKeeperLockProvider:
        made.append(ZooKeeperLockProvider(options, clock=SystemClock(), on_lost=lambda *_: None))
        return made[-1]

    yield make_one
    for provider in made:
        provider.close()


def at(server: Server, name: str, more: Mapping[str, str] | None = None, *, tls: Path | None = None) -> dict[str, str]:
    """Options of a lock of its own there."""
    options = {**server.options, "hoodie.write.lock.zookeeper.base_path": f"/{name}", **(more or {})}
    if tls is not None:
        options |= {f"{OURS}.use_ssl": "true", f"{OURS}.ssl.ca_file": str(tls / "ca.pem")}
        options[URL] = f"127.0.0.1:{server.kind.secure_port}"  # type: ignore[attr-defined]
    return options


def name_certificate(folder: Path) -> dict[str, str]:
    return dict.fromkeys((f"{OURS}.ssl.cert_file", f"{OURS}.ssl.key_file"), str(folder / "writer.pem"))


def test_locks_are_held_by_tls_and_end_as_without(guarded: Server, certificates: Path, make: Make) -> None:
    options = at(guarded, "tls", tls=certificates)
    holder, other = make(options), make(at(guarded, "tls"))
    lease = holder.try_acquire(TABLE, OWNER, 0)
    assert lease is not None
    assert other.try_acquire(TABLE, OWNER, 0) is None
    assert holder.renew(lease).token == lease.token
    groups = [LockScope.file_group("p", f"f{number}") for number in range(40)]
    assert len(holder.acquire_many(groups, OWNER, 5) or ()) == len(groups)
    holder.release(lease)
    assert other.try_acquire(TABLE, OWNER, 0) is not None


def test_a_certificate_that_is_not_trusted_is_named(
    guarded: Server, certificates: Path, make: Make, tmp_path: Path
) -> None:
    stranger = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(stranger)
    impatient = {"hoodie.write.lock.zookeeper.connection_timeout_ms": "3000"}
    for_others = at(guarded, "tls", impatient, tls=tmp_path)
    with pytest.raises(BackendRefused, match=r"certificate .* is not trusted \(.*\): give its authority by hudi_locks"):
        make(for_others).try_acquire(TABLE, OWNER, 0)
    elsewhere = at(guarded, "tls", impatient, tls=certificates)
    elsewhere[URL] = elsewhere[URL].replace("127.0.0.1", "localhost")
    with pytest.raises(BackendRefused, match=r"not trusted \(Hostname mismatch.*localhost"):
        make(elsewhere).try_acquire(TABLE, OWNER, 0)
    assert make({**elsewhere, f"{OURS}.ssl.check_hostname": "false"}).try_acquire(TABLE, OWNER, 0) is not None


def test_nodes_are_kept_for_who_made_them(guarded: Server, make: Make) -> None:
    """Who knows the password takes part; all others are refused, and told by what they would be let in."""
    options = at(guarded, "kept", {**DIGEST, **ACL})
    holder = make(options)
    assert {step.outcome for step in holder.set_up(SetupTerms())} == {"made"}
    lease = holder.try_acquire(TABLE, OWNER, 0)
    assert lease is not None
    assert make(options).try_acquire(TABLE, OWNER, 0) is None
    with pytest.raises(BackendRefused, match=r"NoAuth.*hudi_locks\.zookeeper\.digest"):
        make(at(guarded, "kept")).try_acquire(TABLE, OWNER, 0)
    with pytest.raises(BackendRefused, match="NoAuth"):
        make({**options, f"{OURS}.digest": "ada:other"}).try_acquire(TABLE, OWNER, 0)
    client = KazooClient(guarded.options[URL])
    client.start()
    client.add_auth("digest", DIGEST[f"{OURS}.digest"])
    rights = [acl.id.scheme for path in ("/kept", "/kept/conformance") for acl in client.get_acls(path)[0]]
    client.stop()
    client.close()
    assert rights == ["digest", "digest"]


def test_a_login_that_is_refused_says_so_without_its_password(guarded: Server, make: Make) -> None:
    wrong = {**LOGIN, f"{OURS}.sasl.password": "wr0ng"}
    with pytest.raises(BackendRefused, match="refuses the login by SASL for /sasl/conformance: check") as said:
        make(at(guarded, "sasl", wrong)).try_acquire(TABLE, OWNER, 0)
    assert "wr0ng" not in str(said.value)


def test_a_writer_and_a_jvm_writer_share_a_lock_by_certificate_and_login(
    strict: Server, certificates: Path, make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """JVM Hudi has no keys for these; its ZooKeeper client takes them from the JVM's own properties."""
    options = at(strict, "both", {**LOGIN, **name_certificate(certificates)}, tls=certificates)
    (tmp_path / "login.conf").write_text(
        f'Client {{ {_SASL}.DigestLoginModule required username="ada" password="s3cret"; }};'
    )
    told = {
        "java.security.auth.login.config": tmp_path / "login.conf",
        "zookeeper.client.secure": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.trustStore.location": certificates / "ca.pem",
        "zookeeper.ssl.keyStore.location": certificates / "writer.pem",
    }
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", " ".join(f"-D{name}={value}" for name, value in told.items()))
    provider = make(options)
    lease = provider.try_acquire(TABLE, OWNER, 0)
    assert lease is not None
    with JvmContender(hudi(JAVA, options), "hold", 0.05) as contender:
        assert not contender.wait_held(3)
        freeing_ns = SystemClock().monotonic() * 1e9
        provider.release(lease)
        (hold,) = contender.finish().holds()
    assert hold.begin_ns >= freeing_ns
    with JvmContender(hudi(JAVA, options), "hold", 1, until_told=True) as contender:
        assert contender.wait_held(60)
        assert provider.try_acquire(TABLE, OWNER, 0) is None
        contender.let_go()


def test_a_wrong_login_is_named_by_a_server_that_wants_one_too(strict: Server, certificates: Path, make: Make) -> None:
    wrong = {**LOGIN, f"{OURS}.sasl.password": "wr0ng", **name_certificate(certificates)}
    with pytest.raises(BackendRefused, match="refuses the login by SASL for /both/conformance: check"):
        make(at(strict, "both", wrong, tls=certificates)).try_acquire(TABLE, OWNER, 0)


def test_without_what_the_server_wants_nobody_gets_in(strict: Server, certificates: Path, make: Make) -> None:
    impatient = {"hoodie.write.lock.zookeeper.connection_timeout_ms": "3000"}
    for lacking in (LOGIN, name_certificate(certificates)):
        with pytest.raises((BackendUnavailable, BackendRefused), match=r"no ZooKeeper server of|wants a login by SASL"):
            make(at(strict, "both", {**lacking, **impatient}, tls=certificates)).try_acquire(TABLE, OWNER, 0)
