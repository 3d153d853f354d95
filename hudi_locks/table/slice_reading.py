"""The rows of a file slice: its base file, with what its logs say applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from hudi_locks.errors import DamagedTable
from hudi_locks.storage import Storage, map_in_threads, reading_ahead
from hudi_locks.table.base_rows import BaseRows
from hudi_locks.table.cores import map_on_cores
from hudi_locks.table.data_files import FileSlice, LogFile
from hudi_locks.table.log_merging import JoinedLogs, join_logs, merge_logs
from hudi_locks.table.log_rows import LogEntry, find_stood_for, read_log
from hudi_locks.table.meta_columns import RECORD_KEY, conform
from hudi_locks.table.ordering import MergeRule
from hudi_locks.table.slice_parts import WHOLE, Part

__all__ = ["join_slice", "read_slice"]

_MOST_KEYS: Final = 1 << 20
"""For so many keys of rows that another task reads those of the logs are hashed once."""


def read_slice(
    storage: Storage,
    piece: FileSlice,
    schema: pa.Schema,
    *,
    rule: MergeRule,
    piece_rows: int = 1 << 19,
    part: Part = WHOLE,
) -> Iterator[pa.Table]:
    """The rows of a slice in bounded pieces. Runs on executors; the logs are in memory, the base file streams by.

    Args:
        storage: Of the table.
        piece: The slice; its files must be of completed writes.
        schema: Of the rows wanted, meta columns and those of `rule` included; only these are read, and are null where a
            file lacks them.
        rule: Which of two rows with one key wins.
        piece_rows: Rows of the base file that are merged at a time. Of fewer the first come sooner; of more the keys of
            the logs are hashed less often, once for each piece.
        part: Only this share of the rows. Every share that has some reads all logs.

    Raises:
        DamagedTable: A file is gone, or cannot be read whole.
        UnsupportedTable: A log has a block of a kind that is not read here.
    """
    base = BaseRows(storage, None if piece.base is None else piece.base.path, part)
    if base.is_left_out:
        return
    encoded = () if rule.fills_nulls or not piece.logs else _find_idle(schema, rule)
    with reading_ahead(base.read(schema.names, encoded=encoded, batch_rows=piece_rows)) as pieces:
        if not piece.logs:
            yield from (conform(rows, schema) for rows in pieces)
            return
        merge = merge_logs(_read_logs(storage, piece, schema.names, rule, encoded), schema, rule)
        yield from map(merge.apply, pieces)
    if base.closes:
        for keys in base.read_keys_elsewhere(batch_rows=_MOST_KEYS):
            merge.meet(keys)
        yield from merge.remaining()


def _find_idle(schema: pa.Schema, rule: MergeRule) -> tuple[str, ...]:
    """Columns that decide nothing."""
    return tuple(name for name in schema.names if name not in (RECORD_KEY, *rule.deciding))


def join_slice(storage: Storage, piece: FileSlice, schema: pa.Schema, *, rule: MergeRule) -> JoinedLogs:
    """What the logs of a slice say together; its base file is not read. Runs on executors; the logs are in memory.

    For arguments and errors see `read_slice`.
    """
    return join_logs(_read_logs(storage, piece, schema.names, rule), schema, rule)


def _read_logs(
    storage: Storage, piece: FileSlice, columns: list[str], rule: MergeRule, idle: tuple[str, ...] = ()
) -> Iterator[LogEntry]:
    """What the logs do, without those for which a log compaction stands: its own log comes after them, and is enough.

    Where nulls take values of other rows it would not be the same without them.
    """
    needed = _drop_done(map_in_threads(lambda log: _read_log(storage, log), piece.logs), rule)
    decoded = map_on_cores(lambda one: list(read_log(one[1], one[0].path, columns=columns, idle=idle)), needed)
    return (entry for entries in decoded for entry in entries)


def _drop_done(read: list[tuple[LogFile, bytes]], rule: MergeRule) -> list[tuple[LogFile, bytes]]:
    done = frozenset() if rule.fills_nulls else _find_done(read)
    return [(log, data) for log, data in read if log.instant not in done]


def _find_done(read: list[tuple[LogFile, bytes]]) -> frozenset[str]:
    """Writes that a later one of these logs stands for."""
    stood_for = ((log, find_stood_for(data, log.path)) for log, data in read)
    return frozenset(time for log, times in stood_for for time in times if time < log.instant)


def _read_log(storage: Storage, log: LogFile) -> tuple[LogFile, bytes]:
    data = storage.read(log.path)
    if data is None:
        raise DamagedTable(f"{log.path} is gone: cleaned or removed since the timeline was loaded", path=log.path)
    return log, data
