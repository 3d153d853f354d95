"""A schema registry in this process, and the messages that its clients make."""

from __future__ import annotations

import http.server
import json
import re
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Final

import fastavro

__all__ = ["Schema", "SchemaRegistry"]

Schema = dict[str, Any]
_VERSIONS: Final = re.compile(r"/subjects/([^/]+)/versions(?:/(\d+|latest))?")


class SchemaRegistry:
    """Knows the schemas of subjects by their ids; the first schema of a subject is its version 1.

    Attributes:
        subjects: May get schemas and subjects at any time.
        asked: Paths of the requests so far.
    """

    def __init__(self, subjects: Mapping[str, Mapping[int, Schema]]) -> None:
        self.subjects = {name: dict(schemas) for name, schemas in subjects.items()}
        self.asked: list[str] = []
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def url_of(self, subject: str) -> str:
        """Of the newest version of a subject."""
        return f"{self.url}/subjects/{subject}/versions/latest"

    def answer(self, path: str) -> Any:
        """What a registry says to a GET; None for what it does not know."""
        self.asked.append(path)
        match = _VERSIONS.fullmatch(path)
        schemas = self.subjects.get(match[1]) if match else None
        if match is None or schemas is None:
            return None
        if match[2] is None:
            return list(range(len(schemas), 0, -1))
        version = len(schemas) if match[2] == "latest" else int(match[2])
        found = dict(enumerate(schemas.items(), 1)).get(version)
        known = found and {"id": found[0], "schema": json.dumps(found[1])}
        return known and {"subject": match[1], "version": version, **known}

    def encode(self, subject: str, number: int, row: Mapping[str, Any]) -> bytes:
        """A row as clients of a registry write it, by an Avro library that is not Spark's."""
        out = BytesIO()
        fastavro.schemaless_writer(out, self.subjects[subject][number], row)
        return struct.pack(">bI", 0, number) + out.getvalue()

    @contextmanager
    def serving(self) -> Iterator[SchemaRegistry]:
        """Answers inside the block."""
        answer = self.answer

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # the library's name
                found = answer(self.path)
                self.send_response(404 if found is None else 200)
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            def log_message(self, *_: Any) -> None:
                return

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self._port = server.server_port
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield self
            server.shutdown()
