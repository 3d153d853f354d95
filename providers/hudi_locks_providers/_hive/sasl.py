"""Thrift over SASL, as a metastore with Kerberos speaks it: a login, and after it messages in frames."""

from __future__ import annotations

import io
import struct
from typing import Any, Final

from hudi_locks.errors import BackendRefused
from hudi_locks_providers._kerberos import KerberosLogin

__all__ = ["SaslTransport"]

_MECHANISM: Final = b"GSSAPI"
_START, _OK, _BAD, _ERROR, _COMPLETE = range(1, 6)
_LONGEST_MESSAGE: Final = 1 << 20
"""Of a login, in bytes; a ticket has some thousand."""


class SaslTransport:
    """What a protocol of Thrift reads from and writes to: Java's `TSaslClientTransport`. Not thread-safe.

    Args:
        below: The connected socket of Thrift.
        place: The server, for errors.
        login: Who is logged in.
    """

    def __init__(self, below: Any, place: str, login: KerberosLogin) -> None:
        self._below = below
        self._place = place
        self._login = login
        self._read = io.BytesIO()
        self._written = io.BytesIO()

    def log_in(self) -> None:
        """Let both sides prove who they are.

        Raises:
            BackendRefused: One of them refuses the other.
            BackendUnavailable: The key distribution center does not answer.
        """
        first = self._login.step(None)  # before anything is sent: without a ticket, no server is bothered
        self._tell(_START, _MECHANISM)
        self._tell(_OK, first)
        while (said := self._hear())[0] == _OK:
            self._tell(_OK, self._login.step(said[1]))
        status, text = said
        if status != _COMPLETE or not self._login.is_complete:
            self._refuse(status, text)

    def _tell(self, status: int, body: bytes) -> None:
        self._below.write(struct.pack(">BI", status, len(body)) + body)
        self._below.flush()

    def _hear(self) -> tuple[int, bytes]:
        status, length = struct.unpack(">BI", self._below.readAll(5))
        if status not in range(_START, _COMPLETE + 1) or length > _LONGEST_MESSAGE:
            self._refuse(status, b"")
        return status, self._below.readAll(length) if length else b""

    def _refuse(self, status: int, text: bytes) -> None:
        said = text.decode(errors="replace") if status in (_BAD, _ERROR) else "its answer is none of SASL's"
        raise BackendRefused(
            f"the metastore {self._place} refuses the login by Kerberos ({said}): its log says why; are the clocks"
            " of both machines right, and does it take users of this realm?",
            uris=self._place,
        )

    def readAll(self, size: int) -> bytes:  # noqa: N802  # Thrift's name
        """`size` bytes of what the server sent."""
        found = self._read.read(size)
        while len(found) < size:
            (length,) = struct.unpack(">I", self._below.readAll(4))
            self._read = io.BytesIO(self._login.unwrap(self._below.readAll(length)))
            found += self._read.read(size - len(found))
        return found

    def write(self, data: bytes) -> None:
        """Add to what goes out with the next `flush`."""
        self._written.write(data)

    def flush(self) -> None:
        """Send what was written."""
        frame, self._written = self._login.wrap(self._written.getvalue()), io.BytesIO()
        self._below.write(struct.pack(">I", len(frame)) + frame)
        self._below.flush()
