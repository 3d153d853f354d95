"""Parts and manifests of the archived timeline (Hudi's HoodieLSMTimelineInstant and HoodieLSMTimelineManifest)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_locks.format.avro import LSM_TIMELINE_INSTANT
from hudi_locks.format.records import interpreting, reading_parquet

__all__ = [
    "ArchiveRow",
    "PartName",
    "decode_manifest",
    "decode_rows",
    "encode_manifest",
    "encode_rows",
    "manifest_name",
    "parse_manifest_name",
]

_PART: Final = re.compile(r"(\d+)_(\d+)_(\d+)\.parquet")
_MANIFEST: Final = re.compile(r"manifest_(\d+)")
_SCHEMA: Final = pa.schema(
    [
        pa.field("instantTime", pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field("action", pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
_FOOTER: Final = {
    "parquet.avro.schema": json.dumps(LSM_TIMELINE_INSTANT, separators=(",", ":")),
    "writer.model.name": "avro",
}


@dataclass(frozen=True)
class ArchiveRow:
    """One instant of the archived timeline.

    Attributes:
        requested: When it was begun.
        completion: When it was completed.
        action: As its completed file named it.
        metadata: Bytes of its completed file.
        plan: Bytes of its requested file; None if that was empty.
    """

    requested: str
    completion: str
    action: str
    metadata: bytes
    plan: bytes | None = None


@dataclass(frozen=True, order=True)
class PartName:
    """`<first>_<last>_<level>.parquet`.

    Attributes:
        first: Requested time of its first instant.
        last: Of its last.
        level: 0 as archived, 1 and more as merged.
    """

    first: str
    last: str
    level: int = 0

    def __str__(self) -> str:
        return f"{self.first}_{self.last}_{self.level}.parquet"

    @classmethod
    def parse(cls, name: str) -> PartName | None:
        """The parts of a name; None if it is not one."""
        match = _PART.fullmatch(name)
        return cls(match[1], match[2], int(match[3])) if match else None


def manifest_name(version: int) -> str:
    """The file that lists the parts of a version."""
    return f"manifest_{version}"


def parse_manifest_name(name: str) -> int | None:
    """The version of a manifest; None if `name` is not one."""
    match = _MANIFEST.fullmatch(name)
    return int(match[1]) if match else None


def encode_rows(rows: Iterable[ArchiveRow]) -> bytes:
    """The bytes of a part; always the same for the same rows."""
    records = [
        {
            "instantTime": row.requested,
            "completionTime": row.completion,
            "action": row.action,
            "metadata": row.metadata,
            "plan": row.plan,
            "version": 1,
        }
        for row in rows
    ]
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(records, schema=_SCHEMA)
    with pq.ParquetWriter(sink, _SCHEMA, compression="gzip", use_dictionary=False, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(_FOOTER)
    return bytes(sink.getvalue().to_pybytes())


def decode_rows(data: bytes, path: str) -> list[ArchiveRow]:
    """The instants of a part.

    Raises:
        DamagedTable: The bytes are no such part; it names `path`.
    """
    with reading_parquet("a part of the archived timeline", path):
        found = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False).to_pylist()
        return [_decode_row(row) for row in found]


def encode_manifest(sizes: dict[str, int]) -> bytes:
    """The bytes of a manifest: names and sizes of its parts, oldest first."""
    files = [{"fileName": name, "fileLen": size} for name, size in sorted(sizes.items())]
    return json.dumps({"files": files}, indent=2).encode()


def decode_manifest(data: bytes, path: str) -> dict[str, int]:
    """Names and sizes of the parts of a manifest.

    Raises:
        DamagedTable: The bytes are no manifest; it names `path`.
    """
    with interpreting("readable manifest of the archived timeline", path):
        return {file["fileName"]: int(file["fileLen"]) for file in json.loads(data)["files"]}


def _decode_row(row: dict[str, Any]) -> ArchiveRow:
    return ArchiveRow(row["instantTime"], row["completionTime"], row["action"], row["metadata"] or b"", row["plan"])
