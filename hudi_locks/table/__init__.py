"""Tables: their settings, partitions and file groups."""

from hudi_locks.table.base_file import BaseFileFormat, BaseFileWriter, read_base_file, read_counts, read_first_key
from hudi_locks.table.bucket_counts import find_bucket_counts
from hudi_locks.table.changes import Changes, SliceChanges, files_changed, slices_changed
from hudi_locks.table.cleaned import read_clean_plans, read_last_clean, refuse_cleaned
from hudi_locks.table.config import (
    COMPLEX,
    FIELD_PREFIXED,
    KEY_GENERATORS,
    NON_PARTITION,
    PREFIXED_SINCE,
    PROPERTIES_PATH,
    SIMPLE,
    VALUE_ONLY,
    TableConfig,
    find_key_generator,
    name_key_generator,
)
from hudi_locks.table.data_files import (
    BaseFile,
    Completion,
    DataFiles,
    FileSlice,
    LogFile,
    list_base_files,
    list_data_files,
    list_partitions,
    slice_file_groups,
)
from hudi_locks.table.deletes import IS_DELETED, DeleteMarker, find_deletes, read_delete_marker
from hudi_locks.table.file_groups import find_changed, find_completions, latest_base_files, latest_file_slices
from hudi_locks.table.limits import check_creatable, check_readable, check_writable
from hudi_locks.table.log_rows import read_log
from hudi_locks.table.log_writer import LogFormat, LogPart, LogWriter, count_log
from hudi_locks.table.losses import OvertakenSnapshot
from hudi_locks.table.merging import AppendMerge, DeleteMerge, Merge, UpsertMerge, combine_rows
from hudi_locks.table.meta_columns import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    PARTITION_PATH,
    RECORD_KEY,
    add_meta_schema,
    conform,
    rename_file,
    stamp_rows,
)
from hudi_locks.table.ordering import MergeRule, newest_rows
from hudi_locks.table.partition_path import (
    DEFAULT_PARTITION,
    PARTITION_METADATA,
    check_partition_path,
    create_partition_metadata,
    parse_partition_path,
    partition_path,
    read_partition_metadata,
)
from hudi_locks.table.partition_values import PartitionValues
from hudi_locks.table.payloads import describe_payload
from hudi_locks.table.removed import refuse_removed
from hudi_locks.table.row_buffer import RowBuffers
from hudi_locks.table.slice_parts import WHOLE, Part
from hudi_locks.table.slice_reading import join_slice, read_slice
from hudi_locks.table.stored_types import StoredTypes, find_stored_types, refuse_altered, refuse_inexact
from hudi_locks.table.table import Table, read_commit

__all__ = [
    "COMMIT_SEQNO",
    "COMMIT_TIME",
    "COMPLEX",
    "DEFAULT_PARTITION",
    "FIELD_PREFIXED",
    "FILE_NAME",
    "IS_DELETED",
    "KEY_GENERATORS",
    "NON_PARTITION",
    "PARTITION_METADATA",
    "PARTITION_PATH",
    "PREFIXED_SINCE",
    "PROPERTIES_PATH",
    "RECORD_KEY",
    "SIMPLE",
    "VALUE_ONLY",
    "WHOLE",
    "AppendMerge",
    "BaseFile",
    "BaseFileFormat",
    "BaseFileWriter",
    "Changes",
    "Completion",
    "DataFiles",
    "DeleteMarker",
    "DeleteMerge",
    "FileSlice",
    "LogFile",
    "LogFormat",
    "LogPart",
    "LogWriter",
    "Merge",
    "MergeRule",
    "OvertakenSnapshot",
    "Part",
    "PartitionValues",
    "RowBuffers",
    "SliceChanges",
    "StoredTypes",
    "Table",
    "TableConfig",
    "UpsertMerge",
    "add_meta_schema",
    "check_creatable",
    "check_partition_path",
    "check_readable",
    "check_writable",
    "combine_rows",
    "conform",
    "count_log",
    "create_partition_metadata",
    "describe_payload",
    "files_changed",
    "find_bucket_counts",
    "find_changed",
    "find_completions",
    "find_deletes",
    "find_key_generator",
    "find_stored_types",
    "join_slice",
    "latest_base_files",
    "latest_file_slices",
    "list_base_files",
    "list_data_files",
    "list_partitions",
    "name_key_generator",
    "newest_rows",
    "parse_partition_path",
    "partition_path",
    "read_base_file",
    "read_clean_plans",
    "read_commit",
    "read_counts",
    "read_delete_marker",
    "read_first_key",
    "read_last_clean",
    "read_log",
    "read_partition_metadata",
    "read_slice",
    "refuse_altered",
    "refuse_cleaned",
    "refuse_inexact",
    "refuse_removed",
    "rename_file",
    "slice_file_groups",
    "slices_changed",
    "stamp_rows",
]
