"""What can be read of a table: now, as of a moment, and what changed. Runs on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession

from hudi_locks.config import Options, write_keys
from hudi_locks.errors import BadInput
from hudi_locks.format import format_time
from hudi_locks.spark.reading.reader import Reader
from hudi_locks.spark.session import check_session
from hudi_locks.table import Table

__all__ = ["Moment", "Readable", "write_moment"]

Moment: TypeAlias = str | int | date
"""An instant time, or the beginning of one; or a date or datetime, without a zone in that of the timeline."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def write_moment(moment: Moment, zone: tzinfo | None) -> str:
    """The text that a timeline in `zone` has for a moment; None for a zone that is not known.

    Raises:
        BadInput: It is of another type, or has a zone, and that of the timeline is not known.
    """
    if isinstance(moment, datetime):
        return _write_datetime(moment, zone)
    if isinstance(moment, date):
        return moment.isoformat()
    if isinstance(moment, str) or (isinstance(moment, int) and not isinstance(moment, bool)):
        return str(moment)
    message = f"{moment!r} is no time of this table: give one such as WriteResult.completion_time, or a datetime"
    raise BadInput(message, time=moment)


def _write_datetime(moment: datetime, zone: tzinfo | None) -> str:
    if moment.tzinfo is not None and zone is None:
        message = f"{moment} has a time zone, and that of the table is not known: load the table with zone=..."
        raise BadInput(message, time=moment)
    known = zone or timezone.utc
    since = moment.replace(tzinfo=moment.tzinfo or known) - _EPOCH
    return format_time(since // timedelta(milliseconds=1), known)


class Readable:
    """Reads of a table, as DataFrames that a later commit does not change.

    Attributes:
        spark: Session of the DataFrames.
        table: The table.
        options: Hudi's keys.
    """

    spark: SparkSession
    table: Table
    options: Options

    def read(
        self,
        *,
        meta_columns: bool = True,
        read_optimized: bool = False,
        columns: str | Sequence[str] | None = None,
        partitions: str | Sequence[str] | None = None,
        where: str | Column | None = None,
    ) -> DataFrame:
        """All rows as of now, with Hudi's five meta columns first unless `meta_columns` is false.

        What Spark filters and selects afterwards reaches its Parquet reader, partition columns included, but no file
        group with logs: `columns`, `partitions` and `where` do.

        Args:
            meta_columns: Whether they are there.
            columns: Only these of the user's columns, in this order; all if None.
            partitions: Only the rows of these partition paths, such as "2026-01-01" or "day=2026-01-01"; all if None.
            where: Only rows for which this is true, a condition such as "day >= '2026-01-01'" or a `Column`. Files of
                partitions that it rules out are not opened, logs included; if it is about partition columns alone,
                they are not listed either. Where a metadata table keeps statistics of columns, files whose whole
                numbers, decimals, booleans, dates and timestamps rule it out are not opened.
            read_optimized: Of a merge-on-read table, show the base files alone, at the cost of plain Parquet: rows
                that are in logs only come with the next compaction.

        Raises:
            BadInput: There is no such column, or no such partition; or `where` is no condition on them.
            DamagedTable: The timeline cannot be read; what cannot be read of a log, when the DataFrame is used.
        """
        return self._reader(meta_columns, columns, partitions, where).snapshot(read_optimized=read_optimized)

    def as_of(
        self,
        time: Moment | None = None,
        *,
        requested: Moment | None = None,
        meta_columns: bool = True,
        columns: str | Sequence[str] | None = None,
        partitions: str | Sequence[str] | None = None,
        where: str | Column | None = None,
    ) -> DataFrame:
        """All rows as of a moment.

        Args:
            time: A completion time, such as `WriteResult.completion_time`: what was committed by then.
            requested: Instead, a requested time: what was begun by then, as the JVM's `as.of.instant` means it.
            meta_columns: See `read`.
            columns: See `read`.
            partitions: See `read`.
            where: See `read`.

        Raises:
            BadInput: The time is none; `yyyy-MM-dd`, `yyyy-MM-dd HH:mm:ss` and datetimes are taken too. Without a zone
                they are in that of the timeline.
            TableError: What the table showed then was cleaned.
            DamagedTable: See `read`.
        """
        return self._reader(meta_columns, columns, partitions, where).snapshot(
            completed=self._write(time), requested=self._write(requested)
        )

    def incremental(
        self,
        begin: Moment,
        end: Moment | None = None,
        *,
        meta_columns: bool = True,
        columns: str | Sequence[str] | None = None,
        partitions: str | Sequence[str] | None = None,
    ) -> DataFrame:
        """Rows that were inserted or updated by commits with begin < completion time <= end, in their last form.

        A row that a later commit of the span deleted is not among them. Whoever goes on from the completion time of
        the last commit that he saw misses nothing and sees nothing twice: a commit that is still pending will complete
        later than every other. `hoodie.read.timeline.holes.resolution.policy` can hold back what was begun after it.

        Args:
            begin: A completion time; "0" for the beginning of the table.
            end: Another one; None for now.
            meta_columns: See `read`.
            columns: See `read`.
            partitions: See `read`.

        Raises:
            BadInput: A time is none, or see `read`.
            TableError: Commits of the span are archived, and files of theirs cleaned; or a commit was completed behind
                a pending one, and the policy for that is FAIL.
        """
        policy = self.options.get_value(write_keys.READ_HOLES_POLICY).upper()
        return self._reader(meta_columns, columns, partitions).changes(*self._span(begin, end), holes_policy=policy)

    def change_data(
        self,
        begin: Moment,
        end: Moment | None = None,
        *,
        meta_columns: bool = True,
        columns: str | Sequence[str] | None = None,
        partitions: str | Sequence[str] | None = None,
    ) -> DataFrame:
        """What commits with begin < completion time <= end made of each row, deletes too: `op`, `before`, `after`.

        `op` is "i" for a row that was not there at `begin`, "d" for one that is not there at `end`, "u" for one that
        another write wrote since; `before` and `after` are structs of its columns, null where there was or is no row.
        Changes of one row are summed up: ask for commit after commit to see each of them. A row that moves to another
        partition is deleted there and inserted here. It reads the changed file groups as they were and as they are, so
        the table keeps no change log for it (`hoodie.table.cdc.enabled`), and whatever was committed counts, by the
        JVM too.

        Args:
            begin: A completion time; "0" for the beginning of the table.
            end: Another one; None for now.
            meta_columns: Whether the structs begin with Hudi's five.
            columns: See `read`; of the structs.
            partitions: See `read`.

        Raises:
            BadInput: A time is none, or see `read`.
            TableError: What the table showed at `begin` or `end` was cleaned; or see `incremental`.
        """
        policy = self.options.get_value(write_keys.READ_HOLES_POLICY).upper()
        reader = self._reader(True, columns, partitions)
        return reader.change_data(*self._span(begin, end), holes_policy=policy, meta_columns=meta_columns)

    def change_log(
        self,
        begin: Moment,
        end: Moment | None = None,
        *,
        columns: str | Sequence[str] | None = None,
        partitions: str | Sequence[str] | None = None,
    ) -> DataFrame:
        """What each commit with begin < completion time <= end made of each row, as a CDC query of JVM Hudi shows it.

        Columns `op` (i, u or d), `ts_ms` (the requested time of the commit), `before` and `after`, rows as JSON without
        meta columns, null where there was or is no row. It is `change_data` of commit after commit, and costs as much.
        By options it is asked for with `hoodie.datasource.query.incremental.format=cdc`.

        Args:
            begin: A completion time; "0" for the beginning of the table.
            end: Another one; None for now.
            columns: See `read`; of the rows.
            partitions: See `read`.

        Raises:
            BadInput: A time is none, or see `read`.
            TableError: What the table showed at `begin` or after one of the commits was cleaned; or see `incremental`.
        """
        policy = self.options.get_value(write_keys.READ_HOLES_POLICY).upper()
        return self._reader(True, columns, partitions).change_log(*self._span(begin, end), holes_policy=policy)

    def _write(self, moment: Moment | None) -> str | None:
        return None if moment is None else write_moment(moment, self._zone)

    def _span(self, begin: Moment, end: Moment | None) -> tuple[str, str | None]:
        return write_moment(begin, self._zone), self._write(end)

    @property
    def _zone(self) -> tzinfo | None:
        config = self.table.config
        return None if config.timezone == "LOCAL" and config.zone is None else config.layout.zone

    def _reader(
        self,
        meta_columns: bool,  # noqa: FBT001
        columns: str | Sequence[str] | None,
        partitions: str | Sequence[str] | None,
        where: str | Column | None = None,
    ) -> Reader:
        check_session(self.spark)
        self.table.check_present()
        wanted = (_list(columns), _list(partitions), where)
        return Reader(self.spark, self.table, meta_columns, *wanted, options=self.options)


def _list(names: str | Sequence[str] | None) -> Sequence[str] | None:
    return [names] if isinstance(names, str) else names
