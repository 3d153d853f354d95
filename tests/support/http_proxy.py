"""Stands between a client and a service that speaks HTTP: counts requests by kind, and loses some, or their answers."""

from __future__ import annotations

import http.client
import socket
import sys
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from hudi_locks import SystemClock

__all__ = ["Headers", "HttpProxy", "Late", "Request", "Verdict"]

Verdict = Any
"""None lets a request pass; "drop" ends its connection before the service sees it, "lose" after it did; a number is the
status that is answered in place of the service; what can be called is called before the request is sent on, and what it
returns is the verdict; see `Late` too."""
Rule = Callable[[str, str], Verdict]
Headers = list[tuple[str, str]]
_HOP: Final = frozenset({"connection", "keep-alive", "expect", "transfer-encoding", "content-length"})
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True)
class Late:
    """Ends the connection at once, and lets the service see the request when nobody waits for it any more.

    Attributes:
        by_s: So much later.
    """

    by_s: float


class Request(NamedTuple):
    """What is asked.

    Attributes:
        kind: As the service's documentation calls the operation.
        key: What it is about.
        server: Host and port to which it goes.
        target: Path and query that are sent there.
    """

    kind: str
    key: str
    server: str
    target: str


class HttpProxy(ABC):
    """One service behind it.

    Attributes:
        requests: Kind and key of each, in order.
        rules: Asked before each request, with kind and key; the first that has a verdict decides.
        late: How many requests are still to come to the service.
    """

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream).netloc
        self.requests: list[tuple[str, str]] = []
        self.rules: list[Rule] = []
        self.late = 0
        self.guard = threading.Lock()
        self.server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @abstractmethod
    def read_request(self, method: str, target: str) -> Request:
        """What a client asks by this method and target."""

    def amend(self, headers: Headers) -> Headers:
        """The headers of an answer as the client gets them."""
        return headers

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def count(self) -> Counter[str]:
        with self.guard:
            return Counter(kind for kind, _ in self.requests)

    @contextmanager
    def failing(self, verdict: Verdict, kind: str, part: str = "", *, times: int | None = None) -> Iterator[list[str]]:
        """Give such requests this verdict, the first `times` of them; the keys that met it."""
        met: list[str] = []

        def rule(found: str, key: str) -> Verdict:
            if found != kind or part not in key or (times is not None and len(met) >= times):
                return None
            met.append(key)
            return verdict

        self.rules.append(rule)
        try:
            yield met
        finally:
            self.rules.remove(rule)

    def judge(self, kind: str, key: str) -> Verdict:
        with self.guard:
            self.requests.append((kind, key))
            return next((told for rule in self.rules if (told := rule(kind, key)) is not None), None)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Quiet where the client went away, as one that is killed does."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: HttpProxy

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        body = self._read_body()
        request = self.proxy.read_request(self.command, self.path)
        verdict = "drop" if body is None else self.proxy.judge(request.kind, request.key)
        if callable(verdict):
            verdict = verdict()
        if isinstance(verdict, int):
            self._answer(verdict, [], f"<Error><Code>Told{verdict}</Code></Error>".encode())
        elif isinstance(verdict, Late):
            self._pass_on_late(request, body or b"", verdict)
        else:
            self._serve_now(request, body or b"", verdict)

    def _serve_now(self, request: Request, body: bytes, verdict: Verdict) -> None:
        answer = None if verdict == "drop" else self._pass_on(request, body)
        if verdict is None and answer is not None:
            self._answer(*answer)
        else:
            self._hang_up()

    def _pass_on_late(self, request: Request, body: bytes, verdict: Late) -> None:
        proxy = self.proxy
        with proxy.guard:
            proxy.late += 1
        try:
            self._hang_up()
            SystemClock().sleep(verdict.by_s)  # real time: a request that comes late
            self._pass_on(request, body)
        finally:
            with proxy.guard:
                proxy.late -= 1

    def _read_body(self) -> bytes | None:
        """All of it; None if the client went away before."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._read_chunks()
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        return body if len(body) == size else None

    def _read_chunks(self) -> bytes | None:
        pieces = []
        while size := self.rfile.readline().strip():
            pieces.append(self.rfile.read(int(size, 16)))
            self.rfile.readline()
            if not pieces[-1]:
                return b"".join(pieces)
        return None

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _pass_on(self, request: Request, body: bytes) -> tuple[int, Headers, bytes] | None:
        """The service's answer; None where it gives none."""
        upstream = http.client.HTTPConnection(request.server, timeout=_PATIENCE_S)
        try:
            upstream.putrequest(self.command, request.target, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _HOP:
                    upstream.putheader(name, value)
            upstream.putheader("Content-Length", str(len(body)))
            upstream.endheaders(body)
            told = upstream.getresponse()
            return told.status, told.getheaders(), told.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            upstream.close()

    def _answer(self, status: int, headers: Headers, body: bytes) -> None:
        self.send_response_only(status)
        length = str(len(body))
        for name, value in self.proxy.amend(headers):
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in _HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
