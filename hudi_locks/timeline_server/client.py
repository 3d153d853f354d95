"""Asking a timeline server for markers. Runs on driver and executors, with Python's own HTTP client."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Final
from urllib.parse import urlencode, urlsplit

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.early_conflict import EarlyConflict, GuardedMarkers
from hudi_locks.format import MarkerName
from hudi_locks.markers import MARKER_FOLDER, FallbackMarkers
from hudi_locks.redaction import open_log

__all__ = ["BASE", "DETECTS", "Endpoint", "ServerMarkers", "Unreachable"]

BASE: Final = "/v1/hoodie/marker"
DETECTS: Final = "basepath"
"""The parameter that Hudi's client sends when its writer looks for conflicts early."""
_PAUSES_S: Final = (0.1, 0.5)
"""Between attempts that failed."""
_MOST_ATTEMPTS: Final = 60
_OK, _CONFLICT, _BUSY, _FAILED = 200, 409, 503, 500
_log = open_log(__name__)


class Unreachable(Exception):
    """Nobody answered as a timeline server of the table does."""


@dataclass(frozen=True)
class _Reply:
    """An answer; with status 0 the reason why there is none."""

    status: int
    data: bytes
    retry_after_s: float = 0.0

    @property
    def reason(self) -> str:
        text = self.data[:200].decode(errors="replace")
        return f"it answered {self.status}: {text}" if self.status else text


@dataclass(frozen=True)
class Endpoint:
    """Where a timeline server answers for a table. Picklable.

    Attributes:
        url: As `http://host:port`.
        base_path: Of the table.
        token: Of the server; "" if it asks for none. Never shown.
        timeout_s: How long to wait for each answer.
        clock: Spaces out attempts.
    """

    url: str
    base_path: str
    token: str = field(default="", repr=False)
    timeout_s: float = 30.0
    clock: Clock = field(default_factory=SystemClock, repr=False)

    def check(self, requested: str) -> None:
        """Ask for something harmless.

        Raises:
            Unreachable: There is no answer, or not that of a timeline server of this table.
        """
        reply = self._send("GET", "/dir/exists", requested, {})
        if reply.status != _OK or reply.data not in (b"true", b"false"):
            raise Unreachable(reply.reason)

    def create_all(self, requested: str, names: Iterable[str], *, detects: bool) -> EarlyConflict | None:
        """Make markers of an instant together, or learn with whom it conflicts; durable when it returns.

        A server that fails is asked again, which is harmless; one that does not keep up is given time.

        Raises:
            Unreachable: It stays without an answer; the markers may have been made or not.
        """
        listed, pauses = list(names), iter(_PAUSES_S)
        for _ in range(_MOST_ATTEMPTS):
            reply = self._post(requested, listed, detects)
            if reply.status in (_OK, _CONFLICT):
                return _decode(reply, expected=len(listed))
            pause_s = reply.retry_after_s if reply.status == _BUSY else next(pauses, None)
            if pause_s is None or 0 < reply.status < _FAILED:
                break
            self.clock.sleep(pause_s)
        raise Unreachable(reply.reason)

    def _post(self, requested: str, names: Sequence[str], detects: bool) -> _Reply:  # noqa: FBT001
        params = {DETECTS: self.base_path} if detects else {}
        return self._send("POST", "/create-all", requested, params, json.dumps({"names": names}).encode())

    def _send(
        self, verb: str, path: str, requested: str, params: Mapping[str, str], body: bytes | None = None
    ) -> _Reply:
        query = urlencode({"markerdirpath": f"{self.base_path}/{MARKER_FOLDER}/{requested}", **params})
        place = urlsplit(self.url)
        connection = HTTPConnection(str(place.hostname), place.port, timeout=self.timeout_s)
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            connection.request(verb, f"{BASE}{path}?{query}", body, headers)
            answer = connection.getresponse()
            return _Reply(answer.status, answer.read(), float(answer.headers.get("Retry-After", "1")))
        except (OSError, HTTPException, ValueError) as error:
            return _Reply(0, f"{type(error).__name__}: {error}".encode())
        finally:
            connection.close()


class ServerMarkers:
    """Makes the markers of a write through a timeline server. Runs on executors, for one task; picklable.

    Without an answer it keeps a file of its own beside those of the server for the rest of the task, after a look for
    conflicts of its own if the write is to look.

    Args:
        endpoint: Of the server.
        requested: Requested time of the instant.
        fallback: What makes markers without the server.
    """

    def __init__(self, endpoint: Endpoint, requested: str, *, fallback: GuardedMarkers | FallbackMarkers) -> None:
        self._endpoint = endpoint
        self._requested = requested
        self._fallback = fallback
        self._is_lost = False

    def create_all(self, names: Sequence[MarkerName]) -> float:
        """Announce data files together; durable when it returns.

        Returns:
            How long this process looked at other writes, in seconds; what the server looks at is not waited for.

        Raises:
            HoodieEarlyConflictDetectionException: An earlier write is at a file group of the write.
            StorageError: The server is lost, and the store failed.
        """
        if not self._is_lost:
            try:
                return self._ask(names)
            except Unreachable as error:
                self._is_lost = True
                url, requested = self._endpoint.url, self._requested
                _log.warning("timeline server %s is lost, %s keeps markers itself: %s", url, requested, error)
        return self._fallback.create_all(names) or 0.0

    def _ask(self, names: Sequence[MarkerName]) -> float:
        detects = isinstance(self._fallback, GuardedMarkers)
        conflict = self._endpoint.create_all(self._requested, map(str, names), detects=detects)
        if conflict is not None:
            raise conflict.error()
        return 0.0


def _decode(reply: _Reply, *, expected: int) -> EarlyConflict | None:
    try:
        found = json.loads(reply.data)
        if reply.status == _CONFLICT:
            return EarlyConflict.decode(json.dumps(found["conflict"]).encode())
        if len(found["created"]) == expected:
            return None
    except (ValueError, KeyError, TypeError) as error:
        raise Unreachable(f"{reply.reason} ({error})") from error
    raise Unreachable(reply.reason)
