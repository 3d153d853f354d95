"""JVM writers, which make no claims: what they did is read off the timeline, and what it endangers is noted for all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from hudi_locks.errors import PossibleLostUpdate
from hudi_locks.format import Instant, State, add_ms, comparable_action
from hudi_locks.format.claim import PRIVATE_FOLDER, Claim, ClaimKind
from hudi_locks.redaction import open_log
from hudi_locks.storage import Storage
from hudi_locks.timeline import Timeline

__all__ = ["NOTICE_FOLDER", "Notices", "find_appeared", "find_unclaimed", "is_seen", "list_seen"]

NOTICE_FOLDER: Final = f"{PRIVATE_FOLDER}/notices"
_FOREIGN: Final = "foreign-writer.json"
_ACCEPTED: Final = "accepted-times.json"
_RECENT_MS: Final = 3_600_000
"""A foreign writer whose clock is further off than this breaks its own protocol too."""
_ENDANGERED: Final = re.compile(r"endangered-(\d+)\.json")
_log = open_log(__name__)


class Notices:
    """The notices of one table as one process knows them. Runs on the driver.

    Args:
        storage: Of the table.

    Attributes:
        foreign_writer_seen: Whether a JVM writer was found at work though the table says that there is none.
        metadata_table_seen: Whether the table had a metadata table, which JVM writers make and drop, at the last look.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.foreign_writer_seen: bool = False
        self.metadata_table_seen = False

    def check(self) -> None:
        """Read the notices.

        Raises:
            PossibleLostUpdate: One of them forbids writing until somebody acknowledged it.
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
        notice = f"{NOTICE_FOLDER}/endangered-{instant}.json"
        data = self._storage.read(notice)
        if data is None:
            return False
        self._storage.create_if_absent(f"{NOTICE_FOLDER}/acknowledged-{instant}.json", data)
        return self._storage.delete(notice)

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

    def _error(self, instant: str, facts: dict[str, Any]) -> PossibleLostUpdate:
        message = (
            f"instant {instant} and {facts.get('other') or 'another writer'} may have undone each other's work:"
            f" {facts.get('found') or 'see the notice'}. Writes are refused until somebody compared the two and"
            f" acknowledged {NOTICE_FOLDER}/endangered-{instant}.json"
        )
        return PossibleLostUpdate(message, instant=instant, other=facts.get("other"), found=facts.get("found"))


def _encode(facts: dict[str, Any]) -> bytes:
    return (json.dumps(facts, sort_keys=True) + "\n").encode()


def list_seen(timeline: Timeline, time: str) -> frozenset[str]:
    """The instants to name in a PUBLISH at `time`: pending ones, and those completed in the hour before."""
    return frozenset(_name(instant) for instant in timeline.instants if _is_recent(instant, time))


def find_appeared(claim: Claim, timeline: Timeline) -> list[Instant]:
    """Instants that came to the timeline since a PUBLISH was claimed, its own left out.

    Another writer of this package sees to a claim before it adds anything, so these are foreign. Where the table has
    no foreign writers, nothing was noted and nothing is found.
    """
    if claim.seen is None:
        return []
    candidates = [i for i in timeline.instants if i.requested != claim.instant and _is_recent(i, claim.time)]
    return [instant for instant in candidates if _name(instant) not in claim.seen]


def is_seen(claim: Claim, requested: str, action: str) -> bool:
    """Whether an instant was completed already when `claim` was made, which notes what it saw."""
    return _name(Instant(requested, action, State.COMPLETED)) in (claim.seen or ())


def find_unclaimed(timeline: Timeline, *, known: Timeline, claims: Iterable[Claim]) -> list[Instant]:
    """Writes completed on `timeline`, not on `known`, and by none of the claims made in between."""
    came = timeline.completed_since(known)
    if not came:
        return []
    planned = (ClaimKind.ROLLBACK, ClaimKind.SCHEDULE)  # a plan of ours may have been run by a JVM writer
    claimed = {claim.instant for claim in claims if claim.kind not in planned}
    return [i for i in came if i.requested not in claimed]


def _is_recent(instant: Instant, time: str) -> bool:
    return instant.completion is None or instant.completion >= add_ms(time, -_RECENT_MS)


def _name(instant: Instant) -> str:
    state = "completed" if instant.is_completed else "pending"
    return f"{instant.requested}.{comparable_action(instant.action)}.{state}"
