"""Paths of this machine, as people and Spark write them."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from hudi_locks.errors import ConfigError

__all__ = ["LOCAL_SCHEME", "local_path", "split_scheme"]

LOCAL_SCHEME: Final = "file"
_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)


def split_scheme(address: str) -> tuple[str, str]:
    """The scheme of an address in lower case, and what follows its colon; no scheme for a plain path."""
    match = _ADDRESS.fullmatch(address)
    return (match[1].lower(), match[2]) if match else ("", address)


def local_path(address: str) -> str:
    """The path of this machine that a plain path or a `file:` address means.

    Raises:
        ConfigError: The scheme is another one, or the address names another machine.
    """
    scheme, rest = split_scheme(address)
    if not scheme:
        return address
    if scheme != LOCAL_SCHEME:
        message = f"{address}: scheme {scheme!r} is not supported; supported are plain paths and file: addresses"
        raise ConfigError(message, path=address, scheme=scheme)
    host, slash, tail = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest.removeprefix("/"))
    if host not in ("", "localhost") or not (slash or rest.startswith("/")):
        raise ConfigError(f"{address} names another machine or a relative folder; write file:///folder", path=address)
    return "/" + unquote(tail)
