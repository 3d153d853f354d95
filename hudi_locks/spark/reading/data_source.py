"""The format `hudi_locks` of `spark.read`, `readStream`, `write` and `writeStream`. Needs PySpark 4.

PySpark calls it in Python processes without a session: beside the driver to plan, and on executors to read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T  # noqa: N812

from hudi_locks.config import Options, add_defaults, find_key, read_keys, write_keys
from hudi_locks.errors import BadInput, ConfigError, TableError
from hudi_locks.format import META_COLUMNS, parse_moment
from hudi_locks.spark._python_sources import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    SupportsTriggerAvailableNow,
)
from hudi_locks.spark.reading.conditions import RowCondition
from hudi_locks.spark.reading.merged_reading import MergeTask, Pack
from hudi_locks.spark.reading.planning import ReadPlanner, leave_out_logs
from hudi_locks.spark.reading.pushed_filters import hands_filters, read_filters
from hudi_locks.spark.reading.query import ReadQuery, asks_for_changes, leave_out_query
from hudi_locks.spark.settings import check_pipeline
from hudi_locks.spark.snapshot import Snapshot
from hudi_locks.spark.writing.data_source_writers import open_stream_writer, open_writer
from hudi_locks.spark.writing.rows import to_arrow, to_spark
from hudi_locks.storage import open_storage
from hudi_locks.table import COMMIT_TIME, FileSlice, OvertakenSnapshot, Table, add_meta_schema, refuse_altered
from hudi_locks.timeline import end_before_holes

__all__ = ["HudiLocksDataSource"]

_FORMAT: Final = "hudi_locks"
_ADVICE: Final = "This format tells the columns of now: read a moment by hudi_locks.spark.read, or HoodieTable.as_of"
_PATH: Final = "path"
_BATCH_ROWS: Final = 1 << 16
_COMPLETED: Final = "completed"
"""Of an offset: the completion time of the last commit that was shown."""


class HudiLocksDataSource(DataSource):
    """Reads tables by `spark.read.format("hudi_locks")`, and their commits by `spark.readStream`.

    Register it once in a session: `hudi_locks.spark.register_format(spark)`, by which it writes too, or, to read alone,
    `spark.dataSource.register(HudiLocksDataSource)`. The options are those of `hudi_locks.spark.read`; one that is
    unknown is refused. It reads by Arrow in Python, and little of what Spark knows of a query reaches it. So
    `hudi_locks.spark.read` and `HoodieTable.read` are quicker where they can be called. Set `PYSPARK_PYTHON` to a
    Python that has this package before the session is made.

    Attributes:
        driver: Where the driver answers that commits what is written; "" where the format only reads.
    """

    driver: ClassVar[str] = ""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._loaded: Snapshot | None = None

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return _FORMAT

    def schema(self) -> T.StructType:
        """All columns of the table as it is now, which is what each query of the DataFrame shows."""
        _refuse_any(self._given)
        self._loaded = Snapshot.load(self._open())
        return to_spark(add_meta_schema(self._loaded.shown_schema or pa.schema([])))

    def reader(self, schema: T.StructType) -> DataSourceReader:
        """Reads these columns, in batches of Arrow."""
        query = ReadQuery.of(self._given)
        reader = _FilteringReader if hands_filters() else _Reader
        return reader(self._scan(schema), query, self._loaded)

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:  # noqa: N802  # PySpark's name
        """Reads what commits write to these columns, micro-batch after micro-batch."""
        query = ReadQuery.of(self._given, is_stream=True)
        return _StreamReader(self._scan(schema), parse_moment(query.begin))

    def writer(self, schema: T.StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: FBT001  # PySpark's signature
        """Stages rows, which the driver commits; see `register_format`."""
        return open_writer(self.driver, self._given_to_write, schema, overwrites=overwrite)

    def streamWriter(self, schema: T.StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: FBT001, N802
        """The same of micro-batches."""
        return open_stream_writer(self.driver, self._given_to_write, schema, overwrites=overwrite)

    @property
    def _given_to_write(self) -> dict[str, str]:
        """What the driver checks, names it does not know among it."""
        self._require_path()
        return dict(self.options)

    @property
    def _given(self) -> Options:
        given = {name: value for name, value in self.options.items() if name != _PATH}
        for name in given:
            if find_key(name) is None:
                message = f"option {name} is not read by format({_FORMAT!r}): leave it out"
                advice = f"; load one table by its base path, as load({'/data/flights'!r})" if name == "paths" else ""
                raise ConfigError(message + advice, key=name)
        return add_defaults(given)

    def _scan(self, schema: T.StructType) -> _Scan:
        table = self._open() if self._loaded is None else self._loaded.table
        columns = tuple(name for name in schema.names if name not in META_COLUMNS)
        return _Scan(table, schema, columns, len(columns) < len(schema.names), leave_out_query(self._given))

    def _open(self) -> Table:
        path = self._require_path()
        others = leave_out_query(self._given)
        table = Table.load(open_storage(path, others)).with_writer_options(others)
        check_pipeline(others, table.config, table.storage.base)
        return table

    def _require_path(self) -> str:
        path = self.options.get(_PATH, "")
        if not path:
            message = f"format({_FORMAT!r}) needs the base path of a table: give it to load, save or start"
            raise ConfigError(message, key=_PATH)
        return path


def _refuse_any(options: Options) -> None:
    """Refuse what neither a read nor a stream can mean; which of the two it is, is not known before the query runs."""
    if asks_for_changes(options):
        key = read_keys.INCREMENTAL_FORMAT
        message = (
            f"{key.name}=cdc has other columns than the table, and is not offered by format({_FORMAT!r}): {_ADVICE}"
        )
        raise ConfigError(message, key=key.name, value="cdc")
    try:
        ReadQuery.of(options)
    except ConfigError:
        ReadQuery.of(options, is_stream=True)


@dataclass(frozen=True)
class _Share(InputPartition):
    """What one Spark task reads. Picklable.

    Attributes:
        task: How slices are read.
        pack: The slices.
        columns: Of the rows, exactly as PySpark expects them.
        instants: Only rows that these commits wrote; all if None.
        has_meta_columns: Whether meta columns are kept, or were made to merge the rows and are null for readers.
    """

    task: MergeTask
    pack: Pack
    columns: pa.Schema
    instants: tuple[str, ...] | None
    has_meta_columns: bool

    def read(self) -> Iterator[pa.RecordBatch]:
        """The rows."""
        for rows in self.task.read(self.pack):
            yield from self._shape(self._choose(rows)).to_batches(max_chunksize=_BATCH_ROWS)

    def _choose(self, rows: pa.Table) -> pa.Table:
        if self.instants is None:
            return rows
        return rows.filter(pc.is_in(rows.column(COMMIT_TIME), value_set=pa.array(self.instants, pa.string())))

    def _shape(self, rows: pa.Table) -> pa.Table:
        hidden = () if self.has_meta_columns else META_COLUMNS
        arrays = [
            pa.nulls(rows.num_rows, field.type) if field.name in hidden else rows.column(field.name)
            for field in self.columns
        ]
        return pa.table(arrays, names=self.columns.names).cast(self.columns)


@dataclass(frozen=True)
class _Scan(ReadPlanner):
    """Plans what the tasks of a query read. Runs beside the driver, without a session."""

    table: Table
    schema: T.StructType
    columns: Sequence[str]
    meta_columns: bool
    options: Options
    partitions: Sequence[str] | None = None
    condition: RowCondition | None = None

    def plan(self, snapshot: Snapshot, query: ReadQuery) -> list[_Share]:
        """What a read shows of a snapshot."""
        if query.is_incremental:
            span = self._bound(snapshot, query.begin, query.end, holes_policy=self._policy)
            return self._plan_span(snapshot, *span)
        if query.moment is not None:
            refuse_altered(self.table.storage, snapshot.timeline, advice=_ADVICE)
        slices = self._list_slices(snapshot, **self._limit(requested=query.moment))
        asked = leave_out_logs(slices) if query.is_read_optimized else slices
        return self._share(self._leave_out(asked, snapshot), snapshot)

    def plan_newest(self, query: ReadQuery) -> list[_Share]:
        """The same of the table as it is now."""
        return self._read_newest(lambda snapshot: self.plan(snapshot, query))

    def plan_span(self, begin: str, end: str) -> list[_Share]:
        """What commits with begin < completion time <= end wrote."""
        return self._read_newest(lambda snapshot: self._plan_span(snapshot, begin, end))

    def find_end(self, begin: str) -> str:
        """Completion time of the last commit after `begin` that may be shown; `begin` if there is none."""
        timeline = self.table.timeline()
        end = end_before_holes(timeline, begin=begin, end=None, policy=self._policy)
        commits = timeline.completed_between(begin, end)
        return str(commits[-1].completion) if commits else begin

    def _plan_span(self, snapshot: Snapshot, begin: str, end: str | None) -> list[_Share]:
        self._refuse_unmarked()
        slices, commits = self._find_changes(snapshot, begin, end)
        return self._share(slices, snapshot, tuple(one.requested for one in commits))

    def _share(
        self, slices: Sequence[FileSlice], snapshot: Snapshot, instants: tuple[str, ...] | None = None
    ) -> list[_Share]:
        self._check(snapshot)
        self._refuse_other_types(snapshot)
        self._refuse_untold(slices, snapshot)
        also = () if instants is None else (COMMIT_TIME,)
        task = self._plan_merge(slices, snapshot, cores=os.cpu_count() or 1, also=also)
        known, columns = replace(task, packs=()), to_arrow(self.schema)
        is_marked = self.table.config.has_meta_columns
        return [_Share(known, pack, columns, instants, is_marked) for pack in task.packs]

    def _refuse_other_types(self, snapshot: Snapshot) -> None:
        """A schema that the user gave chooses columns; one that a stream began with may be outdated."""
        known = to_spark(add_meta_schema(snapshot.shown_schema or pa.schema([])))
        for asked in self.schema.fields:
            if known[asked.name].dataType != asked.dataType:
                kinds = f"{known[asked.name].dataType.simpleString()}, and {asked.dataType.simpleString()}"
                message = f"column {asked.name!r} of the table is {kinds} was asked for; leave the schema out"
                raise BadInput(f"{message}, or start the stream again", column=asked.name)

    @property
    def _policy(self) -> str:
        return self.options.get_value(write_keys.READ_HOLES_POLICY).upper()


class _OnExecutors:
    """A reader's part on executors: all that it needs comes with the partition."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows; none for the partition that PySpark makes up where there is none."""
        return partition.read() if isinstance(partition, _Share) else iter(())

    def __getstate__(self) -> dict[str, object]:
        return {}


class _Reader(_OnExecutors, DataSourceReader):
    """Of `spark.read`."""

    def __init__(self, scan: _Scan, query: ReadQuery, loaded: Snapshot | None) -> None:
        self._scan = scan
        self._query = query
        self._loaded = loaded

    def partitions(self) -> list[InputPartition]:
        """What each task reads."""
        if self._loaded is None:
            return [*self._scan.plan_newest(self._query)]
        try:
            return [*self._scan.plan(self._loaded, self._query)]
        except OvertakenSnapshot as error:
            message = f"{self._scan.table.storage.base} changed since load(...) was called, and files were cleaned"
            raise TableError(f"{message}: call load(...) again", **error.facts) from error


class _FilteringReader(_Reader):
    """The same where Spark hands its filters over."""

    def pushFilters(self, filters: list[Any]) -> Iterator[Any]:  # noqa: N802  # PySpark's name
        """Leave out what cannot hold a row that passes them; Spark looks at each row."""
        self._scan = replace(self._scan, condition=read_filters(filters, to_arrow(self._scan.schema)))
        yield from filters


class _StreamReader(_OnExecutors, SupportsTriggerAvailableNow, DataSourceStreamReader):
    """Of `spark.readStream`. An offset is the completion time of the last commit that was shown."""

    def __init__(self, scan: _Scan, begin: str) -> None:
        self._scan = scan
        self._begin = begin
        self._last: str | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # PySpark's name
        """Show nothing that is committed from now on."""
        self._last = self._scan.find_end(self._begin)

    def initialOffset(self) -> dict[str, str]:  # noqa: N802  # PySpark's name
        """Where the first micro-batch begins."""
        return {_COMPLETED: self._begin}

    def latestOffset(self, start: dict[str, str] | None = None, limit: object = None) -> dict[str, str]:  # noqa: N802
        """Where a micro-batch that is begun now ends: never before a place that was reached.

        PySpark gives `start` from 4.2 on.
        """
        del limit
        self._reach(start)
        return {_COMPLETED: self._scan.find_end(self._begin) if self._last is None else max(self._begin, self._last)}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[InputPartition]:
        """What each task reads of a micro-batch, also of one that is repeated."""
        self._reach(end)
        first, last = start[_COMPLETED], end[_COMPLETED]
        return [*self._scan.plan_span(first, last)] if first < last else []

    def commit(self, end: dict[str, str]) -> None:
        """Remember that everything up to there was shown."""
        self._reach(end)

    def _reach(self, offset: dict[str, str] | None) -> None:
        self._begin = max(self._begin, "" if offset is None else offset[_COMPLETED])
