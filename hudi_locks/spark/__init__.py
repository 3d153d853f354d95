"""Hudi tables as Spark DataFrames, for many writers at a time. Needs PySpark 3.5 or 4.

What is named here is loaded when it is asked for, so that an executor's worker, which needs one small part, starts
quickly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hudi_locks.services import (
        ArchiveResult,
        CleanResult,
        MetadataMade,
        MetadataUpkeep,
        RestoreResult,
        Savepoint,
        Savepoints,
        SweepResult,
        TableServices,
    )
    from hudi_locks.spark.commit_server import register_format
    from hudi_locks.spark.datasource import read, write
    from hudi_locks.spark.hoodie_table import HoodieTable
    from hudi_locks.spark.merge import MergeBuilder
    from hudi_locks.spark.operation import Attempt, Operation, WriteResult
    from hudi_locks.spark.reading.data_source import HudiLocksDataSource
    from hudi_locks.spark.reading.reader import Reader
    from hudi_locks.spark.services.clustering import ClusteringService
    from hudi_locks.spark.services.compaction import CompactionService, LogCompactionService
    from hudi_locks.spark.streaming import StreamSink
    from hudi_locks.spark.writing.writer import CommitTerms
    from hudi_locks.transaction import Conflict, Outcome

__all__ = [
    "ArchiveResult",
    "Attempt",
    "CleanResult",
    "ClusteringService",
    "CommitTerms",
    "CompactionService",
    "Conflict",
    "HoodieTable",
    "HudiLocksDataSource",
    "LogCompactionService",
    "MergeBuilder",
    "MetadataMade",
    "MetadataUpkeep",
    "Operation",
    "Outcome",
    "Reader",
    "RestoreResult",
    "Savepoint",
    "Savepoints",
    "StreamSink",
    "SweepResult",
    "TableServices",
    "WriteResult",
    "read",
    "register_format",
    "write",
]

_MODULES: Final = {
    "ArchiveResult": "hudi_locks.services",
    "Attempt": "hudi_locks.spark.operation",
    "CleanResult": "hudi_locks.services",
    "ClusteringService": "hudi_locks.spark.services.clustering",
    "CommitTerms": "hudi_locks.spark.writing.writer",
    "CompactionService": "hudi_locks.spark.services.compaction",
    "Conflict": "hudi_locks.transaction",
    "HoodieTable": "hudi_locks.spark.hoodie_table",
    "HudiLocksDataSource": "hudi_locks.spark.reading.data_source",
    "LogCompactionService": "hudi_locks.spark.services.compaction",
    "MergeBuilder": "hudi_locks.spark.merge",
    "MetadataMade": "hudi_locks.services",
    "MetadataUpkeep": "hudi_locks.services",
    "Operation": "hudi_locks.spark.operation",
    "Outcome": "hudi_locks.transaction",
    "Reader": "hudi_locks.spark.reading.reader",
    "RestoreResult": "hudi_locks.services",
    "Savepoint": "hudi_locks.services",
    "Savepoints": "hudi_locks.services",
    "StreamSink": "hudi_locks.spark.streaming",
    "SweepResult": "hudi_locks.services",
    "TableServices": "hudi_locks.services",
    "WriteResult": "hudi_locks.spark.operation",
    "read": "hudi_locks.spark.datasource",
    "register_format": "hudi_locks.spark.commit_server",
    "write": "hudi_locks.spark.datasource",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
