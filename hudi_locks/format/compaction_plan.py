"""The plan of a compaction, as far as other writers must know it."""

from __future__ import annotations

from typing import Any

from hudi_locks.format.avro import decode_record
from hudi_locks.format.damage import interpreting

__all__ = ["compacted_file_groups"]


def compacted_file_groups(data: bytes, path: str) -> frozenset[tuple[str, str]]:
    """(partition path, file id) of what a compaction merges, from `.compaction.requested`; an empty file names none.

    Raises:
        DamagedTable: The bytes are no such plan; it names `path`.
    """
    if not data:
        return frozenset()
    with interpreting("readable plan", path):
        operations: list[dict[str, Any]] = decode_record(data, path).get("operations") or []
        return frozenset((operation["partitionPath"] or "", operation["fileId"]) for operation in operations)
