"""Requests that never come whole end, and others are answered meanwhile."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest

from hudi_locks.clock import ManualClock
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline_server import Endpoint, server
from hudi_locks.timeline_server.app import make_app
from hudi_locks.timeline_server.server import TimelineServer
from hudi_locks.timeline_server.service import MarkerService


@pytest.mark.parametrize("begun", [b"", b"GET /v1", b"POST /v1 HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_half_open_request_ends(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr(server._TimelyProtocol, "request_s", 0.05)
    storage = MemoryStorage(ManualClock())
    service = MarkerService(storage, files=1, interval_s=0.0)
    with TimelineServer(lambda token: make_app(service, base_path="/t", token=token)) as running:
        place = urlsplit(running.url)
        with socket.create_connection((place.hostname, place.port or 0), timeout=60) as client:
            client.sendall(begun)
            assert client.recv(1) == b""
        Endpoint(running.url, "/t", running.token).check("20260101000000001")
