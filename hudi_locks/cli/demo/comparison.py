"""Whether a table holds exactly the rows that it must."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Comparison", "compare"]

_EXPECTED = "_expected"


@dataclass(frozen=True)
class Comparison:
    """A reader's rows held against the expected ones.

    Attributes:
        reader: Whose rows.
        rows: How many it gave.
        missing: Expected rows that it did not give.
        surplus: Rows that it gave and that are not expected, doubled ones included.
    """

    reader: str
    rows: int
    missing: int
    surplus: int

    @property
    def agrees(self) -> bool:
        """Whether every row is there once and as expected."""
        return self.missing == 0 and self.surplus == 0


def compare(reader: str, found: pa.Table, *, expected: pa.Table, key: Sequence[str]) -> Comparison:
    """Hold every column of every row against the expected row with the same key."""
    columns = expected.column_names
    found = found.select(columns).cast(expected.schema)
    order = [(name, "ascending") for name in key]
    if found.num_rows == expected.num_rows and found.sort_by(order).equals(expected.sort_by(order)):
        return Comparison(reader, found.num_rows, 0, 0)
    right = _matching(found, expected, key).group_by(list(key)).aggregate([]).num_rows
    return Comparison(reader, found.num_rows, expected.num_rows - right, found.num_rows - right)


def _matching(found: pa.Table, expected: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows of `found` that are as expected in every column, null being equal to null."""
    joined = found.join(expected, list(key), right_suffix=_EXPECTED, join_type="inner")
    values = [name for name in expected.column_names if name not in key]
    return joined.filter(reduce(pc.and_, [_is_same(joined, name) for name in values]))


def _is_same(joined: pa.Table, name: str) -> pa.ChunkedArray:
    left, right = joined[name], joined[f"{name}{_EXPECTED}"]
    both_null = pc.and_(left.is_null(), right.is_null())
    return pc.or_(both_null, pc.fill_null(pc.equal(left, right), fill_value=False))
