"""From a base path to its storage."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from hudi_locks.errors import ConfigError
from hudi_locks.storage.local import LocalStorage
from hudi_locks.storage.storage import Storage

__all__ = ["open_storage"]

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
    match = _SCHEME.fullmatch(path)
    if match is None:
        return LocalStorage(str(Path(path).absolute()), base=path)
    if match[1].lower() != "file":
        message = f"{path}: scheme {match[1]!r} is not supported; supported are plain paths and file: addresses"
        raise ConfigError(message, path=path, scheme=match[1])
    return LocalStorage(_local_part(path, match[2]), base=path)


def _local_part(path: str, rest: str) -> str:
    host, slash, tail = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest.removeprefix("/"))
    if host not in ("", "localhost") or not (slash or rest.startswith("/")):
        raise ConfigError(f"{path} names another machine or a relative folder; write file:///folder", path=path)
    return "/" + unquote(tail)
