"""What an executor does with the file slices whose logs are merged: one new log for each, and report.

Nothing here talks to Spark, as in `task`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from hudi_locks.format import WriteStat
from hudi_locks.markers import FinalFiles
from hudi_locks.spark.group_writer import encode_stats
from hudi_locks.spark.log_group_writer import LogGroupWriter, name_log_marker
from hudi_locks.spark.placement import FileGroup
from hudi_locks.table import FileSlice, LogFormat, MergeRule, join_slice

__all__ = ["LogCompactTask"]


@dataclass(frozen=True)
class LogCompactTask:
    """Merges the logs of the slices whose numbers it is given. Picklable; made on the driver, called on executors.

    The rows keep their meta columns, and deletes stay deletes: the base file, which is not read, may have what they
    take out. The logs of one slice are in memory.

    Attributes:
        files: Gives logs their names: that of a slice is the same for every attempt.
        schema: Of the rows, meta columns included.
        form: How logs are encoded.
        rule: Which of two rows with one key wins.
        slices: What the plan merges.
    """

    files: FinalFiles
    schema: pa.Schema
    form: LogFormat
    rule: MergeRule
    slices: tuple[FileSlice, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Merge the slices numbered in the first column, and yield one batch of stats for each batch."""
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            yield encode_stats([stat for number in numbers for stat in self._merge(self.slices[number])])

    def _merge(self, piece: FileSlice) -> list[WriteStat]:
        group = FileGroup(piece.partition, piece.file_id, None)
        times = {log.instant for log in piece.logs}
        self.files.announce([name_log_marker(group, self.files.requested)])
        with LogGroupWriter(self.files, self.form, group=group, is_update=False, stands_for=times) as writer:
            if not writer.is_done and not self._fill(writer, piece):
                return []
            return writer.finish()

    def _fill(self, writer: LogGroupWriter, piece: FileSlice) -> bool:
        """Deletes first: they are of rows that came before; False if the logs say nothing."""
        joined = join_slice(self.files.storage, piece, self.schema, rule=self.rule)
        writer.delete(joined.resets)
        writer.delete_again(joined.deletes)
        writer.write(joined.rows)
        return bool(len(joined.resets) or joined.deletes or joined.rows.num_rows)
