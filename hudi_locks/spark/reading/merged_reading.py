"""Reading file slices with logs: the driver packs them for tasks, several for one, or shares of a large one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa

from hudi_locks.storage import Storage
from hudi_locks.table import WHOLE, Condition, FileSlice, MergeRule, Part, PartitionValues, read_slice

__all__ = ["MergeTask", "Pack", "SlicePart", "pack_slices"]

_LEAST_BYTES: Final = 1 << 20
"""A PySpark task takes as long to begin as this many bytes take to be merged, whatever it does."""
_MOST_BYTES: Final = 32 << 20
"""Up to so much one task for each core does best; of more, so that cores whose work was less can take another."""
_LEAST_PART_BYTES: Final = 8 << 20
"""Of a base file; about a row group."""
_LEAST_PART_LOGS: Final = 2
"""A part has so many times as much of the base file as of the logs, which every part reads."""
_BATCH_ROWS: Final = 1 << 16
_PIECE_ROWS: Final = 1 << 17
"""The JVM turns the rows of one piece into its own while the next is merged."""


@dataclass(frozen=True)
class SlicePart:
    """What one task reads of a slice.

    Attributes:
        slice: The slice.
        part: All of it, or a share.
    """

    slice: FileSlice
    part: Part = WHOLE

    @property
    def size(self) -> float:
        """Bytes that are read."""
        return _count_base(self.slice) / self.part.count + _count_logs(self.slice)


Pack = tuple[SlicePart, ...]


def pack_slices(slices: Sequence[FileSlice], *, cores: int) -> tuple[Pack, ...]:
    """Slices in their order, those together that one task is to read; large ones in parts if cores would idle.

    Args:
        slices: With the sizes of their files.
        cores: So many tasks run side by side.
    """
    parts = _split(slices, cores=cores)
    sizes = [part.size for part in parts]
    middles = (end - size / 2 for end, size in zip(accumulate(sizes), sizes, strict=True))
    share = _find_share(sum(sizes), cores=cores)
    packs: dict[int, list[SlicePart]] = {}
    for part, middle in zip(parts, middles, strict=True):
        packs.setdefault(int(middle / share), []).append(part)
    return tuple(map(tuple, packs.values()))


def _split(slices: Sequence[FileSlice], *, cores: int) -> list[SlicePart]:
    """Of all slices together not more parts than cores, and each slice at least whole."""
    whole = max(1, sum(map(_count_base, slices)))
    counts = (min(cores * _count_base(piece) // whole, _count_most(piece)) for piece in slices)
    return [
        SlicePart(piece, Part(number, max(1, count)))
        for piece, count in zip(slices, counts, strict=True)
        for number in range(max(1, count))
    ]


def _count_most(piece: FileSlice) -> int:
    """Parts for which it is worth that each reads the logs; a skeleton and its source end row groups elsewhere."""
    if piece.base is not None and piece.base.is_skeleton:
        return 1
    return _count_base(piece) // max(_LEAST_PART_BYTES, _LEAST_PART_LOGS * _count_logs(piece))


def _find_share(whole_bytes: float, *, cores: int) -> float:
    """What each task is to read, so that all cores are done at the same time: each runs as many tasks, of one size."""
    fewest = max(1, math.ceil(whole_bytes / _MOST_BYTES))
    tasks = max(fewest, min(cores, whole_bytes // _LEAST_BYTES))
    return max(1.0, whole_bytes / (math.ceil(tasks / cores) * cores if tasks > cores else tasks))


def _count_base(piece: FileSlice) -> int:
    """A skeleton stands for a file whose size nobody asked for, which is read by a task of its own."""
    if piece.base is None:
        return 0
    return _MOST_BYTES if piece.base.is_skeleton else piece.base.size


def _count_logs(piece: FileSlice) -> int:
    return sum(log.size for log in piece.logs)


@dataclass(frozen=True)
class MergeTask:
    """Reads the packs of slices whose numbers it is given. Picklable; made on the driver, called on executors.

    Attributes:
        storage: Of the table.
        packs: All slices of the read, by the task that reads them.
        schema: Of the rows that are read, with the columns that decide between them.
        rule: Which of two rows with one key wins.
        shown: The columns that are given, in their order: Spark would drop others only after it copied them.
        values: What partition paths tell of the rows.
        file_id: Name of a column that comes last and has the id of each row's file group; none if empty.
        wanted: See `read_slice`.
    """

    storage: Storage
    packs: tuple[Pack, ...]
    schema: pa.Schema
    rule: MergeRule
    shown: tuple[str, ...]
    values: PartitionValues
    file_id: str = ""
    wanted: Condition | None = None

    @property
    def columns(self) -> pa.Schema:
        """Of the rows that it gives."""
        fields = [self.schema.field(name) for name in self.shown]
        return pa.schema([*fields, pa.field(self.file_id, pa.string())] if self.file_id else fields)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the packs numbered in the first column."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for rows in self.read(self.packs[number]):
                    yield from rows.to_batches(max_chunksize=_BATCH_ROWS)

    def read(self, pack: Pack) -> Iterator[pa.Table]:
        """The rows of one pack in pieces."""
        for one in pack:
            for rows in self._read(one):
                yield self._add_id(rows.select(self.shown), one.slice.file_id)

    def _add_id(self, rows: pa.Table, file_id: str) -> pa.Table:
        if not self.file_id:
            return rows
        return rows.append_column(self.file_id, pa.repeat(pa.scalar(file_id), rows.num_rows))

    def _read(self, one: SlicePart) -> Iterator[pa.Table]:
        storage, piece = self.storage, one.slice
        how: dict[str, Any] = {"rule": self.rule, "piece_rows": _PIECE_ROWS, "part": one.part, "wanted": self.wanted}
        found = read_slice(storage, piece, self.schema, **how)
        return (self.values.apply(rows, piece.partition) for rows in found)
