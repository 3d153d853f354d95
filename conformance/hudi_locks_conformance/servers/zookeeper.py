"""ZooKeeper: one node, or an ensemble of three."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from hudi_locks_conformance.servers.cache import fetch_maven, find_tool
from hudi_locks_conformance.servers.key_center import Secrets
from hudi_locks_conformance.servers.kind import QUICK_JVM, Container, Launch, ServerKind
from hudi_locks_conformance.servers.local import LocalServer
from hudi_locks_conformance.servers.starting import find_free_port

__all__ = ["KerberosZooKeeper", "ZooKeeper", "start_ensemble"]

_JARS: Final = (
    "org.apache.zookeeper:zookeeper:3.9.3",
    "io.dropwizard.metrics:metrics-core:4.1.12.1",
    "org.xerial.snappy:snappy-java:1.1.10.5",
    "commons-cli:commons-cli:1.5.0",
)
"""The last three are not among the first one's dependencies, and it dies without them."""
_ANSWER_S: Final = 2.0
_LOGIN: Final = (
    "Server {{ com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true useTicketCache=false"
    ' keyTab="{keytab}" principal="{principal}"; }};'
)


@dataclass(frozen=True)
class ZooKeeper(ServerKind):
    """ZooKeeper 3.9.

    Attributes:
        tick_ms: The server's unit of time; sessions last at least two of them.
        container_check_ms: How often empty container nodes are removed.
        peers: For a node of an ensemble: `host:quorum port:election port` of all, in order.
        number: Which of the peers this is, from 1.
    """

    name: ClassVar[str] = "zookeeper"
    provider: ClassVar[str] = "zookeeper"
    container: ClassVar[Container | None] = Container("zookeeper:3.9.3", 2181, env={"ZOO_4LW_COMMANDS_WHITELIST": "*"})
    tick_ms: int = 500
    container_check_ms: int = 60_000
    peers: tuple[str, ...] = ()
    number: int = 1

    def fetch(self) -> None:
        """See `ServerKind.fetch`."""
        find_tool("java")
        fetch_maven("zookeeper", _JARS)

    def launch(self, folder: Path, port: int) -> Launch:
        """See `ServerKind.launch`."""
        (folder / "data").mkdir(exist_ok=True)
        (folder / "data" / "myid").write_text(str(self.number))
        (folder / "zoo.cfg").write_text(self._write_config(folder, port))
        main = "quorum.QuorumPeerMain" if self.peers else "ZooKeeperServerMain"
        jars = f"{fetch_maven('zookeeper', _JARS)}/*"
        flags = [
            "-Xmx128m",
            *QUICK_JVM,
            f"-Dznode.container.checkIntervalMs={self.container_check_ms}",
        ]
        return Launch(
            [find_tool("java"), *flags, "-cp", jars, f"org.apache.zookeeper.server.{main}", f"{folder}/zoo.cfg"]
        )

    def _write_config(self, folder: Path, port: int) -> str:
        settings = {
            "tickTime": self.tick_ms,
            "minSessionTimeout": 2 * self.tick_ms,
            "maxSessionTimeout": 60_000,
            "initLimit": 20,
            "syncLimit": 10,
            "dataDir": folder / "data",
            "clientPort": port,
            "clientPortAddress": "127.0.0.1",
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            **{f"server.{number}": peer for number, peer in enumerate(self.peers, 1)},
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())

    def is_ready(self, port: int) -> bool:
        """See `ServerKind.is_ready`."""
        return bool(read_mode(port))

    def options(self, port: int) -> dict[str, str]:
        """See `ServerKind.options`."""
        return {
            "hoodie.write.lock.zookeeper.url": f"127.0.0.1:{port}",
            "hoodie.write.lock.zookeeper.base_path": "/hudi_locks",
            "hoodie.write.lock.zookeeper.lock_key": "conformance",
            "hoodie.write.lock.zookeeper.session_timeout_ms": "2000",
            "hoodie.base.path": "/tmp/conformance",  # noqa: S108  # a name to hash
        }


@dataclass(frozen=True, kw_only=True)
class KerberosZooKeeper(ZooKeeper):
    """One to which clients may log in by Kerberos, or have to.

    Attributes:
        secrets: Of the key distribution center, which runs.
        needs_login: Whether a session without a login is ended.
    """

    name: ClassVar[str] = "kerberos_zookeeper"
    container: ClassVar[Container | None] = None
    secrets: Secrets
    needs_login: bool = False

    def launch(self, folder: Path, port: int) -> Launch:
        """See `ServerKind.launch`."""
        login = _LOGIN.format(keytab=self.secrets.services, principal=self.secrets.principal("zookeeper"))
        (folder / "login.conf").write_text(login)
        java, *words = super().launch(folder, port).words
        flags = (*self.secrets.jvm_flags, f"-Djava.security.auth.login.config={folder}/login.conf")
        return Launch([java, *flags, *words])

    def _write_config(self, folder: Path, port: int) -> str:
        provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
        told = f"authProvider.1={provider}\nsessionRequireClientSASLAuth={str(self.needs_login).lower()}\n"
        return super()._write_config(folder, port) + told


def read_mode(port: int) -> str:
    """`standalone`, `leader` or `follower`; empty if the node does not serve."""
    try:
        with socket.create_connection(("127.0.0.1", port), _ANSWER_S) as connection:
            connection.sendall(b"srvr")
            said = connection.makefile("rb").read().decode()
    except OSError:
        return ""
    return next((line.partition(": ")[2] for line in said.splitlines() if line.startswith("Mode")), "")


def start_ensemble(folder: Path) -> list[LocalServer]:
    """Three nodes that serve one tree; returns when all serve. The caller stops them."""
    peers = tuple(f"127.0.0.1:{find_free_port()}:{find_free_port()}" for _ in range(3))
    kinds = [ZooKeeper(peers=peers, number=number) for number in (1, 2, 3)]
    kinds[0].fetch()
    nodes = []
    for kind in kinds:
        place = folder / f"node-{kind.number}"
        place.mkdir(parents=True, exist_ok=True)
        nodes.append(LocalServer(kind, place, find_free_port()))
    for node in nodes:
        node.process.start(node.kind.launch(node.folder, node.port))
    for node in nodes:
        node.wait_until_ready()
    return nodes
