"""How new rows are cut into files (Hudi's UpsertPartitioner, without its bias towards one small file)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from hudi_locks.format import new_file_id
from hudi_locks.table import BaseFile

__all__ = ["FileSizing"]

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
