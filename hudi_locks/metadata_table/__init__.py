"""The metadata table that JVM Hudi keeps beside a table."""

from hudi_locks.metadata_table.compaction import base_file_path, compact, plan_compaction
from hudi_locks.metadata_table.delta_commit import (
    DeltaCommit,
    describe_log,
    list_indexed,
    log_path,
    metadata_path,
    plan_clean,
    plan_delta_commit,
    plan_restore,
)
from hudi_locks.metadata_table.delta_commits import DeltaCommits, find_last_commit, find_last_compaction
from hudi_locks.metadata_table.key_places import KeyPlaces, KeySpread, read_keys
from hudi_locks.metadata_table.making import is_defined, make_metadata_table
from hudi_locks.metadata_table.measuring import choose_columns, measure_file
from hudi_locks.metadata_table.metadata_table import (
    INDEXES_PATH,
    METADATA_LAYOUT,
    OLD_METADATA_LAYOUT,
    MetadataTable,
    MetadataView,
)
from hudi_locks.metadata_table.record_groups import is_partitioned, list_fresh_groups
from hudi_locks.metadata_table.record_index import (
    LocatedKeys,
    StagedLog,
    encode_empty_log,
    encode_record_log,
    find_keys,
)
from hudi_locks.metadata_table.shape import Indexed, MetadataShape
from hudi_locks.metadata_table.skipping import find_slice_ranges
from hudi_locks.metadata_table.statistics import describe_range, hides_some, read_ranges

__all__ = [
    "INDEXES_PATH",
    "METADATA_LAYOUT",
    "OLD_METADATA_LAYOUT",
    "DeltaCommit",
    "DeltaCommits",
    "Indexed",
    "KeyPlaces",
    "KeySpread",
    "LocatedKeys",
    "MetadataShape",
    "MetadataTable",
    "MetadataView",
    "StagedLog",
    "base_file_path",
    "choose_columns",
    "compact",
    "describe_log",
    "describe_range",
    "encode_empty_log",
    "encode_record_log",
    "find_keys",
    "find_last_commit",
    "find_last_compaction",
    "find_slice_ranges",
    "hides_some",
    "is_defined",
    "is_partitioned",
    "list_fresh_groups",
    "list_indexed",
    "log_path",
    "make_metadata_table",
    "measure_file",
    "metadata_path",
    "plan_clean",
    "plan_compaction",
    "plan_delta_commit",
    "plan_restore",
    "read_keys",
    "read_ranges",
]
