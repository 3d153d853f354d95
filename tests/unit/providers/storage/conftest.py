"""A stub that speaks as much of S3 as obstore asks for, and fails when told to; providers on it, in virtual time."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hudi_locks_providers.storage import StorageLockProvider

from hudi_locks import LockProvider, ManualClock

TABLE_KEY = "t/.hoodie/.locks/table_lock.json"
Rule = Callable[[str, str], Any]


class StubS3:
    """One bucket in memory.

    Attributes:
        objects: Key and content.
        requests: Method and key of every request, in order.
        connections: By which of them it came; a number of a port may be given twice in a row, a handler not.
        rules: Asked before each request with method and key: a status refuses it, "lose" drops the connection after its
            effect, "drop" before it; None lets it pass.
        ignores: Headers of conditions that it accepts and ignores, as some services do.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.connections: list[Any] = []
        self.rules: list[Rule] = []
        self.ignores: set[str] = set()
        self.guard = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (StubHandler,), {"stub": self}))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def count(self, part: str = "") -> int:
        return sum(part in key for _, key in self.requests)

    def once(self, verdict: Any, method: str = "PUT", key: str = TABLE_KEY) -> None:
        """Let the next such request fail."""
        left = [verdict]
        self.rules.append(lambda m, k: left.pop() if left and (m, k) == (method, key) else None)

    def always(self, verdict: Any, method: str = "PUT", part: str = "") -> Rule:
        """Let all such requests fail."""
        self.rules.append(lambda m, k: verdict if m == method and part in k else None)
        return self.rules[-1]

    def etag(self, key: str) -> str:
        return f'"{hashlib.md5(self.objects[key]).hexdigest()}"'

    def refuses(self, headers: Any, key: str) -> bool:
        """Whether the conditions of a write do not hold."""
        if headers["If-None-Match"] == "*" and "If-None-Match" not in self.ignores and key in self.objects:
            return True
        wanted = headers["If-Match"]
        if wanted is None or "If-Match" in self.ignores:
            return False
        return key not in self.objects or self.etag(key) != wanted


class StubHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    stub: StubS3

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = unquote(self.path.partition("?")[0]).removeprefix("/bucket/")
        self.stub.requests.append((self.command, key))
        self.stub.connections.append(self)
        verdict = next((told for rule in self.stub.rules if (told := rule(self.command, key)) is not None), None)
        if isinstance(verdict, int):
            self._answer(verdict, f"<Error><Code>Told{verdict}</Code></Error>".encode())
            return
        if verdict != "drop":
            with self.stub.guard:
                status, data = self._act(key, body)
        if verdict is None:
            self._answer(status, data, key)
            return
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _act(self, key: str, body: bytes) -> tuple[int, bytes]:
        if self.command == "PUT":
            return self._put(key, body)
        if self.command == "POST":  # DeleteObjects
            keys = [part.partition("</Key>")[0] for part in body.decode().split("<Key>")[1:]]
            for one in keys:
                self.stub.objects.pop(one, None)
            gone = "".join(f"<Deleted><Key>{one}</Key></Deleted>" for one in keys)
            return 200, f"<DeleteResult>{gone}</DeleteResult>".encode()
        if key not in self.stub.objects:
            return 404, b"<Error><Code>NoSuchKey</Code></Error>"
        return 200, self.stub.objects[key]

    def _put(self, key: str, body: bytes) -> tuple[int, bytes]:
        if self.stub.refuses(self.headers, key):
            return 412, b"<Error><Code>PreconditionFailed</Code></Error>"
        self.stub.objects[key] = body
        return 200, b""

    def _answer(self, status: int, body: bytes, key: str = "") -> None:
        self.send_response(status)
        if status == 200 and key in self.stub.objects:
            self.send_header("ETag", self.stub.etag(key))
            self.send_header("Last-Modified", formatdate(usegmt=True))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def stub(monkeypatch: Any, tmp_path: Path) -> Iterator[StubS3]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = StubS3()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def make_storage(stub: StubS3, clock: ManualClock) -> Iterator[Callable[..., StorageLockProvider]]:
    """Make a provider on the stub, proven already so that only its own requests are counted."""
    made: list[LockProvider] = []

    def make_one(*, proven: bool = True, **options: object) -> StorageLockProvider:
        full = {
            "hoodie.base.path": "s3a://bucket/t",
            "hoodie.aws.access.key": "a",
            "hoodie.aws.secret.key": "top-secret",
            "hudi_locks.storage.endpoint_url": stub.url,
            "hudi_locks.storage.allow_http": True,
            **options,
        }
        provider = StorageLockProvider(full, clock=clock, on_lost=lambda *_: None)
        if proven:
            provider._truth.prove = lambda: None  # type: ignore[method-assign]
        made.append(provider)
        return provider

    yield make_one
    stub.rules.clear()
    for provider in made:
        provider.close()
