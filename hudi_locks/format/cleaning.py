"""What a clean will remove and has removed (Hudi's HoodieCleanerPlan and HoodieCleanMetadata)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hudi_locks.format.avro import CLEAN_METADATA, CLEANER_PLAN
from hudi_locks.format.instant import Instant, State
from hudi_locks.format.records import decode_record, encode_record, interpreting

__all__ = ["CleanMetadata", "CleanPartition", "CleanPlan"]

_VERSION: Final = 2
_SAVEPOINTS: Final = "savepointed_timestamps"


@dataclass(frozen=True)
class CleanPlan:
    """Content of `.clean.requested`.

    Attributes:
        earliest: The oldest write that is kept with all that it shows; None where the policy counts versions.
        last_completed: Requested time of the newest completed write when it was planned.
        policy: `hoodie.clean.policy`.
        files: Full paths as the JVM opens them, by partition path.
        savepoints: Requested times of the savepoints that were regarded.
    """

    earliest: Instant | None
    last_completed: str
    policy: str
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    savepoints: tuple[str, ...] = ()

    @property
    def paths(self) -> frozenset[str]:
        """What goes, relative to the base path: the partition is known, so a full path is not taken apart."""
        return _locate(self.files)

    def encode(self) -> bytes:
        """Its bytes: Avro in every layout."""
        paths = {
            partition: [{"filePath": path, "isBootstrapBaseFile": False} for path in files]
            for partition, files in self.files.items()
        }
        record: dict[str, Any] = {
            "earliestInstantToRetain": self.earliest and _encode_instant(self.earliest),
            "lastCompletedCommitTimestamp": self.last_completed,
            "policy": self.policy,
            "filesToBeDeletedPerPartition": {},
            "version": _VERSION,
            "filePathsToBeDeletedPerPartition": paths,
            "partitionsToBeDeleted": [],
            "extraMetadata": _encode_savepoints(self.savepoints),
        }
        return encode_record(CLEANER_PLAN, record)

    @classmethod
    def decode(cls, data: bytes, path: str) -> CleanPlan:
        """Read `.clean.requested` or `.clean.inflight`.

        Raises:
            DamagedTable: The bytes are no clean plan; it names `path`.
        """
        record = decode_record(data, path)
        with interpreting("clean plan", path):
            found = record["filePathsToBeDeletedPerPartition"] or {}
            files = {partition: _list_own(infos) for partition, infos in found.items()}
            earliest = _decode_instant(record["earliestInstantToRetain"])
            last = record.get("lastCompletedCommitTimestamp") or ""
            return cls(earliest, last, record["policy"], files, _decode_savepoints(record))


@dataclass(frozen=True)
class CleanPartition:
    """What a clean did in one partition: names of the files removed, and of those that it could not remove."""

    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class CleanMetadata:
    """Content of a completed clean.

    Attributes:
        started: Requested time of the clean.
        duration_ms: How long it took.
        earliest: Requested time of the oldest write that was kept with all that it shows; "" if the policy counts
            versions.
        last_completed: Requested time of the newest completed write when it was planned.
        policy: `hoodie.clean.policy`.
        partitions: What it did, by partition path.
        savepoints: Requested times of the savepoints that were regarded.
    """

    started: str
    duration_ms: int
    earliest: str
    last_completed: str
    policy: str
    partitions: Mapping[str, CleanPartition] = field(default_factory=dict)
    savepoints: tuple[str, ...] = ()

    @property
    def deleted(self) -> int:
        """How many files are gone."""
        return sum(len(partition.deleted) for partition in self.partitions.values())

    @property
    def paths(self) -> frozenset[str]:
        """What is gone, relative to the base path."""
        return _locate({partition: done.deleted for partition, done in self.partitions.items()})

    @property
    def tried_paths(self) -> frozenset[str]:
        """The same, and what it could not remove, as another cleaner had done so before."""
        return _locate({partition: (*done.deleted, *done.failed) for partition, done in self.partitions.items()})

    def encode(self) -> bytes:
        """Its bytes: Avro in every layout."""
        record = {
            "startCleanTime": self.started,
            "timeTakenInMillis": self.duration_ms,
            "totalFilesDeleted": self.deleted,
            "earliestCommitToRetain": self.earliest,
            "lastCompletedCommitTimestamp": self.last_completed,
            "partitionMetadata": {path: self._encode_partition(path) for path in self.partitions},
            "version": _VERSION,
            "bootstrapPartitionMetadata": {},
            "extraMetadata": _encode_savepoints(self.savepoints),
        }
        return encode_record(CLEAN_METADATA, record)

    @classmethod
    def decode(cls, data: bytes, path: str) -> CleanMetadata:
        """Read a completed clean.

        Raises:
            DamagedTable: The bytes are no clean metadata; it names `path`.
        """
        record = decode_record(data, path)
        with interpreting("clean metadata", path):
            parts = record["partitionMetadata"]
            return cls(
                record["startCleanTime"],
                record["timeTakenInMillis"],
                record["earliestCommitToRetain"] or "",
                record.get("lastCompletedCommitTimestamp") or "",
                next((part["policy"] for part in parts.values()), ""),
                {key: _decode_partition(part) for key, part in parts.items()},
                _decode_savepoints(record),
            )

    def _encode_partition(self, path: str) -> dict[str, Any]:
        done = self.partitions[path]
        return {
            "partitionPath": path,
            "policy": self.policy,
            "deletePathPatterns": [*done.deleted, *done.failed],
            "successDeleteFiles": list(done.deleted),
            "failedDeleteFiles": list(done.failed),
            "isPartitionDeleted": False,
        }


def _locate(files: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Files of partitions, relative to the base path, whether they are there by their names or by full paths."""
    named = ((partition, file.rsplit("/", 1)[-1]) for partition, found in files.items() for file in found)
    return frozenset(f"{partition}/{name}" if partition else name for partition, name in named)


def _list_own(infos: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Without files of which a table was made, which JVM cleaners may take too: they lie elsewhere, and stay."""
    return tuple(info["filePath"] for info in infos if not info.get("isBootstrapBaseFile"))


def _encode_instant(instant: Instant) -> dict[str, str]:
    return {"timestamp": instant.requested, "action": instant.action, "state": instant.state.name}


def _decode_instant(record: Mapping[str, str] | None) -> Instant | None:
    return Instant(record["timestamp"], record["action"], State[record["state"]]) if record else None


def _encode_savepoints(savepoints: tuple[str, ...]) -> dict[str, str]:
    return {_SAVEPOINTS: ",".join(savepoints)} if savepoints else {}


def _decode_savepoints(record: Mapping[str, Any]) -> tuple[str, ...]:
    known = (record.get("extraMetadata") or {}).get(_SAVEPOINTS) or ""
    return tuple(time for time in known.split(",") if time)


def _decode_partition(record: Mapping[str, Any]) -> CleanPartition:
    return CleanPartition(tuple(record["successDeleteFiles"]), tuple(record["failedDeleteFiles"]))
