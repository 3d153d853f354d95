"""The share of a slice's base file that one task reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from hudi_locks.storage import Storage
from hudi_locks.table.base_file import count_row_groups, read_base_file
from hudi_locks.table.meta_columns import RECORD_KEY
from hudi_locks.table.slice_parts import Part

__all__ = ["BaseRows"]


@dataclass(frozen=True)
class BaseRows:
    """A share of a base file.

    Attributes:
        storage: Of the table.
        path: Of the file; None if there is none.
        part: The share.
    """

    storage: Storage
    path: str | None
    part: Part

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
            yield from read_base_file(
                self.storage,
                self.path,
                columns=columns,
                batch_rows=batch_rows,
                encoded=encoded,
                row_groups=self._row_groups,
            )

    def read_keys_elsewhere(self, *, batch_rows: int) -> Iterator[pa.ChunkedArray]:
        """The keys of the rows that are in other shares."""
        own = self._row_groups
        others = [] if own is None else [group for group in range(self._count) if group not in own]
        if self.path is not None and others:
            found = read_base_file(
                self.storage, self.path, columns=[RECORD_KEY], batch_rows=batch_rows, row_groups=others
            )
            yield from (rows.column(RECORD_KEY) for rows in found)

    @cached_property
    def _count(self) -> int:
        return 0 if self.path is None else count_row_groups(self.storage, self.path)

    @cached_property
    def _row_groups(self) -> Sequence[int] | None:
        """None for all, which need not be counted."""
        return None if self.part.is_whole else self.part.choose(self._count)
