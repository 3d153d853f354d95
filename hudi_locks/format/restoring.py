"""What a restore will undo and has undone (Hudi's HoodieRestorePlan and HoodieRestoreMetadata)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hudi_locks.format.avro import RESTORE_METADATA, RESTORE_PLAN
from hudi_locks.format.records import decode_record, encode_record, interpreting
from hudi_locks.format.rollback import RollbackMetadata

__all__ = ["RestoreMetadata", "RestorePlan"]

_PLAN_VERSION: Final = 2
Undone = tuple[tuple[str, str], ...]
"""(requested time, action) of instants, the newest first."""


@dataclass(frozen=True)
class RestorePlan:
    """Content of `.restore.requested`.

    Attributes:
        savepoint: Requested time of the write to go back to; None in plans of old releases.
        instants: What is to be undone.
    """

    savepoint: str | None
    instants: Undone = ()

    def encode(self) -> bytes:
        """Its bytes: Avro in every layout."""
        record = {
            "instantsToRollback": _encode_instants(self.instants),
            "version": _PLAN_VERSION,
            "savepointToRestoreTimestamp": self.savepoint,
        }
        return encode_record(RESTORE_PLAN, record)

    @classmethod
    def decode(cls, data: bytes, path: str) -> RestorePlan:
        """Read `.restore.requested`.

        Raises:
            DamagedTable: The bytes are no restore plan; it names `path`.
        """
        record = decode_record(data, path)
        with interpreting("restore plan", path):
            return cls(record.get("savepointToRestoreTimestamp"), _decode_instants(record["instantsToRollback"]))


@dataclass(frozen=True)
class RestoreMetadata:
    """Content of a completed restore.

    Attributes:
        started: Requested time of the restore.
        duration_ms: How long it took.
        instants: What was undone.
        rollbacks: How each was undone, by requested time.
    """

    started: str
    duration_ms: int
    instants: Undone = ()
    rollbacks: Mapping[str, tuple[RollbackMetadata, ...]] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Its bytes: Avro in every layout."""
        record = {
            "startRestoreTime": self.started,
            "timeTakenInMillis": self.duration_ms,
            "instantsToRollback": [requested for requested, _ in self.instants],
            "hoodieRestoreMetadata": {key: [done.to_record() for done in all_] for key, all_ in self.rollbacks.items()},
            "version": 1,
            "restoreInstantInfo": _encode_instants(self.instants),
        }
        return encode_record(RESTORE_METADATA, record)

    @classmethod
    def decode(cls, data: bytes, path: str) -> RestoreMetadata:
        """Read a completed restore.

        Raises:
            DamagedTable: The bytes are no restore metadata; it names `path`.
        """
        record = decode_record(data, path)
        with interpreting("restore metadata", path):
            rollbacks = {
                key: tuple(RollbackMetadata.of_record(done) for done in all_ if done)
                for key, all_ in record["hoodieRestoreMetadata"].items()
            }
            instants = _decode_instants(record["restoreInstantInfo"])
            return cls(record["startRestoreTime"], record["timeTakenInMillis"], instants, rollbacks)


def _encode_instants(instants: Undone) -> list[dict[str, str]]:
    return [{"commitTime": requested, "action": action} for requested, action in instants]


def _decode_instants(records: list[dict[str, Any]]) -> Undone:
    return tuple((record["commitTime"], record["action"]) for record in records)
