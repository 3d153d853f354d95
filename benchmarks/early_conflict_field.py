"""Writes under way on one table, as the benchmark of early conflict detection looks at them."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from hudi_locks import SystemClock
from hudi_locks.early_conflict import DetectionContext, EarlyConflictDetectionStrategy
from hudi_locks.format import BaseFileName, IOType, MarkerName
from hudi_locks.format.claim import FileGroupId
from hudi_locks.storage import LocalStorage
from hudi_locks.table import Table, TableConfig
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.timeline.heartbeat import Beating, heartbeat_path

__all__ = ["NOW", "Field", "name_groups", "name_instants"]

NOW = "20260102000000000"
_AGE_S = 60
_PARTITIONS = 28
_fresh = count()


def name_groups(number: int) -> list[FileGroupId]:
    """File groups of a month of partitions."""
    return [FileGroupId(f"dt=2026-01-{n % _PARTITIONS + 1:02d}", f"{uuid.uuid4()}-0") for n in range(number)]


def name_instants(number: int) -> list[str]:
    """Requested times before NOW."""
    return [f"20260101{n:09d}" for n in range(number)]


@dataclass(frozen=True)
class Field:
    """A table, and the markers of others on it.

    Attributes:
        root: Base path.
    """

    root: Path

    @classmethod
    def make(cls, root: Path) -> Field:
        """An empty table."""
        Table.create(LocalStorage(str(root)), TableConfig(name="field", record_key_fields=("id",)))
        return cls(root)

    def beat(self, requested: str) -> None:
        """Let a process elsewhere give a sign of life."""
        beating = replace(Beating.begin(), host="elsewhere")
        LocalStorage(str(self.root)).replace(heartbeat_path(requested), beating.encode())

    def write_server_file(self, requested: str, number: int, groups: list[FileGroupId]) -> None:
        """As a timeline server leaves it, some time ago."""
        folder = self.root / ".hoodie/.temp" / requested
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
        path = folder / f"MARKERS{number}"
        path.write_text("".join(f"{self.name(requested, group)}\n" for group in groups))
        then_s = SystemClock().wall_ms() / 1000 - _AGE_S
        os.utime(path, (then_s, then_s))

    def name(self, requested: str, group: FileGroupId) -> MarkerName:
        """The marker of one file."""
        return MarkerName(group.partition, str(BaseFileName(group.file_id, requested, "17-4-0")), IOType.MERGE)

    def look(
        self,
        kind: type[EarlyConflictDetectionStrategy],
        *,
        cold: bool,
        storage: LocalStorage | None = None,
        requested: str = NOW,
    ) -> EarlyConflictDetectionStrategy:
        """What a task looks with.

        Args:
            kind: The strategy.
            cold: Whether it knows nothing of earlier looks.
            storage: Of the table; one that nobody watches if not given.
            requested: Requested time of its write.
        """
        base = f"{self.root}?{next(_fresh)}" if cold else str(self.root)
        found = storage or LocalStorage(str(self.root), base=base)
        return kind(DetectionContext(found, LAYOUT_2, requested))
