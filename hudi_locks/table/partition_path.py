"""Partition paths: how they are made of values, and what values they tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from hudi_locks.config import table_keys
from hudi_locks.errors import BadInput, DamagedTable
from hudi_locks.format import decode_properties, encode_properties
from hudi_locks.storage import Storage
from hudi_locks.table.config import TableConfig
from hudi_locks.table.key_generator import COMPLEX, SIMPLE

__all__ = [
    "DEFAULT_PARTITION",
    "NOT_A_TIME",
    "PARTITION_METADATA",
    "PartitionValues",
    "check_partition_path",
    "create_partition_metadata",
    "parse_partition_path",
    "partition_path",
    "read_partition_metadata",
]

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""Stands for null and for the empty text."""
NOT_A_TIME: Final = "\x00not a time\x00"
"""Before a value that was to be formatted as a time, and is none; a folder of that name cannot be."""
PARTITION_METADATA: Final = ".hoodie_partition_metadata"

_ESCAPED = re.compile(r"[\x01-\x1f\"#%'*/:=?\[\\\]^{\x7f]")
_LONGEST_NAME_BYTES: Final = 255
_AS_THEY_ARE: Final = (SIMPLE, COMPLEX)
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


def partition_path(
    values: Sequence[str | None], fields: Sequence[str], *, hive_style: bool = False, url_encode: bool = False
) -> str:
    """The folder of rows with these partition values, relative to the base path; "" for no partition fields.

    Args:
        values: As text, one for each field.
        fields: Partition columns in the table's order.
        hive_style: Whether folders are called `column=value`.
        url_encode: Whether characters with a meaning in paths are escaped. Without it a value with slashes gives
            several folders, as in Hudi.

    Raises:
        BadInput: The values give no folder that stays inside the table.
    """
    texts = [_escape(value or "", url_encode=url_encode) or DEFAULT_PARTITION for value in values]
    path = "/".join(f"{f}={text}" if hive_style else text for f, text in zip(fields, texts, strict=True))
    if fields:
        check_partition_path(path)
    return path


def check_partition_path(path: str) -> None:
    """Whether every part of a partition path is a folder of its own inside the table.

    Raises:
        BadInput: It is not.
    """
    _, is_time, value = path.partition(NOT_A_TIME)
    if is_time:
        message = (
            f"the partition value {value!r} is no time as hoodie.keygen.timebased.* describes it, and has no folder;"
            " correct those rows, or leave them out"
        )
        raise BadInput(message, partition_path=path)
    for name in path.split("/"):
        _check_folder(name, path)


def _escape(value: str, *, url_encode: bool) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", value) if url_encode else value


def _check_folder(name: str, path: str) -> None:
    if name in ("", ".", "..", ".hoodie") or "\x00" in name:
        message = f"the partition path {path!r} has a part {name!r} that is no folder of its own"
        advice = "set hoodie.datasource.write.partitionpath.urlencode=true at creation, or clean the values"
        raise BadInput(f"{message}; {advice}", partition_path=path)
    if len(name.encode()) > _LONGEST_NAME_BYTES:
        message = f"the partition path {path[:80]!r}… has a part of {len(name.encode())} bytes; file systems allow 255"
        raise BadInput(message, partition_path=path)


def parse_partition_path(
    path: str, fields: Sequence[str], *, hive_style: bool = False, url_encode: bool = False
) -> tuple[str | None, ...]:
    """The partition values, as text, of a folder; None for null (which the empty text became, too).

    Raises:
        DamagedTable: The folder cannot belong to these fields.
    """
    if not fields:
        return ()
    prefixes = [re.escape(f"{field}=") if hive_style else "" for field in fields]
    part = "(.+?)" if hive_style or len(fields) == 1 else "([^/]+)"
    match = re.fullmatch("/".join(prefix + part for prefix in prefixes), path, re.DOTALL)
    if match is None:
        message = f"folder {path!r} does not fit the partition columns {', '.join(fields)} (hive style: {hive_style})"
        raise DamagedTable(message, path=path, fields=tuple(fields))
    texts = (unquote(text) if url_encode else text for text in match.groups())
    return tuple(None if text == DEFAULT_PARTITION else text for text in texts)


def create_partition_metadata(storage: Storage, partition: str, *, instant: str) -> bool:
    """Mark a folder as a partition, so that readers find it; False if it is marked already. Runs on executors too."""
    depth = len(partition.split("/")) if partition else 0
    data = encode_properties({"commitTime": instant, "partitionDepth": str(depth)}, "partition metadata")
    return storage.create_if_absent(_metadata_path(partition), data)


def read_partition_metadata(storage: Storage, partition: str) -> dict[str, str] | None:
    """What the file that marks a partition says: `commitTime`, `partitionDepth`; None if it is not marked.

    Raises:
        DamagedTable: The file cannot be read.
    """
    path = _metadata_path(partition)
    data = storage.read(path)
    return None if data is None else decode_properties(data, path)


def _metadata_path(partition: str) -> str:
    return f"{partition}/{PARTITION_METADATA}" if partition else PARTITION_METADATA


@dataclass(frozen=True)
class PartitionValues:
    """Reads the values of a table's partition columns out of partition paths.

    Attributes:
        columns: The partition columns with their types; none where paths do not tell values.
        hive_style: Whether folders are called `column=value`.
        url_encode: Whether characters with a meaning in paths are escaped.
        is_bootstrapped: Whether folders were named before there was a table, and perhaps in another way.
    """

    columns: pa.Schema
    hive_style: bool
    url_encode: bool
    is_bootstrapped: bool = False

    @classmethod
    def of(cls, config: TableConfig, schema: pa.Schema) -> PartitionValues:
        """Those of a table with these columns."""
        fields = config.partition_fields
        plain = config.key_generator in _AS_THEY_ARE or (config.partition_kinds and not config.time_fields)
        told = plain and all(name in schema.names for name in fields)
        columns = [schema.field(name) for name in fields] if told else []
        known = all(field.type in _FORMS for field in columns)
        is_bootstrapped = bool(config.extra.get(table_keys.BOOTSTRAP_BASE_PATH.name))
        return cls(pa.schema(columns if known else []), config.hive_style, config.url_encode, is_bootstrapped)

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
        """Rows of a partition with what its path says, as JVM readers show them.

        Under a global index a row that stays in its partition may have come with other values.
        """
        for field, text in zip(self.columns, self.read(partition) or (), strict=False):
            place = rows.schema.get_field_index(field.name)
            if place >= 0:
                kind = rows.schema.types[place]
                plain = kind.value_type if pa.types.is_dictionary(kind) else kind
                value = pa.scalar(text, pa.string()).cast(plain)
                rows = rows.set_column(place, field.name, pa.repeat(value, rows.num_rows))
        return rows

    def _read(self, folder: str, field: pa.Field) -> str | None:
        is_foreign = self.is_bootstrapped and folder.startswith(f"{field.name}=")  # as Spark writes it
        prefix = f"{field.name}=" if self.hive_style or is_foreign else ""
        text = folder.removeprefix(prefix)
        text = unquote(text) if self.url_encode or self.is_bootstrapped else text
        is_known = text not in _NOT_KNOWN and (text == DEFAULT_PARTITION or _is_value(text, field.type))
        return text if is_known and folder.startswith(prefix) else None


def _is_value(text: str, kind: pa.DataType) -> bool:
    try:
        return bool(_FORMS[kind].fullmatch(text) and pa.scalar(text).cast(kind).is_valid)
    except pa.ArrowInvalid:  # a day that no month has, or too large a number
        return False
