"""Where the ZooKeeper servers are, and how long to wait for them: from Hudi's keys."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from hudi_locks.config import Options, lock_keys
from hudi_locks.errors import ConfigError
from hudi_locks_providers._wire.zookeeper import check_path
from hudi_locks_providers._zookeeper.security import Security

__all__ = ["Settings"]

_HOST: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:\[\]@]+)(:(?P<port>\d{1,5}))?")
_DEFAULT_PORT: Final = 2181
_MOST: Final = 65_535


@dataclass(frozen=True)
class Settings:
    """How to reach ZooKeeper.

    Attributes:
        hosts: `host:port` of all servers, separated by commas.
        chroot: Node under which all paths are meant; empty for the root.
        session_timeout_s: What the server is asked for; it may grant another value.
        connection_timeout_s: Longest wait for a connection, and for one answer.
        security: How it is proved who speaks to whom.
    """

    hosts: str
    chroot: str
    session_timeout_s: float
    connection_timeout_s: float
    security: Security = field(default_factory=Security)

    @classmethod
    def from_options(cls, options: Options) -> Settings:
        """What Hudi's keys say.

        Raises:
            ConfigError: The url is absent or malformed, or a number is; or the ways to log in contradict each other.
        """
        url = options.get_value(lock_keys.ZOOKEEPER_URL).strip()
        hosts, slash, chroot = url.partition("/")
        default = _parse_port(options.find(lock_keys.ZOOKEEPER_PORT))
        complete = ",".join(_complete(host.strip(), default, url=url) for host in hosts.split(","))
        _check_chroot(url, f"{slash}{chroot}".rstrip("/"))
        return cls(
            complete,
            f"{slash}{chroot}".rstrip("/"),
            options.get_value(lock_keys.ZOOKEEPER_SESSION_TIMEOUT_MS) / 1000,
            options.get_value(lock_keys.ZOOKEEPER_CONNECTION_TIMEOUT_MS) / 1000,
            Security.from_options(options),
        )


def _parse_port(given: str | None) -> int:
    if given is None:
        return _DEFAULT_PORT
    key = lock_keys.ZOOKEEPER_PORT.name
    if not (given.strip().isdecimal() and 0 < int(given) <= _MOST):
        raise ConfigError(f"{key}={given!r} is no port: give a number from 1 to {_MOST}", key=key)
    return int(given)


def _complete(host: str, default: int, *, url: str) -> str:
    """`host` with its port, or with the one for those that name none."""
    found = _HOST.fullmatch(host)
    port = int(found["port"] or default) if found else 0
    if found is None or not 0 < port <= _MOST:
        key = lock_keys.ZOOKEEPER_URL.name
        raise ConfigError(
            f"{key}={url!r}: {host!r} is no host:port; give host:port,host:port[/chroot], without a scheme", key=key
        )
    return f"{found['host']}:{port}"


def _check_chroot(url: str, chroot: str) -> None:
    wrong = check_path(chroot) if chroot else None
    if wrong:
        key = lock_keys.ZOOKEEPER_URL.name
        raise ConfigError(f"{key}={url!r}: the path {chroot} after the hosts {wrong}", key=key)
