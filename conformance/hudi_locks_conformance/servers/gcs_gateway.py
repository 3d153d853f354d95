"""Google's XML API in front of fake-gcs-server, which speaks the JSON API alone; obstore speaks XML.

The program copies without regard to conditions, and knows no uploads in parts: for these, what a condition says is
judged here, under one lock for all that writes.

Run as `python -m hudi_locks_conformance.servers.gcs_gateway PROGRAM PORT`: starts the program beside itself, translates
uploads with their conditions, and hands everything else on. What is atomic there, and what is not, is its doing.
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
import uuid
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final

from hudi_locks import SystemClock

__all__ = ["main"]

_PARENT_DIED_SIGNAL: Final = 1
_ANSWER_S: Final = 10.0
_POLL_S: Final = 0.05
_HANDED_ON: Final = ("last-modified", "etag", "x-goog-generation", "content-type", "content-range")
_CONDITION: Final = "x-goog-if-generation-match"
_COPY_SOURCE: Final = "x-goog-copy-source"
_NOTE: Final = "x-goog-meta-"
_EDGE: Final = b"hudi-locks-part-of-a-request"
_COPIED: Final = b"<CopyObjectResult></CopyObjectResult>"
_WRITING: Final = threading.Lock()
"""What changes an object goes through here one by one, so that a copy and its condition are one step."""


def _is_note(header: str) -> bool:
    return header.lower().startswith(_NOTE)


def _quote(name: str) -> str:
    return urllib.parse.quote(name, safe="")


def _object_path(bucket: str, name: str) -> str:
    return f"/storage/v1/b/{urllib.parse.quote(bucket)}/o/{_quote(name)}"


def _tell(facts: Mapping[str, Any]) -> dict[str, str]:
    """Headers of the XML API, by what the JSON API tells of an object."""
    return {"ETag": f'"{facts["etag"].strip(chr(34))}"', "x-goog-generation": str(facts["generation"])}


class _Gateway(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server_port: ClassVar[int]
    _local: ClassVar = threading.local()
    _uploads: ClassVar[dict[str, dict[int, bytes]]] = {}

    def do_PUT(self) -> None:
        body = self._read_body()
        bucket, name, query = self._place()
        with _WRITING:
            if "uploadId" in query:
                self._keep_part(query, body)
            elif source := self.headers.get(_COPY_SOURCE):
                self._copy(bucket, name, urllib.parse.unquote(source).lstrip("/").partition("/")[2])
            else:
                self._make(bucket, name, body)

    def _make(self, bucket: str, name: str, body: bytes) -> None:
        """Upload an object with what is noted beside it, if its condition holds: the program judges that."""
        query = {"uploadType": "multipart"}
        if (generation := self.headers.get(_CONDITION)) is not None:
            query["ifGenerationMatch"] = generation
        notes = {key[len(_NOTE) :].lower(): value for key, value in self.headers.items() if _is_note(key)}
        facts = json.dumps({"name": name, "metadata": notes}).encode()
        parts = (b"application/json\r\n\r\n" + facts, b"application/octet-stream\r\n\r\n" + body)
        sent = b"".join(b"--" + _EDGE + b"\r\nContent-Type: " + part + b"\r\n" for part in parts)
        path = f"/upload/storage/v1/b/{urllib.parse.quote(bucket)}/o?{urllib.parse.urlencode(query)}"
        kind = f"multipart/related; boundary={_EDGE.decode()}"
        status, _, said = self._ask("POST", path, sent + b"--" + _EDGE + b"--", {"Content-Type": kind})
        made = json.loads(said) if status == http.HTTPStatus.OK else {}
        self._answer(status, _tell(made) if made else {}, b"" if made else said)

    def _copy(self, bucket: str, name: str, source: str) -> None:
        """Copy an object to a name that is free. The program takes no condition: it is judged here."""
        if self.headers.get(_CONDITION) == "0" and self._find(bucket, name) is not None:
            self._answer(http.HTTPStatus.PRECONDITION_FAILED, {}, b"<Error><Code>PreconditionFailed</Code></Error>")
            return
        path = f"{_object_path(bucket, source)}/copyTo/b/{urllib.parse.quote(bucket)}/o/{_quote(name)}"
        status, _, said = self._ask("POST", path, b"")
        self._answer(status, {}, _COPIED if status == http.HTTPStatus.OK else said)

    def _keep_part(self, query: Mapping[str, str], body: bytes) -> None:
        self._uploads[query["uploadId"]][int(query["partNumber"])] = body
        self._answer(http.HTTPStatus.OK, {"ETag": f'"{query["partNumber"]}"'}, b"")

    def do_POST(self) -> None:
        """Begin an upload in parts, or end it: the program is told of the whole object then."""
        body = self._read_body()
        bucket, name, query = self._place()
        if "uploads" in query:
            upload = uuid.uuid4().hex
            self._uploads[upload] = {}
            said = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            self._answer(http.HTTPStatus.OK, {}, said.encode())
        elif "uploadId" in query:
            parts = self._uploads.pop(query["uploadId"])
            with _WRITING:
                self._make_whole(bucket, name, b"".join(parts[number] for number in sorted(parts)))
        else:
            self._hand_on(body)

    def _make_whole(self, bucket: str, name: str, body: bytes) -> None:
        query = urllib.parse.urlencode({"uploadType": "media", "name": name})
        path = f"/upload/storage/v1/b/{urllib.parse.quote(bucket)}/o?{query}"
        status, _, said = self._ask("POST", path, body)
        tag = json.loads(said)["etag"] if status == http.HTTPStatus.OK else ""
        whole = f'<CompleteMultipartUploadResult><ETag>"{tag}"</ETag></CompleteMultipartUploadResult>'
        self._answer(status, {}, whole.encode() if tag else said)

    def do_HEAD(self) -> None:
        """Tell the facts of an object; the program leaves its size out."""
        bucket, name, _ = self._place()
        found = self._find(bucket, name) if name else None
        if found is None:
            self._hand_on(b"")
            return
        modified = format_datetime(datetime.fromisoformat(found["updated"].replace("Z", "+00:00")), usegmt=True)
        self._answer(http.HTTPStatus.OK, {**_tell(found), "Last-Modified": modified}, b"", size=int(found["size"]))

    def do_DELETE(self) -> None:
        with _WRITING:
            self._hand_on(self._read_body())

    def _find(self, bucket: str, name: str) -> dict[str, Any] | None:
        """What the program knows of an object; None if there is none."""
        status, _, said = self._ask("GET", _object_path(bucket, name), b"")
        found: dict[str, Any] | None = json.loads(said) if status == http.HTTPStatus.OK else None
        return found

    def _place(self) -> tuple[str, str, Mapping[str, str]]:
        """Bucket, object, and what else the address tells."""
        parts = urllib.parse.urlsplit(self.path)
        bucket, _, name = urllib.parse.unquote(parts.path).lstrip("/").partition("/")
        return bucket, name, dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))

    def _read_body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_GET(self) -> None:
        self._hand_on(b"")

    def _hand_on(self, body: bytes) -> None:
        asked = {"Range": self.headers["Range"]} if "Range" in self.headers else {}
        status, headers, said = self._ask(self.command, self.path, body, asked)
        handed = {name: headers[name] for name in headers if name in _HANDED_ON or _is_note(name)}
        self._answer(status, handed, said)

    def _ask(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = http.client.HTTPConnection("127.0.0.1", self.server_port, _ANSWER_S)
        connection.request(method, path, body, {"Host": f"127.0.0.1:{self.server_port}", **(headers or {})})
        answer = connection.getresponse()
        said = answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, said

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes, *, size: int = 0) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(size or len(body)))
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


class _Server(ThreadingHTTPServer):
    """Takes many connections at once: one that finds the queue full is tried again after 1, 3 and 7 seconds."""

    request_queue_size = 256


def main(arguments: list[str]) -> None:
    """Serve until the process is ended."""
    program, port, inner_port = arguments[0], int(arguments[1]), int(arguments[2])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    running = _start_program(program, inner_port)
    _Gateway.server_port = inner_port
    try:
        _await_program(running, inner_port)
        _Server(("127.0.0.1", port), _Gateway).serve_forever()
    finally:
        running.kill()
        running.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
