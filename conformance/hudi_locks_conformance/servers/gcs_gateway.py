"""Google's XML API in front of fake-gcs-server, which speaks the JSON API alone; obstore speaks XML.

Run as `python -m hudi_locks_conformance.servers.gcs_gateway PROGRAM PORT`: starts the program beside itself, translates
uploads with their conditions, and hands everything else on. What is atomic, and what is not, is the program's doing.
"""

from __future__ import annotations

import ctypes
import http.client
import json
import signal
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Final

from hudi_locks import SystemClock

__all__ = ["main"]

_PARENT_DIED_SIGNAL: Final = 1
_ANSWER_S: Final = 10.0
_POLL_S: Final = 0.05
_HANDED_ON: Final = ("last-modified", "etag", "x-goog-generation", "content-type")
_CONDITION: Final = "x-goog-if-generation-match"


class _Gateway(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server_port: ClassVar[int]
    _local: ClassVar = threading.local()

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        bucket, _, name = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).lstrip("/").partition("/")
        query = {"uploadType": "media", "name": name}
        if (generation := self.headers.get(_CONDITION)) is not None:
            query["ifGenerationMatch"] = generation
        path = f"/upload/storage/v1/b/{urllib.parse.quote(bucket)}/o?{urllib.parse.urlencode(query)}"
        status, _, said = self._ask("POST", path, body)
        made = json.loads(said) if status == http.HTTPStatus.OK else {}
        told = {"ETag": f'"{made["etag"]}"', "x-goog-generation": str(made["generation"])} if made else {}
        self._answer(status, told, b"" if made else said)

    def do_GET(self) -> None:
        self._hand_on()

    def do_HEAD(self) -> None:
        self._hand_on()

    def do_DELETE(self) -> None:
        self._hand_on()

    def do_POST(self) -> None:
        self._hand_on()

    def _hand_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, headers, said = self._ask(self.command, self.path, body)
        self._answer(status, {name: headers[name] for name in _HANDED_ON if name in headers}, said)

    def _ask(self, method: str, path: str, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = http.client.HTTPConnection("127.0.0.1", self.server_port, _ANSWER_S)
        connection.request(method, path, body, {"Host": f"127.0.0.1:{self.server_port}"})
        answer = connection.getresponse()
        said = answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, said

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PARENT_DIED_SIGNAL, signal.SIGKILL)


def _start_program(program: str, port: int) -> subprocess.Popen[bytes]:
    words = [program, "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    words += ["-public-host", f"127.0.0.1:{port}", "-log-level", "warn"]
    return subprocess.Popen(words, preexec_fn=_end_with_parent)  # noqa: S603, PLW1509  # our own words; before any thread


def _await_program(program: subprocess.Popen[bytes], port: int) -> None:
    while not _answers(port):
        if program.poll() is not None:
            raise SystemExit(program.returncode or 1)
        SystemClock().sleep(_POLL_S)


def _answers(port: int) -> bool:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)
        connection.request("GET", "/_internal/healthcheck")
        connection.getresponse().read()
    except OSError:
        return False
    return True


def main(arguments: list[str]) -> None:
    """Serve until the process is ended."""
    program, port, inner_port = arguments[0], int(arguments[1]), int(arguments[2])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    running = _start_program(program, inner_port)
    _Gateway.server_port = inner_port
    try:
        _await_program(running, inner_port)
        ThreadingHTTPServer(("127.0.0.1", port), _Gateway).serve_forever()
    finally:
        running.kill()
        running.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
