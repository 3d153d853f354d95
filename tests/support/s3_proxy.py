"""Stands between a client and an S3 service: counts requests by kind, and loses some of them or of their answers."""

from __future__ import annotations

import http.client
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

__all__ = ["S3Proxy", "Verdict", "run_proxy"]

Verdict = Any
"""None lets a request pass; "drop" ends its connection before the service sees it, "lose" after it did; a number is the
status that is answered in place of the service; what can be called is called before the request is sent on."""
Rule = Callable[[str, str], Verdict]
_HOP: Final = frozenset({"connection", "keep-alive", "expect", "transfer-encoding", "content-length"})


class S3Proxy:
    """One service behind it.

    Attributes:
        requests: Kind and key of each, in order; kinds are those of S3's operations, such as `PutObject`. For a
            listing the key is where it begins.
        rules: Asked before each request, with kind and key; the first that has a verdict decides.
    """

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream).netloc
        self.requests: list[tuple[str, str]] = []
        self.rules: list[Rule] = []
        self.guard = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

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


@contextmanager
def run_proxy(upstream: str) -> Iterator[S3Proxy]:
    """A proxy for the length of the block."""
    proxy = S3Proxy(upstream)
    try:
        yield proxy
    finally:
        proxy.close()


def _name_kind(method: str, query: dict[str, list[str]], key: str) -> str:
    """As S3's documentation calls the operation."""
    if method == "POST":
        return "DeleteObjects" if "delete" in query else _name_upload(query, "CompleteMultipartUpload")
    if method == "PUT":
        return "UploadPart" if "partNumber" in query else "PutObject"
    if method == "DELETE":
        return "AbortMultipartUpload" if "uploadId" in query else "DeleteObject"
    if method == "GET" and "uploads" in query:
        return "ListMultipartUploads"
    if method == "GET" and "uploadId" in query:
        return "ListParts"
    return f"{method.capitalize()}Object" if key else "ListObjectsV2"


def _name_upload(query: dict[str, list[str]], other: str) -> str:
    return "CreateMultipartUpload" if "uploads" in query else other


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: S3Proxy

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        target = urlsplit(self.path)
        key = unquote(target.path.lstrip("/").partition("/")[2])
        query = parse_qs(target.query, keep_blank_values=True)
        kind = _name_kind(self.command, query, key)
        key = key or query.get("prefix", [""])[0]
        verdict = self.proxy.judge(kind, key)
        if callable(verdict):
            verdict = verdict()
        if isinstance(verdict, int):
            self._answer(verdict, [], f"<Error><Code>Told{verdict}</Code></Error>".encode())
            return
        answer = None if verdict == "drop" else self._pass_on(body)
        if verdict is None and answer is not None:
            self._answer(*answer)
            return
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _pass_on(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream = http.client.HTTPConnection(self.proxy.upstream, timeout=60)
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _HOP:
                    upstream.putheader(name, value)
            upstream.putheader("Content-Length", str(len(body)))
            upstream.endheaders(body)
            told = upstream.getresponse()
            return told.status, told.getheaders(), told.read()
        finally:
            upstream.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        length = str(len(body))
        for name, value in headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in _HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
