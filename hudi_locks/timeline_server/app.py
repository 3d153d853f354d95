"""The service over HTTP: Hudi's marker endpoints, and one that makes all markers of a task at once."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.errors import StorageError
from hudi_locks.format import IOType, MarkerName, find_writer, is_time
from hudi_locks.markers import MARKER_FOLDER
from hudi_locks.observe import TIMELINE_SERVER_REFUSED, TIMELINE_SERVER_REQUEST, Metrics
from hudi_locks.timeline_server.client import BASE, DETECTS
from hudi_locks.timeline_server.door import read_json, refuse_foreign
from hudi_locks.timeline_server.service import Answer, MarkerService

__all__ = ["make_app"]

_APPEND: Final = ".APPEND"
_BUSY_S: Final = "1"
_MOST_SHOWN: Final = 200
Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(
    service: MarkerService,
    *,
    base_path: str,
    token: str = "",
    metrics: Metrics | None = None,
    clock: Clock | None = None,
    hosts: Collection[str] = (),
) -> Starlette:
    """The application that answers for one table.

    Args:
        service: Does the work.
        base_path: Of the table: marker folders elsewhere are refused.
        token: What callers must bring as `Authorization: Bearer`; "" for nothing, as JVM clients bring nothing.
        metrics: Gets what requests took.
        clock: Measures it.
        hosts: Names by which callers may reach it, beside those that the machine gives itself and its addresses.
    """
    handlers = _Handlers(service, _strip_scheme(base_path), metrics or Metrics(), clock or SystemClock())
    endpoints: Sequence[tuple[str, str, Endpoint]] = (
        ("GET", "/all", handlers.list_all),
        ("GET", "/create-and-merge", handlers.list_others),
        ("GET", "/append", handlers.list_appended),
        ("GET", "/dir/exists", handlers.exists),
        ("POST", "/create", handlers.create),
        ("POST", "/create-all", handlers.create_all),
        ("POST", "/dir/delete", handlers.delete),
    )
    routes = [
        Route(f"{BASE}{path}", _guard(endpoint, token, frozenset(name.lower() for name in hosts)), methods=[verb])
        for verb, path, endpoint in endpoints
    ]

    @asynccontextmanager
    async def close_at_the_end(_: Starlette) -> AsyncIterator[None]:
        yield
        await service.close()

    return Starlette(routes=routes, lifespan=close_at_the_end)


def _guard(endpoint: Endpoint, token: str, hosts: Collection[str]) -> Endpoint:
    async def guarded(request: Request) -> Response:
        refuse_foreign(request, hosts)
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token and not secrets.compare_digest(given.encode(), token.encode()):
            raise HTTPException(401, "the token of this timeline server is missing or another one")
        try:
            return await endpoint(request)
        except StorageError as error:
            raise HTTPException(500, f"the table's storage failed: {error}") from error

    return guarded


class _Handlers:
    def __init__(self, service: MarkerService, base_path: str, metrics: Metrics, clock: Clock) -> None:
        self._service = service
        self._base_path = base_path
        self._metrics = metrics
        self._clock = clock

    async def list_all(self, request: Request) -> Response:
        return await self._list(request, lambda _: True)

    async def list_others(self, request: Request) -> Response:
        return await self._list(request, lambda name: not name.endswith(_APPEND))

    async def list_appended(self, request: Request) -> Response:
        return await self._list(request, lambda name: name.endswith(_APPEND))

    async def _list(self, request: Request, wanted: Callable[[str], bool]) -> Response:
        names = await self._service.list(self._instant(request))
        return JSONResponse(sorted(name for name in names if wanted(name)))

    async def exists(self, request: Request) -> Response:
        return JSONResponse(await self._service.exists(self._instant(request)))

    async def create(self, request: Request) -> Response:
        """One marker, as a JVM client asks: false for a conflict, and without early detection for one that exists.

        With early detection, which a client shows by `basepath`, it takes every false for a conflict: a repeated
        request, whose marker exists, is answered by true.
        """
        answer = await self._make(request, [self._parse(request, request.query_params.get("markername"))])
        detects = DETECTS in request.query_params
        return JSONResponse(answer.conflict is None and (detects or answer.created[0]))

    async def create_all(self, request: Request) -> Response:
        """All markers of a task: `{"names": [...]}` gives `{"created": [...]}`, or 409 and `{"conflict": {...}}`."""
        body = await read_json(request)
        names = body.get("names") if isinstance(body, dict) else None
        if not isinstance(names, list):
            raise HTTPException(400, 'a body like {"names": ["p/f.parquet.marker.CREATE"]} is wanted')
        answer = await self._make(request, [self._parse(request, name) for name in names])
        if answer.conflict is not None:
            return JSONResponse({"conflict": json.loads(answer.conflict.encode())}, status_code=409)
        return JSONResponse({"created": list(answer.created)})

    async def _make(self, request: Request, names: Sequence[str]) -> Answer:
        requested = self._instant(request)
        if self._service.is_busy(requested):
            self._metrics.count(TIMELINE_SERVER_REFUSED)
            raise HTTPException(503, "the storage does not keep up: ask again", {"Retry-After": _BUSY_S})
        began_s = self._clock.monotonic()
        answer = await self._service.create(requested, names, detects=DETECTS in request.query_params)
        self._metrics.report(TIMELINE_SERVER_REQUEST, self._clock.monotonic() - began_s)
        return answer

    async def delete(self, request: Request) -> Response:
        return JSONResponse(await self._service.delete(self._instant(request)))

    def _instant(self, request: Request) -> str:
        """The instant whose marker folder the request names."""
        path = request.query_params.get("markerdirpath", "")
        folder, _, requested = _strip_scheme(path).rpartition("/")
        if folder != f"{self._base_path}/{MARKER_FOLDER}" or not is_time(requested):
            raise HTTPException(400, f"{path!r} is no marker folder of the table at {self._base_path}")
        return requested

    def _parse(self, request: Request, name: object) -> str:
        """A marker, in its own form: it announces a data file of its instant, or a log file that is appended to."""
        marker = MarkerName.parse(name) if isinstance(name, str) else None
        writer = find_writer(marker.data_path) if marker is not None else None
        requested = self._instant(request)
        if marker is None or writer is None or (writer != requested and marker.io_type is not IOType.APPEND):
            raise HTTPException(400, f"{str(name)[:_MOST_SHOWN]!r} is no marker of a data file of instant {requested}")
        return str(marker)


def _strip_scheme(path: str) -> str:
    return path.removeprefix("file://").removeprefix("file:").rstrip("/")
