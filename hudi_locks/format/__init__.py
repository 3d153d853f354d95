"""Names and bytes of Hudi's files: pure values, no I/O."""

from hudi_locks.format.commit_metadata import CommitMetadata, WriteStat, encode_requested_replace
from hudi_locks.format.instant import (
    ACTIONS,
    WRITE_ACTIONS,
    Instant,
    State,
    add_ms,
    comparable_action,
    epoch_ms,
    format_time,
    is_time,
    parse_instant_name,
)
from hudi_locks.format.names import WRITE_TOKEN, BaseFileName, IOType, LogFileName, MarkerName, new_file_id
from hudi_locks.format.rollback import RollbackMetadata, RollbackPartition, RollbackPlan, RollbackRequest

__all__ = [
    "ACTIONS",
    "WRITE_ACTIONS",
    "WRITE_TOKEN",
    "BaseFileName",
    "CommitMetadata",
    "IOType",
    "Instant",
    "LogFileName",
    "MarkerName",
    "RollbackMetadata",
    "RollbackPartition",
    "RollbackPlan",
    "RollbackRequest",
    "State",
    "WriteStat",
    "add_ms",
    "comparable_action",
    "encode_requested_replace",
    "epoch_ms",
    "format_time",
    "is_time",
    "new_file_id",
    "parse_instant_name",
]
