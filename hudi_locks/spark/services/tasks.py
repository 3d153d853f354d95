"""What an executor does for a plan: merge file slices, or write rows as clustering brings them together; and report.

Nothing here talks to Spark, as in `task`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from hudi_locks.format import WriteStat
from hudi_locks.markers import StagedFiles
from hudi_locks.spark.operation import KeyReport, encode_stats
from hudi_locks.spark.writing.group_writer import GroupWriter
from hudi_locks.spark.writing.log_group_writer import LogGroupWriter
from hudi_locks.spark.writing.placement import FileGroup
from hudi_locks.spark.writing.task import split_by_group
from hudi_locks.table import (
    FILE_NAME,
    BaseFileFormat,
    FileSlice,
    LogFormat,
    MergeRule,
    join_slice,
    read_slice,
)

__all__ = ["ClusterTask", "CompactTask", "LogCompactTask"]


@dataclass(frozen=True)
class CompactTask:
    """Merges the slices whose numbers it is given. Picklable; made on the driver, called on executors.

    The rows keep their meta columns; only the name of their file is new. The base file streams by, the logs of one
    slice are in memory.

    Attributes:
        files: Makes the data files of the instant.
        schema: Of the base files, meta columns included.
        form: How they are encoded.
        rule: Which of two rows with one key wins.
        slices: What the plan merges.
    """

    files: StagedFiles
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
            kept = pa.schema([field for field in self.schema if field.name != FILE_NAME])
            for rows in read_slice(self.files.storage, piece, kept, rule=self.rule):
                for batch in rows.to_batches():
                    writer.carry(batch)
            return writer.finish_always()


@dataclass(frozen=True)
class LogCompactTask:
    """Merges the logs of the slices whose numbers it is given. Picklable; made on the driver, called on executors.

    The rows keep their meta columns, and deletes stay deletes: the base file, which is not read, may have what they
    take out. The logs of one slice are in memory.

    Attributes:
        files: Makes the data files of the instant.
        schema: Of the rows, meta columns included.
        form: How logs are encoded.
        rule: Which of two rows with one key wins.
        slices: What the plan merges.
    """

    files: StagedFiles
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
        self.files.announce([self.files.name_log(group.partition, group.file_id)[1]])
        with LogGroupWriter(self.files, self.form, group=group, is_update=False, stands_for=times) as writer:
            return writer.finish() if self._fill(writer, piece) else []

    def _fill(self, writer: LogGroupWriter, piece: FileSlice) -> bool:
        """Deletes first: they are of rows that came before; False if the logs say nothing."""
        joined = join_slice(self.files.storage, piece, self.schema, rule=self.rule)
        writer.delete(joined.resets)
        writer.delete_again(joined.deletes)
        writer.write(joined.rows)
        return bool(len(joined.resets) or joined.deletes or joined.rows.num_rows)


@dataclass(frozen=True)
class ClusterTask:
    """Writes the rows of one Spark partition, sorted as they are, to one new file group for each group of the plan.

    Rows of buckets name their file groups themselves.

    Picklable; made on the driver, called on executors. The rows keep their meta columns, so that a reader of changes
    does not see them again; only the name of their file is new.

    Attributes:
        files: Makes the data files of the instant.
        schema: Of the base files, meta columns included.
        form: How they are encoded.
        seed: Makes the ids of the file groups, so that every attempt of a task makes the same.
    """

    files: StagedFiles
    schema: pa.Schema
    form: BaseFileFormat
    seed: uuid.UUID

    def __call__(self, batches: Iterable[pa.RecordBatch], part: int) -> Iterator[pa.RecordBatch]:
        """Take all rows of Spark partition number `part`, and yield one batch of stats; keys as in `WriteTask`."""
        writers: dict[tuple[str, int | str], GroupWriter] = {}
        told = KeyReport(self.files.key_groups)
        try:
            for key, rows in split_by_group(batches):
                if key not in writers:
                    writers[key] = self._open(*key, part, told)
                writers[key].carry(rows)
            stats = [writer.finish() for writer in writers.values()]
        finally:
            for writer in writers.values():
                writer.__exit__()
        yield from told.join(encode_stats([stat for stat in stats if stat is not None]))

    def _open(self, partition: str, group: int | str, part: int, told: KeyReport) -> GroupWriter:
        """A number is of a group of the plan, of which each part of the rows becomes a file group; else it is an id."""
        made = f"{uuid.uuid5(self.seed, f'{partition}/{group}/{part}')}-0"
        file_id = group if isinstance(group, str) else made
        group_of_part = FileGroup(partition, file_id)
        return GroupWriter(self.files, self.schema, form=self.form, group=group_of_part, keys=told)
