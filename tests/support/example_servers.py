"""The servers of the worked examples, as Debian packages them, each as a process on a free port of loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
from pathlib import Path
from typing import ClassVar, Final

from hudi_locks_conformance.servers.cache import ServerUnavailable, find_tool, run_tool
from hudi_locks_conformance.servers.kind import Launch, ServerKind

__all__ = ["PostgreSql", "Redis"]

_USER: Final = "postgres"
_PACKAGED: Final = "/usr/lib/postgresql"


class Redis(ServerKind):
    """A single server that writes each change to its log."""

    name: ClassVar[str] = "redis"
    provider: ClassVar[str] = "redis"

    def fetch(self) -> None:
        find_tool("redis-server")

    def launch(self, folder: Path, port: int) -> Launch:
        words = [find_tool("redis-server"), "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
        return Launch([*words, "--save", "", "--appendonly", "yes"])

    def is_ready(self, port: int) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as link:
                link.sendall(b"PING\r\n")
                return link.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def options(self, port: int) -> dict[str, str]:
        return {"my.redis.url": f"redis://127.0.0.1:{port}/0", "my.redis.lease_s": "20"}


class PostgreSql(ServerKind):
    """A cluster of its own, which does not run as root: as the packaged user, where this process is root."""

    name: ClassVar[str] = "postgresql"
    provider: ClassVar[str] = "postgresql"

    def fetch(self) -> None:
        _find("postgres")

    def launch(self, folder: Path, port: int) -> Launch:
        data = folder / "data"
        if os.getuid() == 0:
            shutil.chown(folder, _USER, _USER)
        if not data.exists():
            run_tool([*_become(), _find("initdb"), "-D", str(data), "-U", _USER, "-A", "trust", "-N"], folder)
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "fsync": "off"}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return Launch([*_become(), _find("postgres"), "-D", str(data), *words])

    def is_ready(self, port: int) -> bool:
        try:
            run_tool([_find("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)], Path("/"))
        except ServerUnavailable:
            return False
        return True

    def options(self, port: int) -> dict[str, str]:
        dsn = f"host=127.0.0.1 port={port} dbname=postgres user={_USER} sslmode=disable"
        return {"my.postgresql.dsn": dsn, "my.postgresql.lease_s": "20"}


def _find(name: str) -> str:
    """A program of the newest packaged release; Debian keeps them off the path."""
    packaged = sorted(Path(_PACKAGED).glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    return str(packaged[-1]) if packaged else find_tool(name)


def _become() -> list[str]:
    if os.getuid() != 0:
        return []
    try:
        pwd.getpwnam(_USER)
    except KeyError:
        raise ServerUnavailable("the user postgres is needed: apt-get install postgresql") from None
    return [find_tool("setpriv"), f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups", "--"]
