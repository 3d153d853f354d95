"""The log files that a task makes of one file group, and what it reports of them. Runs on executors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import pyarrow as pa

from hudi_locks.format import LogFileName, WriteStat
from hudi_locks.markers import StagedFiles
from hudi_locks.spark.operation import KeyReport
from hudi_locks.spark.writing.placement import FileGroup
from hudi_locks.storage import StagedFile
from hudi_locks.table import LogFormat, LogPart, LogWriter, create_partition_metadata

__all__ = ["LogGroupWriter"]

_FIRST: Final = 1


class LogGroupWriter:
    """The new logs of one file group, which get their names from the claim of the commit.

    Args:
        files: Of the instant. The first log was announced.
        form: How they are encoded.
        group: The file group.
        is_update: Whether its rows count as updates: nobody looks which of their keys are there.
        stands_for: Requested times of the writes whose logs a log compaction merges; else none.
        keys: Is told which keys are taken out, if anybody wants to know.
    """

    def __init__(
        self,
        files: StagedFiles,
        form: LogFormat,
        *,
        group: FileGroup,
        is_update: bool,
        stands_for: Collection[str] = (),
        keys: KeyReport | None = None,
    ) -> None:
        self._files = files
        self._group = group
        self._is_update = is_update
        self._keys = keys or KeyReport()
        self._staged: list[StagedFile] = []
        self._is_finished = False
        named = {"instant": files.requested, "partition": group.partition}
        self._writer = LogWriter(self._open, form, **named, stands_for=stands_for, indexed=files.indexed)

    def write(self, rows: pa.Table) -> None:
        """Add stamped rows, one for each key."""
        with self._files.while_inflight():
            self._writer.write(rows)

    def delete(self, keys: pa.ChunkedArray, orderings: Sequence[pa.ChunkedArray] = ()) -> None:
        """Take out the rows of these keys; see `LogWriter.delete`."""
        self._keys.tell(keys, self._group.partition, self._group.file_id, is_gone=True)
        with self._files.while_inflight():
            self._writer.delete(keys, orderings)

    def delete_again(self, deletes: Sequence[tuple[str, Any]]) -> None:
        """Take out rows as deletes of other logs do; see `LogWriter.delete_again`."""
        with self._files.while_inflight():
            self._writer.delete_again(deletes)

    def finish(self) -> list[WriteStat]:
        """Seal the files; a stat for each.

        Raises:
            WriteAborted: The instant was rolled back meanwhile.
        """
        with self._files.while_inflight():
            parts = self._writer.close()
            if self._group.base is None:  # else the partition was marked before that was written
                create_partition_metadata(self._files.storage, self._group.partition, instant=self._files.requested)
        stats = [self._seal(staged, part) for staged, part in zip(self._staged, parts, strict=True)]
        self._is_finished = True
        return stats

    def _open(self, version: int) -> StagedFile:
        partition, file_id = self._group.partition, self._group.file_id
        name, marker = self._files.name_log(partition, file_id, version)
        is_announced = version == _FIRST or self._files.log_places is not None
        staged = self._files.start(partition, str(name), io_type=marker.io_type, is_announced=is_announced)
        self._staged.append(staged)
        return staged

    def _seal(self, staged: StagedFile, part: LogPart) -> WriteStat:
        base, name = self._group.base, staged.target.rpartition("/")[2]
        log = LogFileName.parse(name)
        return WriteStat(
            self._group.partition,
            self._group.file_id,
            staged.target,
            prev_commit=base.instant if base else self._files.requested,
            num_writes=part.rows,
            num_inserts=0 if self._is_update else part.rows,
            num_update_writes=part.rows if self._is_update else 0,
            num_deletes=part.deletes,
            file_size_bytes=part.size,
            total_write_bytes=part.size,
            log_version=part.version if log is None else log.version,
            log_offset=0,
            base_file=base.path.rpartition("/")[2] if base else "",
            log_files=(name,),
            ticket=self._files.seal(staged),
            ranges=part.ranges,
        )

    def __enter__(self) -> LogGroupWriter:
        return self

    def __exit__(self, *_: object) -> None:
        """Give files up that were not finished: on a full disk each attempt would leave some more."""
        if not self._is_finished:
            self._writer.abandon()
            for staged in self._staged:
                staged.discard()
