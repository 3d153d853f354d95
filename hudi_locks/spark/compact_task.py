"""What an executor does with the file slices that a compaction merges: one new base file for each, and report.

Nothing here talks to Spark, as in `task`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from hudi_locks.format import WriteStat
from hudi_locks.markers import FinalFiles
from hudi_locks.spark.group_writer import GroupWriter, encode_stats
from hudi_locks.spark.placement import FileGroup
from hudi_locks.table import FILE_NAME, BaseFileFormat, FileSlice, MergeRule, read_slice

__all__ = ["CompactTask"]


@dataclass(frozen=True)
class CompactTask:
    """Merges the slices whose numbers it is given. Picklable; made on the driver, called on executors.

    The rows keep their meta columns; only the name of their file is new. The base file streams by, the logs of one
    slice are in memory.

    Attributes:
        files: Gives base files their names: that of a slice is the same for every attempt.
        schema: Of the base files, meta columns included.
        form: How they are encoded.
        rule: Which of two rows with one key wins.
        slices: What the plan merges.
    """

    files: FinalFiles
    schema: pa.Schema
    form: BaseFileFormat
    rule: MergeRule
    slices: tuple[FileSlice, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Merge the slices numbered in the first column, and yield one batch of stats for each batch."""
        for batch in batches:
            yield encode_stats([self._merge(self.slices[number]) for number in batch.column(0).to_pylist()])

    def _merge(self, piece: FileSlice) -> WriteStat:
        group = FileGroup(piece.partition, piece.file_id, piece.base)
        with GroupWriter(self.files, self.schema, form=self.form, group=group) as writer:
            if not writer.is_done:
                kept = pa.schema([field for field in self.schema if field.name != FILE_NAME])
                for rows in read_slice(self.files.storage, piece, kept, rule=self.rule):
                    for batch in rows.to_batches():
                        writer.carry(batch)
            return writer.finish_always()
