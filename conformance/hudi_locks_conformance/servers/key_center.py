"""Kerberos: a key distribution center, for servers that want a login by it and for their clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from hudi_locks_conformance.servers.cache import compile_java, fetch_maven, find_tool
from hudi_locks_conformance.servers.kind import QUICK_JVM, Launch, ServerKind

__all__ = ["REALM", "KeyCenter", "Secrets"]

REALM: Final = "EXAMPLE.COM"
"""In which all of its principals are."""
_JARS: Final = ("org.apache.hadoop:hadoop-minikdc:3.4.1",)
_SOURCE: Final = Path(__file__).parent / "java" / "LoopbackKdc.java"
_SERVICES: Final = ("hdfs", "HTTP", "hive", "zookeeper")
_CLIENTS: Final = ("writer", "stranger")


@dataclass(frozen=True)
class Secrets:
    """What a key distribution center gave out: files that live as long as it runs.

    Attributes:
        folder: Where they lie.
    """

    folder: Path

    @property
    def config(self) -> Path:
        """The `krb5.conf` by which it is found."""
        return self.folder / "krb5.conf"

    @property
    def services(self) -> Path:
        """The keytab of the services on `localhost`: hdfs, HTTP, hive and zookeeper."""
        return self.folder / "services.keytab"

    def keytab(self, client: str) -> Path:
        """The keytab of a client: writer, or stranger."""
        return self.folder / f"{client}.keytab"

    def principal(self, service: str) -> str:
        """The principal of a service on `localhost`."""
        return f"{service}/localhost@{REALM}"

    @property
    def jvm_flags(self) -> tuple[str, ...]:
        """With which a JVM finds the center."""
        return (f"-Djava.security.krb5.conf={self.config}",)

    def environment(self, tickets: Path, client: str = "") -> Mapping[str, str]:
        """With which a process finds it, keeps its tickets in a file, and logs in as `client`; nameless it cannot."""
        keytab = self.keytab(client) if client else Path("/nowhere")
        return {
            "KRB5_CONFIG": str(self.config),
            "KRB5CCNAME": f"FILE:{tickets}",
            "KRB5_CLIENT_KTNAME": str(keytab),
        }


@dataclass(frozen=True)
class KeyCenter(ServerKind):
    """A key distribution center in a JVM: Hadoop's MiniKdc, of Apache Kerby.

    Attributes:
        secrets: What it gives out, into a folder that is empty or not there yet.
    """

    name: ClassVar[str] = "kdc"
    provider: ClassVar[str] = ""
    secrets: Secrets

    def fetch(self) -> None:
        """See `ServerKind.fetch`."""
        find_tool("java")
        compile_java("kdc", [_SOURCE], f"{fetch_maven('kdc', _JARS)}/*")

    def launch(self, folder: Path, port: int) -> Launch:  # noqa: ARG002  # it keeps all in its secrets
        """See `ServerKind.launch`."""
        jars = f"{fetch_maven('kdc', _JARS)}/*"
        classes = compile_java("kdc", [_SOURCE], jars)
        services = ",".join(f"{name}/localhost" for name in _SERVICES)
        keytabs = [f"{self.secrets.services.name}:{services}", *(f"{name}.keytab:{name}" for name in _CLIENTS)]
        words = [find_tool("java"), "-Xmx64m", *QUICK_JVM, "-cp", f"{classes}:{jars}", "LoopbackKdc", str(port)]
        return Launch([*words, str(self.secrets.folder), *keytabs])

    def is_ready(self, port: int) -> bool:  # noqa: ARG002  # the file appears when it has given out all
        """See `ServerKind.is_ready`."""
        return (self.secrets.folder / "ready").exists()

    def options(self, port: int) -> dict[str, str]:  # noqa: ARG002
        """See `ServerKind.options`: it serves no lock provider."""
        return {}
