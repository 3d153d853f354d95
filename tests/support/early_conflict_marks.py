"""Markers for tests of early conflict detection."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_locks.format import BaseFileName, IOType, MarkerName
from hudi_locks.format.claim import FileGroupId

EARLIER, NOW, LATER = "20260101000000001", "20260101000000002", "20260101000000003"


def marker(requested: str, group: FileGroupId, io_type: IOType = IOType.MERGE) -> MarkerName:
    return MarkerName(group.partition, str(BaseFileName(group.file_id, requested)), io_type)


def markers(requested: str, groups: Iterable[FileGroupId]) -> list[MarkerName]:
    return [marker(requested, group) for group in groups]
