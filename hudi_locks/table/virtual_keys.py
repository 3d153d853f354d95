"""Virtual keys: record keys of rows whose files leave the meta columns empty (`hoodie.populate.meta.fields=false`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hudi_locks.errors import UnsupportedTable
from hudi_locks.format import META_COLUMNS
from hudi_locks.table.meta_columns import PARTITION_PATH, RECORD_KEY

__all__ = ["EMPTY_KEY", "NULL_KEY", "VirtualKeys", "clear_meta_columns"]

NULL_KEY: Final = "__null__"
EMPTY_KEY: Final = "__empty__"
_IS_SAME_TEXT: Final[tuple[Callable[[pa.DataType], bool], ...]] = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
)
"""Types of which Arrow and Spark make the same text."""


@dataclass(frozen=True)
class VirtualKeys:
    """Makes the record key of a row from its own columns, as the table's key generator did when it was written.

    Attributes:
        fields: Record key fields; `a.b` for one inside a struct.
        is_composite: Whether keys are written `name:value,…`.
    """

    fields: tuple[str, ...]
    is_composite: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that it needs."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.fields))

    def fill(self, rows: pa.Table, partition: str) -> pa.Table:
        """The rows with their record keys, and with the path of the partition that their file lies in.

        Raises:
            UnsupportedTable: See `make`.
        """
        keys = self.make(rows)
        return _put(_put(rows, RECORD_KEY, keys), PARTITION_PATH, pa.repeat(pa.scalar(partition), rows.num_rows))

    def make(self, rows: pa.Table) -> pa.ChunkedArray:
        """The record key of each row; null where it has none.

        Raises:
            UnsupportedTable: A column of the key is missing, or of a type whose text differs between Arrow and Java.
        """
        values = [_render(_find(rows, name), name) for name in self.fields]
        if not self.is_composite:
            return pc.if_else(pc.equal(values[0], ""), pa.scalar(None, pa.string()), values[0])
        pairs = [
            pc.binary_join_element_wise(f"{name}:", _name_missing(value), "")
            for name, value in zip(self.fields, values, strict=True)
        ]
        useful = [pc.fill_null(pc.not_equal(value, ""), fill_value=False) for value in values]
        keys = pairs[0] if len(pairs) == 1 else pc.binary_join_element_wise(*pairs, ",")
        return pc.if_else(reduce(pc.or_, useful), keys, pa.scalar(None, pa.string()))

    def check(self, schema: pa.Schema) -> None:
        """Whether keys can be made of rows with these columns; raises what `make` raises."""
        self.make(schema.empty_table())


def clear_meta_columns(rows: pa.Table) -> pa.Table:
    """The rows as files of such a table have them: their meta columns are null."""
    empty = pa.nulls(rows.num_rows, pa.string())
    names = [name for name in META_COLUMNS if name in rows.schema.names]
    return reduce(lambda found, name: _put(found, name, empty), names, rows)


def _put(rows: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.append_column(name, column) if place < 0 else rows.set_column(place, name, column)


def _find(rows: pa.Table, name: str) -> pa.ChunkedArray:
    parts = name.split(".")
    place = rows.schema.get_field_index(parts[0])
    if place < 0:
        message = f"record key column {parts[0]!r} is not in the file, and rows without meta columns have no other key"
        raise UnsupportedTable(message, column=parts[0])
    return reduce(lambda column, part: pc.struct_field(column, part), parts[1:], rows.column(place))


def _render(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not any(is_kind(column.type) for is_kind in _IS_SAME_TEXT):
        message = (
            f"record key column {name!r} is of type {column.type}: of a table without meta columns keys of texts, whole"
            " numbers, booleans, dates and timestamps are made; write to it with JVM Hudi"
        )
        raise UnsupportedTable(message, column=name, type=str(column.type))
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    return column.cast(pa.string())


def _name_missing(values: Sequence[str]) -> pa.ChunkedArray:
    named = pc.if_else(pc.equal(values, ""), EMPTY_KEY, values)
    return pc.fill_null(named, NULL_KEY)
