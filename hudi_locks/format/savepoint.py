"""What a savepoint keeps (Hudi's HoodieSavepointMetadata)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_locks.format.avro import SAVEPOINT_METADATA
from hudi_locks.format.records import decode_record, encode_record, interpreting

__all__ = ["SavepointMetadata"]


@dataclass(frozen=True)
class SavepointMetadata:
    """Content of a completed savepoint.

    Attributes:
        user: Who made it.
        made_ms: When, ms since the epoch.
        comments: Why.
        files: Names of the data files that it keeps, by partition path.
    """

    user: str
    made_ms: int
    comments: str
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def paths(self) -> frozenset[str]:
        """The data files that it keeps, relative to the base path."""
        return frozenset(f"{part}/{name}" if part else name for part, names in self.files.items() for name in names)

    def encode(self) -> bytes:
        """Its bytes: Avro in every layout."""
        partitions = {
            path: {"partitionPath": path, "savepointDataFile": list(names)} for path, names in self.files.items()
        }
        record = {
            "savepointedBy": self.user,
            "savepointedAt": self.made_ms,
            "comments": self.comments,
            "partitionMetadata": partitions,
            "version": 1,
        }
        return encode_record(SAVEPOINT_METADATA, record)

    @classmethod
    def decode(cls, data: bytes, path: str) -> SavepointMetadata:
        """Read a completed savepoint.

        Raises:
            DamagedTable: The bytes are no savepoint; it names `path`.
        """
        record: dict[str, Any] = decode_record(data, path)
        with interpreting("savepoint", path):
            parts = record["partitionMetadata"].items()
            files = {key: tuple(part["savepointDataFile"]) for key, part in parts}
            return cls(record["savepointedBy"], record["savepointedAt"], record["comments"], files)
