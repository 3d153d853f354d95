"""Partition values and the folders they give (Hudi's PartitionPathEncodeUtils and HoodiePartitionMetadata)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from hudi_locks.errors import BadInput, DamagedTable
from hudi_locks.format import decode_properties, encode_properties
from hudi_locks.storage import Storage

__all__ = [
    "DEFAULT_PARTITION",
    "PARTITION_METADATA",
    "check_partition_path",
    "create_partition_metadata",
    "parse_partition_path",
    "partition_path",
    "read_partition_metadata",
]

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""Stands for null and for the empty text."""
PARTITION_METADATA: Final = ".hoodie_partition_metadata"

_ESCAPED = re.compile(r"[\x01-\x1f\"#%'*/:=?\[\\\]^{\x7f]")
_LONGEST_NAME_BYTES: Final = 255


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
