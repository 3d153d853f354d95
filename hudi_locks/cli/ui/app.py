"""The web application of the live page: who may see it, the page itself, and the stream of what changes on it."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Collection, Sequence
from html import escape
from string import Template
from typing import Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from hudi_locks.cli.picture import STYLE
from hudi_locks.cli.ui.looker import MOMENT, Looker, name_place
from hudi_locks.cli.ui.panels import PANELS
from hudi_locks.timeline_server.door import refuse_host

__all__ = ["make_ui"]

_COOKIE: Final = "hudi_locks_ui"
_WAIT_S: Final = 1.0
"""After that a sign goes to the page, by which the server notices that nobody reads on."""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class _Page:
    """Answers requests.

    Args:
        looker: Knows what is shown.
        token: In the first address; a cookie takes it from there.
        hosts: Names of this machine beside its own.
    """

    def __init__(self, looker: Looker, token: str, hosts: Collection[str]) -> None:
        self._looker, self._token, self._hosts = looker, token, hosts

    async def show(self, request: Request) -> Response:
        """The page; the first address leads to it without the token, which would stay in the browser's history."""
        self._refuse_elsewhere(request)
        if self._knows(request.query_params.get("token", "")):
            answer = RedirectResponse(".", status_code=303, headers=_HEADERS)
            answer.set_cookie(_COOKIE, self._token, httponly=True, samesite="strict")
            return answer
        self._refuse_stranger(request)
        nonce = secrets.token_urlsafe(16)
        headers = {**_HEADERS, "Content-Security-Policy": _POLICY.format(nonce=nonce)}
        return HTMLResponse(_draw_page(self._looker, nonce), headers=headers)

    async def stream(self, request: Request) -> Response:
        """Server-sent events, each with a place of the page and its HTML, until the page is closed."""
        self._refuse_elsewhere(request)
        self._refuse_stranger(request)
        return StreamingResponse(self._tell_changes(), media_type="text/event-stream", headers=_HEADERS)

    async def _tell_changes(self) -> AsyncIterator[str]:
        with self._looker.watch() as watcher:
            while not self._looker.has_ended:
                changed = await run_in_threadpool(watcher.wait, _WAIT_S)
                yield "".join(map(_write_event, changed.items())) or ":\n\n"

    def _refuse_elsewhere(self, request: Request) -> None:
        refuse_host(request, self._hosts)
        origin = request.headers.get("origin")
        if origin is not None and origin != f"{request.url.scheme}://{request.headers['host']}":
            raise HTTPException(403, "this page answers no other pages", headers=_HEADERS)

    def _refuse_stranger(self, request: Request) -> None:
        if not self._knows(request.cookies.get(_COOKIE, "")):
            told = "open the address that `hudi-locks ui` printed: it has the token that this page asks for"
            raise HTTPException(401, told, headers=_HEADERS)

    def _knows(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self._token.encode())


def make_ui(looker: Looker, token: str, *, hosts: Collection[str] = ()) -> Starlette:
    """The application.

    Args:
        looker: Knows what is shown, and looks while a page is open.
        token: What the first address must have.
        hosts: Names by which browsers reach this machine, beside its own and its addresses.
    """
    page = _Page(looker, token, hosts)
    routes = [Route("/", page.show), Route("/events", page.stream)]
    return Starlette(routes=routes, exception_handlers={HTTPException: _refuse})


def _refuse(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return PlainTextResponse(f"{error.detail}\n", error.status_code, headers=error.headers)


def _write_event(change: tuple[str, str]) -> str:
    place, html = change
    return f"data: {json.dumps({'place': place, 'html': html})}\n\n"


def _draw_page(looker: Looker, nonce: str) -> str:
    drawn = looker.drawn
    sections = [
        _draw_section(number, table.path, {panel: drawn.get(name_place(number, panel), "") for panel in PANELS})
        for number, table in enumerate(looker.tables)
    ]
    title = escape(_name_all([table.path for table in looker.tables]))
    place, moment = MOMENT, drawn.get(MOMENT, "")
    told = {"title": title, "style": STYLE, "nonce": nonce, "place": place, "moment": moment}
    return _PAGE.substitute(told, sections="".join(sections))


def _name_all(paths: Sequence[str]) -> str:
    return paths[0] if len(paths) == 1 else f"{len(paths)} tables"


def _draw_section(number: int, path: str, drawn: dict[str, str]) -> str:
    panels = "".join(
        f'{f"<h2>{heading}</h2>" if heading else ""}<div id="{name_place(number, panel)}">{drawn[panel]}</div>'
        for panel, heading in PANELS.items()
    )
    return f"<section><h1>{escape(path)}</h1>{panels}</section>"


_PAGE: Final = Template(
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>hudi-locks: $title</title>
<style>
$style
section { border-bottom: 2px solid var(--line); padding-bottom: 1.5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .85rem; margin: 0; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
.trouble { color: var(--undo); overflow-wrap: anywhere; }
</style>
</head>
<body>
<p><strong id="state">not connected</strong>, as it was at <span id="$place">$moment</span>. Times are in UTC; a time in
which nothing happened is drawn short.</p>
$sections
<script nonce="$nonce">
const state = document.getElementById("state");
const source = new EventSource("events");
source.onopen = () => { state.textContent = "live"; };
source.onerror = () => { state.textContent = "not connected"; };
source.onmessage = (event) => {
  const told = JSON.parse(event.data);
  const place = document.getElementById(told.place);
  if (place) { place.innerHTML = told.html; }
};
</script>
</body>
</html>
"""
)
