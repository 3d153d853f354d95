"""Tables: their settings, partitions and file groups."""

from hudi_locks.table.config import PROPERTIES_PATH, TableConfig
from hudi_locks.table.file_groups import BaseFile, Changes, files_changed, latest_base_files, list_partitions
from hudi_locks.table.limits import check_creatable, check_readable, check_writable
from hudi_locks.table.partition_path import (
    DEFAULT_PARTITION,
    PARTITION_METADATA,
    create_partition_metadata,
    parse_partition_path,
    partition_path,
    read_partition_metadata,
)
from hudi_locks.table.table import Table, read_commit

__all__ = [
    "DEFAULT_PARTITION",
    "PARTITION_METADATA",
    "PROPERTIES_PATH",
    "BaseFile",
    "Changes",
    "Table",
    "TableConfig",
    "check_creatable",
    "check_readable",
    "check_writable",
    "create_partition_metadata",
    "files_changed",
    "latest_base_files",
    "list_partitions",
    "parse_partition_path",
    "partition_path",
    "read_commit",
    "read_partition_metadata",
]
