"""What a rollback will remove and has removed (Hudi's HoodieRollbackPlan and HoodieRollbackMetadata)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_locks.format.avro import ROLLBACK_METADATA, ROLLBACK_PLAN
from hudi_locks.format.instant import Instant
from hudi_locks.format.records import decode_record, encode_record, interpreting

__all__ = ["RollbackMetadata", "RollbackPartition", "RollbackPlan", "RollbackRequest"]


@dataclass(frozen=True)
class RollbackRequest:
    """Files of one file group to remove.

    Attributes:
        partition_path: Its partition.
        files_to_delete: Full paths, as the JVM opens them.
        file_id: Its file group; "" as the JVM writes when it works from markers.
        latest_base_instant: Instant of its base file; likewise.
    """

    partition_path: str
    files_to_delete: tuple[str, ...]
    file_id: str = ""
    latest_base_instant: str = ""


@dataclass(frozen=True)
class RollbackPlan:
    """Content of `.rollback.requested`.

    Attributes:
        rolled_back: Requested time of the instant to undo; None if the plan names none.
        action: Its action.
        requests: What to remove.
    """

    rolled_back: str | None
    action: str | None
    requests: tuple[RollbackRequest, ...] = ()

    @classmethod
    def of(cls, instant: Instant, requests: tuple[RollbackRequest, ...] = ()) -> RollbackPlan:
        """The plan to undo `instant`."""
        return cls(instant.requested, instant.action, requests)

    def encode(self) -> bytes:
        """Its bytes: Avro in every layout."""
        info = {"commitTime": self.rolled_back, "action": self.action} if self.rolled_back else None
        requests = [_encode_request(request) for request in self.requests]
        return encode_record(ROLLBACK_PLAN, {"instantToRollback": info, "RollbackRequests": requests})

    @classmethod
    def decode(cls, data: bytes, path: str) -> RollbackPlan:
        """Read `.rollback.requested`.

        Raises:
            DamagedTable: The bytes are no rollback plan; it names `path`.
        """
        record = decode_record(data, path)
        with interpreting("rollback plan", path):
            info = record["instantToRollback"] or {}
            requests = tuple(_decode_request(request) for request in record["RollbackRequests"] or ())
        return cls(info.get("commitTime"), info.get("action"), requests)


@dataclass(frozen=True)
class RollbackPartition:
    """What a rollback did in one partition: full paths of files removed, and of those it could not remove."""

    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class RollbackMetadata:
    """Content of a completed rollback.

    Attributes:
        started: Requested time of the rollback.
        duration_ms: How long it took.
        rolled_back: (requested time, action) of each instant undone.
        partitions: What it did, by partition path.
    """

    started: str
    duration_ms: int
    rolled_back: tuple[tuple[str, str], ...]
    partitions: Mapping[str, RollbackPartition] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Its bytes: Avro in every layout."""
        return encode_record(ROLLBACK_METADATA, self.to_record())

    def to_record(self) -> dict[str, Any]:
        """As it stands in a restore."""
        return {
            "startRollbackTime": self.started,
            "timeTakenInMillis": self.duration_ms,
            "totalFilesDeleted": sum(len(partition.deleted) for partition in self.partitions.values()),
            "commitsRollback": [time for time, _ in self.rolled_back],
            "partitionMetadata": {path: _encode_partition(path, done) for path, done in self.partitions.items()},
            "version": 1,
            "instantsRollback": [{"commitTime": time, "action": action} for time, action in self.rolled_back],
        }

    @classmethod
    def decode(cls, data: bytes, path: str) -> RollbackMetadata:
        """Read a completed rollback.

        Raises:
            DamagedTable: The bytes are no rollback metadata; it names `path`.
        """
        record = decode_record(data, path)
        with interpreting("rollback metadata", path):
            return cls.of_record(record)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> RollbackMetadata:
        """Read it out of a restore."""
        infos = tuple((info["commitTime"], info["action"]) for info in record["instantsRollback"])
        done = {key: _decode_partition(part) for key, part in record["partitionMetadata"].items()}
        return cls(record["startRollbackTime"], record["timeTakenInMillis"], infos, done)


def _encode_request(request: RollbackRequest) -> dict[str, Any]:
    return {
        "partitionPath": request.partition_path,
        "fileId": request.file_id,
        "latestBaseInstant": request.latest_base_instant,
        "filesToBeDeleted": list(request.files_to_delete),
        "logBlocksToBeDeleted": {},
    }


def _decode_request(record: Mapping[str, Any]) -> RollbackRequest:
    files = tuple(record["filesToBeDeleted"])
    base = record.get("latestBaseInstant") or ""
    return RollbackRequest(record["partitionPath"], files, record.get("fileId") or "", base)


def _encode_partition(path: str, done: RollbackPartition) -> dict[str, Any]:
    return {
        "partitionPath": path,
        "successDeleteFiles": list(done.deleted),
        "failedDeleteFiles": list(done.failed),
        "rollbackLogFiles": {},
        "logFilesFromFailedCommit": {},
    }


def _decode_partition(record: Mapping[str, Any]) -> RollbackPartition:
    return RollbackPartition(tuple(record["successDeleteFiles"]), tuple(record["failedDeleteFiles"]))
