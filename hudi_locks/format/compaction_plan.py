"""The plan of a compaction: which logs become part of which base file, for its runner and for other writers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hudi_locks.format.avro import COMPACTION_PLAN
from hudi_locks.format.records import decode_record, encode_record, interpreting

__all__ = ["CompactionOperation", "CompactionPlan", "compacted_file_groups"]

_VERSION: Final = 2
_MEGABYTE: Final = 1024 * 1024


@dataclass(frozen=True)
class CompactionOperation:
    """A file slice that becomes one base file.

    Attributes:
        partition: Partition path.
        file_id: File group.
        base_instant: Requested time of its base file, else of its first log.
        base_name: Name of its base file; "" if it has none.
        log_names: Names of its logs, in the order in which they are applied.
        log_bytes: Size of the logs; for a person.
        source: Address of the file with the other columns of a skeleton; "" if its base file is none. Without it a JVM
            would write null in their place.
    """

    partition: str
    file_id: str
    base_instant: str
    base_name: str
    log_names: tuple[str, ...]
    log_bytes: int = 0
    source: str = ""


@dataclass(frozen=True)
class CompactionPlan:
    """Content of `.compaction.requested` (Hudi's HoodieCompactionPlan of version 2).

    Attributes:
        groups: What is merged.
        compactor: Java class by which a JVM runs it; "" for that of compaction.
    """

    groups: tuple[CompactionOperation, ...]
    compactor: str = ""

    @property
    def file_groups(self) -> frozenset[tuple[str, str]]:
        """(partition path, file id) of every operation."""
        return frozenset((operation.partition, operation.file_id) for operation in self.groups)

    def without(self, taken: Collection[tuple[str, str]]) -> CompactionPlan:
        """The plan without the operations on these (partition path, file id)."""
        return self.only(self.file_groups.difference(taken))

    def only(self, wanted: Collection[tuple[str, str]]) -> CompactionPlan:
        """The plan with the operations on these (partition path, file id) alone."""
        return replace(self, groups=tuple(op for op in self.groups if (op.partition, op.file_id) in wanted))

    def encode(self) -> bytes:
        """Its bytes, from which a JVM can run the plan too: Avro in every layout."""
        record = {
            "operations": [_encode(operation) for operation in self.groups],
            "extraMetadata": {},
            "version": _VERSION,
            "strategy": _encode_strategy(self.compactor),
            "preserveHoodieMetadata": True,
            "missingSchedulePartitions": [],
        }
        return encode_record(COMPACTION_PLAN, record)

    @classmethod
    def decode(cls, data: bytes, path: str) -> CompactionPlan:
        """Read `.compaction.requested`; an empty file plans nothing.

        Raises:
            DamagedTable: The bytes are no such plan; it names `path`.
        """
        if not data:
            return cls(())
        with interpreting("readable plan", path):
            record = decode_record(data, path)
            operations: Iterable[Mapping[str, Any]] = record.get("operations") or ()
            strategy: Mapping[str, Any] = record.get("strategy") or {}
            return cls(tuple(map(_decode, operations)), strategy.get("compactorClassName") or "")


def compacted_file_groups(data: bytes, path: str) -> frozenset[tuple[str, str]]:
    """(partition path, file id) of what a compaction merges, from `.compaction.requested`; an empty file names none.

    Raises:
        DamagedTable: The bytes are no such plan; it names `path`.
    """
    return CompactionPlan.decode(data, path).file_groups


def _encode_strategy(compactor: str) -> dict[str, Any] | None:
    return {"compactorClassName": compactor, "strategyParams": {}, "version": 1} if compactor else None


def _encode(operation: CompactionOperation) -> dict[str, Any]:
    megabytes = float(operation.log_bytes // _MEGABYTE)
    return {
        "baseInstantTime": operation.base_instant,
        "deltaFilePaths": list(operation.log_names),
        "dataFilePath": operation.base_name or None,
        "fileId": operation.file_id,
        "partitionPath": operation.partition,
        "bootstrapFilePath": operation.source or None,
        "metrics": {
            "TOTAL_LOG_FILES": float(len(operation.log_names)),
            "TOTAL_IO_MB": 2 * megabytes,
            "TOTAL_IO_READ_MB": megabytes,
            "TOTAL_LOG_FILES_SIZE": float(operation.log_bytes),
            "TOTAL_IO_WRITE_MB": megabytes,
        },
    }


def _decode(record: Mapping[str, Any]) -> CompactionOperation:
    return CompactionOperation(
        record["partitionPath"] or "",
        record["fileId"],
        record.get("baseInstantTime") or "",
        (record.get("dataFilePath") or "").rpartition("/")[2],
        tuple(path.rpartition("/")[2] for path in record.get("deltaFilePaths") or ()),
        int((record.get("metrics") or {}).get("TOTAL_LOG_FILES_SIZE") or 0),
        record.get("bootstrapFilePath") or "",
    )
