"""Asking for locks: one call, after which nothing is left in the metastore's queue unless it was granted."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from hudi_locks.errors import BackendUnavailable
from hudi_locks.lock import Owner
from hudi_locks_providers._hive.metastore import LockGone, Metastore
from hudi_locks_providers._wire.hive_lock import LockRow, encode_agent, is_request

__all__ = ["HiveRequests"]

_TIMEOUT: Final = "hive.txn.timeout"
_DEFAULT_TIMEOUT: Final = "300s"
_DURATION: Final = re.compile(r"\s*(\d+)\s*([a-z]*)\s*", re.IGNORECASE)
_UNITS_S: Final = {"": 1.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_LONG_UNITS: Final = {"day": "d", "hour": "h", "min": "m", "sec": "s", "msec": "ms", "usec": "us", "nsec": "ns"}


class HiveRequests:
    """Requests for locks on tables of one database.

    Args:
        metastore: To ask.
        database: In which the tables are.
    """

    def __init__(self, metastore: Metastore, database: str) -> None:
        self._metastore = metastore
        self._database = database
        self._timeout_s: float | None = None
        self._unknown: defaultdict[str, set[str]] = defaultdict(set)

    def find_timeout_s(self) -> float:
        """After how long without a heartbeat the metastore may drop a lock, by its own setting; asked once."""
        if self._timeout_s is None:
            self._timeout_s = parse_duration_s(self._metastore.find_setting(_TIMEOUT, _DEFAULT_TIMEOUT))
        return self._timeout_s

    def ask(self, tables: Sequence[str], owner: Owner) -> int | None:
        """The id of a granted lock on all of `tables`; None if somebody holds one of them.

        Raises:
            BackendUnavailable: No answer, and no word about whether the lock was granted; if it was, it is let go of
                when the table is asked for again, or this client closes, and else runs out.
        """
        for table in tables:
            self._settle(table)
        request = uuid.uuid4().hex[:16]
        try:
            lock_id, granted = self._metastore.lock(
                self._database, tables, host=owner.host, agent=encode_agent(owner, request)
            )
        except BackendUnavailable:
            row = self._find_request(tables[0], request)
            if row is None:
                raise
            lock_id, granted = row.lock_id, row.is_granted
        if not granted:
            self._withdraw(tables[0], request, lock_id)
        return lock_id if granted else None

    def _find_request(self, table: str, request: str) -> LockRow | None:
        """The lock of a request whose answer was lost; one that is not there may still come."""
        row = None
        try:
            rows = self._metastore.find_locks(self._database, table)
            row = next((row for row in rows if is_request(row, request)), None)
        finally:
            if row is None:
                self._unknown[table].add(request)
        return row

    def _withdraw(self, table: str, request: str, lock_id: int) -> None:
        """Leave the queue at once: who waits there without looking keeps all that come later waiting too."""
        self._unknown[table].add(request)
        with contextlib.suppress(LockGone):
            self._metastore.unlock(lock_id)
        self._unknown[table].discard(request)

    def _settle(self, table: str) -> None:
        """Let go of what earlier requests left on a table without our knowing."""
        if not self._unknown.get(table):
            return
        for row in self._metastore.find_locks(self._database, table):
            for request in list(self._unknown[table]):
                if is_request(row, request):
                    with contextlib.suppress(LockGone):
                        self._metastore.unlock(row.lock_id)

    def settle_all(self) -> None:
        """Let go of all that earlier requests left without our knowing."""
        for table in list(self._unknown):
            self._settle(table)
            del self._unknown[table]


def parse_duration_s(text: str) -> float:
    """Seconds of a duration as Hive's settings have it, such as `300s` or `5min`; a bare number is seconds."""
    match = _DURATION.fullmatch(text)
    unit = match.group(2).lower() if match else ""
    unit = next((short for long, short in _LONG_UNITS.items() if unit.startswith(long)), unit)
    if match is None or unit not in _UNITS_S:
        return parse_duration_s(_DEFAULT_TIMEOUT)
    return int(match.group(1)) * _UNITS_S[unit]
