"""What an executor does with the rows of its file groups on a merge-on-read table: combine, log, report.

Nothing here talks to Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudi_locks.format import MarkerName, WriteStat
from hudi_locks.markers import StagedFiles
from hudi_locks.spark.operation import KeyReport, Operation, encode_report
from hudi_locks.spark.writing.group_writer import seqno_prefix
from hudi_locks.spark.writing.log_group_writer import LogGroupWriter
from hudi_locks.spark.writing.placement import FileGroup, Groups
from hudi_locks.spark.writing.task import (
    MovedKeys,
    WriteTask,
    input_schema,
    refuse_keyless,
    refuse_placeless,
    select_input,
    split_by_group,
)
from hudi_locks.table import (
    PARTITION_PATH,
    RECORD_KEY,
    LogFormat,
    MergeRule,
    RowBuffers,
    check_partition_path,
    combine_rows,
    find_deletes,
    rename_file,
    stamp_rows,
)

__all__ = ["LogTask", "LoggingWriteTask"]

_Key = tuple[str, Any]
_PIECE_ROWS = 1 << 20
_KEYS = pa.schema([(RECORD_KEY, pa.string()), (PARTITION_PATH, pa.string())])


@dataclass(frozen=True)
class LogTask:
    """Logs the rows of one Spark partition; nothing of the table is read. Picklable; made on the driver.

    Attributes:
        files: Makes the data files of the instant.
        schema: Of the rows, meta columns included.
        form: How logs are encoded.
        groups: Resolves the GROUP column.
        operation: INSERT, UPSERT or DELETE.
        rule: Which of two rows of the input with one key is kept: readers must find one in a write.
        key_fields: Record key fields, for the error about a row without key.
        memory_bytes: How much of the input stays in memory; more goes to local disk.
    """

    files: StagedFiles
    schema: pa.Schema
    form: LogFormat
    groups: Groups
    operation: Operation
    rule: MergeRule
    key_fields: tuple[str, ...]
    memory_bytes: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take all rows of the partition, and yield one batch of stats."""
        kept, moved = input_schema(self.schema) if self.operation is not Operation.DELETE else _KEYS, MovedKeys()
        with RowBuffers[_Key](kept, self.memory_bytes) as buffers:
            for key, whole in split_by_group(batches):
                refuse_keyless(whole, self.key_fields)
                refuse_placeless(whole, self.rule, self.operation)
                rows = moved.take_out(key, whole)
                if key[0]:
                    check_partition_path(key[0])
                buffers.add(key, select_input(rows, kept))
            groups = {key: self.groups.find(*key) for key in list(buffers.keys())}
            check_s = self._announce(groups)
            stats = [
                stat for key, group in groups.items() for stat in self.log(group, buffers.take(key), moved.of(key))
            ]
        yield encode_report(stats, check_s)

    def _announce(self, groups: Mapping[_Key, FileGroup]) -> float:
        """Make the markers of files before the first of them is begun; how long other writes were looked at, in s."""
        names = [self.files.name_log(group.partition, group.file_id)[1] for group in groups.values()]
        return self.files.announce(names) if names else 0.0

    def log(
        self, group: FileGroup, rows: pa.Table, moved: pa.Array | None = None, told: KeyReport | None = None
    ) -> list[WriteStat]:
        """Log the rows of an announced file group, and that some moved away; a stat for each log."""
        is_update = self.operation is Operation.UPSERT
        with LogGroupWriter(self.files, self.form, group=group, is_update=is_update, keys=told) as writer:
            self._fill(writer, group, rows)
            if moved is not None:
                writer.delete(pa.chunked_array([moved]))
            return writer.finish()

    def _fill(self, writer: LogGroupWriter, group: FileGroup, rows: pa.Table) -> None:
        unique = combine_rows(rows, self.rule)
        if self.operation is Operation.DELETE:
            writer.delete(unique.column(RECORD_KEY))
            return
        deletes = find_deletes(unique, self.rule.deletes)
        kept = unique if deletes is None else unique.filter(pa.array(~deletes))
        for start in range(0, kept.num_rows, _PIECE_ROWS):
            writer.write(self._stamp(group, kept.slice(start, _PIECE_ROWS), start))
        if deletes is not None:
            gone = unique.filter(pa.array(deletes))
            writer.delete(gone.column(RECORD_KEY), [gone.column(name) for name in self.rule.ordering])

    def _stamp(self, group: FileGroup, rows: pa.Table, first: int) -> pa.Table:
        instant, prefix = self.files.requested, seqno_prefix(group)
        stamped = stamp_rows(rows, self.schema, instant=instant, seqno_prefix=prefix, first_seqno=first)
        return rename_file(stamped, group.file_id)


@dataclass(frozen=True)
class LoggingWriteTask(WriteTask):
    """Logs the rows of file groups that are there, and writes new rows to base files. Picklable.

    Attributes:
        logs: Logs the rows of one file group.
    """

    logs: LogTask

    def name(self, group: FileGroup) -> MarkerName:
        """See `WriteTask.name`."""
        logged = self.files.name_log(group.partition, group.file_id)[1]
        return logged if group.is_logged else super().name(group)

    def write(self, group: FileGroup, rows: pa.Table, moved: pa.Array | None, told: KeyReport) -> list[WriteStat]:
        """See `WriteTask.write`."""
        return self.logs.log(group, rows, moved, told) if group.is_logged else super().write(group, rows, moved, told)
