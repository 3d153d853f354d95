"""How much goes into one file, and into one task. Runs on the driver."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from hudi_locks.format import new_file_id
from hudi_locks.table import WHOLE, BaseFile, FileSlice, Part

__all__ = ["FileSizing", "Pack", "SlicePart", "pack_slices"]

_MOST_SHARES: Final = 100


@dataclass(frozen=True)
class FileSizing:
    """Sizes that decide how many file groups new rows make.

    Attributes:
        record_bytes: Expected size of a row in a base file.
        max_file_bytes: Target size of a base file.
        small_file_bytes: Base files below this take new rows before new files are made; 0 for never.
    """

    record_bytes: int
    max_file_bytes: int
    small_file_bytes: int

    def share_rows(self, new_rows: Mapping[str, int], base_files: Iterable[BaseFile]) -> dict[str, list[str]]:
        """For each partition path the file ids that share its new rows, an id once for each of its shares."""
        small: dict[str, list[BaseFile]] = {}
        for file in base_files:
            if file.partition in new_rows and self._free_rows(file):
                small.setdefault(file.partition, []).append(file)
        return {path: self._shares(rows, small.get(path, [])) for path, rows in new_rows.items() if rows}

    def _shares(self, rows: int, small: list[BaseFile]) -> list[str]:
        takes: dict[str, int] = {}
        for file in sorted(small, key=lambda file: file.size):
            takes[file.file_id] = min(self._free_rows(file), rows - sum(takes.values()))
        left = rows - sum(takes.values())
        full = max(1, self.max_file_bytes // self.record_bytes)
        files = -(-left // full)
        takes |= {new_file_id(): -(-left // files) for _ in range(files)}
        return [file_id for file_id, taken in takes.items() for _ in range(_count_shares(taken, rows, len(takes)))]

    def _free_rows(self, file: BaseFile) -> int:
        if file.size >= self.small_file_bytes:
            return 0
        return max(0, (self.max_file_bytes - file.size) // self.record_bytes)


def _count_shares(taken: int, rows: int, files: int) -> int:
    """Shares in proportion to the rows taken; one each where all files are alike, so that the list stays short."""
    if taken <= 0:
        return 0
    return 1 if files == 1 else max(1, round(_MOST_SHARES * taken / rows))


_LEAST_BYTES: Final = 1 << 20
"""A PySpark task takes as long to begin as this many bytes take to be merged, whatever it does."""
_MOST_BYTES: Final = 32 << 20
"""Up to so much one task for each core does best; of more, so that cores whose work was less can take another."""
_LEAST_PART_BYTES: Final = 8 << 20
"""Of a base file; about a row group."""
_LEAST_PART_LOGS: Final = 2
"""A part has so many times as much of the base file as of the logs, which every part reads."""


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
    """Parts for which it is worth that each reads the logs."""
    return _count_base(piece) // max(_LEAST_PART_BYTES, _LEAST_PART_LOGS * _count_logs(piece))


def _find_share(whole_bytes: float, *, cores: int) -> float:
    """What each task is to read, so that all cores are done at the same time: each runs as many tasks, of one size."""
    fewest = max(1, math.ceil(whole_bytes / _MOST_BYTES))
    tasks = max(fewest, min(cores, whole_bytes // _LEAST_BYTES))
    return max(1.0, whole_bytes / (math.ceil(tasks / cores) * cores if tasks > cores else tasks))


def _count_base(piece: FileSlice) -> int:
    return 0 if piece.base is None else piece.base.size


def _count_logs(piece: FileSlice) -> int:
    return sum(log.size for log in piece.logs)
