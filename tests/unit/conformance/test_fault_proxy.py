"""The fault proxy in front of an echo server: each fault does what it says, and nothing is left of it."""

from __future__ import annotations

import contextlib
import gc
import socket
import socketserver
import threading
from collections.abc import Iterator
from typing import ClassVar

import pytest
from hudi_locks_conformance.faults import FaultProxy
from hudi_locks_conformance.observation import count_descriptors

from hudi_locks import SystemClock

CLOCK = SystemClock()


class _Echo(socketserver.BaseRequestHandler):
    heard: ClassVar[list[bytes]] = []

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while data := self.request.recv(1024):
                self.heard.append(data)
                self.request.sendall(data)


@pytest.fixture
def heard() -> list[bytes]:
    _Echo.heard = []
    return _Echo.heard


@pytest.fixture
def proxy(heard: list[bytes]) -> Iterator[FaultProxy]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        with FaultProxy(server.server_address[1]) as proxy:
            yield proxy
        server.shutdown()
        thread.join()


def connect(proxy: FaultProxy) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", proxy.port), 5)
    made.settimeout(5)
    return made


def ask(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return connection.recv(1024)


def test_it_forwards_both_ways_and_hands_on_the_end(proxy: FaultProxy) -> None:
    with connect(proxy) as one, connect(proxy) as two:
        assert ask(one, b"one") == b"one"
        assert ask(two, b"two") == b"two"
        one.shutdown(socket.SHUT_WR)
        assert one.recv(1) == b""
    assert proxy.accepted == 2


def test_a_cut_resets_what_is_there_and_what_comes_until_it_is_healed(proxy: FaultProxy) -> None:
    with connect(proxy) as old:
        assert ask(old, b"a") == b"a"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            old.recv(1)
    with pytest.raises(ConnectionError), connect(proxy) as new:
        ask(new, b"b")
    proxy.heal()
    with connect(proxy) as healed:
        assert ask(healed, b"c") == b"c"


def test_a_dropped_answer_took_effect_and_only_the_named_one_is_dropped(proxy: FaultProxy, heard: list[bytes]) -> None:
    proxy.drop_answer(2, to=b"PUT")
    for _ in range(2):
        with connect(proxy) as connection:
            assert ask(connection, b"GET") == b"GET"
            with pytest.raises(ConnectionResetError):
                ask(connection, b"PUT")
    assert heard.count(b"PUT") == proxy.lost == 2
    with connect(proxy) as connection:
        assert ask(connection, b"PUT") == b"PUT"


def test_half_open_swallows_and_healing_resets(proxy: FaultProxy, heard: list[bytes]) -> None:
    with connect(proxy) as old:
        assert ask(old, b"a") == b"a"
        proxy.half_open()
        with connect(proxy) as new:
            for connection in (old, new):
                connection.settimeout(0.05)
                with pytest.raises(TimeoutError):
                    ask(connection, b"lost")
                connection.settimeout(5)
            proxy.heal()
            for connection in (old, new):
                with pytest.raises(ConnectionResetError):
                    connection.recv(1)
    assert b"lost" not in heard


def test_a_delay_holds_in_either_direction(proxy: FaultProxy) -> None:
    with connect(proxy) as connection:
        proxy.delay(0.05)
        began_s = CLOCK.monotonic()
        assert ask(connection, b"a") == b"a"
        assert CLOCK.monotonic() - began_s >= 0.1


def test_nothing_is_left_after_its_end() -> None:
    gc.collect()
    threads, descriptors = set(threading.enumerate()), count_descriptors()
    with FaultProxy(1) as proxy, pytest.raises(ConnectionError), connect(proxy) as connection:
        ask(connection, b"nobody is there")
    proxy.close()
    assert set(threading.enumerate()) <= threads
    assert (count_descriptors() or 0) <= (descriptors or 0)


def test_a_taken_port_is_told_and_leaves_no_thread(proxy: FaultProxy) -> None:
    threads = set(threading.enumerate())
    with pytest.raises(OSError, match="in use"):
        FaultProxy(1, port=proxy.port).start()
    assert set(threading.enumerate()) <= threads
