"""The change log that a task makes of one file group, for tables with change data capture. Runs on executors."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa

from hudi_locks.errors import StorageError
from hudi_locks.format import ChangeLog, IOType, LogFileName, choose_token
from hudi_locks.format.log_block import encode_block
from hudi_locks.markers import StagedFiles
from hudi_locks.spark.writing.placement import FileGroup
from hudi_locks.storage import StagedFile, reporting
from hudi_locks.table import ChangeFormat

__all__ = ["ChangeLogWriter"]


class ChangeLogWriter:
    """Writes what changed in a file group beside its new base file; no file where nothing did (RFC-51).

    It gets its name from the claim of the commit, as the base file does.

    Args:
        files: Of the instant.
        group: The file group.
        form: How changes are written down.
    """

    def __init__(self, files: StagedFiles, group: FileGroup, form: ChangeFormat) -> None:
        self._files = files
        self._group = group
        self._form = form
        self._staged: StagedFile | None = None
        self._sink: pa.NativeFile | None = None
        self._size = 0

    def add(self, rows: pa.Table) -> None:
        """Note rows that are new."""
        self._append(None, rows)

    def change(self, before: pa.Table, after: pa.Table | None) -> None:
        """Note rows that were replaced, row by row, or taken out where `after` is None."""
        self._append(before, after)

    def finish(self) -> tuple[ChangeLog, ...]:
        """Seal the file.

        Raises:
            WriteAborted: The instant was rolled back meanwhile.
        """
        if self._staged is None:
            return ()
        with self._files.while_inflight():
            self._close()
        return (ChangeLog(self._staged.target, self._size, self._files.seal(self._staged)),)

    def abandon(self) -> None:
        """Give the file up, whatever the store says to that."""
        if self._staged is not None:
            with suppress(StorageError):
                self._close()
            self._staged.discard()

    def _append(self, before: pa.Table | None, after: pa.Table | None) -> None:
        if not any(rows.num_rows for rows in (before, after) if rows is not None):
            return
        data = encode_block(self._form.encode(before, after, instant=self._files.requested))
        with self._files.while_inflight():
            staged, sink = self._open()
            with reporting("write", staged.target):
                sink.write(data)
        self._size += len(data)

    def _open(self) -> tuple[StagedFile, pa.NativeFile]:
        if self._staged is None:
            token = choose_token(self._group.partition, self._group.file_id)
            name = LogFileName(self._group.file_id, self._files.requested, write_token=token, is_cdc=True)
            # JVM Hudi 0.15 rolls no write back whose markers say that a log was made, and appends to one that was
            # appended to: the marker of the base file speaks for both.
            has_none = self._files.layout.is_version_6
            folder = self._group.partition
            self._staged = self._files.start(folder, str(name), io_type=IOType.CREATE, is_announced=has_none)
        if self._sink is None:
            with reporting("write", self._staged.target):
                self._sink = self._staged.open()
        return self._staged, self._sink

    def _close(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None and self._staged is not None:
            with reporting("write", self._staged.target):
                sink.close()
