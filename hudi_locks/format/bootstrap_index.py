"""What a bootstrap index says: which file has the columns of the rows whose meta columns a skeleton has.

It is an HFile whose keys name the partitions of the table, and whose values are Avro containers (Hudi's
HFileBootstrapIndex, HoodieBootstrapPartitionMetadata). A second HFile says the same of each file group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from hudi_locks.format.instant import METADATA_BOOTSTRAP
from hudi_locks.format.records import decode_record, interpreting

__all__ = ["BOOTSTRAP_INDEX", "SourceFile", "decode_sources", "source_key"]

BOOTSTRAP_INDEX: Final = (
    f".hoodie/.aux/.bootstrap/.partitions/00000000-0000-0000-0000-000000000000-0_1-0-1_{METADATA_BOOTSTRAP}.hfile"
)
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class SourceFile:
    """A file that lay there before the table was made of it.

    Attributes:
        address: With its scheme, as `file:/data/day=1/part-0.parquet`.
        size: Bytes.
        values: What its folders tell, as text: the value of each column, None for null.
    """

    address: str
    size: int
    values: tuple[tuple[str, str | None], ...]


def source_key(partition: str) -> bytes:
    """The key under which the index names the sources of a partition of the table."""
    return f"part={partition}".encode()


def decode_sources(data: bytes, path: str) -> dict[str, SourceFile]:
    """The sources of the skeletons of one partition, by file id.

    Raises:
        DamagedTable: The bytes say nothing of the kind; it names `path`.
    """
    record = decode_record(data, path)
    with interpreting("bootstrap index", path):
        values = _read_folders(record["bootstrapPartitionPath"] or "")
        files: Mapping[str, Any] = record["fileIdToBootstrapFile"] or {}
        return {
            file_id: SourceFile(str(status["path"]["uri"]), int(status["length"]), values)
            for file_id, status in files.items()
        }


def _read_folders(path: str) -> tuple[tuple[str, str | None], ...]:
    """As Spark finds partition columns: folders `column=value`, escaped."""
    pairs = [folder.split("=", 1) for folder in path.split("/") if "=" in folder]
    return tuple((unquote(name), None if text == _NULL else unquote(text)) for name, text in pairs)
