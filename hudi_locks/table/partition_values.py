"""Values of partition columns, as far as a partition's path tells them beyond doubt."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from hudi_locks.table.config import TableConfig
from hudi_locks.table.partition_path import DEFAULT_PARTITION

__all__ = ["PartitionValues"]

_AS_THEY_ARE: Final = frozenset({"SIMPLE", "SIMPLE_AVRO", "COMPLEX", "COMPLEX_AVRO"})
"""Key generators that put the text of each value into the path, one folder for each."""
_NOT_KNOWN: Final = frozenset({"", "default"})
"""The last one may stand for null, in tables that began before Hudi 0.12."""
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
_FORMS: Final = {
    pa.string(): re.compile(r".*", re.DOTALL),
    pa.int32(): _INTEGER,
    pa.int64(): _INTEGER,
    pa.bool_(): re.compile("true|false"),
    pa.date32(): re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
}
"""Texts of which each is that of one value, and of no other."""


@dataclass(frozen=True)
class PartitionValues:
    """Reads the values of a table's partition columns out of partition paths.

    Attributes:
        columns: The partition columns with their types; none where paths do not tell values.
        hive_style: Whether folders are called `column=value`.
        url_encode: Whether characters with a meaning in paths are escaped.
    """

    columns: pa.Schema
    hive_style: bool
    url_encode: bool

    @classmethod
    def of(cls, config: TableConfig, schema: pa.Schema) -> PartitionValues:
        """Those of a table with these columns."""
        fields = config.partition_fields
        told = config.key_generator in _AS_THEY_ARE and all(name in schema.names for name in fields)
        columns = [schema.field(name) for name in fields] if told else []
        known = all(field.type in _FORMS for field in columns)
        return cls(pa.schema(columns if known else []), config.hive_style, config.url_encode)

    def read(self, partition: str) -> tuple[str | None, ...] | None:
        """The value of each column as text, of which a cast makes the value; None where it may be another one.

        The folder that stands for null and for the empty text says null of both, as JVM readers do.
        """
        folders = partition.split("/")
        if not self.columns.names or len(folders) != len(self.columns):
            return None
        texts = [self._read(folder, field) for folder, field in zip(folders, self.columns, strict=True)]
        known = all(text is not None for text in texts)
        return tuple(None if text == DEFAULT_PARTITION else text for text in texts) if known else None

    def apply(self, rows: pa.Table, partition: str) -> pa.Table:
        """Rows of a partition with null where its path says so."""
        for field, text in zip(self.columns, self.read(partition) or (), strict=False):
            place = rows.schema.get_field_index(field.name)
            if text is None and place >= 0:
                rows = rows.set_column(place, field.name, pa.nulls(rows.num_rows, rows.schema.types[place]))
        return rows

    def _read(self, folder: str, field: pa.Field) -> str | None:
        prefix = f"{field.name}=" if self.hive_style else ""
        text = unquote(folder.removeprefix(prefix)) if self.url_encode else folder.removeprefix(prefix)
        is_known = text not in _NOT_KNOWN and (text == DEFAULT_PARTITION or _FORMS[field.type].fullmatch(text))
        return text if is_known and folder.startswith(prefix) else None
