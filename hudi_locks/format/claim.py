"""Entries of the claim log: pure values and bytes."""

from __future__ import annotations

import base64
import binascii
import enum
import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from hudi_locks.errors import DamagedTable
from hudi_locks.format.instant import Instant, is_time, parse_instant_name
from hudi_locks.format.names import find_metadata_writer, find_writer
from hudi_locks.format.records import AMISS

__all__ = [
    "BUCKET_LENGTH",
    "INLINE_LIMIT",
    "PRIVATE_FOLDER",
    "Claim",
    "ClaimKind",
    "Content",
    "FileGroupId",
    "claim_path",
    "decode_claim",
    "decode_tickets",
    "digest_of",
    "encode_claim",
    "encode_tickets",
]

PRIVATE_FOLDER: Final = ".hoodie/.hudi_locks"
"""What this package keeps beside Hudi's own files: left alone by JVM readers, writers and cleaners."""
INLINE_LIMIT: Final = 1_000_000
"""Up to this many bytes the content of a completed file stands in the claim itself."""
BUCKET_LENGTH: Final = 8
"""So many characters of a file id are the number of the bucket, under a bucket index."""
_TICKETS: Final = "tickets"
_BY_TICKETS: Final = "_BY_TICKETS"
"""Ends the kind of a claim that has some: 0.1.0 refuses it, which would complete a write without naming its files."""
_AND_METADATA: Final = "_AND_METADATA"
"""Ends the kind of a claim with a delta commit: releases that keep no metadata table refuse it, since without that
delta commit the write would be invisible to readers that go by the metadata table."""
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_GZIP: Final = 16 + zlib.MAX_WBITS


class FileGroupId(NamedTuple):
    """The unit of conflict.

    Attributes:
        partition: Partition path as the table has it; "" in an unpartitioned table.
        file_id: Id of the file group in that partition.
    """

    partition: str
    file_id: str

    @property
    def bucket(self) -> FileGroupId:
        """What stands for all file groups of its bucket, without a look at whether the id is that of a bucket."""
        return FileGroupId(self.partition, self.file_id[:BUCKET_LENGTH])


class ClaimKind(enum.Enum):
    """What a claim decides."""

    PUBLISH = "PUBLISH"
    SCHEDULE = "SCHEDULE"
    ROLLBACK = "ROLLBACK"
    RESTORE = "RESTORE"
    VOID = "VOID"
    VERSION = "VERSION"


@dataclass(frozen=True)
class Content:
    """What a claim promises and is too long for plain fields: a file of the timeline, or the tickets of data files.

    Attributes:
        name: Of the file in the timeline folder; for tickets that of the field.
        sha256: Of its bytes, in hex.
        size: Its bytes.
        data: The bytes themselves; None where they wait in a staged file named by `sha256`.
    """

    name: str
    sha256: str
    size: int
    data: bytes | None = None

    @classmethod
    def of(cls, name: str, data: bytes) -> Content:
        """The file `name` with the bytes `data`."""
        return cls(name, digest_of(data), len(data), data)

    @property
    def is_staged(self) -> bool:
        """Whether it is too large for a claim, and lies in a file of its own."""
        return self.size > INLINE_LIMIT


@dataclass(frozen=True)
class Claim:
    """One decision about the table, in the only order that counts.

    Attributes:
        kind: What is decided.
        instant: Requested time of the instant that it is about; of a VOID, that of the PUBLISH before it; of a VERSION
            its own time.
        action: Of that instant, as its pending files name it; of a VERSION what becomes of the table.
        time: Completion time that a PUBLISH or ROLLBACK gives; else the moment of the decision. Grows along the log.
        number: Place in the log, from 1.
        previous: SHA-256 of the bytes of the entry before, "" for the first.
        nonce: Unique for each attempt, so that its maker knows its own entry again.
        writes: File groups that get a new slice.
        replaces: File groups that end.
        overwrites: Partitions that a PUBLISH overwrites or deletes as a whole: also what it did not see there ends.
        overwrites_table: Whether it does so with every partition.
        content: The completed file of a PUBLISH, the plan of a SCHEDULE, the table's properties of a VERSION.
        tickets: By which each data file of a PUBLISH gets its name, and a VOID takes it back; see `encode_tickets`.
            None where there are none, as in claims of releases before 0.2.0, whose tasks named the files. Logs of the
            metadata table are among them.
        metadata: The completed file of the delta commit of the metadata table that goes before `content`; None if there
            is no metadata table.
        rollback_instant: Requested time of the rollback that a ROLLBACK or VOID puts on the timeline.
        before: SHA-256 of the table's properties that those of a VERSION replace; "" in any other claim.
        seen: Instants on the timeline when a PUBLISH was decided, if foreign writers are expected: pending ones, and
            those completed shortly before. What is not among them came later.
        owner: Who made the entry, for a person.
        lock_key: Where its lock lives, for a person.
        fencing_token: Of the lock held meanwhile, if it had one.
        lock_wait_ms: Of a PUBLISH how long its maker waited for the lock, for its begin and for this; None if not told.
        lock_held_ms: How long it held the lock, for its begin and until it made the entry; None if not told.
    """

    kind: ClaimKind
    instant: str
    action: str
    time: str
    number: int = 0
    previous: str = ""
    nonce: str = ""
    writes: frozenset[FileGroupId] = frozenset()
    replaces: frozenset[FileGroupId] = frozenset()
    overwrites: frozenset[str] = frozenset()
    overwrites_table: bool = False
    content: Content | None = None
    tickets: Content | None = None
    metadata: Content | None = None
    rollback_instant: str | None = None
    before: str = ""
    seen: frozenset[str] | None = None
    owner: str = ""
    lock_key: str = ""
    fencing_token: int | None = None
    lock_wait_ms: int | None = None
    lock_held_ms: int | None = None

    @property
    def groups(self) -> frozenset[FileGroupId]:
        """Every file group that it changes."""
        return self.writes | self.replaces

    @property
    def covers_table(self) -> bool:
        """Whether nothing is after it as a write under way found it, and what claims before it promised may be gone."""
        return self.kind in (ClaimKind.RESTORE, ClaimKind.VERSION)

    @property
    def contents(self) -> tuple[Content, ...]:
        """What may be staged beside it."""
        return tuple(content for content in (self.content, self.tickets, self.metadata) if content is not None)


def claim_path(number: int) -> str:
    """Where entry `number` lies, relative to the base path."""
    return f"{PRIVATE_FOLDER}/claims/{number:020d}.json"


def digest_of(data: bytes) -> str:
    """The SHA-256 by which entries are chained and staged files named."""
    return hashlib.sha256(data).hexdigest()


def encode_tickets(tickets: Mapping[str, str]) -> Content | None:
    """The tickets of a claim, by the path of the file that each gives its name; None if there are none."""
    if not tickets:
        return None
    return Content.of(_TICKETS, json.dumps(tickets, sort_keys=True, separators=(",", ":")).encode())


def decode_tickets(data: bytes, claim: Claim) -> dict[str, str]:
    """Read the tickets of a claim. A VOID removes the files that they name, so all must be of its instant.

    Raises:
        DamagedTable: They are unreadable, or of another instant; it names the claim.
    """
    try:
        found = json.loads(data)
        strange = [path for path, ticket in found.items() if not isinstance(ticket, str)]
        strange += [path for path in found if (find_writer(path) or find_metadata_writer(path)) != claim.instant]
        if strange:
            raise ValueError(f"{strange[0]!r} is no file of {claim.instant} with a ticket")
    except AMISS as error:
        path = claim_path(claim.number)
        message = f"{path} has tickets that cannot be read ({error}): restore the entry from a backup before you write"
        raise DamagedTable(message, path=path, number=claim.number) from error
    return dict(found)


def encode_claim(claim: Claim) -> bytes:
    """The bytes of an entry: one JSON object, keys sorted, always the same for the same claim."""
    fields = {
        **{name: getattr(claim, name) for name in _PLAIN},
        "kind": f"{claim.kind.value}{_BY_TICKETS if claim.tickets else ''}{_AND_METADATA if claim.metadata else ''}",
        "writes": _encode_groups(claim.writes),
        "replaces": _encode_groups(claim.replaces),
        "overwrites": sorted(claim.overwrites),
        "overwrites_table": claim.overwrites_table,
        "content": claim.content and _encode_content(claim.content),
        "tickets": claim.tickets and _encode_content(claim.tickets),
        "seen": None if claim.seen is None else sorted(claim.seen),
        **({"metadata": _encode_content(claim.metadata)} if claim.metadata else {}),
        **({"before": claim.before} if claim.before else {}),
        **{name: value for name in _TOLD if (value := getattr(claim, name)) is not None},
    }
    return (json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n").encode()


def decode_claim(data: bytes, number: int) -> Claim:
    """Read entry `number`.

    Raises:
        DamagedTable: The bytes are no claim of that number, named by the entry's path.
    """
    try:
        claim = _decode(json.loads(data))
        _require_times(claim)
        if claim.number != number or not all(_DIGEST.fullmatch(d) for d in [claim.previous][: number - 1]):
            raise ValueError(f"number {claim.number}, previous {claim.previous!r}")
    except AMISS as error:
        path = claim_path(number)
        message = (
            f"{path} is no readable claim ({error}): the table takes no more writes until the entry is restored from"
            " a backup, since skipping it could lose an update"
        )
        raise DamagedTable(message, path=path, number=number) from error
    return claim


def _require_times(claim: Claim) -> None:
    """Each names files that are made or removed."""
    named = (claim.rollback_instant,) if claim.rollback_instant is not None else ()
    for time in (claim.instant, claim.time, *named):
        if not isinstance(time, str) or not is_time(time):
            raise ValueError(f"{time!r} is no instant time")
    promised = parse_instant_name(claim.metadata.name) if claim.metadata is not None else None
    if claim.metadata is not None and (promised is None or not _is_done_by(claim, promised)):
        raise ValueError(f"{claim.metadata.name!r} is no delta commit of {claim.instant}")


_PLAIN: Final = (
    "number", "previous", "nonce", "instant", "action", "time", "rollback_instant", "owner", "lock_key",
    "fencing_token",
)  # fmt: skip
_TOLD: Final = ("lock_wait_ms", "lock_held_ms")
"""What releases before 0.2.0 do not tell."""


def _decode(fields: dict[str, Any]) -> Claim:
    return Claim(
        **{name: fields[name] for name in _PLAIN},
        kind=ClaimKind(fields["kind"].removesuffix(_AND_METADATA).removesuffix(_BY_TICKETS)),
        writes=_decode_groups(fields["writes"]),
        replaces=_decode_groups(fields["replaces"]),
        overwrites=frozenset(fields.get("overwrites") or ()),
        overwrites_table=bool(fields.get("overwrites_table")),
        content=fields["content"] and _decode_content(fields["content"]),
        tickets=_decode_content(fields["tickets"]) if fields.get("tickets") else None,
        metadata=_decode_content(fields["metadata"]) if fields.get("metadata") else None,
        before=str(fields.get("before") or ""),
        lock_wait_ms=fields.get("lock_wait_ms"),
        lock_held_ms=fields.get("lock_held_ms"),
        seen=None if fields["seen"] is None else frozenset(fields["seen"]),
    )


def _encode_groups(groups: frozenset[FileGroupId]) -> dict[str, list[str]]:
    by_partition: dict[str, list[str]] = {}
    for partition, file_id in sorted(groups):
        by_partition.setdefault(partition, []).append(file_id)
    return by_partition


def _decode_groups(by_partition: dict[str, list[str]]) -> frozenset[FileGroupId]:
    return frozenset(FileGroupId(partition, file_id) for partition, ids in by_partition.items() for file_id in ids)


def _encode_content(content: Content) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": content.name, "sha256": content.sha256, "size": content.size}
    if content.data is None or content.is_staged:
        return fields
    packed = gzip.compress(content.data, mtime=0)
    encoding, data = ("gzip+base64", packed) if len(packed) < len(content.data) else ("base64", content.data)
    return {**fields, "encoding": encoding, "data": base64.b64encode(data).decode()}


def _decode_content(fields: dict[str, Any]) -> Content:
    content = Content(fields["name"], fields["sha256"], fields["size"])
    if "/" in content.name or not _DIGEST.fullmatch(content.sha256) or ("data" in fields) == content.is_staged:
        raise ValueError(f"promised file {content.name!r} with digest {content.sha256!r}")
    if content.is_staged:
        return content
    data = _unpack(fields["encoding"], fields["data"], size=content.size)
    if digest_of(data) != content.sha256:
        raise ValueError(f"the content of {content.name} does not match its digest")
    return replace(content, data=data)


def _unpack(encoding: str, text: str, *, size: int) -> bytes:
    """What an entry holds, never more than `size` bytes of it: a few bytes may be packed gigabytes."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error
    if encoding not in ("base64", "gzip+base64"):
        raise ValueError(f"unknown encoding {encoding!r}")
    unpacked = zlib.decompressobj(_GZIP).decompress(data, size + 1) if encoding == "gzip+base64" else data
    if len(unpacked) != size:
        raise ValueError(f"it does not hold the {size} bytes that it promises")
    return unpacked


def _is_done_by(claim: Claim, completed: Instant) -> bool:
    """Where names tell no completion time, as in version 6, the claim alone does."""
    return completed.requested == claim.instant and completed.completion in (claim.time, None)
