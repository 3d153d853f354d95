"""The rows of a file slice: its base file, with what its logs say applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from hudi_locks.errors import DamagedTable
from hudi_locks.storage import Storage, map_in_threads
from hudi_locks.table.base_file import read_base_file
from hudi_locks.table.data_files import LogFile
from hudi_locks.table.file_slices import FileSlice
from hudi_locks.table.log_merging import LogMerge
from hudi_locks.table.log_rows import LogEntry, read_log
from hudi_locks.table.meta_columns import conform
from hudi_locks.table.ordering import MergeRule

__all__ = ["read_slice"]

_BATCH_ROWS: Final = 1 << 19
"""Rows of the base file that are merged at a time: for each such piece the keys of the logs are hashed anew."""


def read_slice(storage: Storage, piece: FileSlice, schema: pa.Schema, *, rule: MergeRule) -> Iterator[pa.Table]:
    """The rows of a slice in bounded pieces. Runs on executors; the logs are in memory, the base file streams by.

    Args:
        storage: Of the table.
        piece: The slice; its files must be of completed writes.
        schema: Of the rows wanted, meta columns and those of `rule` included; only these are read, and are null where a
            file lacks them.
        rule: Which of two rows with one key wins.

    Raises:
        DamagedTable: A file is gone, or cannot be read whole.
        UnsupportedTable: A log has a block of a kind that is not read here.
    """
    read = map_in_threads(lambda log: _read_entries(storage, log, schema.names), piece.logs)
    merge = LogMerge((entry for entries in read for entry in entries), schema, rule)
    if piece.base is not None:
        for rows in read_base_file(storage.native(piece.base.path), columns=schema.names, batch_rows=_BATCH_ROWS):
            yield merge.apply(conform(rows, schema))
    yield from merge.remaining()


def _read_entries(storage: Storage, log: LogFile, columns: list[str]) -> list[LogEntry]:
    data = storage.read(log.path)
    if data is None:
        raise DamagedTable(f"{log.path} is gone: cleaned or removed since the timeline was loaded", path=log.path)
    return list(read_log(data, log.path, columns=columns))
