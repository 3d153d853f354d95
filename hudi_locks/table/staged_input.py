"""Rows that wait below a table until the process that commits them takes them up.

Who is handed rows task by task, and may not bring those of a file group together, leaves them here. No reader looks
there, and a file counts only if the commit is told its name: what a repeated or late task left is nobody's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import pyarrow as pa

from hudi_locks.errors import StorageError
from hudi_locks.format.claim import PRIVATE_FOLDER
from hudi_locks.storage import Storage, reporting

__all__ = ["INPUT_FOLDER", "StagedInput", "StagedRows", "drop_abandoned_input"]

INPUT_FOLDER: Final = f"{PRIVATE_FOLDER}/input"
_PIECE_BYTES: Final = 32 << 20
"""A task keeps so much in memory before it makes a file."""
_ABANDONED_MS: Final = 86_400_000
"""So long after its last file nobody will commit an input any more."""


@dataclass(frozen=True)
class StagedRows:
    """A file of staged rows.

    Attributes:
        path: Relative to the base path.
        rows: How many it has.
        size: In bytes.
    """

    path: str
    rows: int
    size: int


@dataclass(frozen=True)
class StagedInput:
    """The input of one write. Picklable; executors write it and read it.

    Attributes:
        storage: Of the table.
        name: Of the input, one for each write.
    """

    storage: Storage
    name: str

    @classmethod
    def begin(cls, storage: Storage) -> StagedInput:
        """A new one. Makes no request."""
        return cls(storage, uuid4().hex)

    @property
    def folder(self) -> str:
        """Where its files are, relative to the base path."""
        return f"{INPUT_FOLDER}/{self.name}"

    def write(self, batches: Iterable[pa.RecordBatch]) -> tuple[StagedRows, ...]:
        """Stage what one task is given; its files go again if it fails.

        Raises:
            StorageError: The store failed.
        """
        made: list[StagedRows] = []
        try:
            made.extend(self._make(*piece) for piece in _cut(batches))
        except BaseException:
            self.remove(made)
            raise
        return tuple(made)

    def read(self, staged: StagedRows) -> Iterator[pa.RecordBatch]:
        """The rows of a file, as they were staged.

        Raises:
            StorageError: It is gone, or lacks rows.
        """
        found = 0
        with self.storage.open_input(staged.path) as source, reporting("read", staged.path):
            for batch in pa.ipc.open_stream(source):
                found += batch.num_rows
                yield batch
        if found != staged.rows:
            message = f"{staged.path} has {found} of the {staged.rows} rows that were staged; write them again"
            raise StorageError(message, path=staged.path)

    def remove(self, files: Iterable[StagedRows]) -> None:
        """Remove some files."""
        self.storage.delete_all([file.path for file in files])

    def remove_all(self) -> None:
        """Remove everything that was staged."""
        self.storage.delete_folder(self.folder)

    def _make(self, data: pa.Buffer, rows: int) -> StagedRows:
        path = f"{self.folder}/{uuid4().hex}.arrow"
        if not self.storage.create_transient(path, data.to_pybytes()):
            raise StorageError(f"{path} is there already, though its name is new", path=path)
        return StagedRows(path, rows, data.size)


def _cut(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Buffer, int]]:
    """Pieces of a stream of Arrow, and how many rows each has."""
    sink, writer, rows = pa.BufferOutputStream(), None, 0
    for batch in batches:
        writer = writer or pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))
        writer.write_batch(batch)
        rows += batch.num_rows
        if sink.tell() >= _PIECE_BYTES:
            writer.close()
            yield sink.getvalue(), rows
            sink, writer, rows = pa.BufferOutputStream(), None, 0
    if writer is not None:
        writer.close()
        yield sink.getvalue(), rows


def drop_abandoned_input(storage: Storage) -> int:
    """Remove inputs to which nothing came for a day: who was to commit them is gone. How many went."""
    folders = [f"{INPUT_FOLDER}/{name}" for name in storage.list_names(INPUT_FOLDER)]
    limit_ms = storage.now_ms() - _ABANDONED_MS if folders else 0
    listed = zip(folders, storage.list_each(folders), strict=True)
    old = [folder for folder, files in listed if files and all(one.modified_ms < limit_ms for one in files)]
    for folder in old:
        storage.delete_folder(folder)
    return len(old)
