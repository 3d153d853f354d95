"""Avro schemas of Hudi's metadata files (namespace `org.apache.hudi.avro.model`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import fastavro

__all__ = [
    "CLEANER_PLAN",
    "CLEAN_METADATA",
    "COMMIT_METADATA",
    "COMPACTION_PLAN",
    "LSM_TIMELINE_INSTANT",
    "OLD_ARCHIVED_INSTANT",
    "REPLACE_COMMIT_METADATA",
    "REQUESTED_REPLACE_METADATA",
    "RESTORE_METADATA",
    "RESTORE_PLAN",
    "ROLLBACK_METADATA",
    "ROLLBACK_PLAN",
    "SAVEPOINT_METADATA",
]

_NAMESPACE: Final = "org.apache.hudi.avro.model"
_STRING: Final = {"type": "string", "avro.java.string": "String"}

_Schema = Any


def _array(items: _Schema) -> _Schema:
    return {"type": "array", "items": items}


def _map(values: _Schema) -> _Schema:
    return {"type": "map", "values": values, "avro.java.string": "String"}


def _record(name: str, *fields: Mapping[str, _Schema]) -> _Schema:
    return {"type": "record", "name": name, "fields": list(fields)}


def _top(name: str, *fields: Mapping[str, _Schema]) -> _Schema:
    return fastavro.parse_schema({**_record(name, *fields), "namespace": _NAMESPACE})


def _must(name: str, kind: _Schema) -> Mapping[str, _Schema]:
    return {"name": name, "type": kind}


def _may(name: str, kind: _Schema) -> Mapping[str, _Schema]:
    return {"name": name, "type": ["null", kind], "default": None}


def _may_lack_default(name: str, kind: _Schema) -> Mapping[str, _Schema]:
    return {"name": name, "type": ["null", kind]}


def _version(default: int = 1) -> Mapping[str, _Schema]:
    return {"name": "version", "type": ["int", "null"], "default": default}


def _longs(*names: str) -> list[Mapping[str, _Schema]]:
    return [_may(name, "long") for name in names]


_WRITE_STAT = _record(
    "HoodieWriteStat",
    *(_may(name, _STRING) for name in ("fileId", "path", "prevCommit")),
    *_longs("numWrites", "numDeletes", "numUpdateWrites", "totalWriteBytes", "totalWriteErrors"),
    _may("partitionPath", _STRING),
    *_longs("totalLogRecords", "totalLogFiles", "totalUpdatedRecordsCompacted", "numInserts", "totalLogBlocks"),
    *_longs("totalCorruptLogBlock", "totalRollbackBlocks", "fileSizeInBytes"),
    _may("logVersion", "int"),
    _may("logOffset", "long"),
    _may("baseFile", _STRING),
    _may("logFiles", _array(_STRING)),
    _may("cdcStats", _map("long")),
    _may("prevBaseFile", _STRING),
    *_longs("minEventTime", "maxEventTime"),
    _may("runtimeStats", _record("HoodieRuntimeStats", *_longs("totalScanTime", "totalCreateTime", "totalUpsertTime"))),
    *_longs("totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted"),
    _may("tempPath", _STRING),
    _may("numUpdates", "long"),
)

_COMMIT_FIELDS = (
    _may("partitionToWriteStats", _map(_array(_WRITE_STAT))),
    _may("compacted", "boolean"),
    _may("extraMetadata", _map(_STRING)),
    _version(),
    _may("operationType", _STRING),
)

COMMIT_METADATA: Final = _top("HoodieCommitMetadata", *_COMMIT_FIELDS)
REPLACE_COMMIT_METADATA: Final = _top(
    "HoodieReplaceCommitMetadata", *_COMMIT_FIELDS, _may("partitionToReplaceFileIds", _map(_array(_STRING)))
)

_SLICE_INFO = _record(
    "HoodieSliceInfo",
    _may("dataFilePath", _STRING),
    _may("deltaFilePaths", _array(_STRING)),
    _may_lack_default("fileId", _STRING),
    _may("partitionPath", _STRING),
    _may("bootstrapFilePath", _STRING),
    _version(),
)
_CLUSTERING_GROUP = _record(
    "HoodieClusteringGroup",
    _may("slices", _array(_SLICE_INFO)),
    _may("metrics", _map("double")),
    {"name": "numOutputFileGroups", "type": ["int", "null"], "default": 1},
    _may("extraMetadata", _map(_STRING)),
    _version(),
)
_CLUSTERING_STRATEGY = _record(
    "HoodieClusteringStrategy", _may("strategyClassName", _STRING), _may("strategyParams", _map(_STRING)), _version()
)
_CLUSTERING_PLAN = _record(
    "HoodieClusteringPlan",
    _may("inputGroups", _array(_CLUSTERING_GROUP)),
    _may("strategy", _CLUSTERING_STRATEGY),
    _may("extraMetadata", _map(_STRING)),
    _version(),
    _may("preserveHoodieMetadata", "boolean"),
    _may("missingSchedulePartitions", _array(_STRING)),
)
REQUESTED_REPLACE_METADATA: Final = _top(
    "HoodieRequestedReplaceMetadata",
    _may("operationType", _STRING),
    _may("clusteringPlan", _CLUSTERING_PLAN),
    _may("extraMetadata", _map(_STRING)),
    _version(),
)

_COMPACTION_OPERATION = _record(
    "HoodieCompactionOperation",
    _may_lack_default("baseInstantTime", _STRING),
    _may("deltaFilePaths", _array(_STRING)),
    _may("dataFilePath", _STRING),
    _may_lack_default("fileId", _STRING),
    _may("partitionPath", _STRING),
    _may("metrics", _map("double")),
    _may("bootstrapFilePath", _STRING),
)
_COMPACTION_STRATEGY = _record(
    "HoodieCompactionStrategy", _may("compactorClassName", _STRING), _may("strategyParams", _map(_STRING)), _version()
)
COMPACTION_PLAN: Final = _top(
    "HoodieCompactionPlan",
    _may("operations", _array(_COMPACTION_OPERATION)),
    _may("extraMetadata", _map(_STRING)),
    _version(),
    _may("strategy", _COMPACTION_STRATEGY),
    {"name": "preserveHoodieMetadata", "type": ["boolean", "null"], "default": False},
    _may("missingSchedulePartitions", _array(_STRING)),
)

_INSTANT_INFO = _record("HoodieInstantInfo", _must("commitTime", _STRING), _must("action", _STRING))
_ROLLBACK_REQUEST = _record(
    "HoodieRollbackRequest",
    _must("partitionPath", _STRING),
    _may("fileId", _STRING),
    _may("latestBaseInstant", _STRING),
    {**_must("filesToBeDeleted", _array(_STRING)), "default": []},
    _may("logBlocksToBeDeleted", _map("long")),
)
ROLLBACK_PLAN: Final = _top(
    "HoodieRollbackPlan",
    _may("instantToRollback", _INSTANT_INFO),
    _may("RollbackRequests", _array(_ROLLBACK_REQUEST)),
    _version(),
)
_ROLLBACK_PARTITION = _record(
    "HoodieRollbackPartitionMetadata",
    _must("partitionPath", _STRING),
    _must("successDeleteFiles", _array(_STRING)),
    _must("failedDeleteFiles", _array(_STRING)),
    _may("rollbackLogFiles", _map("long")),
    _may("logFilesFromFailedCommit", _map("long")),
)
_ROLLBACK_FIELDS = (
    _must("startRollbackTime", _STRING),
    _must("timeTakenInMillis", "long"),
    _must("totalFilesDeleted", "int"),
    _must("commitsRollback", _array(_STRING)),
    _must("partitionMetadata", _map(_ROLLBACK_PARTITION)),
    _version(),
    {**_must("instantsRollback", _array(_INSTANT_INFO)), "default": []},
)
ROLLBACK_METADATA: Final = _top("HoodieRollbackMetadata", *_ROLLBACK_FIELDS)

RESTORE_PLAN: Final = _top(
    "HoodieRestorePlan",
    {**_must("instantsToRollback", _array(_INSTANT_INFO)), "default": []},
    _version(2),
    _may("savepointToRestoreTimestamp", _STRING),
)
RESTORE_METADATA: Final = _top(
    "HoodieRestoreMetadata",
    _must("startRestoreTime", _STRING),
    _must("timeTakenInMillis", "long"),
    _must("instantsToRollback", _array(_STRING)),
    _must("hoodieRestoreMetadata", _map(_array(["null", _record("HoodieRollbackMetadata", *_ROLLBACK_FIELDS)]))),
    _version(),
    {**_must("restoreInstantInfo", _array("HoodieInstantInfo")), "default": []},
)

_SAVEPOINT_PARTITION = _record(
    "HoodieSavepointPartitionMetadata", _must("partitionPath", _STRING), _must("savepointDataFile", _array(_STRING))
)
SAVEPOINT_METADATA: Final = _top(
    "HoodieSavepointMetadata",
    _must("savepointedBy", _STRING),
    _must("savepointedAt", "long"),
    _must("comments", _STRING),
    _must("partitionMetadata", _map(_SAVEPOINT_PARTITION)),
    _version(),
)

_ACTION_INSTANT = _record(
    "HoodieActionInstant", _must("timestamp", _STRING), _must("action", _STRING), _must("state", _STRING)
)
_CLEAN_FILE = _record("HoodieCleanFileInfo", _may("filePath", _STRING), _may("isBootstrapBaseFile", "boolean"))
CLEANER_PLAN: Final = _top(
    "HoodieCleanerPlan",
    _may("earliestInstantToRetain", _ACTION_INSTANT),
    {**_must("lastCompletedCommitTimestamp", _STRING), "default": ""},
    _must("policy", _STRING),
    _may("filesToBeDeletedPerPartition", _map(_array(_STRING))),
    _version(),
    _may("filePathsToBeDeletedPerPartition", _map(_array(_CLEAN_FILE))),
    _may("partitionsToBeDeleted", _array(_STRING)),
    _may("extraMetadata", _map(_STRING)),
)
_CLEAN_PARTITION = _record(
    "HoodieCleanPartitionMetadata",
    _must("partitionPath", _STRING),
    _must("policy", _STRING),
    *(_must(name, _array(_STRING)) for name in ("deletePathPatterns", "successDeleteFiles", "failedDeleteFiles")),
    _may("isPartitionDeleted", "boolean"),
)
CLEAN_METADATA: Final = _top(
    "HoodieCleanMetadata",
    _must("startCleanTime", _STRING),
    _must("timeTakenInMillis", "long"),
    _must("totalFilesDeleted", "int"),
    _must("earliestCommitToRetain", _STRING),
    {**_must("lastCompletedCommitTimestamp", _STRING), "default": ""},
    _must("partitionMetadata", _map(_CLEAN_PARTITION)),
    _version(),
    _may("bootstrapPartitionMetadata", _map("HoodieCleanPartitionMetadata")),
    _may("extraMetadata", _map(_STRING)),
)

LSM_TIMELINE_INSTANT: Final[dict[str, Any]] = {
    "type": "record",
    "name": "HoodieLSMTimelineInstant",
    "namespace": _NAMESPACE,
    "fields": [
        *(_may(name, _STRING) for name in ("instantTime", "completionTime", "action")),
        *(_may(name, "bytes") for name in ("metadata", "plan")),
        {"name": "version", "type": "int", "default": 1},
    ],
}
"""Rows of the archived timeline, which are Parquet; readers look for this schema in the footer."""


def _name_again(schema: _Schema, known: set[str]) -> _Schema:
    """The same with each record written out once, and called by its name from then on."""
    if isinstance(schema, list):
        return [_name_again(one, known) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "record":
        name = schema["name"].rpartition(".")[2]
        if name in known:
            return f"{_NAMESPACE}.{name}"
        known.add(name)
    plain = {key: value for key, value in schema.items() if not key.startswith("__")}
    return {key: _name_again(value, known) if key in _NESTING else value for key, value in plain.items()}


_NESTING: Final = ("fields", "type", "items", "values")
_OLD_CONTENTS: Final = {
    "hoodieCommitMetadata": COMMIT_METADATA,
    "hoodieCleanMetadata": CLEAN_METADATA,
    "hoodieRollbackMetadata": ROLLBACK_METADATA,
    "hoodieSavePointMetadata": SAVEPOINT_METADATA,
    "hoodieReplaceCommitMetadata": REPLACE_COMMIT_METADATA,
}
OLD_ARCHIVED_INSTANT: Final[dict[str, Any]] = _name_again(
    {
        **_record(
            "HoodieArchivedMetaEntry",
            *(_may(name, schema) for name, schema in _OLD_CONTENTS.items()),
            *(_may(name, _STRING) for name in ("commitTime", "actionType", "actionState", "stateTransitionTime")),
            _version(),
        ),
        "namespace": _NAMESPACE,
    },
    set(),
)
"""Entries of the archive of version 6; of what they may hold, that which is written here."""
