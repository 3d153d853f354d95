"""Whom connections by TLS trust, from keys that name PEM files."""

from __future__ import annotations

import ssl
from pathlib import Path

from hudi_locks.config import Key, Options
from hudi_locks.errors import ConfigError

__all__ = ["find_pem_file", "trust_authorities"]


def find_pem_file(options: Options, key: Key[str]) -> str | None:
    """The file that a key names; None if it is not given.

    Raises:
        ConfigError: It is not there.
    """
    path = options.find(key)
    if path is not None and not Path(path).is_file():
        raise ConfigError(f"{key.name}={path!r}: there is no such file on this machine", key=key.name)
    return path


def trust_authorities(options: Options, key: Key[str]) -> ssl.SSLContext | None:
    """What trusts the authorities in the key's file beside the system's; None if the key is not given.

    Raises:
        ConfigError: The file is not there.
    """
    if (path := find_pem_file(options, key)) is None:
        return None
    context = ssl.create_default_context()
    context.load_verify_locations(path)
    return context
