"""The archive of a table of version 6: a folder of logs, to which each archival adds one (HoodieArchivedMetaEntry).

JVM Hudi alone writes it. What left the active timeline stays there, and files may be merged into larger ones.
"""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import fastavro

from hudi_locks.format import RollbackMetadata, TimelineLayout, epoch_ms
from hudi_locks.format.log_block import BlockType, LogBlock, decode_blocks
from hudi_locks.format.records import interpreting
from hudi_locks.storage import Entry, Storage, map_in_threads

__all__ = ["OldEntry", "list_old_files", "read_old_archive"]

OldEntry = tuple[str, str, str, bytes]
"""Requested time, completion time, action, and of writes and rollbacks what they did."""
_NAME: Final = re.compile(r"\.commits_\.archive\.\d+_\d+-\d+-\d+")
_WRITES: Final = ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata")
_COMPLETED: Final = "COMPLETED"
_SLACK_MS: Final = 3_600_000
"""By how much the clocks of a store and of a writer may differ."""


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
    requested = str(entry["commitTime"])
    return requested, str(entry.get("stateTransitionTime") or requested), str(entry["actionType"]), _encode(entry)


def _encode(entry: Mapping[str, Any]) -> bytes:
    """What the completed file held, as far as anybody asks: of writes as JSON, of rollbacks what they undid."""
    if told := next((entry[name] for name in _WRITES if entry.get(name)), None):
        return json.dumps(told).encode()
    undone = entry.get("hoodieRollbackMetadata")
    return RollbackMetadata.of_record(undone).encode() if undone else b""


@lru_cache(maxsize=8)
def _parse(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))
