"""A table as the sink of a structured stream: each micro-batch once, whatever is started again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame

from hudi_locks.clock import Clock
from hudi_locks.config import datasource_keys
from hudi_locks.errors import LockError, OutcomeUnknown, StorageError, WriteError, refuse_pickling
from hudi_locks.redaction import open_log
from hudi_locks.spark.operation import Operation, WriteResult
from hudi_locks.spark.writing.writer import CommitTerms
from hudi_locks.timeline import Timeline
from hudi_locks.transaction import Outcome, StreamLog

if TYPE_CHECKING:
    from hudi_locks.spark.hoodie_table import HoodieTable

__all__ = ["StreamSink"]

_log = open_log(__name__)
_QUERY_PROPERTY: Final = "sql.streaming.queryId"
_PASSING: Final = (WriteError, LockError, StorageError)


class StreamSink:
    """Writes micro-batches; made by `HoodieTable.stream_sink`, called by Spark on the driver.

    The commit of a micro-batch carries its number, and the number is compared with the table's commits before anything
    is written and once more inside the table lock. So a batch that Spark repeats after a crash changes nothing, and
    neither does a driver that was taken for dead and wakes up. A write that fails for a passing reason is repeated
    (`hoodie.datasource.write.streaming.retry.count`, `…retry.interval.ms`); then the query fails, and goes on with the
    same batch when it is started again.

    Attributes:
        identifier: Of the stream.
    """

    def __init__(self, table: HoodieTable, operation: Operation, identifier: str | None, *, clock: Clock) -> None:
        options = table.options
        self.identifier: str = identifier or options.get_value(datasource_keys.STREAMING_CHECKPOINT_IDENTIFIER)
        self._table = table
        self._operation = operation
        self._retries = options.get_value(datasource_keys.STREAMING_RETRY_COUNT)
        self._interval_ms = options.get_value(datasource_keys.STREAMING_RETRY_INTERVAL_MS)
        self._clock = clock
        self._positions = StreamLog(table.table.storage, table.table.layout, self.identifier)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """For `foreachBatch`: `write` without its answer."""
        self.write(rows, batch)

    def write(self, rows: DataFrame, batch: int, *, query: str | None = None) -> WriteResult | None:
        """Write micro-batch number `batch`, unless the table has it.

        Args:
            rows: Of the micro-batch.
            batch: Its number.
            query: Id of the query; that which Spark runs in this thread unless it is given.

        Returns:
            The result; None if the batch was in the table before.

        Raises:
            WriteError: Another query has written under this identifier; or no retry is left, see `HoodieTable.upsert`.
            BadInput: The rows are refused; no retry helps.
        """
        query = query or rows.sparkSession.sparkContext.getLocalProperty(_QUERY_PROPERTY) or ""
        terms = CommitTerms(self._positions.notes(batch, query), lambda timeline: self._refuse(timeline, batch, query))
        if self._has(batch, query):
            return None
        for left in range(self._retries, -1, -1):
            try:
                return self._write_once(rows, terms)
            except _PASSING as error:
                failure = error
            if self._has(batch, query):
                break
            self._wait_unless_last(failure, batch, left=left)
        return None

    def _write_once(self, rows: DataFrame, terms: CommitTerms) -> WriteResult | None:
        try:
            result = self._table.write(self._operation, rows, terms=terms)
        except OutcomeUnknown as error:
            if self._table.resolve(str(error.facts["instant"])) is not Outcome.COMMITTED:
                raise
            return None
        self._positions.remember()
        return result

    def _wait_unless_last(self, error: Exception, batch: int, *, left: int) -> None:
        """Wait before the next attempt. What comes to the table meanwhile is seen by its publish, inside the lock."""
        if not left:
            raise error
        _log.warning("micro-batch %d of stream %r is tried again: %s", batch, self.identifier, error)
        self._clock.sleep(self._interval_ms / 1000)

    def _has(self, batch: int, query: str) -> bool:
        found = self._refuse(self._table.table.timeline(), batch, query)
        if found:
            _log.info("stream %r: %s", self.identifier, found)
        return bool(found)

    def _refuse(self, timeline: Timeline, batch: int, query: str) -> str:
        position = self._positions.find(timeline)
        if position is None:
            return ""
        if query and position.query and query != position.query:
            raise WriteError(
                f"stream {self.identifier!r} of this table belongs to query {position.query}, and this is query"
                f" {query}: numbers of its micro-batches mean nothing here. Give each stream an identifier of its own"
                f" ({datasource_keys.STREAMING_CHECKPOINT_IDENTIFIER.name}); a query whose checkpoint location was lost"
                " needs a new one too",
                identifier=self.identifier,
                query=query,
                known=position.query,
            )
        return f"micro-batch {batch} is in the table already" if batch <= position.batch else ""

    def __repr__(self) -> str:
        return f"StreamSink({self.identifier!r} into {self._table.path})"

    def __reduce__(self) -> Any:
        refuse_pickling(self, "it is called on the driver, and so it is that foreachBatch uses it")
