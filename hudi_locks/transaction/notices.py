"""What every writer of a table must know, kept beside the claims: endangered updates, and the first foreign writer."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from hudi_locks.errors import UpdateEndangered
from hudi_locks.format.claim import PRIVATE_FOLDER
from hudi_locks.redaction import open_log
from hudi_locks.storage import Storage

__all__ = ["NOTICE_FOLDER", "Notices"]

NOTICE_FOLDER: Final = f"{PRIVATE_FOLDER}/notices"
_FOREIGN: Final = "foreign-writer.json"
_ACCEPTED: Final = "accepted-times.json"
_ENDANGERED: Final = re.compile(r"endangered-(\d+)\.json")
_log = open_log(__name__)


class Notices:
    """The notices of one table as one process knows them. Runs on the driver.

    Args:
        storage: Of the table.

    Attributes:
        foreign_writer_seen: Whether a JVM writer was found at work though the table says that there is none.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.foreign_writer_seen = False

    def check(self) -> None:
        """Read the notices.

        Raises:
            UpdateEndangered: One of them forbids writing until somebody acknowledged it.
        """
        names = [entry.name for entry in self._storage.list(NOTICE_FOLDER)]
        self.foreign_writer_seen = self.foreign_writer_seen or _FOREIGN in names
        for name in names:
            if match := _ENDANGERED.fullmatch(name):
                raise self._error(match[1], self._read(name))

    def endanger(self, instant: str, *, other: str, found: str) -> None:
        """Mark the table: `instant` and `other` may have undone each other's work. Its data is left as it is."""
        facts = {"instant": instant, "other": other, "found": found}
        self._storage.create_if_absent(f"{NOTICE_FOLDER}/endangered-{instant}.json", _encode(facts))
        _log.error("%s", self._error(instant, facts))

    def see_foreign_writer(self, instant: str) -> None:
        """Note, loudly, that `instant` has no claim though the table says that only this package writes it."""
        self.foreign_writer_seen = True
        self._storage.create_if_absent(f"{NOTICE_FOLDER}/{_FOREIGN}", _encode({"instant": instant}))
        _log.warning(
            "instant %s was written by a JVM writer though the table says hudi_locks.foreign_writers=false: from now on"
            " every write waits for clock skew and looks for such writers; correct the table's property",
            instant,
        )

    def acknowledge(self, instant: str) -> bool:
        """Let writers go on after somebody has looked at `instant`; False if no notice of it is there."""
        name = f"endangered-{instant}.json"
        target = f"{NOTICE_FOLDER}/acknowledged-{instant}.json"
        is_there = self._storage.exists(f"{NOTICE_FOLDER}/{name}")
        return is_there and self._storage.move_if_absent(f"{NOTICE_FOLDER}/{name}", target)

    def accept_ahead(self, newest: str, ahead_ms: int) -> None:
        """Note that somebody knows of the time `newest`, which is so far ahead of the store's clock."""
        self._storage.replace(f"{NOTICE_FOLDER}/{_ACCEPTED}", _encode({"newest": newest, "ahead_ms": ahead_ms}))
        _log.warning("times up to %s are accepted, %d ms ahead of the store's clock", newest, ahead_ms)

    def read_accepted_ahead_ms(self) -> int:
        """How far times may be ahead of the store's clock since somebody accepted that, ms; 0 if nobody did."""
        found = self._read(_ACCEPTED).get("ahead_ms")
        return found if isinstance(found, int) else 0

    def _read(self, name: str) -> dict[str, Any]:
        data = self._storage.read(f"{NOTICE_FOLDER}/{name}")
        try:
            found = json.loads(data or b"{}")
        except (ValueError, RecursionError):
            found = {}
        return found if isinstance(found, dict) else {}

    def _error(self, instant: str, facts: dict[str, Any]) -> UpdateEndangered:
        message = (
            f"instant {instant} and {facts.get('other') or 'another writer'} may have undone each other's work:"
            f" {facts.get('found') or 'see the notice'}. Writes are refused until somebody compared the two and"
            f" acknowledged {NOTICE_FOLDER}/endangered-{instant}.json"
        )
        return UpdateEndangered(message, instant=instant, other=facts.get("other"), found=facts.get("found"))


def _encode(facts: dict[str, Any]) -> bytes:
    return (json.dumps(facts, sort_keys=True) + "\n").encode()
