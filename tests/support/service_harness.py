"""A harness for table services: writes that supersede and replace file groups, and a look at what is left."""

from __future__ import annotations

from typing import Any

from transaction_harness import OPEN_LOCK, Harness, write_file

from hudi_locks.format import BaseFileName, ChangeLog, CommitMetadata, Instant, IOType, LogFileName, State, WriteStat
from hudi_locks.services import Cleaner, CleanSettings
from hudi_locks.table import PARTITION_METADATA, list_data_files
from hudi_locks.timeline import LAYOUT_2, create_instant
from hudi_locks.transaction import Transaction


class ServiceHarness(Harness):
    """A harness whose writes tell what they supersede.

    Attributes:
        logs_changes: Whether they leave a change log beside each file that supersedes one.
        schema: What they say of the columns.
    """

    logs_changes = False
    schema = "{}"

    def cleaner(self, *, trace: Any = None, storage: Any = None, locks: Any = OPEN_LOCK, **options: Any) -> Cleaner:
        transactions = self.open(trace=trace, storage=storage, locks=locks)
        given = {name.replace("__", "."): value for name, value in options.items()}
        named = {name if "hoodie." in name else f"hoodie.clean.{name}": value for name, value in given.items()}
        return Cleaner(transactions.coordinator, CleanSettings.of(named))

    def rewrite(self, tx: Transaction, *groups: str, replaces: tuple[str, ...] = ()) -> CommitMetadata:
        """Make the files of a write that merges `groups` and ends `replaces`."""
        stats = []
        for group in groups:
            partition, _, file_id = group.rpartition("/")
            name = str(BaseFileName(file_id, tx.instant))
            self.storage.create_if_absent(f"{partition}/{PARTITION_METADATA}", b"")
            ticket = write_file(tx.files, partition, name, b"rows", io_type=IOType.MERGE)
            before = self.newest_before(partition, file_id, tx)
            changes = () if before == "null" or not self.logs_changes else (self.log_changes(tx, partition, file_id),)
            path = f"{partition}/{name}"
            stats.append(WriteStat(partition, file_id, path, prev_commit=before, ticket=ticket, change_logs=changes))
        ended: dict[str, tuple[str, ...]] = {}
        for group in replaces:
            partition, _, file_id = group.rpartition("/")
            ended[partition] = (*ended.get(partition, ()), file_id)
        return CommitMetadata.of(stats, "UPSERT", schema=self.schema, replaced_file_ids=ended)

    def log_changes(self, tx: Transaction, partition: str, file_id: str) -> ChangeLog:
        name = str(LogFileName(file_id, tx.instant, is_cdc=True))
        ticket = write_file(tx.files, partition, name, b"changes")
        return ChangeLog(f"{partition}/{name}", len(b"changes"), ticket)

    def change_logs(self) -> list[str]:
        """`partition/file id@instant` of every change log, in order."""
        listed = list_data_files(self.storage).change_logs
        return sorted(f"{log.partition}/{log.file_id}@{log.instant}" for log in listed)

    def newest_before(self, partition: str, file_id: str, tx: Transaction) -> str:
        names = [BaseFileName.parse(name) for name in self.names(partition)]
        known = [n.instant for n in names if n and n.file_id == file_id and tx.timeline.is_completed(n.instant)]
        return max(known, default="null")

    def put(self, *groups: str, replaces: tuple[str, ...] = ()) -> str:
        """Commit a write of `groups`, named `partition/file id`, and let a second pass."""
        tx = self.open().begin("replacecommit" if replaces else "commit", "UPSERT")
        assert tx.publish(self.rewrite(tx, *groups, replaces=replaces)).is_committed
        self.clock.advance(1)
        return tx.instant

    def files(self) -> list[str]:
        """`partition/file id@instant` of every base file, in order."""
        found = []
        for path, entry in self.storage.walk(""):
            if name := BaseFileName.parse(entry.name):
                found.append(f"{path.rpartition('/')[0]}/{name.file_id}@{name.instant}")
        return sorted(found)

    def foreign_instant(self, requested: str, action: str, completion: str, data: bytes) -> None:
        """An instant that a JVM table service leaves."""
        instant = Instant(requested, action, State.REQUESTED)
        for state in (instant, instant.as_inflight(), instant.as_completed(completion)):
            create_instant(self.storage, LAYOUT_2, instant=state, data=data)
