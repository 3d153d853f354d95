"""A table opened for writing: its lock, its transactions and its services, wired once for whoever writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.config import Options, add_defaults, check_options, compaction_keys, lock_keys, table_keys
from hudi_locks.lock import LockManager
from hudi_locks.observe import Metrics, start_reporting
from hudi_locks.services.clustering import Clustering
from hudi_locks.services.clustering_settings import ClusteringSettings
from hudi_locks.services.compaction import Compaction
from hudi_locks.services.log_compaction import LogCompaction
from hudi_locks.services.table_services import TableServices
from hudi_locks.storage import check_service, open_storage
from hudi_locks.table import Table
from hudi_locks.transaction import Transactions
from hudi_locks.transaction.settings import name_this_process

__all__ = ["TableWriter", "identify_table"]


def identify_table(options: Options, *, name: str, base_path: str) -> Options:
    """The options with the path of the table that they are for, and with its name where they give none."""
    named = {} if options.has(table_keys.TABLE_NAME) else {table_keys.TABLE_NAME.name: name}
    return options | {table_keys.BASE_PATH.name: base_path, **named}


class TableWriter:
    """One table in the hands of one process that writes to it. Engine-free; lives on the driver. A context manager.

    The lock is keyed by the table's own name and path where the options give none; there is none without
    `hoodie.write.lock.provider`. `close` waits for services of the writes, and lets go of the lock provider.

    Args:
        table: Loaded for writing.
        options: Hudi's keys, checked.
        clock: Source of time.
        metrics: Gets what locks, heartbeats and publishes report.
        application: Names the job in the records of its locks and writes, unless `hoodie.write.lock.app_id` does.

    Attributes:
        table: The table.
        options: Hudi's keys, with the table's name and path.
        clock: Source of time.
        locks: Of the table; None without a lock provider.
        transactions: Its writes.
        services: Cleaning, archival, savepoints.

    Raises:
        ConfigError: An option cannot be used.
        UnsupportedTable: The table must not be written by this package.
    """

    def __init__(
        self,
        table: Table,
        options: Mapping[str, object],
        *,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        application: str = "",
    ) -> None:
        check_service(table.storage)
        self.table = table
        self.options: Options = identify_table(Options(options), name=table.config.name, base_path=table.storage.base)
        self.clock: Clock = clock or SystemClock()
        metrics = metrics or Metrics()
        self._stop_reporting = start_reporting(metrics, self.options, name=table.config.name, clock=self.clock)
        application = self.options.find(lock_keys.APP_ID) or application
        self.locks: LockManager | None = self._open_locks(application, metrics)
        owner = replace(name_this_process(), application=application)
        self.transactions: Transactions = Transactions(
            table, self.locks, options=self.options, clock=self.clock, owner=owner, metrics=metrics
        )
        self.services: TableServices = TableServices(self.transactions, self.options)

    @classmethod
    def open(
        cls, path: str | PathLike[str], options: Mapping[str, object] | None = None, *, zone: str | None = None
    ) -> TableWriter:
        """Load the table at `path`, and open it.

        Args:
            path: Base path.
            options: Hudi's keys, before those of this machine's `hudi-defaults.conf`.
            zone: Time zone of the writers of a table whose timeline is in LOCAL time.

        Raises:
            NotATable: There is none.
            DamagedTable: Its properties cannot be read.
            ConfigError: An option cannot be used.
            UnsupportedTable: The table must not be written by this package.
        """
        checked = check_options(add_defaults(options) | {table_keys.BASE_PATH.name: str(path)})
        table = Table.load(open_storage(path, checked), zone=zone).with_writer_options(checked)
        table.check_writable()
        return cls(table, checked)

    @cached_property
    def compaction(self) -> Compaction:
        """Plans of compaction."""
        return Compaction(self.table, self.transactions)

    @cached_property
    def log_compaction(self) -> LogCompaction:
        """Plans of log compaction."""
        threshold = self.options.get_value(compaction_keys.LOG_BLOCKS_THRESHOLD)
        return LogCompaction(self.table, self.transactions, threshold)

    def clustering(self, *, sort_by: Sequence[str] | None = None) -> Clustering:
        """Plans of clustering.

        Args:
            sort_by: Columns to sort by, in place of those of the options.
        """
        settings = ClusteringSettings.of(self.options, table_properties=self.table.config.extra, sort_by=sort_by)
        return Clustering(self.table, self.transactions, settings)

    def close(self) -> None:
        """Wait for services on threads, let go of the lock provider's connection, and report metrics a last time."""
        self.services.close()
        if self.locks is not None:
            self.locks.close()
        self._stop_reporting()

    def _open_locks(self, application: str, metrics: Metrics) -> LockManager | None:
        if not self.options.has(lock_keys.PROVIDER):
            return None
        return LockManager.from_options(self.options, clock=self.clock, application=application, metrics=metrics)

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
