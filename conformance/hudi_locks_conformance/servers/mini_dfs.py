"""HDFS: one name node and one data node, with WebHDFS."""

from __future__ import annotations

import http.client
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import urlsplit

from hudi_locks_conformance.servers.cache import ServerUnavailable, compile_java, fetch_maven, find_tool
from hudi_locks_conformance.servers.key_center import REALM, Secrets
from hudi_locks_conformance.servers.kind import QUICK_JVM, Launch, ServerKind
from hudi_locks_conformance.servers.local import LocalServer

__all__ = ["KerberosDfs", "MiniDfs", "find_rpc_port"]

_HADOOP: Final = "3.4.1"
_JARS: Final = (
    f"org.apache.hadoop:hadoop-hdfs:{_HADOOP}",
    f"org.apache.hadoop:hadoop-hdfs-client:{_HADOOP}",
    f"org.apache.hadoop:hadoop-common:{_HADOOP}",
    f"org.apache.hadoop:hadoop-hdfs:{_HADOOP}:test-jar",
    f"org.apache.hadoop:hadoop-common:{_HADOOP}:test-jar",
    "junit:junit:4.13.2",
    "org.mockito:mockito-core:2.28.2",
)
"""Not the shaded minicluster: its WebHDFS does not answer."""
_SOURCE: Final = Path(__file__).parent / "java" / "LoopbackDfs.java"
_OPENED: Final = ("lang", "lang.reflect", "net", "nio", "util", "util.concurrent")
_QUIET: Final = """log4j.rootLogger=ERROR, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.SimpleLayout
"""
_ANSWER_S: Final = 5.0
_RPC_PORT: Final = re.compile(r"^rpc port (\d+)$", re.MULTILINE)


class MiniDfs(ServerKind):
    """HDFS 3.4; its port is the name node's HTTP port."""

    name: ClassVar[str] = "minidfs"
    provider: ClassVar[str] = "filesystem"
    patience_s: ClassVar[float] = 90.0

    def fetch(self) -> None:
        """See `ServerKind.fetch`."""
        find_tool("java")
        compile_java("minidfs", [_SOURCE], f"{fetch_maven('minidfs', _JARS)}/*")

    def launch(self, folder: Path, port: int) -> Launch:
        """See `ServerKind.launch`."""
        jars = f"{fetch_maven('minidfs', _JARS)}/*"
        classes = compile_java("minidfs", [_SOURCE], jars)
        opened = [word for name in _OPENED for word in ("--add-opens", f"java.base/java.{name}=ALL-UNNAMED")]
        (folder / "log4j.properties").write_text(_QUIET)
        words = [
            find_tool("java"),
            "-Xmx256m",
            f"-Dlog4j.configuration={(folder / 'log4j.properties').as_uri()}",
            *QUICK_JVM,
            *opened,
            "-cp",
            f"{classes}:{jars}",
        ]
        return Launch([*words, "LoopbackDfs", str(folder / "data"), str(port)])

    def is_ready(self, port: int) -> bool:
        """See `ServerKind.is_ready`: a file can be written only once the data node has joined."""
        told = f"http://127.0.0.1:{port}/webhdfs/v1/ready?op=CREATE&overwrite=true&user.name=tester"
        try:
            _, where = _put(told)
            return bool(where) and _put(where)[0] == http.HTTPStatus.CREATED
        except (OSError, http.client.HTTPException):
            return False

    def options(self, port: int) -> dict[str, str]:
        """See `ServerKind.options`: with the scheme by which a JVM, too, needs to know this one port only."""
        return {
            "hoodie.write.lock.filesystem.path": f"webhdfs://127.0.0.1:{port}/locks/conformance",
            "hoodie.fs.atomic_creation.support": "webhdfs",
        }


@dataclass(frozen=True)
class KerberosDfs(MiniDfs):
    """The same, with Kerberos; a delegation token of the name node is in `token` of its folder.

    Attributes:
        secrets: Of the key distribution center, which runs.
    """

    name: ClassVar[str] = "kerberosdfs"
    secrets: Secrets

    def launch(self, folder: Path, port: int) -> Launch:
        """See `ServerKind.launch`."""
        java, *words = super().launch(folder, port).words
        return Launch([java, *self.secrets.jvm_flags, *words, str(self.secrets.services), REALM])

    def is_ready(self, port: int) -> bool:
        """See `ServerKind.is_ready`: nobody writes without a ticket, so the name node tells of its data node."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)
        try:
            connection.request("GET", "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState")
            return bool(json.load(connection.getresponse())["beans"][0]["NumLiveDataNodes"] == 1)
        except (OSError, http.client.HTTPException, ValueError, LookupError):
            return False
        finally:
            connection.close()


def find_rpc_port(server: LocalServer) -> int:
    """The port at which Hadoop's own clients, such as Spark's, reach the name node: `hdfs://127.0.0.1:<port>`.

    Raises:
        ServerUnavailable: The server told none.
    """
    told = _RPC_PORT.findall((server.folder / "log").read_text(errors="replace"))
    if not told:
        raise ServerUnavailable(f"{server.kind.name} told no port for Hadoop's clients: {server.process.log_tail()}")
    return int(told[-1])  # of the last start


def _put(url: str) -> tuple[int, str]:
    """The status, and where the answer sends us."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=_ANSWER_S)
    try:
        headers = {"Content-Type": "application/octet-stream"}
        connection.request("PUT", f"{parts.path}?{parts.query}", b"", headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.getheader("Location", "")
    finally:
        connection.close()
