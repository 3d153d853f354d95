"""All services of one table, called for by hand or after each write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from hudi_locks.config import Options, service_keys, table_keys
from hudi_locks.deprecation import RenamedMember
from hudi_locks.errors import HudiLocksError, StorageError, TableError
from hudi_locks.format import MetadataPartition
from hudi_locks.metadata_table import is_partitioned
from hudi_locks.redaction import open_log
from hudi_locks.services.archival import Archiver, ArchiveResult
from hudi_locks.services.cleaning import Cleaner, CleanResult
from hudi_locks.services.janitor import Janitor, SweepResult
from hudi_locks.services.metadata_making import (
    RECORD_INDEXES,
    MetadataMade,
    MetadataMaker,
    ask_for_record_index,
    refuse_partitions_of,
)
from hudi_locks.services.metadata_properties import list_named, read_properties
from hudi_locks.services.metadata_services import MetadataServices, MetadataUpkeep
from hudi_locks.services.restoring import Restorer, RestoreResult
from hudi_locks.services.savepoints import Savepoints
from hudi_locks.services.settings import ArchiveSettings, CleanSettings
from hudi_locks.transaction import Transactions

__all__ = ["TableServices"]

_log = open_log(__name__)


class TableServices:
    """What keeps one table small and quick, in one process. Thread-safe. Runs on the driver; no Spark in it.

    Any number of processes may do the same at the same time, also while others write.

    Every method that works raises AcquireTimeout if the table lock could not be had, DamagedTable if the timeline
    cannot be read, and StorageError if the store failed: what was left undone is done by a later call, of anybody.

    Args:
        transactions: Of the table.
        options: Hudi's keys, as the process was given them.

    Attributes:
        transactions: Of the table.
        savepoints: Makes, lists and deletes them.
        follow_writes: Whether table services follow writes at all (`hoodie.table.services.enabled`).

    Raises:
        ConfigError: An option cannot be used.
    """

    def __init__(self, transactions: Transactions, options: Mapping[str, object]) -> None:
        self.transactions = transactions
        self._table = transactions.coordinator
        self._options = options
        self._cleaning = CleanSettings.of(options)
        self._archiving = ArchiveSettings.of(options)
        self._makes_metadata = Options(options).get_value(table_keys.METADATA_ENABLE)
        self._wants_record_index = any(Options(options).get_value(key) for key in RECORD_INDEXES)
        self.follow_writes: bool = Options(options).get_value(service_keys.TABLE_SERVICES)
        self._sweeps = Options(options).get_value(service_keys.SWEEP_BEFORE_WRITE)
        self._cleaner = Cleaner(self._table, self._cleaning)
        self._archiver = Archiver(self._table, self._archiving, clean_settings=self._cleaning)
        self._metadata = MetadataServices(
            self._table,
            compact_commits=Options(options).get_value(service_keys.METADATA_COMPACT_COMMITS),
            clean=self._cleaning,
            archive=self._archiving,
        )
        self._working = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}
        self.savepoints: Savepoints = Savepoints(self._table)

    def clean(self) -> CleanResult:
        """Roll back failed writes and remove old versions of files, as `hoodie.clean.policy` says.

        Without options of its own a table is cleaned after each write (`hoodie.clean.automatic`), and its timeline
        archived (`hoodie.archive.automatic`).
        """
        self._roll_back_failed()
        with self._working:
            return self._cleaner.run()

    def sweep(self, *, everywhere: bool = True) -> SweepResult:
        """Roll back failed writes, and remove what is left of all that are done; see `Janitor.sweep`."""
        rolled_back = self._roll_back_failed()
        return replace(Janitor(self._table).sweep(everywhere=everywhere), rolled_back=rolled_back)

    def archive(self) -> ArchiveResult:
        """Move old instants to the history, if there are more commits than `hoodie.keep.max.commits`."""
        with self._working:
            return self._archiver.run()

    def serve_metadata_table(self) -> MetadataUpkeep:
        """Compact, clean and archive the metadata table of the table, if it has one, as far as that is due.

        Without a call it is done after writes (`hoodie.metadata.compact.max.delta.commits`).
        """
        with self._working:
            return self._metadata.run()

    def make_metadata_table(self, *, anew: bool = False) -> MetadataMade | None:
        """Make the metadata table of a table that has none, by which readers find its files and pass over others.

        It has the files, and for at most 32 columns their ranges in each file and partition, as JVM Hudi makes it.
        Every writer keeps it up to date from then on. With `hoodie.metadata.enable=true` it is made after a write.

        Args:
            anew: Whether one that is there is deleted, and made once more: the way out where it is damaged.

        Returns:
            What it has; None if there is one, and it was not to be made anew.

        Raises:
            TableError: Something is under way that may not know of it.
            UnsupportedTable: Other writers of the table do not look whether there is one, or a file cannot be measured.
        """
        self._roll_back_failed()
        with self._working:
            return MetadataMaker(self._table, self._options).run(anew=anew)

    def restore(self, instant: str) -> RestoreResult:
        """Go back to what the write begun at `instant` showed; every later write is undone, for good.

        Writes under way meet a conflict, and none begins before this is done. If it dies, repeat it.

        A record index is deleted first, and made anew at last, with the rest of the metadata table. Where that fails,
        a warning is logged, and the table goes on without one.

        Raises:
            SavepointRefused: Files of that snapshot are gone, or another restore is not finished.
        """
        by_partition = is_partitioned(self._table.storage)
        done = Restorer(self._table).run(instant)
        if not done.dropped:
            return done
        options = {**self._options, **ask_for_record_index(by_partition=by_partition)}
        try:
            with self._working:
                made = MetadataMaker(self._table, options).run(anew=True)
        except (TableError, StorageError) as error:
            _log.warning("%s goes on without a record index after a restore: %s", self._table.storage.base, error)
            return done
        return replace(done, indexed_keys=None if made is None else made.keys)

    save: ClassVar[RenamedMember] = RenamedMember("savepoints.create", removed_in="0.3.0")
    accept_times: ClassVar[RenamedMember] = RenamedMember("transactions.accept_times", removed_in="0.3.0")

    def precede_write(self) -> tuple[str, ...]:
        """What the options ask for before a write; what went wrong, in words.

        Raises:
            UnsupportedTable: They ask for a metadata table that cannot be made for such a table.
        """
        makes = self._makes_metadata and not self._table.keeps_metadata
        if makes and Options(self._options).get_value(service_keys.PARTITION_INDEX_ENABLE):
            refuse_partitions_of(self._table.version)
        return self._report(lambda: Janitor(self._table).sweep()) if self._sweeps else ()

    def follow_write(self) -> tuple[str, ...]:
        """What the options ask for after a write, here or on a thread of its own: first clean, then archive.

        In between the metadata table is served, if the table has one and that is due: archival ends where it was
        compacted. The write is committed, so nothing is raised: what went wrong is returned in words, and done by a
        later one.
        """
        warnings: tuple[str, ...] = ()
        if not self.follow_writes:
            return self._report(self._make_metadata_if_asked)
        clean, archive = self._cleaning, self._archiving
        if clean.is_automatic:
            warnings = self._run("clean", self._clean_if_due, is_async=clean.is_async)
        warnings += self._report(self._keep_metadata)
        if self._wants_record_index:
            warnings += self._miss_record_index()
        if archive.is_automatic and not warnings:
            warnings = self._run("archive", self._archive_if_due, is_async=archive.is_async)
        return warnings

    def close(self) -> None:
        """Wait for the threads of an earlier `follow_write`."""
        while self._threads:
            self._threads.popitem()[1].join()

    def _roll_back_failed(self) -> tuple[str, ...]:
        return tuple(self.transactions.roll_back_failed()) if self._table.settings.cleans_failed_writes else ()

    def _clean_if_due(self) -> None:
        with self._working:
            if self._cleaner.is_due(self._table.peek().timeline):
                self._cleaner.run(everywhere=False)

    def _keep_metadata(self) -> None:
        """Make the metadata table, if that is asked for and there is none; else serve it, if that is due."""
        if not self._make_metadata_if_asked():
            with self._working:
                if self._metadata.is_due():
                    self._metadata.run()

    def _make_metadata_if_asked(self) -> bool:
        """Whether there was none."""
        is_lacking = not (self._table.keeps_metadata or self._table.notices.metadata_table_seen)
        if is_lacking and self._makes_metadata:
            self.make_metadata_table()
        return is_lacking

    def _miss_record_index(self) -> tuple[str, ...]:
        """Say it once if the options ask for a record index that the table does not have."""
        try:
            names = list_named(read_properties(self._table.storage))
        except TableError:  # somebody writes them: a later write looks again
            return ()
        self._wants_record_index = False
        by_partition = Options(self._options).get_value(service_keys.PARTITION_INDEX_ENABLE)
        is_there = MetadataPartition.RECORD_INDEX.value in names
        if is_there and is_partitioned(self._table.storage) == by_partition:
            return ()
        asked, way = RECORD_INDEXES[by_partition].name, f"give {table_keys.METADATA_ENABLE.name}=true too"
        if names:
            way = "make it anew with hudi-locks metadata rebuild, with the same options"
        lacks = "no record index" if names else "no metadata table"
        if is_there:
            lacks = f"a record index {'of the whole table' if by_partition else 'by partition'}"
        message = f"{asked}=true, and the table has {lacks}: {way}"
        _log.warning("%s: %s", self._table.storage.base, message)
        return (message,)

    def _archive_if_due(self) -> None:
        with self._working:
            if self._archiver.is_due(self._table.peek().timeline):
                self._archiver.run()

    def _run(self, name: str, work: Callable[[], object], *, is_async: bool) -> tuple[str, ...]:
        if not is_async:
            return self._report(work)
        known = self._threads.get(name)
        if known is None or not known.is_alive():  # else the next write looks again
            thread = threading.Thread(target=self._report, args=(work,), name=name, daemon=True)
            thread.start()
            self._threads[name] = thread
        return ()

    def _report(self, work: Callable[[], object]) -> tuple[str, ...]:
        try:
            work()
        except HudiLocksError as error:
            _log.warning("a table service failed, a later one goes on: %s", error)
            return (f"a table service failed, a later one goes on: {error}",)
        return ()
