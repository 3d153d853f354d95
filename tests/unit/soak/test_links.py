"""The link of a soak: each fault comes as it was drawn, outages end, and what a proxy sends late is waited for."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest
from hdfs_proxy import HdfsProxy
from http_proxy import HttpProxy, Late, Request
from soak.links import Link, Risks
from waiting import until

from hudi_locks import ManualClock


class PlainProxy(HttpProxy):
    def read_request(self, method: str, target: str) -> Request:
        return Request(method, target, self.upstream, target)


class Service:
    """Answers everything, and keeps what it was sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.location = ""
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                service.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(201)
                if service.location:
                    self.send_header("Location", service.location)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.server.shutdown()
    service.server.server_close()


@pytest.fixture
def proxy(service: Service) -> Iterator[HttpProxy]:
    proxy = PlainProxy(service.url)
    yield proxy
    proxy.close()


def put(proxy: HttpProxy, body: Any = b"rows", path: str = "/a") -> Any:
    request = urllib.request.Request(f"{proxy.url}{path}", body, method="PUT")
    return urllib.request.urlopen(request, timeout=30)


@pytest.mark.parametrize(
    ("risks", "fault", "arrives", "answered"),
    [
        (Risks(slow=1.0), "slow", True, True),
        (Risks(dropped=1.0), "dropped", False, False),
        (Risks(lost=1.0), "answers lost", True, False),
        (Risks(late=1.0), "late", True, False),
        (Risks(busy=1.0), "busy", False, False),
        (Risks(failed=1.0), "failed", False, False),
        (Risks(), "", True, True),
    ],
)
def test_each_fault_is_what_it_says(
    proxy: HttpProxy, service: Service, risks: Risks, fault: str, arrives: bool, answered: bool
) -> None:
    link = Link(proxy, risks, seed=1)
    if answered:
        assert put(proxy).status == 201
    else:
        with pytest.raises(OSError, match=r"Remote end closed|503|500"):
            put(proxy)
    link.heal()
    assert proxy.late == 0
    assert service.bodies == ([b"rows"] if arrives else [])
    assert dict(link.met) == ({fault: 1} if fault else {})
    assert put(proxy).status == 201, "a link that was healed lets all through"


@pytest.mark.parametrize(("silent", "verdict"), [(1.0, "lose"), (0.0, "drop")])
def test_an_outage_ends(proxy: HttpProxy, silent: float, verdict: str) -> None:
    clock = ManualClock()
    link = Link(proxy, Risks(silent=silent), seed=1, clock=clock)
    assert proxy.judge("PUT", "a") is None
    link.strike()
    link.strike()
    assert [proxy.judge("PUT", "a") for _ in range(3)] == [verdict] * 3
    clock.advance(6)
    assert proxy.judge("PUT", "a") is None
    assert dict(link.met) == {"outages": 1}


def test_a_service_is_restarted_now_and_then_and_not_while_it_restarts(proxy: HttpProxy) -> None:
    clock, gate, restarts = ManualClock(), threading.Event(), list[int]()

    def restart() -> None:
        gate.wait(30)
        restarts.append(1)

    link = Link(proxy, Risks(), seed=1, restart=restart, clock=clock)
    while not link.met["restarts of the service"]:
        link.strike()
        clock.advance(6)
    told = dict(link.met)
    link.strike()
    assert dict(link.met) == told
    gate.set()
    link.heal()
    assert restarts == [1]


def test_a_service_that_does_not_come_up_again_fails_the_run(proxy: HttpProxy) -> None:
    def restart() -> None:
        raise TimeoutError("it does not come up")

    clock = ManualClock()
    link = Link(proxy, Risks(), seed=1, restart=restart, clock=clock)
    while not link.met["restarts of the service"]:
        link.strike()
        clock.advance(6)
    with pytest.raises(TimeoutError, match="does not come up"):
        link.heal()


def test_a_service_that_is_down_is_no_answer(proxy: HttpProxy, service: Service) -> None:
    service.server.shutdown()
    service.server.server_close()
    with pytest.raises(OSError, match="Remote end closed"):
        put(proxy)


def test_a_late_request_comes_when_nobody_waits_for_it(proxy: HttpProxy, service: Service) -> None:
    with proxy.failing(Late(0.2), "PUT") as met, pytest.raises(OSError, match="Remote end closed"):
        put(proxy)
    assert met == ["/a"]
    assert until(lambda: service.bodies == [b"rows"])


def test_who_is_sent_on_to_a_data_node_goes_by_the_proxy_again(service: Service) -> None:
    proxy = HdfsProxy(service.url)
    try:
        service.location = f"{service.url}/webhdfs/v1/t/f?op=CREATE&x=1"
        where = put(proxy, path="/webhdfs/v1/t/f?op=CREATE").headers["Location"]
        assert where == f"{proxy.url}/{urlsplit(service.url).netloc}/webhdfs/v1/t/f?op=CREATE&x=1"
        assert put(proxy, iter([b"ro", b"ws"]), path=where.removeprefix(proxy.url)).status == 201
        assert service.bodies == [b"rows", b"rows"]
        assert proxy.requests == [("CREATE", "/t/f"), ("CREATE at a data node", "/t/f")]
    finally:
        proxy.close()
