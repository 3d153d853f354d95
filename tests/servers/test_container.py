"""The container path, against an engine that is a stub: it takes down what it is asked and opens the port."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hudi_locks_conformance.servers import (
    Container,
    Launch,
    ServerKind,
    ServerUnavailable,
    find_free_port,
    start_server,
)
from hudi_locks_conformance.servers.container import ContainerServer, is_engine_running

pytestmark = pytest.mark.servers


@dataclass
class Engine:
    """What the stub was asked, as `METHOD path` without the API's version; `created` is the body of the one create."""

    asked: list[str] = field(default_factory=list)
    created: dict[str, Any] = field(default_factory=dict)
    opens: bool = True
    port: socket.socket | None = None

    def answer(self, request: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.asked.append(request)
        if request.endswith("/version"):
            return 200, {"ApiVersion": "1.41", "Version": "20.10"}
        if request == "POST /containers/create":
            self.created = body
            return 201, {"Id": "c1", "Warnings": []}
        if request.startswith("GET /containers/c1/json"):
            return 200, {"Id": "c1", "Name": "/c1", "State": {"Status": "running"}, "Config": {"Labels": {}}}
        if request in ("POST /containers/c1/start", "POST /containers/c1/restart"):
            self.open_port()
        if request == "GET /_ping":
            return 200, "OK"
        return (200, {}) if request.startswith("GET") else (204, None)

    def open_port(self) -> None:
        if self.opens:
            self.close_port()
            bindings = self.created["HostConfig"]["PortBindings"]
            self.port = socket.create_server(("127.0.0.1", int(bindings["2181/tcp"][0]["HostPort"])))

    def close_port(self) -> None:
        if self.port is not None:
            self.port.close()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    engine = Engine()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size) or b"{}")
            path = self.path.partition("?")[0]
            status, answer = engine.answer(f"{self.command} {path.removeprefix('/v1.41')}", body)
            data = (
                b"" if answer is None else answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            )
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
    monkeypatch.setattr("testcontainers.core.config.testcontainers_config.ryuk_disabled", True)
    yield engine
    engine.close_port()
    server.shutdown()
    server.server_close()


class Boxed(ServerKind):
    name: ClassVar[str] = "boxed"
    provider: ClassVar[str] = "zookeeper"
    container: ClassVar[Container | None] = Container("zookeeper:3.9.3", 2181, "serve", env={"MODE": "test"})
    patience_s: ClassVar[float] = 1.0

    def fetch(self) -> None:
        raise AssertionError("a server in a container needs no tool of this machine")

    def launch(self, folder: Path, port: int) -> Launch:
        raise AssertionError(f"{folder}, {port}: no process is wanted")

    def is_ready(self, port: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def options(self, port: int) -> dict[str, str]:
        return {"hoodie.write.lock.zookeeper.url": f"127.0.0.1:{port}"}


class Unboxed(Boxed):
    container: ClassVar[Container | None] = None


def test_a_running_engine_is_asked_and_not_the_path(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert is_engine_running()
    assert engine.asked.count("GET /_ping") == 1
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{find_free_port()}")
    assert not is_engine_running()


def test_a_server_runs_in_a_container_that_only_loopback_reaches(engine: Engine) -> None:
    with start_server(Boxed()) as server:
        assert isinstance(server, ContainerServer)
        assert server.options == {"hoodie.write.lock.zookeeper.url": f"127.0.0.1:{server.port}"}
        bindings = engine.created["HostConfig"]["PortBindings"]
        assert bindings == {"2181/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(server.port)}]}
        assert (engine.created["Image"], engine.created["Cmd"]) == ("zookeeper:3.9.3", ["serve"])
        assert "MODE=test" in engine.created["Env"]
        server.pause()
        server.resume()
        server.kill()
        server.restart()
    verbs = [asked.rpartition("/")[2] for asked in engine.asked if asked.startswith("POST /containers/c1/")]
    assert verbs == ["start", "pause", "unpause", "kill", "restart"]
    assert engine.asked[-1] == "DELETE /containers/c1"


def test_a_container_that_never_answers_is_removed(engine: Engine) -> None:
    engine.opens = False
    with pytest.raises(ServerUnavailable, match="does not answer"):
        start_server(Boxed())
    assert engine.asked[-1] == "DELETE /containers/c1"


def test_a_kind_without_container_says_so(engine: Engine) -> None:
    with pytest.raises(ServerUnavailable, match="as a process only"):
        ContainerServer(Unboxed(), 1)
    assert not engine.created
