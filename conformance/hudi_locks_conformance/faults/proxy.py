"""A proxy on loopback in front of one server, whose link can be cut, slowed, silenced, or made to lose answers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["FaultProxy"]

_HOST: Final = "127.0.0.1"
_PIECE: Final = 65_536
_BACKLOG: Final = 256
_PATIENCE_S: Final = 60.0
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)


@dataclass(eq=False)
class _Link:
    """One connection of a client, and ours to the server, if there is one."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter | None = None
    loses_answer: bool = False
    is_silent: bool = False


@dataclass
class _Loss:
    """Answers that are to be lost: so many, to requests that contain these bytes."""

    left: int
    to: bytes


class FaultProxy:
    """Forwards connections to a server of this machine. Thread-safe; a context manager that starts and closes it.

    Faults hold from the return of the call that asks for them. All work is done by one thread, which `close` ends.

    Args:
        target: The server's port on loopback.
        port: Where to listen; 0 for any free port.

    Attributes:
        port: Where it listens, once it was started.
        accepted: How many connections clients have made.
        lost: How many answers `drop_answer` has lost so far.
    """

    def __init__(self, target: int, *, port: int = 0) -> None:
        self.port: int = port
        self.accepted: int = 0
        self.lost: int = 0
        self._target = target
        self._delay_s = 0.0
        self._is_cut = False
        self._is_half_open = False
        self._losses: list[_Loss] = []
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._listener: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="hudi-locks-fault-proxy", daemon=True)

    def start(self) -> None:
        """Listen, and return.

        Raises:
            OSError: The port is taken.
        """
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(_PATIENCE_S)
        except BaseException:
            self.close()
            raise

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._accept, _HOST, self.port, backlog=_BACKLOG)
        self.port = self._listener.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Reset all connections, and every new one at once, until `heal`."""
        self._do(self._cut)

    def _cut(self) -> None:
        self._is_cut = True
        self._reset_all()

    def half_open(self) -> None:
        """Accept connections and swallow all that comes on them, until `heal`; nothing reaches the server."""
        self._do(self._silence)

    def _silence(self) -> None:
        self._is_half_open = True
        for link in self._links:
            link.is_silent = True

    def heal(self) -> None:
        """Undo `cut`, `half_open`, `delay` and what is left of `drop_answer`.

        Connections that swallowed something are reset: what they lost cannot come any more.
        """
        self._do(self._heal)

    def _heal(self) -> None:
        self._is_cut = self._is_half_open = False
        self._delay_s = 0.0
        self._losses.clear()
        for link in [link for link in self._links if link.is_silent]:
            self._reset(link)

    def delay(self, one_way_s: float) -> None:
        """Let each piece of data take so many seconds longer, in either direction."""
        self._do(lambda: setattr(self, "_delay_s", one_way_s))

    def drop_answer(self, count: int = 1, *, to: bytes = b"") -> None:
        """Let the next `count` requests that contain `to` reach the server, and reset their connections in answer."""
        self._do(lambda: self._losses.append(_Loss(count, to)))

    def close(self) -> None:
        """Reset all connections and end the thread. May be called twice."""
        if self._loop.is_closed():
            return
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_PATIENCE_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_PATIENCE_S)
        self._loop.close()

    async def _end(self) -> None:
        self._cut()
        if self._listener is not None:
            self._listener.close()
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        if self._listener is not None:
            await self._listener.wait_closed()

    def _do(self, action: Callable[[], Any]) -> None:
        async def act() -> None:
            action()

        asyncio.run_coroutine_threadsafe(act(), self._loop).result(_PATIENCE_S)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        link = _Link(writer, is_silent=self._is_half_open)
        self.accepted += 1
        self._links.add(link)
        self._tasks |= {task} if task else set()
        try:
            with contextlib.suppress(OSError):
                await self._serve(link, reader)
        finally:
            self._reset(link)
            self._tasks -= {task} if task else set()

    async def _serve(self, link: _Link, reader: asyncio.StreamReader) -> None:
        if self._is_cut:
            return
        if link.is_silent:
            await self._swallow(reader)
            return
        answers, link.server = await asyncio.open_connection(_HOST, self._target)
        if link in self._links:
            await asyncio.gather(self._send_up(link, reader), self._send_down(link, answers))
        else:
            link.server.transport.abort()  # cut while the server was called
        await _close_in_order(link)

    async def _swallow(self, reader: asyncio.StreamReader) -> None:
        while await reader.read(_PIECE):
            continue

    async def _send_up(self, link: _Link, reader: asyncio.StreamReader) -> None:
        while (data := await reader.read(_PIECE)) and link.server is not None:
            await self._spend_delay()
            if link.is_silent:
                continue
            link.loses_answer = link.loses_answer or self._take_loss(data)
            link.server.write(data)
            await link.server.drain()
        if link.server is not None and not link.server.is_closing():
            link.server.write_eof()

    def _take_loss(self, data: bytes) -> bool:
        loss = next((loss for loss in self._losses if loss.to in data), None)
        if loss is None:
            return False
        loss.left -= 1
        if not loss.left:
            self._losses.remove(loss)
        return True

    async def _send_down(self, link: _Link, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(_PIECE):
            await self._spend_delay()
            if link.loses_answer:
                self.lost += 1
                self._reset(link)
                return
            if not link.is_silent:
                link.client.write(data)
                await link.client.drain()
        if not link.client.is_closing():
            link.client.write_eof()

    async def _spend_delay(self) -> None:
        if self._delay_s:
            await asyncio.sleep(self._delay_s)

    def _reset_all(self) -> None:
        for link in list(self._links):
            self._reset(link)

    def _reset(self, link: _Link) -> None:
        """End it so that both sides see an error, not an end."""
        self._links.discard(link)
        for writer in (link.client, link.server):
            if writer is not None and not writer.is_closing():
                with contextlib.suppress(OSError):
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                writer.transport.abort()

    def __enter__(self) -> FaultProxy:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _close_in_order(link: _Link) -> None:
    for writer in (link.client, link.server):
        if writer is not None and not writer.is_closing():
            writer.close()
