"""DynamoDB Local, Amazon's own; in memory."""

from __future__ import annotations

import http.client
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from hudi_locks_conformance.servers.cache import fetch_maven, find_tool
from hudi_locks_conformance.servers.kind import QUICK_JVM, Container, Launch, ServerKind
from hudi_locks_conformance.servers.loopback import keep_on_loopback

__all__ = ["DynamoDBLocal"]

_JARS: Final = ("com.amazonaws:DynamoDBLocal:2.6.1",)
_MAIN: Final = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
_ANSWER_S: Final = 2.0
_IN_MEMORY: Final = ("-inMemory", "-sharedDb", "-disableTelemetry")
_ANY_CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_REGION": "us-east-1"}


@dataclass(frozen=True)
class DynamoDBLocal(ServerKind):
    """DynamoDB Local 2.6. Its tables are gone when it ends."""

    name: ClassVar[str] = "dynamodb"
    provider: ClassVar[str] = "dynamodb"
    container: ClassVar[Container | None] = Container(
        "amazon/dynamodb-local:2.6.1", 8000, command=f"-jar DynamoDBLocal.jar {' '.join(_IN_MEMORY)}"
    )

    def fetch(self) -> None:
        """See `ServerKind.fetch`."""
        find_tool("java")
        keep_on_loopback()
        fetch_maven("dynamodb-local", _JARS)

    def launch(self, folder: Path, port: int) -> Launch:  # noqa: ARG002  # all of it is in memory
        """See `ServerKind.launch`."""
        jars = fetch_maven("dynamodb-local", _JARS)
        flags = [
            "-Xmx256m",
            *QUICK_JVM,
            f"-Dsqlite4java.library.path={jars}",
            "-cp",
            f"{jars}/*",
        ]
        words = [find_tool("java"), *flags, _MAIN, *_IN_MEMORY, "-port", str(port)]
        return Launch(words, {**keep_on_loopback(), **_ANY_CREDENTIALS})

    def is_ready(self, port: int) -> bool:
        """See `ServerKind.is_ready`; any answer in its protocol will do."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        return True

    def options(self, port: int) -> dict[str, str]:
        """See `ServerKind.options`."""
        return {
            "hoodie.write.lock.dynamodb.endpoint_url": f"http://127.0.0.1:{port}",
            "hoodie.write.lock.dynamodb.region": "us-east-1",
            "hoodie.write.lock.dynamodb.partition_key": "conformance",
            "hoodie.aws.access.key": "KEYOFTHEKIT0123456789",
            "hoodie.aws.secret.key": "secretOfTheKit0123456789",  # it asks for some, and takes all
            "hoodie.base.path": "/tmp/conformance",  # noqa: S108  # a name to hash
        }
