"""Hive Metastore, from the jars that PySpark brings, on a Derby database."""

from __future__ import annotations

import importlib.util
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final
from xml.sax.saxutils import escape

from hudi_locks_conformance.servers.cache import ServerUnavailable, compile_java, find_tool
from hudi_locks_conformance.servers.key_center import Secrets
from hudi_locks_conformance.servers.kind import QUICK_JVM, Launch, ServerKind
from hudi_locks_conformance.servers.loopback import keep_on_loopback

__all__ = ["HiveMetastore", "KerberosMetastore", "find_spark_jars"]

_JAVA: Final = Path(__file__).with_name("java")
_MAIN: Final = "MetastoreWithLocks"
_OPENED: Final = ("lang", "net", "nio", "util", "util.concurrent", "util.regex", "io", "time")
"""Packages that Hadoop and Hive reflect upon."""
_ANSWER_S: Final = 5.0
_MOST_CLIENTS: Final = "256"
"""A request for a lock takes a second connection to the database while it keeps the first: with as many requests at
one time as the pool has connections, ten by default, the metastore stands still until one of them times out."""
_ASK: Final = b"\x80\x01\x00\x01\x00\x00\x00\x09getStatus\x00\x00\x00\x01\x00"
"""The call getStatus, in Thrift's binary protocol."""
_NO_LOGIN: Final = b"Invalid status"
"""What a metastore with SASL answers to it."""


@dataclass(frozen=True)
class HiveMetastore(ServerKind):
    """The metastore of Hive 2.3, as PySpark 3.5 and 4.0 carry it.

    Attributes:
        lock_timeout: After this silence a lock is dropped, as `hive.txn.timeout` has it.
        reap: How often the housekeeper looks for such locks.
    """

    name: ClassVar[str] = "hive_metastore"
    provider: ClassVar[str] = "hive_metastore"
    patience_s: ClassVar[float] = 120.0
    lock_timeout: str = "5s"
    reap: str = "1s"

    def fetch(self) -> None:
        """See `ServerKind.fetch`."""
        find_tool("java")
        find_spark_jars()
        keep_on_loopback()
        self._classes()

    def _classes(self) -> Path:
        return compile_java("hive-metastore", [_JAVA / f"{_MAIN}.java"], "")

    def launch(self, folder: Path, port: int) -> Launch:
        """See `ServerKind.launch`."""
        database = folder / "derby"
        is_new = [] if database.exists() else ["new"]
        conf = folder / "conf"
        conf.mkdir(exist_ok=True)
        settings = self._settings(folder, database)
        (conf / "hive-site.xml").write_text(_write_site(settings))
        (conf / "log4j2.properties").write_text((_JAVA / "log4j2.properties").read_text())
        opens = [word for name in _OPENED for word in ("--add-opens", f"java.base/java.{name}=ALL-UNNAMED")]
        flags = [
            "-Xmx512m",
            *QUICK_JVM,
            f"-Dderby.stream.error.file={folder}/derby.log",
            # the old name of the setting keeps Hive from setting up a log of its own, with a jar that Spark lacks
            f"-Dlog4j.configurationFile={conf}/log4j2.properties",
        ]
        path = f"{conf}:{self._classes()}:{find_spark_jars()}/*"
        words = [find_tool("java"), *flags, "--add-opens", "java.sql/java.sql=ALL-UNNAMED", *opens, "-cp", path]
        return Launch([*words, _MAIN, str(port), *is_new], keep_on_loopback())

    def _settings(self, folder: Path, database: Path) -> dict[str, str]:
        return {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={database};create=true",
            "javax.jdo.option.ConnectionDriverName": _find_driver(),
            "datanucleus.schema.autoCreateAll": "true",
            "datanucleus.connectionPoolingType": "HikariCP",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": f"file://{folder}/warehouse",
            "hive.metastore.execute.setugi": "false",
            "hive.metastore.server.min.threads": "4",
            "hive.metastore.server.max.threads": _MOST_CLIENTS,
            "datanucleus.connectionPool.maxPoolSize": _MOST_CLIENTS,
            "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
            "hive.support.concurrency": "true",
            "hive.txn.timeout": self.lock_timeout,
            "hive.timedout.txn.reaper.start": self.reap,
            "hive.timedout.txn.reaper.interval": self.reap,
            "hive.compactor.initiator.on": "true",  # starts the housekeeper, too
        }

    def is_ready(self, port: int) -> bool:
        """See `ServerKind.is_ready`."""
        return b"getStatus" in self._ask(port)

    def _ask(self, port: int) -> bytes:
        """Its answer to a call without a login; nothing where there is none."""
        try:
            with socket.create_connection(("127.0.0.1", port), _ANSWER_S) as connection:
                connection.sendall(_ASK)
                return connection.recv(64)
        except OSError:
            return b""

    def options(self, port: int) -> dict[str, str]:
        """See `ServerKind.options`."""
        return {
            "hoodie.write.lock.hivemetastore.uris": f"thrift://127.0.0.1:{port}",
            "hoodie.write.lock.hivemetastore.database": "conformance",
            "hoodie.write.lock.hivemetastore.table": "trips",
            "hoodie.write.lock.heartbeat_interval_ms": "1000",
        }


@dataclass(frozen=True, kw_only=True)
class KerberosMetastore(HiveMetastore):
    """One that wants a login by Kerberos.

    Attributes:
        secrets: Of the key distribution center, which runs.
        protection: `hadoop.rpc.protection`: what guards connections.
    """

    name: ClassVar[str] = "kerberos_metastore"
    secrets: Secrets
    protection: str = "authentication"

    def launch(self, folder: Path, port: int) -> Launch:
        """See `ServerKind.launch`."""
        started = super().launch(folder, port)
        java, *words = started.words
        told = {"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": self.protection}
        (folder / "conf" / "core-site.xml").write_text(_write_site(told))
        return Launch([java, *self.secrets.jvm_flags, *words], started.env)

    def _settings(self, folder: Path, database: Path) -> dict[str, str]:
        return {
            **super()._settings(folder, database),
            "hive.metastore.sasl.enabled": "true",
            "hive.metastore.kerberos.principal": self.secrets.principal("hive"),
            "hive.metastore.kerberos.keytab.file": str(self.secrets.services),
        }

    def is_ready(self, port: int) -> bool:
        """See `ServerKind.is_ready`: it refuses whoever does not log in."""
        return _NO_LOGIN in self._ask(port)


def find_spark_jars() -> Path:
    """The jars of the installed pyspark.

    Raises:
        ServerUnavailable: It is not installed.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        command = "pip install pyspark"
        raise ServerUnavailable(f"the metastore comes with the jars of pyspark: {command}", command=command)
    return Path(found.submodule_search_locations[0]) / "jars"


def _find_driver() -> str:
    """Derby moved its driver between the releases that PySpark 3 and 4 carry."""
    moved = any(find_spark_jars().glob("derbyshared-*.jar"))
    return "org.apache.derby.iapi.jdbc.AutoloadedDriver" if moved else "org.apache.derby.jdbc.EmbeddedDriver"


def _write_site(settings: dict[str, str]) -> str:
    properties = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>\n" for name, value in settings.items()
    )
    return f"<configuration>\n{properties}</configuration>\n"
