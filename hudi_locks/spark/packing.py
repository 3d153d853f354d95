"""Which file slices, or shares of one, one Spark task reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from hudi_locks.table import WHOLE, FileSlice, Part

__all__ = ["Pack", "SlicePart", "pack_slices"]

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
