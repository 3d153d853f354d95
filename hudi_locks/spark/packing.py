"""Which file slices one Spark task reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from hudi_locks.table import FileSlice

__all__ = ["pack_slices"]

_LEAST_BYTES: Final = 1 << 20
"""A PySpark task takes as long to begin as this many bytes take to be merged, whatever it does."""
_MOST_BYTES: Final = 32 << 20
"""Up to so much one task for each core does best; of more, so that cores whose work was less can take another."""


def pack_slices(slices: Sequence[FileSlice], *, cores: int) -> tuple[tuple[FileSlice, ...], ...]:
    """Slices in their order, those together that one task is to read.

    Args:
        slices: With the sizes of their files.
        cores: So many tasks run side by side.
    """
    sizes = [_count_bytes(piece) for piece in slices]
    middles = (end - size / 2 for end, size in zip(accumulate(sizes), sizes, strict=True))
    share = _find_share(sum(sizes), cores=cores)
    packs: dict[int, list[FileSlice]] = {}
    for piece, middle in zip(slices, middles, strict=True):
        packs.setdefault(int(middle / share), []).append(piece)
    return tuple(map(tuple, packs.values()))


def _find_share(whole_bytes: int, *, cores: int) -> float:
    """What each task is to read, so that all cores are done at the same time: each runs as many tasks, of one size."""
    fewest = max(1, math.ceil(whole_bytes / _MOST_BYTES))
    tasks = max(fewest, min(cores, whole_bytes // _LEAST_BYTES))
    return max(1.0, whole_bytes / (math.ceil(tasks / cores) * cores if tasks > cores else tasks))


def _count_bytes(piece: FileSlice) -> int:
    return sum(file.size for file in (piece.base, *piece.logs) if file is not None)
