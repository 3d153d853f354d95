"""The claim log: one atomic create for each decision, so that a lost lock cannot lose an update."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from hudi_locks.clock import Clock
from hudi_locks.errors import DamagedTable, StorageError
from hudi_locks.format.claim import (
    PRIVATE_FOLDER,
    Claim,
    Content,
    claim_path,
    decode_claim,
    decode_tickets,
    digest_of,
    encode_claim,
)
from hudi_locks.redaction import open_log
from hudi_locks.storage import Storage, map_in_threads

__all__ = [
    "STAGED_FOLDER",
    "START",
    "ClaimEntry",
    "ClaimLog",
    "HeadHint",
    "find_last",
    "find_last_claim",
    "read_claims",
    "read_entry",
]

_PATH: Final = f"{PRIVATE_FOLDER}/head"
_MOST_DIGITS: Final = 20
"""A claim's number has no more."""
_SPACING_S: Final = 1.0
"""Object stores limit how often one object may change; GCS to once a second."""
_log = open_log(__name__)


def find_last(is_there: Callable[[int], bool], start: int) -> int:
    """The last number that is there, given that there are no gaps; 0 if none is.

    Gallops from `start`, then bisects; a start beyond the end costs a second gallop from 0.
    """
    low = start if start == 0 or is_there(start) else 0
    step = 1
    while is_there(low + step):
        low, step = low + step, step * 2
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_there(middle) else (low, middle)
    return low


def find_last_claim(storage: Storage) -> int:
    """The number of the last claim; 0 if there is none."""
    return find_last(lambda number: storage.exists(claim_path(number)), _read_hint(storage))


def _read_hint(storage: Storage) -> int:
    text = (storage.read(_PATH) or b"").strip()
    return int(text) if text.isdigit() and len(text) <= _MOST_DIGITS else 0


class HeadHint:
    """The file that says where the head was lately. A stale, missing or damaged one costs requests, nothing else."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._lock = threading.Lock()
        self._next_s = float("-inf")

    def read(self) -> int:
        """Some number near the head; 0 when nothing is known."""
        return _read_hint(self._storage)

    def write(self, number: int) -> None:
        """Tell the others that `number` is there, at most once a second."""
        if not self._is_due():
            return
        try:
            self._storage.replace(_PATH, b"%d\n" % number)
        except StorageError as error:
            _log.info("the hint file of the claim log was not written, the next head search takes longer: %s", error)

    def _is_due(self) -> bool:
        with self._lock:
            now_s = self._clock.monotonic()
            due = now_s >= self._next_s
            if due:
                self._next_s = now_s + _SPACING_S
            return due


STAGED_FOLDER: Final = f"{PRIVATE_FOLDER}/staged"
"""Where large contents of claims wait."""

_REMEMBERED: Final = 4096
_READ_TOGETHER: Final = 256
_log = open_log(__name__)


@dataclass(frozen=True)
class ClaimEntry:
    """A place in the log.

    Attributes:
        number: From 1; 0 is the start, before any claim.
        digest: SHA-256 of its bytes, to which the next entry is chained; "" at the start.
        claim: What it says; None at the start.
    """

    number: int
    digest: str
    claim: Claim | None

    @property
    def time(self) -> str | None:
        """The time of its claim; None at the start."""
        return self.claim.time if self.claim else None


START: Final = ClaimEntry(0, "", None)


def read_entry(storage: Storage, number: int) -> ClaimEntry | None:
    """The entry of that number; None if it is not there.

    Raises:
        DamagedTable: It cannot be read.
        StorageError: The store failed.
    """
    data = storage.read(claim_path(number)) if number > 0 else None
    return None if data is None else ClaimEntry(number, digest_of(data), decode_claim(data, number))


def read_claims(storage: Storage, first: int, last: int) -> Iterator[tuple[Claim, str]]:
    """The claims from number `first` to `last`, many at once, each with the digest of its bytes.

    Raises:
        DamagedTable: One is missing, or cannot be read.
        StorageError: The store failed.
    """
    for begin in range(first, last + 1, _READ_TOGETHER):
        numbers = range(begin, min(last + 1, begin + _READ_TOGETHER))
        for number, entry in zip(numbers, map_in_threads(lambda n: read_entry(storage, n), numbers), strict=True):
            if entry is None or entry.claim is None:
                raise _name_missing(number)
            yield entry.claim, entry.digest


def _name_missing(number: int) -> DamagedTable:
    path = claim_path(number)
    return DamagedTable(f"{path} is missing though later claims are there: restore it", path=path)


class ClaimLog:
    """The log of one table as one process sees it. Runs on the driver; thread-safe.

    The head is remembered, so a read between two commits is one request that finds nothing. Entries are never removed:
    a writer that slept for a week with a remembered head would otherwise find its number free.

    Args:
        storage: Of the table.
        clock: Spaces out the hint file.
    """

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._hint = HeadHint(storage, clock)
        self._lock = threading.Lock()
        self._head = START
        self._recent: dict[int, Claim] = {}

    def read_head(self) -> ClaimEntry:
        """Read forward to the last entry.

        Raises:
            DamagedTable: An entry is unreadable, or not chained to the one before it.
            StorageError: The store failed.
        """
        head = self._head if self._head.number else self._find_head()
        while (found := self._read_next(head)) is not None:
            head = found
            self._remember(head)
        return head

    def read(self, number: int) -> Claim | None:
        """The claim of that number, None if it is not there yet; content, tickets and `seen` may be left out."""
        known = self._recent.get(number)
        if known is None and (entry := read_entry(self._storage, number)):
            return entry.claim
        return known

    def since(self, number: int, head: ClaimEntry) -> list[Claim]:
        """The claims after `number` up to `head`, in order; content and `seen` may be left out.

        Raises:
            DamagedTable: One of them is unreadable or missing.
        """
        return [self._read_present(n) for n in range(number + 1, head.number + 1)]

    def draft(self, head: ClaimEntry, claim: Claim) -> Claim:
        """Make `claim` the successor of `head`, with a nonce of its own; large content is staged here.

        Raises:
            StorageError: The content could not be staged; nothing was claimed.
        """
        for content in claim.contents:
            if content.is_staged and content.data is not None:
                self._stage(_staged_path(content), content.data)
        return replace(claim, number=head.number + 1, previous=head.digest, nonce=uuid.uuid4().hex)

    def append(self, draft: Claim) -> ClaimEntry | None:
        """Make the entry of a draft; None if somebody else's is there, and nothing changed.

        Raises:
            StorageError: No answer. The entry may be there, or appear at any later time: whoever needs to know
                occupies the number with another claim.
        """
        data = encode_claim(draft)
        if not self._create(draft.number, data) and self._storage.read(claim_path(draft.number)) != data:
            return None
        before = self._head
        entry = ClaimEntry(draft.number, digest_of(data), draft)
        self._remember(entry)
        self._drop_staged(before if before.number == draft.number - 1 else START, draft)
        return entry

    def read_content(self, claim: Claim) -> bytes | None:
        """Bytes of the file that the last claim promises; None if a later claim is there, so that nobody needs them.

        Raises:
            DamagedTable: The staged file is missing or changed though the claim is the last one.
        """
        return None if claim.content is None else self._read_whole(claim, claim.content)

    def read_metadata(self, claim: Claim) -> bytes | None:
        """The same of the delta commit of the metadata table that the last claim promises."""
        return None if claim.metadata is None else self._read_whole(claim, claim.metadata)

    def read_tickets(self, claim: Claim) -> dict[str, str] | None:
        """The tickets of the last claim, by path; None if a later claim is there, so that nobody needs them.

        Raises:
            DamagedTable: They are unreadable, missing or changed though the claim is the last one.
        """
        if claim.tickets is None:
            return {}
        data = self._read_whole(claim, claim.tickets)
        return None if data is None else decode_tickets(data, claim)

    def _read_whole(self, claim: Claim, content: Content) -> bytes | None:
        if content.data is not None:
            return content.data
        data = self._storage.read(_staged_path(content))
        if data is not None and digest_of(data) == content.sha256:
            return data
        if self._storage.exists(claim_path(claim.number + 1)):
            return None
        path = _staged_path(content)
        raise DamagedTable(f"{path}, the content of {content.name}, is missing or changed: restore it", path=path)

    def write_hint(self) -> None:
        """Tell other processes where the head is, at most once a second."""
        self._hint.write(self._head.number)

    def _stage(self, path: str, data: bytes) -> None:
        """Make a staged file, or one of the same bytes look new: what is older than the last claim is swept."""
        while not self._storage.create_if_absent(path, data) and not self._storage.touch(path):
            pass

    def _create(self, number: int, data: bytes) -> bool:
        return self._storage.create_if_absent(claim_path(number), data)

    def _find_head(self) -> ClaimEntry:
        number = find_last(lambda n: self._storage.exists(claim_path(n)), self._hint.read())
        head = START if number == 0 else read_entry(self._storage, number)
        if head is None:
            raise DamagedTable(f"{claim_path(number)} vanished: claims are never removed", path=claim_path(number))
        self._remember(head)
        return head

    def _read_present(self, number: int) -> Claim:
        claim = self.read(number)
        if claim is None:
            raise _name_missing(number)
        return claim

    def _read_next(self, head: ClaimEntry) -> ClaimEntry | None:
        entry = read_entry(self._storage, head.number + 1)
        if entry and entry.claim and entry.claim.previous != head.digest:
            path = claim_path(entry.number)
            message = f"{path} is not chained to the claim before it: one of the two was changed; restore it"
            raise DamagedTable(message, path=path, number=entry.number)
        return entry

    def _remember(self, entry: ClaimEntry) -> None:
        with self._lock:
            if entry.claim is not None:
                self._recent[entry.number] = replace(entry.claim, content=None, tickets=None, metadata=None, seen=None)
                self._recent.pop(entry.number - _REMEMBERED, None)
            if entry.number > self._head.number:
                self._head = entry

    def _drop_staged(self, before: ClaimEntry, made: Claim) -> None:
        """Remove what the claim before staged, but for the tickets that a VOID takes over from its PUBLISH."""
        kept = {content.sha256 for content in made.contents}
        for content in before.claim.contents if before.claim else ():
            if not content.is_staged or content.sha256 in kept:
                continue
            try:
                self._storage.delete(_staged_path(content))
            except StorageError as error:
                _log.info("%s is no longer needed and was not removed: %s", _staged_path(content), error)


def _staged_path(content: Content) -> str:
    return f"{STAGED_FOLDER}/{content.sha256}"
