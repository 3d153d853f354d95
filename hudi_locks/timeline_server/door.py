"""Who may ask a timeline server, and how much: what is looked at before a request is read."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from collections.abc import Collection
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request

__all__ = ["read_json", "refuse_foreign", "refuse_host"]

_MOST_BYTES: Final = 64 * 1024 * 1024
"""Of a body; a task announces some thousand files at most, of some hundred bytes each."""
_BODY_S: Final = 30.0


def refuse_foreign(request: Request, hosts: Collection[str]) -> None:
    """Refuse what a browser sends for a page from elsewhere: a name that was pointed at this machine, or an origin.

    Tasks and JVM clients name the machine by an address, by its own name or by one of `hosts`, and send no origin.
    """
    refuse_host(request, hosts)
    if "origin" in request.headers:
        raise HTTPException(403, "a timeline server answers no web pages: send no Origin")


def refuse_host(request: Request, hosts: Collection[str]) -> None:
    """Refuse a request that names the machine neither by an address, nor by its own name, nor by one of `hosts`."""
    host = _name_of(f"//{request.headers.get('host', '')}")
    if not _is_address(host) and host not in {*hosts, *_own_names()}:
        raise HTTPException(403, "this server does not go by that host: name it in --host, or use its address")


async def read_json(request: Request) -> Any:
    """The body of a request, bounded in size and time.

    Raises:
        HTTPException: It is too large, comes too slowly, or is no JSON.
    """
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 12 or int(length) > _MOST_BYTES:
        raise HTTPException(413, f"a body has {_MOST_BYTES} bytes at most")
    try:
        return json.loads(await asyncio.wait_for(_read(request), _BODY_S))
    except asyncio.TimeoutError:
        raise HTTPException(408, f"the body did not come within {_BODY_S:g} s") from None
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is no JSON") from None


async def _read(request: Request) -> bytes:
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > _MOST_BYTES:
            raise HTTPException(413, f"a body has {_MOST_BYTES} bytes at most")
    return bytes(data)


def _name_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@cache
def _own_names() -> frozenset[str]:
    return frozenset({"localhost", socket.gethostname().lower(), socket.getfqdn().lower()})
