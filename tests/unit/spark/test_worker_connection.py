"""What a worker has read is acknowledged at once: a peer with Nagle's algorithm holds the next part back until then."""

from __future__ import annotations

import importlib
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from hudi_locks.spark import _worker
from hudi_locks.spark._worker import acknowledge_early

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="TCP_QUICKACK is Linux's; run it there")

_UNACKED_AT: Final = 24
"""Of tcpi_unacked in the kernel's struct tcp_info."""
_EXCHANGES: Final = 30
"""More than the segments that a new connection acknowledges at once."""
_ATTEMPTS: Final = 20


@pytest.fixture(autouse=True)
def _finders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection whose ends have answered each other so often that they wait with acknowledgements."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        jvm = socket.create_connection(server.getsockname())
        worker, _ = server.accept()
    with jvm, worker:
        for _ in range(_EXCHANGES):
            exchange(jvm, worker)
        yield jvm, worker


def exchange(jvm: socket.socket, worker: socket.socket) -> None:
    jvm.sendall(b"task")
    worker.sendall(worker.recv(4))
    jvm.recv(4)


def has_unacknowledged(end: socket.socket) -> bool:
    information = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    return bool(struct.unpack_from("I", information, _UNACKED_AT)[0])


def count_waits(act: Callable[[], None], pair: tuple[socket.socket, socket.socket]) -> tuple[int, int]:
    """How often the JVM waited for what the worker had read, and how often it still did after `act`."""
    jvm, worker = pair
    before = after = 0
    for _ in range(_ATTEMPTS):
        jvm.sendall(b"part")
        worker.recv(4)
        waited = has_unacknowledged(jvm)
        act()
        before, after = before + waited, after + (waited and has_unacknowledged(jvm))
        exchange(jvm, worker)
    return before, after


def test_what_was_read_before_a_task_begins_is_acknowledged_then(pair: tuple[socket.socket, socket.socket]) -> None:
    assert min(count_waits(lambda: None, pair)) > 0
    before, after = count_waits(acknowledge_early, pair)
    assert (before > 0, after) == (True, 0)


def test_the_first_part_of_a_later_task_is_acknowledged_while_that_is_set_up(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    assert min(count_waits(importlib.invalidate_caches, pair)) > 0
    acknowledge_early()
    before, after = count_waits(importlib.invalidate_caches, pair)
    assert (before > 0, after) == (True, 0)


def test_modules_are_found_and_not_found_as_before() -> None:
    before = len(sys.meta_path)
    acknowledge_early()
    acknowledge_early()
    assert len(sys.meta_path) == before + 1
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        importlib.import_module("no_such_module")


@pytest.mark.parametrize(("name", "value"), [("_AT_ONCE", None), ("_OPEN_FILES", Path("/no/such/folder"))])
def test_on_other_systems_nothing_is_done(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    monkeypatch.setattr(_worker, name, value)
    before = list(sys.meta_path)
    acknowledge_early()
    assert sys.meta_path == before
