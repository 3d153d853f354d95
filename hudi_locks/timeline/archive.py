"""What is not on the active timeline any more: archived instants, and those that were lost."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_locks.errors import DamagedTable
from hudi_locks.format import LAST_TIME, Instant, State, TimelineLayout, add_ms, reading_parquet
from hudi_locks.format.claim import Claim, ClaimKind, claim_path
from hudi_locks.storage import Storage
from hudi_locks.timeline.claims import find_last_claim, read_entry
from hudi_locks.timeline.old_archive import list_old_files, read_old_archive
from hudi_locks.timeline.timeline import Timeline

__all__ = [
    "ArchivedInstant",
    "find_archived_completions",
    "find_archived_content",
    "has_archived",
    "is_archived",
    "list_archived_since",
    "list_archived_times",
    "list_claims_back",
    "read_instant",
    "refuse_empty",
    "refuse_forgotten",
    "refuse_gap",
]

_NAME: Final = re.compile(r"(\d+)_(\d+)_\d+\.parquet")
_LONGEST_WRITE_MS: Final = 86_400_000
"""Hudi's own bound when it looks for archived instants by completion time."""
_UNDOING: Final = ("rollback", "restore")
_MOST: Final = 1_000
"""So many claims back a write is looked for; a timeline that is archived now and then is shorter."""
_NEAR: Final = 20
"""So many claims back an instant must be known if anything is."""


@dataclass(frozen=True)
class ArchivedInstant:
    """A completed instant that left the active timeline.

    Attributes:
        requested: When it was begun.
        completion: When it was completed.
        action: Its action.
        metadata: Bytes of its completed file.
    """

    requested: str
    completion: str
    action: str
    metadata: bytes


def has_archived(storage: Storage, layout: TimelineLayout) -> bool:
    """Whether any instant was ever archived."""
    if layout.is_version_6:
        return bool(list_old_files(storage, layout))
    return any(_NAME.fullmatch(entry.name) for entry in storage.list(layout.archive))


def is_archived(storage: Storage, layout: TimelineLayout, *, requested: str) -> bool:
    """Whether the history holds the instant begun at `requested`, which was thus completed.

    Files that a compaction of the history left behind are looked at too: what they hold was archived all the same.

    Raises:
        DamagedTable: A file of the history is unreadable.
    """
    if layout.is_version_6:
        return any(entry[0] == requested for entry in read_old_archive(storage, layout, archived_after=requested))
    parts = _read_parts(storage, layout, columns=["instantTime"], first=requested, last=requested)
    return any(bool(pc.any(pc.equal(part["instantTime"], requested)).as_py()) for part in parts)


def list_archived_since(storage: Storage, layout: TimelineLayout, *, completed_after: str) -> list[ArchivedInstant]:
    """Archived instants with a later completion time, of writes that lasted less than a day.

    Raises:
        DamagedTable: A file of the history is unreadable.
    """
    if layout.is_version_6:
        entries = read_old_archive(storage, layout, archived_after=completed_after)
        return [ArchivedInstant(*entry) for entry in entries if entry[1] > completed_after]
    columns = ["instantTime", "completionTime", "action", "metadata"]
    first = add_ms(completed_after, -_LONGEST_WRITE_MS)
    parts = _read_parts(storage, layout, columns=columns, first=first, last="9")
    later = [part.filter(pc.greater(part["completionTime"], completed_after)) for part in parts]
    rows = [row for part in later for row in part.to_pylist()]
    found = {row["instantTime"]: ArchivedInstant(*(row[column] for column in columns)) for row in rows}
    return [found[requested] for requested in sorted(found)]


def list_archived_times(
    storage: Storage, layout: TimelineLayout, *, completed_after: str, completed_before: str = LAST_TIME
) -> frozenset[str]:
    """Requested times of what `list_archived_since` would give now, for less reading.

    Args:
        storage: Of the table.
        layout: Of its timeline.
        completed_after: Only what was completed later.
        completed_before: Only what was completed earlier.

    Raises:
        DamagedTable: A file of the history is unreadable.
    """
    if layout.is_version_6:
        found = list_archived_since(storage, layout, completed_after=completed_after)
        return frozenset(one.requested for one in found if one.completion < completed_before)
    first = add_ms(completed_after, -_LONGEST_WRITE_MS)
    parts = _read_parts(storage, layout, columns=["instantTime", "completionTime"], first=first, last="9")
    later = [part.filter(pc.greater(part["completionTime"], completed_after)) for part in parts]
    between = [part.filter(pc.less(part["completionTime"], completed_before)) for part in later]
    return frozenset(time for part in between for time in part["instantTime"].to_pylist())


def find_archived_completions(
    storage: Storage, layout: TimelineLayout, *, requested: Collection[str]
) -> dict[str, str]:
    """Completion times of those of these instants that are archived, by requested time.

    Of a table of version 6, where none rests on them, the archive is not read.

    Raises:
        DamagedTable: A file of the history is unreadable.
    """
    if not requested or layout.is_version_6:
        return {}
    wanted, columns = pa.array(sorted(requested), pa.string()), ["instantTime", "completionTime"]
    parts = _read_parts(storage, layout, columns=columns, first=min(requested), last=max(requested))
    found = [part.filter(pc.is_in(part["instantTime"], value_set=wanted)) for part in parts]
    return {row["instantTime"]: row["completionTime"] for part in found for row in part.to_pylist()}


def find_archived_content(storage: Storage, layout: TimelineLayout, *, instant: Instant) -> bytes | None:
    """What the completed file of `instant` held; None if the history does not have it.

    Raises:
        DamagedTable: A file of the history is unreadable.
    """
    if layout.is_version_6:
        entries = read_old_archive(storage, layout, archived_after=instant.requested)
        return next(
            (data for time, _, what, data in entries if (time, what) == (instant.requested, instant.action)), None
        )
    columns = ["instantTime", "completionTime", "action", "metadata"]
    parts = _read_parts(storage, layout, columns=columns, first=instant.requested, last=instant.requested)
    mine = (part.filter(pc.equal(part["instantTime"], instant.requested)) for part in parts)
    rows = (row for part in mine for row in part.to_pylist())
    found = (row for row in rows if (row["action"], row["completionTime"]) == (instant.action, instant.completion))
    return next((row["metadata"] or b"" for row in found), None)


def read_instant(storage: Storage, timeline: Timeline, *, instant: Instant) -> bytes:
    """The content of the file that `timeline` shows for `instant`; b"" for an empty one.

    A completed instant that was archived since the timeline was loaded is read from the history: a write that stands
    on an older snapshot goes on.

    Raises:
        DamagedTable: The file is gone since the timeline was loaded, and not archived; load it again.
    """
    path = timeline.paths.get(instant) or timeline.layout.path(instant)
    data = storage.read(path)
    if data is None and instant.is_completed:
        # Archivers remove the file only once the history has its content.
        data = find_archived_content(storage, timeline.layout, instant=instant)
    if data is None:
        raise DamagedTable(f"{path} is gone: rolled back or removed since the timeline was loaded", path=path)
    return data


def _read_parts(
    storage: Storage, layout: TimelineLayout, *, columns: list[str], first: str, last: str
) -> list[pa.Table]:
    """Parts that may hold instants from `first` to `last`; if one goes away meanwhile, another has its instants."""
    while True:
        matches = [_NAME.fullmatch(entry.name) for entry in storage.list(layout.archive)]
        names = [match[0] for match in matches if match and match[1] <= last and first <= match[2]]
        parts = [_read_part(storage, f"{layout.archive}/{name}", columns) for name in names]
        if all(part is not None for part in parts):
            return [part for part in parts if part is not None]


def _read_part(storage: Storage, path: str, columns: list[str]) -> pa.Table | None:
    data = storage.read(path)
    if data is None:
        return None
    with reading_parquet("a part of the archived timeline", path):
        # A dataset, as `pq.read_table` makes one, takes five times as long for a file of so few rows.
        part = pq.ParquetFile(pa.BufferReader(data)).read(columns, use_threads=False).select(columns)
        part.validate(full=True)
        if any(part[name].null_count for name in columns if name != "metadata"):
            raise ValueError("an instant lacks its time or its action")
        return part


def refuse_empty(storage: Storage, timeline: Timeline) -> None:
    """Refuse a table without any instant, archived ones included, that somebody has written to.

    Raises:
        DamagedTable: The first claim, which is never removed, published a write.
    """
    claim = None if timeline.instants else _read(storage, 1)
    if claim is None or has_archived(storage, timeline.layout):
        return
    now = Timeline.load(storage, timeline.layout)  # the first write may have come since
    if claim.kind is ClaimKind.PUBLISH and not now.instants and not _is_told(storage, timeline, claim):
        raise _describe(claim, timeline.layout, what="and no instant at all is there")


def refuse_forgotten(
    storage: Storage, timeline: Timeline, *, requested: Collection[str], done: int | None = None
) -> None:
    """Refuse to take writes for unfinished that were published. Reads the claims since the oldest of them was begun.

    Args:
        storage: Of the table.
        timeline: Loaded after it was seen that they are not completed.
        requested: Of writes that look pending, or that the timeline does not show, and whose writers do not beat.
        done: Number of the last claim that is surely carried out: a later one may have published a write whose
            completed file is about to be made. None if whoever made a claim about these writes is done with it.

    Raises:
        DamagedTable: A claim published one of them, and its completed file is gone; or a claim cannot be read.
    """
    lost = {time for time in requested if not timeline.is_completed(time)}
    if not lost or timeline.pending(_UNDOING):
        return
    last = find_last_claim(storage) if done is None else done
    for claim in list_claims_back(storage, last, until=min(lost), most=_MOST):
        if claim.kind is ClaimKind.PUBLISH and claim.instant in lost and not _is_told(storage, timeline, claim):
            raise _describe(claim, timeline.layout, what="and that file is not there")


def refuse_gap(storage: Storage, timeline: Timeline, *, number: int) -> None:
    """Refuse to void claim `number` for what the timeline lacks, where it lacks what was published before, too.

    Raises:
        DamagedTable: It does.
    """
    refuse_empty(storage, timeline)
    restored = max((i.requested for i in timeline.instants if i.action == "restore"), default="")
    for claim in list_claims_back(storage, number - 1, until="", most=_NEAR):
        if claim.kind is ClaimKind.PUBLISH and claim.time > restored:
            if timeline.get(claim.instant) is None and not _is_told(storage, timeline, claim):
                raise _describe(claim, timeline.layout, what="and the timeline does not know it")
            return


def list_claims_back(storage: Storage, last: int, *, until: str, most: int) -> Iterator[Claim]:
    """The `most` claims from number `last` back to the time `until`, without those that a VOID or a RESTORE undid.

    Nor those before the table became one of another version: whoever claimed that has seen to them, and what they
    promised has other names since.
    """
    following = _read(storage, last + 1)
    for number in range(last, max(0, last - most), -1):
        claim = _read(storage, number)
        if claim is None or claim.time < until or claim.covers_table:
            return
        if following is None or following.kind is not ClaimKind.VOID:
            yield claim
        following = claim


def _read(storage: Storage, number: int) -> Claim | None:
    entry = read_entry(storage, number)
    return entry.claim if entry else None


def _is_told(storage: Storage, timeline: Timeline, claim: Claim) -> bool:
    done = timeline.layout.path(Instant(claim.instant, claim.action, State.INFLIGHT).as_completed(claim.time))
    return storage.exists(done) or is_archived(storage, timeline.layout, requested=claim.instant)


def _describe(claim: Claim, layout: TimelineLayout, *, what: str) -> DamagedTable:
    name = claim.content.name if claim.content else claim.instant
    path = f"{layout.folder}/{name}"
    message = (
        f"{path} is lost: claim {claim.number} published the write {claim.instant}, {what}. Its rows would be missing,"
        " and its files be removed as those of a dead writer. Bring the file back: its bytes stand in"
        f" {claim_path(claim.number)}; `hudi-locks verify PATH` lists all that is damaged"
    )
    return DamagedTable(message, path=path, instant=claim.instant, claim=claim.number)
