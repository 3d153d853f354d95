"""A simulator whose writers append logs and do not block each other."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Mapping
from typing import Any, ClassVar

from transaction_harness import MODE, write_file
from transaction_simulator import Simulator
from transaction_store import SteppedStorage

from hudi_locks.errors import StorageError, WriteError
from hudi_locks.format import BaseFileName, CommitMetadata, CompactionPlan, IOType, LogFileName, WriteStat
from hudi_locks.services import Compaction, planned_slice
from hudi_locks.table import FileSlice, Table, TableConfig, create_partition_metadata, latest_file_slices
from hudi_locks.timeline import LAYOUT_2, Timeline
from hudi_locks.transaction import Transaction

NON_BLOCKING = {MODE: "NON_BLOCKING_CONCURRENCY_CONTROL", "hoodie.index.type": "BUCKET"}


class LoggingSimulator(Simulator):
    """Each writer logs its own name, and reads nothing."""

    table_type = "MERGE_ON_READ"
    action = "deltacommit"
    mode: ClassVar[Mapping[str, object]] = NON_BLOCKING

    def __init__(self, rng: random.Random, **how: Any) -> None:
        super().__init__(rng, **how)
        self.compacted: list[str] = []
        create_partition_metadata(self.files, "p", instant="0")

    def write(self, tx: Transaction, group: str, name: str) -> CommitMetadata:
        file_name = str(LogFileName(group, tx.instant))
        ticket = write_file(tx.files, "p", file_name, json.dumps([name]).encode(), io_type=IOType.CREATE)
        stat = WriteStat("p", group, f"p/{file_name}", log_version=1, ticket=ticket)
        return CommitMetadata.of([stat], "UPSERT", schema="{}")

    def content(self, requested: str) -> tuple[str, list[str]] | None:
        for entry in self.files.list("p"):
            name = LogFileName.parse(entry.name)
            if name and name.instant == requested:
                return name.file_id, json.loads(self.files.read(f"p/{entry.name}") or b"[]")
        return None

    def writers(self, name: str, group: str, **how: Any) -> None:
        """The same process writes thrice."""
        for number in range(3):
            self.writer(f"{name}.{number}", group, **how)

    def compactor(self, name: str, *, rounds: int = 4, **how: Any) -> None:
        """Plans and runs compactions, its own or those of the dead."""
        transactions = self.transactions(name, **how)
        config = TableConfig("t", ("id",), ("part",), table_type=self.table_type)
        compaction = Compaction(Table(SteppedStorage(self, all_dead=how.get("all_dead", False)), config), transactions)
        for _ in range(rounds):
            with contextlib.suppress(StorageError, WriteError):
                compaction.schedule()
                taken = compaction.take()
                if taken is not None:
                    self._merge(*taken)

    def _merge(self, tx: Transaction, plan: CompactionPlan) -> None:
        with tx:
            stats = [self._merge_slice(tx, planned_slice(operation)) for operation in plan.groups]
            metadata = CommitMetadata.of(stats, "COMPACT", schema="{}", compacted=True)
            if tx.publish(metadata).is_committed:
                self.compacted.append(tx.instant)

    def _merge_slice(self, tx: Transaction, piece: FileSlice) -> WriteStat:
        file_name = str(BaseFileName(piece.file_id, tx.instant))
        ticket = write_file(tx.files, "p", file_name, json.dumps(self._rows(piece)).encode())
        return WriteStat("p", piece.file_id, f"p/{file_name}", ticket=ticket)

    def _rows(self, piece: FileSlice) -> list[str]:
        paths = [piece.base.path] if piece.base else []
        paths += [log.path for log in piece.logs]
        return [row for path in paths for row in json.loads(self.files.read(path) or b"[]")]

    def _wrong_updates(self) -> str:
        """At each completion time readers see every write that was completed by then, each once, and no other.

        What a zombie leaves of a write that was rolled back is for the janitor, here as elsewhere.
        """
        if self.conflicts:
            return f"a write met another: {self.conflicts[0]}"
        names = {instant: name for name, instant in self.begun.items()}
        timeline = Timeline.load(self.files, LAYOUT_2)
        done = [(str(i.completion), i.requested) for i in timeline.completed(("deltacommit",))]
        for moment in sorted(str(i.completion) for i in timeline.completed(("commit", "deltacommit"))):
            expected = sorted(names[requested] for completion, requested in done if completion <= moment)
            slices = latest_file_slices(self.files, timeline, as_of=moment)
            found = sorted(row for piece in slices for row in self._rows(piece))
            if found != expected:
                return f"at {moment} readers see {found}, and {expected} were written"
        return ""

    def recover(self) -> None:
        """The next writer, and then the next compaction of all that is left."""
        super().recover()
        self.compactor("last compactor", all_dead=True, rounds=3)
