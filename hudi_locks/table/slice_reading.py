"""The rows of a file slice: its base file, with what its logs say applied."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import pyarrow as pa

from hudi_locks.errors import DamagedTable
from hudi_locks.storage import Storage, map_in_threads, reading_ahead
from hudi_locks.table.base_file import count_row_groups, read_base_file
from hudi_locks.table.conditions import Condition
from hudi_locks.table.data_files import FileSlice, LogFile
from hudi_locks.table.log_merging import JoinedLogs, join_logs, map_on_cores, merge_logs
from hudi_locks.table.log_rows import LogEntry, find_stood_for, find_undone, list_later, read_log
from hudi_locks.table.meta_columns import RECORD_KEY, conform
from hudi_locks.table.ordering import MergeRule
from hudi_locks.table.row_groups import choose_row_groups

__all__ = ["WHOLE", "BaseRows", "Part", "join_slice", "read_slice"]

_MOST_KEYS: Final = 1 << 20
"""For so many keys of rows that another task reads those of the logs are hashed once."""


@dataclass(frozen=True)
class BaseRows:
    """A share of a base file.

    Attributes:
        storage: Of the table.
        piece: The slice that it is of, which may have none.
        part: The share.
        rule: Says how its rows become those of the table.
        wanted: What a row must meet to be shown, where its file alone tells; None if all are.
    """

    storage: Storage
    piece: FileSlice
    part: Part
    rule: MergeRule
    wanted: Condition | None = None

    @property
    def path(self) -> str | None:
        """Of the file; None if there is none."""
        return None if self.piece.base is None else self.piece.base.path

    @property
    def closes(self) -> bool:
        """Whether this share has the rows that only the logs have; see `Part.closes`."""
        return self.part.is_whole or self.part.closes(self._count)

    @property
    def is_left_out(self) -> bool:
        """Whether there is nothing in this share, since the file has less row groups than there are shares."""
        return not self.closes and not self._row_groups

    def read(self, columns: Collection[str], *, encoded: Collection[str], batch_rows: int) -> Iterator[pa.Table]:
        """The rows in pieces; see `read_base_file`."""
        if self.path is not None:
            found = read_base_file(
                self.storage,
                self.path,
                columns=columns,
                batch_rows=batch_rows,
                encoded=encoded,
                row_groups=self._row_groups,
            )
            yield from map(self._fill, found)

    def read_keys_elsewhere(self, *, batch_rows: int) -> Iterator[pa.ChunkedArray]:
        """The keys of the rows that are in other shares."""
        own = self._row_groups
        others = [] if own is None else [group for group in range(self._count) if group not in own]
        if self.path is not None and others:
            keys = self.rule.virtual_keys
            columns = [RECORD_KEY] if keys is None else keys.columns
            found = read_base_file(self.storage, self.path, columns=columns, batch_rows=batch_rows, row_groups=others)
            yield from (self._fill(rows).column(RECORD_KEY) for rows in found)

    def _fill(self, rows: pa.Table) -> pa.Table:
        base = self.piece.base
        return rows if base is None else _complete(rows, self.rule, partition=base.partition, instant=base.instant)

    @cached_property
    def _count(self) -> int:
        return 0 if self.path is None else count_row_groups(self.storage, self.path)

    @cached_property
    def _row_groups(self) -> Sequence[int] | None:
        """None for all, which need not be counted."""
        chosen = None if self.part.is_whole else self.part.choose(self._count)
        if self.wanted is None or self.path is None or self.piece.logs or self.rule.history is not None:
            return chosen
        return choose_row_groups(self.storage, self.path, self.wanted, among=chosen)


@dataclass(frozen=True)
class Part:
    """One of several shares of a file slice: row groups of its base file, with what the logs make of their rows.

    Rows of logs that meet no row of the base file belong to the part that closes. All parts together are the slice.

    Attributes:
        number: From 0.
        count: Of the parts of this slice.
    """

    number: int = 0
    count: int = 1

    @property
    def is_whole(self) -> bool:
        """Whether it is the only one."""
        return self.count == 1

    def choose(self, row_groups: int) -> Sequence[int]:
        """Those of a base file with so many that are in this part; earlier parts have one more than later ones."""
        start, stop = (-(-number * row_groups // self.count) for number in (self.number, self.number + 1))
        return range(start, stop)

    def closes(self, row_groups: int) -> bool:
        """Whether this part has the rows that only the logs have: it is that with the last row group."""
        return row_groups - 1 in self.choose(row_groups) if row_groups else self.number == 0


WHOLE: Final = Part()
"""All of a slice."""


def read_slice(
    storage: Storage,
    piece: FileSlice,
    schema: pa.Schema,
    *,
    rule: MergeRule,
    piece_rows: int = 1 << 19,
    part: Part = WHOLE,
    wanted: Condition | None = None,
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
        wanted: Row groups that cannot hold a row which meets it may be left out; rows are not looked at.

    Raises:
        DamagedTable: A file is gone, or cannot be read whole.
        UnsupportedTable: A log has a block of a kind that is not read here.
    """
    base = BaseRows(storage, piece, part, rule, wanted)
    if base.is_left_out:
        return
    encoded = () if rule.fills or not piece.logs else _find_idle(schema, rule)
    columns = _list_columns(schema, rule)
    with reading_ahead(base.read(columns, encoded=encoded, batch_rows=piece_rows)) as pieces:
        if not piece.logs:
            yield from (conform(rows, schema) for rows in pieces)
            return
        merge = merge_logs(_read_logs(storage, piece, columns, rule, encoded), schema, rule)
        yield from map(merge.apply, pieces)
    if base.closes:
        for keys in base.read_keys_elsewhere(batch_rows=_MOST_KEYS):
            merge.meet(keys)
        yield from merge.remaining()


def _list_columns(schema: pa.Schema, rule: MergeRule) -> list[str]:
    keys = () if rule.virtual_keys is None else rule.virtual_keys.columns
    older = () if rule.history is None else sorted(rule.history.all_names)
    return list(dict.fromkeys((*schema.names, *keys, *older)))


def _find_idle(schema: pa.Schema, rule: MergeRule) -> tuple[str, ...]:
    """Columns that decide nothing; none where rows are made of them, or have them under other names."""
    if rule.virtual_keys is not None or rule.history is not None:
        return ()
    return tuple(name for name in schema.names if name not in (RECORD_KEY, *rule.deciding))


def join_slice(storage: Storage, piece: FileSlice, schema: pa.Schema, *, rule: MergeRule) -> JoinedLogs:
    """What the logs of a slice say together; its base file is not read. Runs on executors; the logs are in memory.

    For arguments and errors see `read_slice`.
    """
    return join_logs(_read_logs(storage, piece, _list_columns(schema, rule), rule), schema, rule)


def _read_logs(
    storage: Storage, piece: FileSlice, columns: list[str], rule: MergeRule, idle: tuple[str, ...] = ()
) -> Iterator[LogEntry]:
    """What the logs do, without those for which a log compaction stands: its own log comes after them, and is enough.

    Where nulls take values of other rows it would not be the same without them.
    """
    needed = _drop_done(map_in_threads(lambda log: _read_log(storage, log), piece.logs), rule)
    undone = {} if piece.blocks is None else _find_undone(needed)

    def decode(log: LogFile, data: bytes) -> list[LogEntry]:
        takes = None if piece.blocks is None else piece.blocks.choose(log, undone[log])
        entries = read_log(data, log.path, columns=columns, idle=idle, takes=takes)
        return [_complete_entry(entry, piece.partition, rule) for entry in entries]

    return (entry for entries in map_on_cores(lambda one: decode(*one), needed) for entry in entries)


def _complete_entry(entry: LogEntry, partition: str, rule: MergeRule) -> LogEntry:
    """Deletes name their keys, also where rows do not."""
    if (rule.virtual_keys is None and rule.history is None) or entry.orderings is not None:
        return entry
    return replace(entry, rows=_complete(entry.rows, rule, partition=partition, instant=entry.instant))


def _complete(rows: pa.Table, rule: MergeRule, *, partition: str, instant: str) -> pa.Table:
    """Rows of a file as the table has them: under the names of today, and with their keys."""
    named = rows if rule.history is None else rule.history.bring_up(rows, instant)
    return named if rule.virtual_keys is None else rule.virtual_keys.fill(named, partition)


def _find_undone(read: list[tuple[LogFile, bytes]]) -> dict[LogFile, frozenset[str]]:
    """Writes whose blocks in a log are taken back by a rollback in a later one."""
    later = list_later([find_undone(data, log.path) for log, data in read])
    return {log: undone for (log, _), undone in zip(read, later, strict=True)}


def _drop_done(read: list[tuple[LogFile, bytes]], rule: MergeRule) -> list[tuple[LogFile, bytes]]:
    done = frozenset() if rule.fills else _find_done(read)
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
