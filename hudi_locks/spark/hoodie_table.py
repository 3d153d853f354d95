"""A Hudi table in a user's hands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from os import PathLike
from typing import Any, ClassVar, Final

from pyspark.sql import DataFrame, SparkSession

from hudi_locks.catalog import CatalogSync
from hudi_locks.clock import Clock, SystemClock
from hudi_locks.config import Options, add_defaults, datasource_keys, read_keys, table_keys, write_keys
from hudi_locks.deprecation import RenamedMember
from hudi_locks.display import make_card
from hudi_locks.errors import WriteError, refuse_pickling
from hudi_locks.observe import Metrics, Span, SpanName
from hudi_locks.services import TableServices, TableSettings, TableWriter
from hudi_locks.spark.altering import Alterable
from hudi_locks.spark.executors import check_executors
from hudi_locks.spark.index.index import open_index
from hudi_locks.spark.merge import Derive
from hudi_locks.spark.operation import Operation, WriteResult
from hudi_locks.spark.partitions import choose_deleted_partitions
from hudi_locks.spark.services.clustering import ClusteringService
from hudi_locks.spark.services.compaction import CompactionService, LogCompactionService
from hudi_locks.spark.services.scheduled_service import ScheduledService
from hudi_locks.spark.session import (
    add_lock_settings,
    check_session,
    open_table_storage,
    prepare_session,
    show_progress,
)
from hudi_locks.spark.settings import PipelineSettings, check_pipeline
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.streaming import StreamSink
from hudi_locks.spark.table_options import describe_table
from hudi_locks.spark.writing.strategy import open_strategy
from hudi_locks.spark.writing.writer import CommitTerms, Report, Writer
from hudi_locks.table import Table
from hudi_locks.timeline_server import MarkerHost, ServerSettings
from hudi_locks.transaction import Outcome

__all__ = ["HoodieTable"]

_ARGUMENTS: Final = (
    table_keys.TABLE_NAME,
    datasource_keys.RECORDKEY_FIELD,
    datasource_keys.PARTITIONPATH_FIELD,
    datasource_keys.PRECOMBINE_FIELD,
    datasource_keys.WRITE_TABLE_TYPE,
)
"""What arguments say of a table that is made."""


class HoodieTable(Alterable):
    """One table, to be read and written through one Spark session. Lives on the driver.

    Made by `create` or `load`. Several objects, processes and JVM writers may share a table when each is given
    `hoodie.write.concurrency.mode=optimistic_concurrency_control` and the same lock provider; one object writes one
    DataFrame at a time.

    Attributes:
        spark: The session.
        path: Base path.
        table: Its settings and storage.
        options: Hudi's keys as given.
        metrics: What its locks, heartbeats and publishes reported; names in `hudi_locks.observe`.
    """

    def __init__(self, spark: SparkSession, table: Table, options: Options, *, clock: Clock | None = None) -> None:
        prepare_session(spark)
        check_executors(spark, table.storage)
        self.spark = spark
        self.table: Table = table.with_writer_options(options)
        self.path: str = table.storage.base
        self.options: Options = check_pipeline(options, self.table.config, self.path)
        self.metrics: Metrics = Metrics()
        self._clock = clock or SystemClock()
        self._writing = threading.Lock()
        self._opened: TableWriter | None = None
        self._is_closed = False

    @classmethod
    def create(
        cls,
        spark: SparkSession,
        path: str | PathLike[str],
        *,
        name: str,
        record_key: str | Sequence[str],
        partition_by: str | Sequence[str] = (),
        ordering: str | Sequence[str] | None = None,
        table_type: str = "COPY_ON_WRITE",
        options: Mapping[str, object] | None = None,
    ) -> HoodieTable:
        """Make an empty table.

        Args:
            spark: The session.
            path: Where; its folder is made.
            name: Table name.
            record_key: Columns that name a row, unique within a partition.
            partition_by: Columns that give the folder.
            ordering: Column whose greater value wins when two rows have one key; without it the later write wins.
            table_type: COPY_ON_WRITE, or MERGE_ON_READ, whose updates append to logs.
            options: Hudi's keys, for the table (`hoodie.write.table.version`: 6, 8 or 9) and for writes through this
                object, before those of this machine's `hudi-defaults.conf`.

        Raises:
            TableExists: There is a table at `path`.
            ConfigError: An option or setting cannot be used.
        """
        prepare_session(spark)
        given = add_defaults(options, without=(*read_keys.READ_KEYS, *_ARGUMENTS))
        config = describe_table(
            given, name=name, record_key=record_key, partition_by=partition_by, ordering=ordering, table_type=table_type
        )
        storage = open_table_storage(spark, path, given)
        check_pipeline(given, config, storage.base, for_writing=True)
        return cls(spark, Table.create(storage, config), given)

    @classmethod
    def load(
        cls,
        spark: SparkSession,
        path: str | PathLike[str],
        *,
        options: Mapping[str, object] | None = None,
        zone: str | None = None,
    ) -> HoodieTable:
        """The table at `path`.

        Args:
            spark: The session.
            path: Base path.
            options: Hudi's keys for writes through this object, before those of this machine's `hudi-defaults.conf`.
            zone: The time zone of the writers, such as `Europe/Berlin`, for a table whose timeline is in LOCAL time
                (the JVM's default); without it such a table can be read and not written.

        Raises:
            NotATable: There is none.
            DamagedTable: Its properties cannot be read.
            UnsupportedTable: It is of a kind that cannot be read.
            ConfigError: An option cannot be used.
        """
        prepare_session(spark)
        given = add_defaults(options, without=read_keys.READ_KEYS)
        return cls(spark, Table.load(open_table_storage(spark, path, given), zone=zone), given)

    def insert(self, rows: DataFrame) -> WriteResult:
        """Add rows without looking for their keys: a key that is there already is there twice afterwards.

        `hoodie.combine.before.insert` merges rows of the input with one key, and
        `hoodie.datasource.write.insert.drop.duplicates` leaves out those whose key the table has. For arguments and
        errors see `upsert`.
        """
        return self.write(Operation.INSERT, rows)

    def upsert(self, rows: DataFrame) -> WriteResult:
        """Insert new rows and replace those whose record key is in the same partition.

        A key that another write of this package, whatever its operation, or one of the JVM brought in the meantime is
        a conflict too, so that it is not there twice. A JVM writer that completes after this one does not look.

        Args:
            rows: All columns of the table, in any order, and new ones, which are added to it.

        Raises:
            BadInput: A column is missing, has changed its type, or a row has no record key; nothing was written.
            WriteConflict: Another writer changed the same file groups or brought the same new keys first, and the
                retries of `hoodie.write.num.retries.on.conflict.failures` are used up.
            WriteAborted: The instant was rolled back by somebody who took this writer for dead.
            OutcomeUnknown: The store did not say whether the commit was published; `resolve` finds out.
            SecondWriterRefused: The mode is SINGLE_WRITER, and another writer is alive.
            UnsupportedTable: The table must not be written by this package.
        """
        return self.write(Operation.UPSERT, rows)

    def bulk_insert(self, rows: DataFrame) -> WriteResult:
        """Add many rows to new files, or to logs of buckets that are there: the fast way to load. Else as `insert`."""
        return self.write(Operation.BULK_INSERT, rows)

    def delete(self, rows: DataFrame) -> WriteResult:
        """Take out the rows with the record keys and partitions of `rows`, which needs no other columns."""
        return self.write(Operation.DELETE, rows)

    def insert_overwrite(self, rows: DataFrame) -> WriteResult:
        """Replace all rows of the partitions that `rows` touch; other partitions stay as they are.

        It conflicts with every write that changed one of these partitions since it began, and that with it, so that
        nothing stays which the replacement did not see. Rows with one key stay apart, as in `insert`.
        """
        return self.write(Operation.INSERT_OVERWRITE, rows)

    def insert_overwrite_table(self, rows: DataFrame) -> WriteResult:
        """Replace all rows of the table, also by none; every concurrent write is a conflict. See `insert_overwrite`."""
        return self.write(Operation.INSERT_OVERWRITE_TABLE, rows)

    def delete_partitions(self, partitions: str | Iterable[str]) -> WriteResult:
        """Take out all rows of a partition, or of several, named by their paths: `month=1`. See `insert_overwrite`.

        The files stay for time travel until they are cleaned.

        Raises:
            BadInput: The table is not partitioned, or has no such partition; patterns are not read.
        """
        with self._one_write("delete_partition in") as (report, follow):
            return follow(self._writer.delete_partitions(self.spark, partitions, report=report))

    def write(self, operation: Operation, rows: DataFrame, *, terms: CommitTerms | None = None) -> WriteResult:
        """The write that `operation` names; see the methods of these names.

        A `delete_partition` deletes what `hoodie.datasource.write.partitions.to.delete` names, else the partitions of
        the rows.

        Args:
            operation: What to do with the rows.
            rows: See there.
            terms: What to keep in the commit beside what it wrote, and what may still forbid it; not for a
                `delete_partition`.
        """
        if operation is Operation.DELETE_PARTITION:
            return self.delete_partitions(choose_deleted_partitions(self.table, self.options, rows))
        with self._one_write(f"{operation.value} into") as (report, follow):
            return follow(self._writer.write(operation, rows, report=report, terms=terms))

    def _write_derived(self, derive: Derive) -> WriteResult:
        with self._one_write("merge into") as (report, follow):
            return follow(self._writer.write_derived(derive, report=report))

    @contextmanager
    def _one_write(self, title: str) -> Iterator[tuple[Report, Callable[[WriteResult], WriteResult]]]:
        """What a write reports to, and what the options ask for after it; what they ask for before it is done."""
        with self._one_at_a_time(), show_progress(f"{title} {self.path}") as report:
            services = self._open().services
            with self.metrics.span(SpanName.WRITE, operation=title.partition(" ")[0]) as span:
                before = services.precede_write()
                yield report, lambda result: self._follow(result, before, span)

    @property
    def services(self) -> TableServices:
        """Cleaning, archival, savepoints and restores: what needs no rows."""
        self._check_usable()
        return self._open().services

    @property
    def clustering(self) -> ClusteringService:
        """Joins the small files of each partition into large ones, sorted."""
        self._check_usable()
        return self._clustering

    @property
    def compaction(self) -> CompactionService:
        """Merges the logs of each file group into a new base file, while others write."""
        self._check_usable()
        return self._compaction

    @property
    def log_compaction(self) -> LogCompactionService:
        """Merges the logs of each file slice that has many into one log."""
        self._check_usable()
        return self._log_compaction

    def stream_sink(self, operation: Operation = Operation.UPSERT, *, identifier: str | None = None) -> StreamSink:
        """What `DataStreamWriter.foreachBatch` takes: writes each micro-batch exactly once, over restarts too.

        Args:
            operation: What to do with the rows of a micro-batch.
            identifier: Names the stream among all that write to this table, in place of the option
                `…streaming.checkpoint.identifier`; keep it, and the query's checkpoint location, over restarts.
        """
        return StreamSink(self, operation, identifier, clock=self._clock)

    def resolve(self, instant: str) -> Outcome:
        """What became of the write with this requested time, after an `OutcomeUnknown`; decides it if nobody has."""
        self._check_usable()
        return self._open().transactions.resolve(instant)

    def close(self) -> None:
        """Wait for table services, and let go of the lock provider's connection. The object can still read."""
        self._is_closed = True
        for name in {"_clustering", "_compaction"} & vars(self).keys():
            getattr(self, name).wait()
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    def _open(self) -> TableWriter:
        if self._opened is None:
            table = self.table.reload().with_writer_options(self.options)
            table.check_writable()
            check_pipeline(self.options, table.config, self.path, for_writing=True)
            mode = self.options.get_value(write_keys.CONCURRENCY_MODE).upper()
            settings, snapshot = PipelineSettings.of(self.options, table.config), Snapshot.load(table)
            index = open_index(settings, snapshot, is_non_blocking=mode == write_keys.NON_BLOCKING)
            index.check(snapshot)
            self._strategy = open_strategy(table.config, index)
            self._catalog_syncs = CatalogSync.of(self.options, table)
            options = add_lock_settings(self.spark, self.options, self.path)
            name = f"{self.spark.sparkContext.appName} ({self.spark.sparkContext.applicationId})"
            self._opened = TableWriter(table, options, clock=self._clock, metrics=self.metrics, application=name)
        return self._opened

    @cached_property
    def _writer(self) -> Writer:
        opened = self._open()
        server = ServerSettings.of(self.options)
        host = MarkerHost(server, self.metrics) if server.is_wanted else None
        return Writer(opened.table, opened.transactions, self._strategy, self._clock, host)

    @cached_property
    def _clustering(self) -> ClusteringService:
        return ClusteringService(self.spark, self._open(), self._strategy.settings)

    @cached_property
    def _compaction(self) -> CompactionService:
        return CompactionService(self.spark, self._open(), self._strategy.settings)

    @cached_property
    def _log_compaction(self) -> LogCompactionService:
        return LogCompactionService(self.spark, self._open(), self._strategy.settings)

    @cached_property
    def _following(self) -> Sequence[ScheduledService[Any]]:
        """The services that the options ask for after writes."""
        there = (self._clustering, self._compaction, self._log_compaction)
        return [one for one in there if one.cadence.follows_writes and self.services.follow_writes]

    def _follow(self, result: WriteResult, before: Sequence[str], span: Span) -> WriteResult:
        """Run the services that the options ask for after a write, and add what all of them warn of."""
        span.note(**result.describe())
        for service in self._following:
            result = service.follow(result)
        said = (*before, *result.warnings, *self._open().services.follow_write())
        return replace(result, warnings=(*said, *(text for one in self._catalog_syncs for text in one.follow_write())))

    def _check_usable(self) -> None:
        if self._is_closed:
            raise WriteError(f"this HoodieTable object was closed; load the table at {self.path} again", path=self.path)
        check_session(self.spark)
        self.table.check_present()

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        self._check_usable()
        if not self._writing.acquire(blocking=False):
            raise WriteError(
                f"this HoodieTable object is writing to {self.path} already; load a second object for a second write",
                path=self.path,
            )
        try:
            yield
        finally:
            self._writing.release()

    cluster: ClassVar[RenamedMember] = RenamedMember("clustering.run", removed_in="0.3.0")
    schedule_clustering: ClassVar[RenamedMember] = RenamedMember("clustering.schedule", removed_in="0.3.0")
    run_clustering: ClassVar[RenamedMember] = RenamedMember("clustering.execute", removed_in="0.3.0")
    abort_clustering: ClassVar[RenamedMember] = RenamedMember("clustering.abort", removed_in="0.3.0")
    wait_for_clustering: ClassVar[RenamedMember] = RenamedMember("clustering.wait", removed_in="0.3.0")
    compact: ClassVar[RenamedMember] = RenamedMember("compaction.run", removed_in="0.3.0")
    schedule_compaction: ClassVar[RenamedMember] = RenamedMember("compaction.schedule", removed_in="0.3.0")
    run_compaction: ClassVar[RenamedMember] = RenamedMember("compaction.execute", removed_in="0.3.0")
    abort_compaction: ClassVar[RenamedMember] = RenamedMember("compaction.abort", removed_in="0.3.0")
    wait_for_compaction: ClassVar[RenamedMember] = RenamedMember("compaction.wait", removed_in="0.3.0")
    compact_logs: ClassVar[RenamedMember] = RenamedMember("log_compaction.run", removed_in="0.3.0")
    schedule_log_compaction: ClassVar[RenamedMember] = RenamedMember("log_compaction.schedule", removed_in="0.3.0")
    run_log_compaction: ClassVar[RenamedMember] = RenamedMember("log_compaction.execute", removed_in="0.3.0")
    abort_log_compaction: ClassVar[RenamedMember] = RenamedMember("log_compaction.abort", removed_in="0.3.0")
    clean: ClassVar[RenamedMember] = RenamedMember("services.clean", removed_in="0.3.0")
    sweep: ClassVar[RenamedMember] = RenamedMember("services.sweep", removed_in="0.3.0")
    archive: ClassVar[RenamedMember] = RenamedMember("services.archive", removed_in="0.3.0")
    restore: ClassVar[RenamedMember] = RenamedMember("services.restore", removed_in="0.3.0")
    savepoint: ClassVar[RenamedMember] = RenamedMember("services.savepoints.create", removed_in="0.3.0")
    delete_savepoint: ClassVar[RenamedMember] = RenamedMember("services.savepoints.delete", removed_in="0.3.0")
    list_savepoints: ClassVar[RenamedMember] = RenamedMember("services.savepoints.list", removed_in="0.3.0")

    def __enter__(self) -> HoodieTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"HoodieTable({self.table.config.name!r} at {self.path})"

    def _repr_html_(self) -> str:
        settings = TableSettings.of(self.table.config)
        found = (("path", self.path), ("newest instant", self.table.timeline().newest_time()))
        told = ((name.replace("_", " "), value) for name, value in asdict(settings).items() if name != "name")
        return make_card(f"Hudi table {settings.name}", (*found, *told))

    def __reduce__(self) -> Any:
        refuse_pickling(self, "load it where it is needed, from its path")
