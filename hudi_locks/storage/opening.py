"""From a base path to its storage."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from hudi_locks.errors import ConfigError
from hudi_locks.storage.local import LocalStorage
from hudi_locks.storage.storage import Storage

__all__ = ["local_path", "open_storage"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)


def open_storage(path: str | os.PathLike[str]) -> Storage:
    """The storage under a table's base path; makes no I/O.

    Args:
        path: A path of this machine, relative or absolute, or a `file:` address as Spark or a browser writes it.

    Raises:
        ConfigError: The path is empty, or its scheme is not supported.
    """
    path = os.fspath(path)
    if not path.strip():
        raise ConfigError("the base path of a table is empty: give a folder such as /data/flights", path=path)
    return LocalStorage(str(Path(local_path(path)).absolute()), base=path)


def local_path(address: str) -> str:
    """The path of this machine that a plain path or a `file:` address means.

    Raises:
        ConfigError: The scheme is another one, or the address names another machine.
    """
    match = _SCHEME.fullmatch(address)
    if match is None:
        return address
    if match[1].lower() != "file":
        message = f"{address}: scheme {match[1]!r} is not supported; supported are plain paths and file: addresses"
        raise ConfigError(message, path=address, scheme=match[1])
    return _local_part(address, match[2])


def _local_part(path: str, rest: str) -> str:
    host, slash, tail = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest.removeprefix("/"))
    if host not in ("", "localhost") or not (slash or rest.startswith("/")):
        raise ConfigError(f"{path} names another machine or a relative folder; write file:///folder", path=path)
    return "/" + unquote(tail)
