"""An ingest job: a stream from a source into a table, once or for ever, tried again when it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from hudi_locks.clock import Clock, SystemClock
from hudi_locks.errors import BadInput, ConfigError, HudiLocksError, TableError, WriteError
from hudi_locks.ingest.source_files import find_unreadable_file, list_batch_files, refuse_cut_off
from hudi_locks.ingest.unreadable import find_unreadable
from hudi_locks.redaction import open_log
from hudi_locks.spark import HoodieTable, Operation, StreamSink, WriteResult

__all__ = ["IngestJob", "IngestReport", "IngestSettings"]

_log = open_log(__name__)
_CHECKPOINTS: Final = ".hoodie/.hudi_locks/ingest"
_FINAL: Final = (BadInput, ConfigError, TableError)
"""What no retry heals."""


@dataclass(frozen=True)
class IngestSettings:
    """How a job runs.

    Attributes:
        operation: What to do with the rows.
        identifier: Of the stream, one for each job on a table; None for
            `hoodie.datasource.write.streaming.checkpoint.identifier`.
        checkpoint: Where Spark keeps what was read; None for a folder beside the table's timeline, by the identifier.
        is_continuous: Whether to go on with what comes later, instead of ending with what is there.
        interval_s: Shortest time between the beginnings of two batches of a continuous job.
        retries: How often the stream is started again after a failure.
        retry_interval_s: Pause before that.
    """

    operation: Operation = Operation.UPSERT
    identifier: str | None = None
    checkpoint: str | None = None
    is_continuous: bool = False
    interval_s: float = 0.0
    retries: int = 3
    retry_interval_s: float = 30.0


@dataclass(frozen=True)
class IngestReport:
    """What a job did.

    Attributes:
        batches: Batches written.
        skipped: Batches that were in the table before.
        rows_inserted: New rows.
        rows_updated: Rows that replaced one.
        failures: How often the stream was started again.
        instant: Requested time of the last commit; None if there was none.
    """

    batches: int = 0
    skipped: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    failures: int = 0
    instant: str | None = None


class IngestJob:
    """Runs a stream into a table. Lives on the driver.

    Args:
        table: Where to.
        rows: The stream.
        settings: How.
        reopen: Opens the stream anew; called where a message has a schema that its registry may have got meanwhile.
            Without it a job takes new schemas up when it is started again.
        clock: Source of time.
    """

    def __init__(
        self,
        table: HoodieTable,
        rows: DataFrame,
        settings: IngestSettings,
        *,
        reopen: Callable[[], DataFrame] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._table = table
        self._rows = rows
        self._reopen = reopen
        self._asked: set[int] = set()
        self._settings = settings
        self._clock = clock or SystemClock()
        self._sink: StreamSink = table.stream_sink(settings.operation, identifier=settings.identifier)
        self._results: list[WriteResult | None] = []
        self._error: Exception | None = None
        self._files: list[Path] = []
        self._failures = 0

    @property
    def checkpoint(self) -> str:
        """Where Spark keeps what was read."""
        storage = self._table.table.storage
        return self._settings.checkpoint or storage.address(f"{_CHECKPOINTS}/{self._sink.identifier}")

    def run(self) -> IngestReport:
        """Bring in what is there, or go on until stopped.

        Raises:
            BadInput: Rows were refused; nothing of their batch was written.
            HudiLocksError: A batch could not be written, and no retry is left.
            WriteError: The source failed, and no retry is left.
        """
        while not self._stream():
            continue
        return self.report()

    def report(self) -> IngestReport:
        """What was done so far."""
        done = [result for result in self._results if result is not None]
        return IngestReport(
            batches=len(done),
            skipped=len(self._results) - len(done),
            rows_inserted=sum(result.rows_inserted for result in done),
            rows_updated=sum(result.rows_updated for result in done),
            failures=self._failures,
            instant=done[-1].instant if done else None,
        )

    def _stream(self) -> bool:
        """Run the stream; whether it came to its end, and is not to be started again."""
        trigger: dict[str, Any] = {"availableNow": True}
        if self._settings.is_continuous:
            trigger = {"processingTime": f"{round(self._settings.interval_s * 1000)} milliseconds"}
        self._error = None
        writing = self._rows.writeStream.foreachBatch(self._write).trigger(**trigger)
        query = writing.option("checkpointLocation", self.checkpoint).start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            self._recover(error)
            return False
        finally:
            query.stop()
        return True

    def _write(self, rows: DataFrame, batch: int) -> None:
        self._files = list_batch_files(self.checkpoint, batch)
        try:
            refuse_cut_off(self._files)
            self._results.append(self._sink.write(rows, batch))
        except HudiLocksError as error:
            self._error = find_unreadable_file(str(error), self._files) or error
            raise

    def _recover(self, failure: StreamingQueryException) -> None:
        """Return when the stream may be started again, or raise what ended it."""
        text = str(failure)
        error = self._error or find_unreadable(text) or find_unreadable_file(text, self._files)
        error = error or WriteError(f"the stream failed outside of the table: {failure}", path=self._table.path)
        try:
            if self._takes_up_schema(error):
                return
        except ConfigError as unanswered:  # a registry that is away for a moment is no reason to end
            error = WriteError(f"{error}; it was asked again, and {unanswered}", path=self._table.path)
        if isinstance(error, _FINAL) or self._failures >= self._settings.retries:
            raise error from failure
        self._failures += 1
        _log.warning("the stream is started again (%d of %d) after: %s", self._failures, self._settings.retries, error)
        self._clock.sleep(self._settings.retry_interval_s)

    def _takes_up_schema(self, error: Exception) -> bool:
        """Whether the stream was opened anew, since a message has a schema that may have come after it was opened.

        Once for each schema: a producer registers it before it uses it.
        """
        number = error.facts.get("schema_id") if isinstance(error, BadInput) else None
        if self._reopen is None or number is None or number in self._asked:
            return False
        self._rows = self._reopen()
        self._asked.add(number)
        _log.info("the stream is opened anew, since the schema with the id %d was not known", number)
        return True
