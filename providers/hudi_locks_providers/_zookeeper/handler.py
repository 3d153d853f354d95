"""How kazoo waits, calls back and connects for us."""

from __future__ import annotations

import select
import ssl
import threading
from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler

__all__ = ["Handler"]

_NOT_WRITABLE: Final = select.POLLIN | select.POLLPRI
_NOT_READABLE: Final = select.POLLOUT


class Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo is not typed
    """kazoo's handler for threads, with less to do for each request.

    Args:
        connect_s: Longest wait for one server's TCP connection; kazoo would wait for a whole session time-out.

    Attributes:
        mistrusted: Why the certificate of a server was not trusted; empty if none was met.
    """

    def __init__(self, connect_s: float) -> None:
        super().__init__()
        self._connect_s = connect_s
        self._latest: threading.Thread | None = None
        self.mistrusted: str = ""

    def spawn(self, func: Any, *args: Any, **kwargs: Any) -> threading.Thread:
        """Start a thread; the last one that kazoo wants is its connection's."""
        self._latest = super().spawn(func, *args, **kwargs)
        return self._latest

    def is_connecting(self) -> bool:
        """Whether the connection's thread lives: it ends by itself only for an error that it does not know."""
        return self._latest is not None and self._latest.is_alive()

    def dispatch_callback(self, callback: Any) -> None:
        """Run a watch where its event is read, which saves a thread's turn: ours do not wait."""
        callback.func(*callback.args)

    def create_connection(self, *args: Any, timeout: float | None = None, **kwargs: Any) -> Any:
        """Connect to one server."""
        patience_s = min(timeout or self._connect_s, self._connect_s)
        try:
            return super().create_connection(*args, timeout=patience_s, **kwargs)
        except ssl.SSLCertVerificationError as error:
            self.mistrusted = error.verify_message
            raise

    def select(
        self, readers: list[Any], writers: list[Any], _: list[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Wait for sockets by `poll`, which needs no descriptor of its own; kazoo opens one for each wait."""
        poller = select.poll()
        for one in readers:
            poller.register(one, select.POLLIN)
        for one in writers:
            poller.register(one, select.POLLOUT)
        ready = dict(poller.poll(None if timeout is None else timeout * 1000))
        return (
            [one for one in readers if ready.get(one.fileno(), 0) & ~_NOT_READABLE],
            [one for one in writers if ready.get(one.fileno(), 0) & ~_NOT_WRITABLE],
            [],
        )
