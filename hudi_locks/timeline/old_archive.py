"""The archive of a table of version 6: a folder of logs, to which each archival adds one (HoodieArchivedMetaEntry).

What left the active timeline stays there, and JVM Hudi may merge files into larger ones. Where an archiver died before
it took an instant off the timeline, two files have it.
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import fastavro

from hudi_locks.format import WRITE_ACTIONS, ArchiveRow, TimelineLayout, convert_metadata, epoch_ms
from hudi_locks.format.avro import (
    CLEAN_METADATA,
    COMMIT_METADATA,
    OLD_ARCHIVED_INSTANT,
    REPLACE_COMMIT_METADATA,
    ROLLBACK_METADATA,
    SAVEPOINT_METADATA,
)
from hudi_locks.format.log_block import BlockHeader, BlockType, LogBlock, decode_blocks, encode_block
from hudi_locks.format.records import decode_record, encode_record, interpreting
from hudi_locks.storage import Entry, Storage, map_in_threads

__all__ = [
    "FIRST_OLD_FILE",
    "OldEntry",
    "add_to_old_archive",
    "encode_old_archive",
    "list_old_files",
    "read_old_archive",
]

OldEntry = tuple[str, str, str, bytes]
"""Requested time, completion time, action, and what its completed file held, as Avro; b"" where nobody asks for it."""
FIRST_OLD_FILE: Final = ".commits_.archive.1_1-0-1"
_NAME: Final = re.compile(r"\.commits_\.archive\.(\d+)_\d+-\d+-\d+")
_AVRO_LAYOUT: Final = 2
"""Whose files hold commits as the archive does."""
_CONTENTS: Final[Mapping[str, tuple[str, Any]]] = {
    "commit": ("hoodieCommitMetadata", COMMIT_METADATA),
    "deltacommit": ("hoodieCommitMetadata", COMMIT_METADATA),
    "replacecommit": ("hoodieReplaceCommitMetadata", REPLACE_COMMIT_METADATA),
    "clean": ("hoodieCleanMetadata", CLEAN_METADATA),
    "rollback": ("hoodieRollbackMetadata", ROLLBACK_METADATA),
    "savepoint": ("hoodieSavePointMetadata", SAVEPOINT_METADATA),
}
"""Field of an entry, and schema, of what each action did."""
_COMPLETED: Final = "COMPLETED"
_SLACK_MS: Final = 3_600_000
"""By how much the clocks of a store and of a writer may differ."""
_VERSION: Final = 3
"""Of the form of an Avro block."""
_MOST: Final = 500
"""So many entries make a block."""


def list_old_files(storage: Storage, layout: TimelineLayout) -> list[Entry]:
    """Files of the archive."""
    return [entry for entry in storage.list(layout.archive) if _NAME.fullmatch(entry.name)]


def read_old_archive(storage: Storage, layout: TimelineLayout, *, archived_after: str) -> list[OldEntry]:
    """Completed instants in files that were written at that time or later, which alone hold what was done since.

    Completion times are those that the archiver noted, else the requested ones.

    Raises:
        DamagedTable: A file cannot be read.
        StorageError: The store failed.
    """
    since_ms = epoch_ms(archived_after, layout.zone) - _SLACK_MS
    while True:  # files are merged, and go then: another has what they held
        paths = [f"{layout.archive}/{f.name}" for f in list_old_files(storage, layout) if f.modified_ms >= since_ms]
        read = map_in_threads(storage.read, paths)
        if all(data is not None for data in read):
            break
    found = (entry for data, path in zip(read, paths, strict=True) for entry in _read_file(data or b"", path))
    return sorted({entry[:3]: entry for entry in found}.values())


def add_to_old_archive(storage: Storage, layout: TimelineLayout, rows: Iterable[ArchiveRow]) -> None:
    """Make completed instants part of the archive by a file of their own, which is later than all that are there.

    Args:
        storage: Of the table.
        layout: Of its timeline.
        rows: What the completed files held; those of actions that the archive has no place for are left out.

    Raises:
        DamagedTable: What an instant did cannot be read.
        StorageError: The store failed; the same call goes on.
    """
    data = encode_old_archive(_with_avro(row) for row in rows)
    is_added = not data
    while not is_added:  # somebody who lost the lock may take the name first
        is_added = storage.create_if_absent(f"{layout.archive}/{_name_next(storage, layout)}", data)


def _name_next(storage: Storage, layout: TimelineLayout) -> str:
    """JVM readers take the files in the order of their numbers."""
    matches = (_NAME.fullmatch(entry.name) for entry in storage.list(layout.archive))
    number = max((int(match[1]) for match in matches if match), default=0) + 1
    return f".commits_.archive.{number}_1-0-1"


def _with_avro(row: ArchiveRow) -> ArchiveRow:
    if row.action not in WRITE_ACTIONS:
        return row
    path = f"archived {row.action} {row.requested}"
    return replace(row, metadata=convert_metadata(row.metadata, row.action, path, layout_version=_AVRO_LAYOUT))


def encode_old_archive(rows: Iterable[ArchiveRow]) -> bytes:
    """A file of the archive that holds completed instants; those of actions that it has no place for are left out.

    Raises:
        DamagedTable: What an instant did cannot be read.
    """
    kept = [row for row in rows if row.action in _CONTENTS]
    return b"".join(_encode_block(kept[at : at + _MOST]) for at in range(0, len(kept), _MOST))


def _encode_block(rows: list[ArchiveRow]) -> bytes:
    schema, content = json.dumps(OLD_ARCHIVED_INSTANT), io.BytesIO()
    content.write(struct.pack(">ii", _VERSION, len(rows)))
    for row in rows:
        entry = io.BytesIO()
        fastavro.schemaless_writer(entry, _parse(schema), _describe(row))
        content.write(struct.pack(">i", entry.tell()) + entry.getvalue())
    header = {BlockHeader.INSTANT_TIME: rows[-1].requested, BlockHeader.SCHEMA: schema}
    return encode_block(LogBlock(BlockType.AVRO, header, content.getvalue()))


def _describe(row: ArchiveRow) -> dict[str, Any]:
    name, _ = _CONTENTS[row.action]
    told = decode_record(row.metadata, f"archived {row.action} {row.requested}") if row.metadata else None
    return {
        "commitTime": row.requested,
        "stateTransitionTime": row.completion,
        "actionType": row.action,
        "actionState": _COMPLETED,
        name: told,
    }


def _read_file(data: bytes, path: str) -> Iterator[OldEntry]:
    for block in decode_blocks(data, path):
        if block.kind is BlockType.AVRO:
            yield from _read_block(block, path)


def _read_block(block: LogBlock, path: str) -> Iterator[OldEntry]:
    with interpreting("archived instants", path):
        schema, content = _parse(block.schema), io.BytesIO(bytes(block.content))
        _, count = struct.unpack(">ii", content.read(8))
        for _ in range(count):
            content.read(4)  # how long the entry is
            entry: Any = fastavro.schemaless_reader(content, schema)
            if entry["actionState"] == _COMPLETED:
                yield _interpret(entry)


def _interpret(entry: Mapping[str, Any]) -> OldEntry:
    requested, action = str(entry["commitTime"]), str(entry["actionType"])
    name, schema = _CONTENTS.get(action, ("", None))
    told = entry.get(name)
    data = encode_record(schema, told) if told else b""
    return requested, str(entry.get("stateTransitionTime") or requested), action, data


@lru_cache(maxsize=8)
def _parse(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))
