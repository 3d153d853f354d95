"""A table in memory on which several writes are under way."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from early_conflict_marks import NOW, marker

from hudi_locks import ManualClock
from hudi_locks.early_conflict import DetectionContext, EarlyConflictDetectionStrategy, GuardedMarkers
from hudi_locks.format.claim import FileGroupId
from hudi_locks.markers import DirectMarkers
from hudi_locks.storage import MemoryStorage
from hudi_locks.timeline import LAYOUT_2
from hudi_locks.timeline.heartbeat import HEARTBEAT_FOLDER, heartbeat_path


class CountingStorage(MemoryStorage):
    """Counts calls by name and path."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.calls: Counter[tuple[str, str]] = Counter()

    def read(self, path: str) -> bytes | None:
        self.calls["read", path] += 1
        return super().read(path)

    def stat(self, path: str) -> Any:
        self.calls["stat", path] += 1
        return super().stat(path)

    def list_names(self, folder: str) -> list[str]:
        self.calls["list", folder] += 1
        return [entry.name for entry in super().list(folder)]

    def list(self, folder: str) -> Any:
        self.calls["list", folder] += 1
        return super().list(folder)


@dataclass
class Field:
    """Makes writes that announce files, and looks from one of them at the others."""

    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.storage = CountingStorage(self.clock)

    def begin(self, requested: str) -> None:
        self.storage.create_if_absent(heartbeat_path(requested), b"")

    def end(self, requested: str) -> None:
        self.storage.delete(heartbeat_path(requested))

    def announce(self, requested: str, *groups: FileGroupId) -> None:
        self.begin(requested)
        for group in groups:
            self.storage.create_if_absent(f".hoodie/.temp/{requested}/{marker(requested, group)}", b"")

    def announce_by_server(self, requested: str, text: str, *, file: str = "MARKERS0") -> None:
        self.begin(requested)
        self.storage.replace(f".hoodie/.temp/{requested}/MARKERS.type", b"TIMELINE_SERVER_BASED")
        self.storage.replace(f".hoodie/.temp/{requested}/{file}", text.encode())

    def context(self, requested: str = NOW, **given: Any) -> DetectionContext:
        return replace(DetectionContext(self.storage, LAYOUT_2, requested, clock=self.clock), **given)

    def guarded(self, kind: type[EarlyConflictDetectionStrategy], requested: str = NOW, **given: Any) -> GuardedMarkers:
        return GuardedMarkers(DirectMarkers(self.storage, requested), self.context(requested, **given), kind)

    def lists(self) -> list[str]:
        """Folders that were listed, heartbeats left out: those are looked at one by one."""
        assert ("list", HEARTBEAT_FOLDER) not in self.storage.calls
        listed = {path: count for (verb, path), count in self.storage.calls.items() if verb == "list"}
        return sorted(path for path, count in listed.items() for _ in range(count))


@pytest.fixture
def ground() -> Field:
    return Field()
