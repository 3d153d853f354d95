"""Shares of one file slice, for tasks that read it side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["WHOLE", "Part"]


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
