"""A world whose writers append logs and do not block each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from transaction_desk import MODE
from transaction_world import World

from hudi_locks.format import CommitMetadata, IOType, LogFileName, WriteStat
from hudi_locks.transaction import Transaction

NON_BLOCKING = {MODE: "NON_BLOCKING_CONCURRENCY_CONTROL", "hoodie.index.type": "BUCKET"}


class LoggingWorld(World):
    """Each writer logs its own name, and reads nothing."""

    table_type = "MERGE_ON_READ"
    action = "deltacommit"
    mode: ClassVar[Mapping[str, object]] = NON_BLOCKING

    def write(self, tx: Transaction, group: str, name: str) -> CommitMetadata:
        file_name = str(LogFileName(group, tx.instant))
        staged = tx.files.start("p", file_name, io_type=IOType.CREATE)
        tx.files.storage.replace(staged.path, json.dumps([name]).encode())
        tx.files.finish(staged)
        return CommitMetadata.of([WriteStat("p", group, f"p/{file_name}", log_version=1)], "UPSERT", schema="{}")

    def content(self, requested: str) -> tuple[str, list[str]] | None:
        for entry in self.files.list("p"):
            name = LogFileName.parse(entry.name)
            if name and name.instant == requested:
                return name.file_id, json.loads(self.files.read(f"p/{entry.name}") or b"[]")
        return None

    def _wrong_updates(self) -> str:
        """Logs are never rewritten: of each committed write its own is there, as it was written.

        What a zombie leaves of a write that was rolled back is for the janitor, here as elsewhere.
        """
        if self.conflicts:
            return f"a write met another: {self.conflicts[0]}"
        names = {instant: name for name, instant in self.begun.items()}
        for requested in self.done():
            found = self.content(requested)
            if found is None or (requested in names and found[1] != [names[requested]]):
                return f"the rows of {requested} are lost: {found}"
        return ""
