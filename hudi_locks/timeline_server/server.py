"""A timeline server in this process, on a thread of its own."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from hudi_locks.clock import SystemClock
from hudi_locks.errors import ConfigError

__all__ = ["TimelineServer"]

_START_S: Final = 20.0
_REQUEST_S: Final = 30.0
"""How long the head of a request may take."""
_STOP_S: Final = 10
"""How long requests under way may take once the server is to stop."""


class _Server(uvicorn.Server):
    """Tells when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answers.set()


class _TimelyProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]  # the class depends on what is installed
    """Ends connections on which a request was begun, or none was, and does not come whole in time."""

    request_s = _REQUEST_S

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._deadline: asyncio.TimerHandle | None = None
        self._expect()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._expect()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.request_s, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class TimelineServer:
    """Serves until it is closed. A context manager.

    Args:
        make_app: Makes the application, given the session's token; called in the server's event loop.
        host: Where to listen; only this machine reaches the default.
        port: 0 for any that is free.
        token: Of the session; a fresh one when None, none at all when empty.

    Attributes:
        url: Where it listens.
        token: What callers must bring.
    """

    def __init__(
        self, make_app: Callable[[str], Starlette], *, host: str = "127.0.0.1", port: int = 0, token: str | None = None
    ) -> None:
        self.token: str = secrets.token_urlsafe(32) if token is None else token
        self._socket = _listen(host, port)
        shown = f"[{host}]" if ":" in host else host
        self.url: str = f"http://{shown}:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            make_app(self.token),
            log_config=None,
            log_level="warning",
            access_log=False,
            http=_TimelyProtocol,
            timeout_graceful_shutdown=_STOP_S,
        )
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._run, name="hudi-locks-timeline-server", daemon=True)

    def start(self) -> None:
        """Begin to serve; returns when requests are answered.

        Raises:
            ConfigError: It did not start in time.
        """
        self._thread.start()
        if not SystemClock().wait(self._server.answers, _START_S):
            raise ConfigError(f"the server at {self.url} did not start within {_START_S:g} s", url=self.url)

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def close(self) -> None:
        """Stop serving, after the requests under way. May be called twice."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> TimelineServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise ConfigError(f"the server cannot listen on {host}:{port}: {error}", host=host, port=port) from error
    return listening
