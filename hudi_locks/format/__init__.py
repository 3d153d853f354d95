"""Names and bytes of Hudi's files: pure values, no I/O."""

from hudi_locks.format.archived import (
    ArchiveRow,
    PartName,
    decode_manifest,
    decode_rows,
    encode_manifest,
    encode_rows,
    manifest_name,
    parse_manifest_name,
)
from hudi_locks.format.bucket import (
    assign_buckets,
    bucket_file_id,
    bucket_of_file_id,
    fixed_bucket_file_id,
    is_bucket_file_id,
)
from hudi_locks.format.bucket_counts import INITIAL_BUCKET_COUNTS, BucketCounts
from hudi_locks.format.cleaning import CleanMetadata, CleanPartition, CleanPlan
from hudi_locks.format.commit_metadata import CommitMetadata, WriteStat, encode_requested_replace
from hudi_locks.format.compaction_plan import CompactionOperation, CompactionPlan
from hudi_locks.format.damage import interpreting, reading_parquet
from hudi_locks.format.instant import (
    ACTIONS,
    FIRST_TIME,
    LAST_TIME,
    WRITE_ACTIONS,
    Instant,
    State,
    add_ms,
    comparable_action,
    epoch_ms,
    format_time,
    is_time,
    parse_instant_name,
    parse_moment,
)
from hudi_locks.format.names import WRITE_TOKEN, BaseFileName, IOType, LogFileName, MarkerName, find_writer, new_file_id
from hudi_locks.format.plans import ClusteringGroup, ClusteringPlan, ClusteringSlice, clustered_file_groups
from hudi_locks.format.properties import decode_properties, encode_properties, split_properties
from hudi_locks.format.restoring import RestoreMetadata, RestorePlan
from hudi_locks.format.rollback import RollbackMetadata, RollbackPartition, RollbackPlan, RollbackRequest
from hudi_locks.format.savepoint import SavepointMetadata
from hudi_locks.format.schema import META_COLUMNS, arrow_schema, avro_schema, canonical_schema, merge_schemas

__all__ = [
    "ACTIONS",
    "FIRST_TIME",
    "INITIAL_BUCKET_COUNTS",
    "LAST_TIME",
    "META_COLUMNS",
    "WRITE_ACTIONS",
    "WRITE_TOKEN",
    "ArchiveRow",
    "BaseFileName",
    "BucketCounts",
    "CleanMetadata",
    "CleanPartition",
    "CleanPlan",
    "ClusteringGroup",
    "ClusteringPlan",
    "ClusteringSlice",
    "CommitMetadata",
    "CompactionOperation",
    "CompactionPlan",
    "IOType",
    "Instant",
    "LogFileName",
    "MarkerName",
    "PartName",
    "RestoreMetadata",
    "RestorePlan",
    "RollbackMetadata",
    "RollbackPartition",
    "RollbackPlan",
    "RollbackRequest",
    "SavepointMetadata",
    "State",
    "WriteStat",
    "add_ms",
    "arrow_schema",
    "assign_buckets",
    "avro_schema",
    "bucket_file_id",
    "bucket_of_file_id",
    "canonical_schema",
    "clustered_file_groups",
    "comparable_action",
    "decode_manifest",
    "decode_properties",
    "decode_rows",
    "encode_manifest",
    "encode_properties",
    "encode_requested_replace",
    "encode_rows",
    "epoch_ms",
    "find_writer",
    "fixed_bucket_file_id",
    "format_time",
    "interpreting",
    "is_bucket_file_id",
    "is_time",
    "manifest_name",
    "merge_schemas",
    "new_file_id",
    "parse_instant_name",
    "parse_manifest_name",
    "parse_moment",
    "reading_parquet",
    "split_properties",
]
